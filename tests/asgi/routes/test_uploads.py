"""Resumable uploads: they go on where they broke off, and appear whole or not at all."""

import base64
import hashlib
import io
import socket
import time

import pytest

from freezeframe.service.rows.streams import override
from freezeframe.store.model.author import Author

CONTENT = b"0123456789" * 1000
LENGTH = len(CONTENT)
PART = {"content-type": "application/offset+octet-stream", "tus-resumable": "1.0.0"}


def _metadata(**values):
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in values.items())


def _begin(api, acme, length=LENGTH, **values):
    headers = {"upload-length": str(length), "upload-metadata": _metadata(path="big.bin", **values)}
    return api.post(f"{acme}/uploads", headers=headers)


def test_an_upload_in_parts_appears_with_its_last_byte(api, acme):
    """Nothing is to be seen before; then the whole file is there, in one version."""
    begun = _begin(api, acme, sha256=hashlib.sha256(CONTENT).hexdigest())
    place = begun.headers["location"]
    api.patch(place, content=CONTENT[:6000], headers={**PART, "upload-offset": "0"}).raise_for_status()
    before = api.get(f"{acme}/files").json()["files"]
    stands = api.head(place).headers["upload-offset"]
    done = api.patch(place, content=CONTENT[6000:], headers={**PART, "upload-offset": "6000"})

    assert (begun.status_code, before, stands, done.status_code) == (201, [], "6000", 204)
    assert api.get(f"{acme}/files/big.bin").content == CONTENT
    assert done.headers["etag"] == api.get(f"{acme}/files/big.bin").headers["etag"]
    assert api.head(place).status_code == 404
    assert len(api.get(f"{acme}/history").json()["versions"]) == 1


def test_what_waits_goes_with_an_erasure_and_with_the_tenant(served, api, acme):
    """Half an upload and a queued import's file may hold what is erased; jobs are not the next tenant's."""
    store, name = served.service.stores.environment("dev"), acme.rpartition("/")[2]
    waiting = served.uploads / store.folder(name)
    rows = {"content": b"Id,City\n1,Bern\n", "headers": {"content-type": "text/csv"}}
    override(store.tenant(name), "A", "csv", io.BytesIO(rows["content"]), Author("ada"), ("Id",))

    def wait():
        place = _begin(api, acme).headers["location"]
        api.patch(place, content=CONTENT[:10], headers={**PART, "upload-offset": "0"}).raise_for_status()
        api.post(f"{acme}/streams/A/import?key=Id&job_id=j", **rows).raise_for_status()
        assert len(list(waiting.iterdir())) == 2
        return place

    place = wait()
    store.tenant(name).erase("A", [1])
    assert (api.head(place).status_code, waiting.exists()) == (404, False)
    wait()
    store.delete_tenant(name)
    assert not waiting.exists()
    assert [(api.get(f"{acme}/jobs").status_code, api.get(f"{acme}/jobs/j").status_code)] == [(404, 404)]
    store.tenant(name, create=True)
    assert (api.get(f"{acme}/jobs").json()["jobs"], api.get(f"{acme}/jobs/j").status_code) == ([], 404)
    assert api.post(f"{acme}/jobs/j/cancel").status_code == 404
    assert api.get(f"{acme}/audit").json()["entries"] == []
    assert api.post(f"{acme}/streams/A/import?key=Id&job_id=j", **rows).json()["job_id"] == "j"


def test_a_part_that_broke_off_is_kept(served, api, acme):
    """What had come before the connection broke need not be sent again."""
    place = _begin(api, acme).headers["location"]
    host, port = served.url.removeprefix("http://").split(":")
    head = [
        f"PATCH {place} HTTP/1.1",
        "Host: x",
        f"x-api-key: {served.key()}",
        f"Content-Type: {PART['content-type']}",
        "Upload-Offset: 0",
        f"Content-Length: {len(CONTENT)}",
    ]
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall("\r\n".join([*head, "", ""]).encode() + CONTENT[:4000])
        time.sleep(2)  # so that the server, which first looks up who asks, has read it by then
    stands, end = 0, time.monotonic() + 30
    while not stands and time.monotonic() < end:
        stands = int(api.head(place).headers["upload-offset"])
    rest = {"content": CONTENT[stands:], "headers": {**PART, "upload-offset": str(stands)}}
    done = api.patch(place, **rest)
    while done.status_code == 409 and time.monotonic() < end:  # the request that broke off is being ended
        time.sleep(0.05)
        done = api.patch(place, **rest)

    assert (stands, done.status_code) == (4000, 204)
    assert api.get(f"{acme}/files/big.bin").content == CONTENT


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"upload-offset": "5"}, b"x", 409),
        ({"upload-offset": "0"}, CONTENT + b"x", 413),
        ({"upload-offset": "0", "content-type": "text/plain"}, b"x", 400),
        ({"upload-offset": "0", "tus-resumable": "0.2.2"}, b"x", 412),
        ({"upload-offset": "-1"}, b"x", 422),
    ],
)
def test_a_part_that_cannot_be_taken(api, acme, headers, content, status):
    """Another place, too many bytes, another type or version of tus: a problem, and no file."""
    place = _begin(api, acme).headers["location"]

    assert status == api.patch(place, content=content, headers={**PART, **headers}).status_code
    assert api.get(f"{acme}/files/big.bin").status_code == 404


def test_other_bytes_than_announced_are_never_published(api, acme):
    """The SHA-256 of all parts together decides."""
    place = _begin(api, acme, sha256=hashlib.sha256(b"other").hexdigest()).headers["location"]
    done = api.patch(place, content=CONTENT, headers={**PART, "upload-offset": "0"})

    assert done.status_code == 400
    assert api.get(f"{acme}/files/big.bin").status_code == 404


