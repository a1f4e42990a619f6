"""Staged blobs: sent whole or not there, seen by nobody until a request publishes them."""

import base64
import hashlib
import io
import os
import socket
import time
import tracemalloc
import uuid

import pytest
from sqlalchemy import update

from freezeframe.control.tables import keys
from freezeframe.service.rows.streams import override
from freezeframe.store.model.update_options import Author

CONTENT = b"0123456789" * 1000
MEBIBYTE = 1024**2


def _staged(api, acme, content=CONTENT, path="", **headers):
    return api.post(f"{acme}/blobs", params={"path": path} if path else {}, content=content, headers=headers)


def _batch(api, acme, *files, **order):
    return api.post(f"{acme}/file-batches", json={"files": list(files), **order})


def _raw(served, acme, query, headers, body, seconds=30):
    """What the service answers to a request whose body is sent as far as ``body`` has it."""
    host, port = served.url.removeprefix("http://").split(":")
    lines = [f"POST {acme}/blobs{query} HTTP/1.1", "Host: x", f"x-api-key: {served.key()}", *headers, "", ""]
    with socket.create_connection((host, int(port)), seconds) as connection:
        connection.sendall("\r\n".join(lines).encode() + body)
        return connection.recv(65536)


def test_a_blob_is_published_by_one_request(served, api, acme):
    """Nothing is to be seen before; then the file is there, as one version, and the blob is gone."""
    staged = _staged(api, acme, path="big.bin")
    blob = staged.json()
    before = api.get(f"{acme}/files").json()["files"]
    done = _batch(api, acme, {"blob": blob["id"], "path": "big.bin", "if_none_match": "*"}, message="big")
    again = _batch(api, acme, {"blob": blob["id"], "path": "other.bin"})
    (version,) = api.get(f"{acme}/history").json()["versions"]

    assert (staged.status_code, before, done.status_code, again.status_code) == (201, [], 200, 404)
    assert (len(CONTENT), hashlib.sha256(CONTENT).hexdigest()) == (blob["size"], blob["sha256"])
    assert api.get(f"{acme}/files/big.bin").content == CONTENT
    assert ("big", done.json()["tenant_version"]) == (version["message"], version["version"])
    assert list(served.uploads.glob(f"*/{blob['id']}")) == []


def test_a_large_file_takes_little_memory(api, acme):
    """Sent, published and read by pieces: the process never holds a fourth of it."""
    piece, pieces = os.urandom(MEBIBYTE), 64
    tracemalloc.start()
    blob = _staged(api, acme, (piece for _ in range(pieces))).json()
    done = _batch(api, acme, {"blob": blob["id"], "path": "big.bin"})
    with api.stream("GET", f"{acme}/files/big.bin") as answer:
        assert pieces * MEBIBYTE == sum(map(len, answer.iter_raw()))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (200, pieces * MEBIBYTE) == (done.status_code, blob["size"])
    assert most < pieces * MEBIBYTE / 4


def test_a_name_that_is_taken_is_refused_before_bytes_are_sent(served, api, acme):
    """With If-None-Match or another version's If-Match: 412, while the client waits to send its body."""
    api.put(f"{acme}/files/a", content=b"first").raise_for_status()
    waits = ["Content-Length: 300000000", "Expect: 100-continue"]
    for condition in ("If-None-Match: *", 'If-Match: "another"'):
        answer = _raw(served, acme, "?path=a", [*waits, condition], b"")
        assert answer.startswith(b"HTTP/1.1 412"), answer
    free = _raw(served, acme, "?path=b", [*waits, "If-None-Match: *"], b"")

    assert free.startswith(b"HTTP/1.1 100")
    # ``os.walk`` passes over a folder that goes meanwhile: the last request ended without a body.
    assert [folder for folder, _, names in os.walk(served.uploads) if "upload.json" in names] == []


def test_names_are_checked_before_anything_is_sent(api, acme):
    """`only_check` names the files whose conditions do not hold, and writes nothing."""
    api.put(f"{acme}/files/a", content=b"first").raise_for_status()
    named = [{"path": path, "if_none_match": "*"} for path in "ab"]
    refused = _batch(api, acme, *named, only_check=True)
    free = _batch(api, acme, named[1], only_check=True)

    assert (refused.status_code, refused.json()["paths"]) == (412, ["a"])
    assert (free.status_code, free.json()["files"]) == (200, [])
    assert [item["path"] for item in api.get(f"{acme}/files").json()["files"]] == ["a"]


def test_what_broke_off_is_not_there(served, api, acme):
    """Neither a blob nor its bytes are left; the file is sent again from its beginning."""
    before = set(served.uploads.glob("*/*/*"))

    def staged():
        return set(served.uploads.glob("*/*/*")) - before

    host, port = served.url.removeprefix("http://").split(":")
    lines = [f"POST {acme}/blobs HTTP/1.1", "Host: x", f"x-api-key: {served.key()}"]
    with socket.create_connection((host, int(port))) as connection:
        head = "\r\n".join([*lines, f"Content-Length: {len(CONTENT)}", "", ""]).encode()
        connection.sendall(head + CONTENT[:4000])
        until = time.monotonic() + 30
        while not staged() and time.monotonic() < until:
            time.sleep(0.02)
        assert staged()
    while staged() and time.monotonic() < until:
        time.sleep(0.02)

    assert staged() == set()
    assert _staged(api, acme).status_code == 201


@pytest.mark.parametrize("announced", ["content-digest", "x-content-sha256"])
def test_other_bytes_than_announced_are_not_kept(served, api, acme, announced):
    """Their SHA-256 is another one: 400, and no blob."""
    digest = hashlib.sha256(b"other").digest()
    text = f"sha-256=:{base64.b64encode(digest).decode()}:" if announced == "content-digest" else digest.hex()
    name = acme.rpartition("/")[2]
    folder = served.uploads / served.service.stores.environment("dev").folder(name)

    assert _staged(api, acme, **{announced: text}).status_code == 400
    assert not folder.exists() or list(folder.iterdir()) == []