def test_an_upload_that_is_given_up_is_gone(api, acme):
    """DELETE ends it."""
    place = _begin(api, acme).headers["location"]

    assert api.delete(place, headers=PART).status_code == 204
    assert api.head(place).status_code == 404


def test_more_than_the_service_takes_is_refused_at_once(api, acme, served):
    """The announced length is held to the limit before a byte is sent."""
    limit = served.service.settings.service_upload_bytes_max

    assert _begin(api, acme, length=limit + 1).status_code == 413
    assert str(limit) == api.options(f"{acme}/uploads").headers["tus-max-size"]


def test_a_part_may_be_larger_than_other_bodies(serve):
    """The limit of a body does not hold for the parts of an upload, which has a limit of its own."""
    served = serve(service_body_bytes_max=1024)
    content = bytes(100_000)
    with served.client() as api:
        tenant = served.tenant("acme")
        place = _begin(api, tenant, length=len(content)).headers["location"]

        assert api.put(f"{tenant}/files/a", content=content).status_code == 413
        assert api.patch(place, content=content, headers={**PART, "upload-offset": "0"}).status_code == 204


def test_an_empty_file_is_there_at_once(api, acme):
    """An upload of no bytes needs no part."""
    assert _begin(api, acme, length=0).status_code == 201
    assert api.get(f"{acme}/files/big.bin").content == b""


def test_what_waits_for_a_tenant_goes_with_it(served, api, acme):
    """Deleting a tenant removes its unfinished uploads and the input of its jobs, and nobody else's."""
    other = served.tenant(f"{acme.rpartition('/')[2]}-other")
    kept = _begin(api, other).headers["location"]
    place = _begin(api, acme).headers["location"]
    api.patch(place, content=b"secret-of-acme", headers={**PART, "upload-offset": "0"}).raise_for_status()
    csv = {"content-type": "text/csv"}
    api.post(f"{acme}/streams/S/import", content=b"Id\nsecret-of-acme\n", headers=csv).raise_for_status()
    api.delete(acme, params={"confirm": acme.rpartition("/")[2]}).raise_for_status()
    folder = served.uploads

    assert [one for one in folder.rglob("*") if one.is_file() and b"secret-of-acme" in one.read_bytes()] == []
    assert api.head(kept).status_code == 200


def _waiting(api, acme, path, content):
    """The id of a finished upload that waits for its batch."""
    headers = {"upload-length": str(len(content)), "upload-metadata": _metadata(path=path, purpose="batch")}
    begun = api.post(f"{acme}/uploads", headers=headers)
    if content:
        sent = api.patch(begun.headers["location"], content=content, headers={**PART, "upload-offset": "0"})
        sent.raise_for_status()
    return begun.json()["id"]


def test_a_batch_of_uploads_is_one_version(served, api, acme):
    """Nothing is to be seen before; then all files are there, in one version, and the uploads are gone."""
    contents = {f"maps/{number}.txt": b"x" * number for number in range(5)}
    named = [
        {"upload": _waiting(api, acme, path, content), "path": path, "if_none_match": "*"}
        for path, content in contents.items()
    ]
    before = api.get(f"{acme}/files?recursive=true").json()["files"]
    written = api.post(f"{acme}/file-batches", json={"files": named, "message": "maps"}).json()
    files = api.get(f"{acme}/files?recursive=true").json()["files"]
    (version,) = api.get(f"{acme}/history").json()["versions"]
    audited = api.get(f"{acme}/audit").json()["entries"]

    assert ([], "maps", written["tenant_version"]) == (before, version["message"], version["version"])
    assert files == written["files"]
    assert contents == {path: api.get(f"{acme}/files/{path}").content for path in contents}
    assert set(contents) == {one["subject"] for one in audited if one["action"] == "file.write"}
    assert list((served.uploads).glob(f"*/{named[0]['upload']}")) == []


def test_a_batch_is_written_whole_or_not_at_all(api, acme):
    """Files whose conditions do not hold are named; the uploads are still there for another try."""
    for path in ("a", "b"):
        api.put(f"{acme}/files/{path}", content=b"first").raise_for_status()
    named = [
        {"upload": _waiting(api, acme, path, b"second"), "path": path, "if_none_match": "*"} for path in "abc"
    ]
    refused = api.post(f"{acme}/file-batches", json={"files": named})
    etag = api.get(f"{acme}/files/a").headers["etag"]
    settled = [
        {**named[0], "if_none_match": None, "if_match": etag},
        {**named[1], "path": "b (2)"},
        named[2],
    ]
    twice = api.post(f"{acme}/file-batches", json={"files": [*settled, {**settled[0]}]})
    done = api.post(f"{acme}/file-batches", json={"files": settled})

    assert (refused.status_code, refused.json()["paths"]) == (412, ["a", "b"])
    assert (twice.status_code, done.status_code) == (422, 200)
    assert [api.get(f"{acme}/files/{path}").content for path in ("a", "b", "b (2)")] == [
        b"second",
        b"first",
        b"second",
    ]
    assert len(api.get(f"{acme}/history").json()["versions"]) == 3


def test_only_a_finished_upload_of_that_purpose_is_of_a_batch(api, acme):
    """One that lacks bytes, one that becomes a file by itself, one that nobody knows: nothing is written."""
    half = _begin(api, acme, purpose="batch").json()["id"]
    other = _begin(api, acme).json()["id"]
    found = [
        api.post(f"{acme}/file-batches", json={"files": [{"upload": one, "path": "a"}]})
        for one in (half, other, "0" * 32)
    ]

    assert [one.status_code for one in found] == [409, 409, 404]
    assert api.get(f"{acme}/files").json()["files"] == []