@pytest.mark.parametrize("is_announced", [True, False])
def test_more_than_the_service_takes_is_refused(serve, is_announced):
    """A blob may be larger than other bodies, up to a limit of its own; announced or found while it comes."""
    served = serve(service_body_bytes_max=MEBIBYTE, service_upload_bytes_max=3 * MEBIBYTE)
    acme = served.tenant("acme")

    def content(size):
        return b"x" * size if is_announced else iter([b"x" * (size // 4)] * 4)

    with served.client() as api:
        answers = [_staged(api, acme, content(size)) for size in (2 * MEBIBYTE, 4 * MEBIBYTE)]

    assert [201, 413] == [answer.status_code for answer in answers]
    assert "service_upload_bytes_max" in answers[1].text


def test_several_blobs_are_one_version(api, acme):
    """A folder of 40 files: all of them in one version, each in the audit."""
    contents = {f"maps/{number:03d}.txt": b"x" * number for number in range(40)}
    named = [
        {"blob": _staged(api, acme, content, path=path).json()["id"], "path": path, "if_none_match": "*"}
        for path, content in contents.items()
    ]
    before = api.get(f"{acme}/files?recursive=true").json()["files"]
    written = _batch(api, acme, *named).json()
    files = api.get(f"{acme}/files?recursive=true").json()["files"]
    audited = api.get(f"{acme}/audit?limit=1000&action=file.write").json()["entries"]

    assert (before, files) == ([], written["files"])
    assert len(api.get(f"{acme}/history").json()["versions"]) == 1
    assert set(contents) == {item["subject"] for item in audited}
    assert all(contents[path] == api.get(f"{acme}/files/{path}").content for path in list(contents)[::8])


def test_a_batch_is_written_whole_or_not_at_all(api, acme):
    """Files whose conditions do not hold are named; the blobs are still there for another try."""
    for path in ("a", "b"):
        api.put(f"{acme}/files/{path}", content=b"first").raise_for_status()
    named = [
        {"blob": _staged(api, acme, b"second").json()["id"], "path": path, "if_none_match": "*"}
        for path in "abc"
    ]
    refused = _batch(api, acme, *named)
    etag = api.get(f"{acme}/files/a").headers["etag"]
    settled = [
        {**named[0], "if_none_match": None, "if_match": etag},
        {**named[1], "path": "b (2)"},
        named[2],
    ]
    twice = _batch(api, acme, *settled, settled[0])
    unknown = _batch(api, acme, settled[0], {"blob": "0" * 32, "path": "d"})
    done = _batch(api, acme, *settled)

    assert (refused.status_code, refused.json()["paths"]) == (412, ["a", "b"])
    assert (twice.status_code, unknown.status_code, done.status_code) == (422, 404, 200)
    found = [api.get(f"{acme}/files/{path}").content for path in ("a", "b", "b (2)")]
    assert found == [b"second", b"first", b"second"]
    assert len(api.get(f"{acme}/history").json()["versions"]) == 3


def test_a_blob_that_is_given_up_is_gone(api, acme):
    """DELETE removes it; a second time there is none."""
    place = f"{acme}/blobs/{_staged(api, acme).json()['id']}"

    assert [204, 404] == [api.delete(place).status_code for _ in range(2)]


def test_a_full_tenant_takes_no_more(serve):
    """Blobs that wait count, less what they will replace; what was given up does not."""
    served = serve(service_tenant_stored_bytes_max=30_000, service_requests_per_second=0)
    acme = served.tenant("crowded")
    with served.client() as api:
        api.put(f"{acme}/files/a", content=CONTENT).raise_for_status()
        replaces = _staged(api, acme, path="a")
        staged = [_staged(api, acme) for _ in range(3)]
        api.delete(f"{acme}/blobs/{staged[0].json()['id']}")
        again = _staged(api, acme)

    assert [item.status_code for item in (replaces, *staged, again)] == [201, 201, 201, 413, 201]
    assert staged[2].json()["code"] == "TENANT_FULL"


def test_what_waits_goes_with_an_erasure_and_with_the_tenant(served, api, acme):
    """A blob and a queued import's file may hold what is erased; jobs are not the next tenant's."""
    store, name = served.service.stores.environment("dev"), acme.rpartition("/")[2]
    waiting = served.uploads / store.folder(name)
    rows = {"content": b"Id,City\n1,Bern\n", "headers": {"content-type": "text/csv"}}
    override(store.tenant(name), "A", "csv", io.BytesIO(rows["content"]), Author("ada"), ("Id",))

    def wait():
        _staged(api, acme).raise_for_status()
        api.post(f"{acme}/streams/A/import?key=Id&job_id=j", **rows).raise_for_status()
        assert len(list(waiting.iterdir())) == 2

    wait()
    store.tenant(name).erase("A", [1])
    assert not waiting.exists()
    wait()
    store.delete_tenant(name)
    assert not waiting.exists()
    assert [(api.get(f"{acme}/jobs").status_code, api.get(f"{acme}/jobs/j").status_code)] == [(404, 404)]
    store.tenant(name, create=True)
    assert (api.get(f"{acme}/jobs").json()["jobs"], api.get(f"{acme}/jobs/j").status_code) == ([], 404)
    assert api.post(f"{acme}/jobs/j/cancel").status_code == 404
    assert api.get(f"{acme}/audit").json()["entries"] == []
    assert api.post(f"{acme}/streams/A/import?key=Id&job_id=j", **rows).json()["job_id"] == "j"


def test_a_repeated_batch_is_not_answered_about_a_lost_tenant(served, acme):
    """The key was bound to another tenant since: it gets no answer about this one, not even at once."""
    made = served.service.keys.create(scopes=["admin"])
    with served.client(made.key) as mine:
        order = {"files": [{"blob": _staged(mine, acme).json()["id"], "path": "a.bin"}]}
        headers = {"idempotency-key": uuid.uuid4().hex}
        first = mine.post(f"{acme}/file-batches", json=order, headers=headers)
        with served.service.database.begin() as connection:
            bound = update(keys).where(keys.c.id == made.id).values(tenants='["globex"]')
            connection.execute(bound)
        again = mine.post(f"{acme}/file-batches", json=order, headers=headers)

    assert (first.status_code, again.status_code) == (200, 404)
