"""Files over HTTP: conditions, digests, ranges, folders, pages, and what is sealed."""

import base64
import hashlib
import io
import secrets
import socket
import time
import uuid
import zipfile

import pandas as pd
import pytest
from tests.asgi.places import on_this_disk

from freezeframe.storage import LocalStorage
from freezeframe.store.tenant_log.log import LogTail

DIGEST = base64.b64encode(hashlib.sha256(b"hello").digest()).decode()


def test_a_file_comes_back_as_it_was_sent(api, acme):
    """PUT answers 201 and then 200, GET gives the very bytes, and the ETag is the version's."""
    made = api.put(f"{acme}/files/mappings/ä b.bin", content=b"\x00hello\xff")
    again = api.put(f"{acme}/files/mappings/ä b.bin", content=b"second")
    read = api.get(f"{acme}/files/mappings/ä b.bin")

    assert (made.status_code, again.status_code) == (201, 200)
    assert read.content == b"second"
    assert again.headers["etag"] == read.headers["etag"] != made.headers["etag"]
    assert api.get(f"{acme}/files/mappings/ä b.bin?tenant_version=0").content == b"\x00hello\xff"


def test_who_has_the_version_already_gets_304(api, acme):
    """If-None-Match with the present tag saves the bytes; a version's file is named by its number."""
    etag = api.put(f"{acme}/files/a.csv", content=b"x").headers["etag"]
    names = [
        api.get(f"{acme}/files/a.csv", params=when).headers["content-disposition"].partition("''")[2]
        for when in ({}, {"version": 0})
    ]

    assert api.get(f"{acme}/files/a.csv", headers={"if-none-match": etag}).status_code == 304
    assert names == ["a.csv", "a%20v0.csv"]


def table(name):
    """A table of one row as a file of that name."""
    frame, buffer = pd.DataFrame({"Id": ["7"]}), io.BytesIO()
    (frame.to_parquet if name.endswith("parquet") else frame.to_csv)(buffer, index=False)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["S.snapshot.csv", "S.snapshot.parquet"])
def test_a_file_does_not_take_a_streams_name(api, acme, name):
    """It would become the stream's content: write, move and batch say so and write nothing."""
    source = {"path": "a.csv", "target": name}
    free = api.put(f"{acme}/files/{name}", content=b"Id\n1\n")
    api.delete(f"{acme}/files/{name}").raise_for_status()
    hotglue = f"/tenant/dev/{acme.rpartition('/')[2]}/snapshots?file={name}"
    api.put(hotglue, content=table(name)).raise_for_status()
    api.delete(f"{acme}/files/{name}").raise_for_status()
    api.put(f"{acme}/files/a.csv", content=b"Id\n1\n").raise_for_status()
    blob = api.post(f"{acme}/blobs", content=b"Id\n1\n").raise_for_status().json()["id"]
    version = api.get(acme).json()["version"]
    answers = [
        api.put(f"{acme}/files/{name}", content=b"Id\n1\n"),
        api.post(f"{acme}/file-moves", json=source),
        api.post(f"{acme}/file-batches", json={"files": [{"path": name, "blob": blob}]}),
    ]

    api.delete(f"{acme}/blobs/{blob}").raise_for_status()
    assert free.status_code == 201
    problem = f"The file {name} would become the content of the stream S."
    assert [(409, problem)] * 3 == [(each.status_code, each.json()["title"]) for each in answers]
    assert version == api.get(acme).json()["version"]
    assert api.put(f"{acme}/files/maps/{name}", content=b"").status_code == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"content-digest": f"sha-256=:{DIGEST}:"},
        {"x-content-sha256": hashlib.sha256(b"hello").hexdigest()},
    ],
)
def test_a_digest_is_checked_before_anything_is_published(api, acme, headers):
    """The announced SHA-256 lets the right bytes in and refuses others."""
    wrong = api.put(f"{acme}/files/a", content=b"hellO", headers=headers)

    assert (wrong.status_code, wrong.json()["code"]) == (400, "UNREADABLE_REQUEST")
    assert api.get(f"{acme}/files/a").status_code == 404
    assert api.put(f"{acme}/files/a", content=b"hello", headers=headers).status_code == 201


@pytest.mark.parametrize("value", ["sha-256=abc", "sha-256", "md5=:YQ==:, sha-256=:YQ==", "SHA-256=:?:"])
def test_a_digest_that_cannot_be_read_is_refused(api, acme, value):
    """One of another algorithm is ignored, one of ours that is malformed is not."""
    other = api.put(f"{acme}/files/a", content=b"x", headers={"content-digest": "md5=:YQ==:"})
    wrong = api.put(f"{acme}/files/a", content=b"y", headers={"content-digest": value})

    assert (other.status_code, wrong.status_code) == (201, 400)
    assert api.get(f"{acme}/files/a").content == b"x"


def test_an_upload_that_breaks_off_changes_nothing(served, api, acme):
    """A client that sends less than it announced leaves no file."""
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        head = [f"PUT {acme}/files/a HTTP/1.1", "Host: x", f"x-api-key: {served.key()}", "Content-Length: 99"]
        connection.sendall("\r\n".join([*head, "", "only this"]).encode())

    assert api.get(f"{acme}/files/a").status_code == 404
    assert api.get(f"{acme}/history").json()["versions"] == []


@pytest.mark.parametrize(
    ("wanted", "status", "content"),
    [
        ("bytes=0-3", 206, b"0123"),
        ("bytes=8-", 206, b"89"),
        ("bytes=-3", 206, b"789"),
        ("bytes=5-100", 206, b"56789"),
        ("bytes=20-", 416, None),
        ("bytes=-0", 416, None),
        ("lines=1-2", 200, b"0123456789"),
    ],
)
def test_a_part_of_a_file(api, acme, wanted, status, content):
    """Range gives the bytes asked for, or 416; a unit that is unknown is left out of account."""
    api.put(f"{acme}/files/a", content=b"0123456789")
    answer = api.get(f"{acme}/files/a", headers={"range": wanted})

    assert status == answer.status_code
    assert content is None or content == answer.content


def test_folders_are_made_listed_and_moved_into(api, acme):
    """A folder without files is there; listing tells folders and files apart."""
    api.post(f"{acme}/folders", json={"path": "empty/inner"})
    api.put(f"{acme}/files/a.csv", content=b"x")
    moved = api.post(f"{acme}/file-moves", json={"path": "a.csv", "target": "empty/a.csv"})
    top, inner = api.get(f"{acme}/files").json(), api.get(f"{acme}/files?folder=empty").json()

    assert moved.json()["path"] == "empty/a.csv"
    assert (top["folders"], top["files"]) == (["empty"], [])
    assert (inner["folders"], [item["path"] for item in inner["files"]]) == (["empty/inner"], ["empty/a.csv"])
    assert api.post(f"{acme}/folders", json={"path": "empty"}).status_code == 409


def test_a_deleted_file_is_brought_back(api, acme):
    """The version before the deletion names what comes back; its history tells all three."""
    version = api.put(f"{acme}/files/a", content=b"kept").json()["version"]
    api.delete(f"{acme}/files/a")
    done = api.post(f"{acme}/file-returns", json={"path": "a", "version": version}).json()
    body = api.get(f"{acme}/file-history?path=a").json()["revisions"]

    assert (done["committed"], done["files_written"]) == (True, ["a"])
    assert api.get(f"{acme}/files/a").content == b"kept"
    assert [item["deleted"] for item in body] == [False, True, False]


def test_pages_of_files_are_of_one_moment(api, acme):
    """Files that come between two pages are in neither; each file is told once."""
    for number in range(5):
        api.put(f"{acme}/files/{number}", content=b"x")
    seen, cursor = [], None
    while True:
        page = api.get(f"{acme}/files", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [item["path"] for item in page["files"]]
        api.put(f"{acme}/files/new-{len(seen)}", content=b"x")
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert seen == ["0", "1", "2", "3", "4"]


def test_a_sealed_file_is_read_with_a_trace_only(serve, tmp_path):
    """The audit has its entry before the bytes are given; without the audit they are not given."""
    key_file = tmp_path / "master.key"
    key_file.write_bytes(bytes(range(32)))
    key_file.chmod(0o600)
    served = serve(master_key_file=key_file)
    acme = served.tenant("acme")
    with served.client() as api:
        api.put(f"{acme}/files/secret.json?sealed=true", content=b'{"password": "x"}')
        read = api.get(f"{acme}/files/secret.json")
        body = api.get(f"{acme}/audit?action=file.unseal").json()["entries"]
        with served.service.database.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE audit RENAME TO audit_gone")
        refused = api.get(f"{acme}/files/secret.json")

    assert read.content == b'{"password": "x"}'
    assert [item["subject"] for item in body] == ["secret.json"]
    assert 500 <= refused.status_code
    assert b"password" not in refused.content


@pytest.mark.parametrize(("method", "place"), [("PUT", "files/a.txt"), ("POST", "blobs")])
def test_a_body_under_way_is_not_published_for_an_ended_key(serve, method, place):
    """The key is looked up again before the commit: revoked since the first bytes, nothing is written."""
    served = serve()
    acme = served.tenant(f"acme-{uuid.uuid4().hex[:8]}")
    key = served.service.keys.create(scopes=["admin"])

    def body():
        yield b"first"
        time.sleep(0.2)
        served.service.keys.revoke(key.id)
        served.service.keys._remembered.clear()  # as it is a second later
        yield b"last"

    with served.client(key.key) as late, served.client() as api:
        refused = late.request(method, f"{acme}/{place}", content=body())
        absent = api.get(f"{acme}/files/a.txt")

    assert (refused.status_code, absent.status_code) == (401, 404)
    assert list(served.uploads.glob("*/*")) == []


SEALED = b'{"hotglue_mapping": {"mapping": {"p": "zebra"}}, "hotglue_metadata": {"p": "zebra"}}'
READS = {
    "file": ("GET", "{tenant}/files/config.json", {}),
    "part": ("GET", "{tenant}/files/config.json", {"headers": {"range": "bytes=0-99"}}),
    "later moment": ("GET", "{tenant}/files/config.json?as_of=2999-01-01T00:00:00Z", {}),
    "bundle": ("GET", "{tenant}/bundle?file=config.json", {}),
    "hotglue file": ("GET", "/tenant/dev/{name}/snapshots?file=config.json", {}),
    "hotglue config": ("GET", "/tenant/dev/{name}/config", {}),
    "hotglue mapping": (
        "PUT",
        "/tenant/dev/{name}/mapping",
        {"json": {"config": {"mapping": {}}, "flow": "f"}},
    ),
    "hotglue metadata": ("PUT", "/tenant/dev/{name}/metadata", {"json": {"a": 1}}),
    "hotglue patch": ("PATCH", "/tenant/dev/{name}/config", {"json": {"a": 1}}),
}


@on_this_disk
@pytest.mark.parametrize("kind", READS)
def test_what_is_sealed_meanwhile_is_read_in_one_version(serve, tmp_path, monkeypatch, kind):
    """Before whichever look at the storage a file is sealed: without the right nobody sees its bytes."""
    (tmp_path / "master").write_bytes(secrets.token_bytes(32))
    (tmp_path / "master").chmod(0o600)
    served = serve(master_key_file=tmp_path / "master")
    name = f"acme-{uuid.uuid4().hex[:8]}"
    tenant = served.tenant(name)
    files = served.service.stores.environment("dev").tenant(name).files
    method, path, options = READS[kind]
    wait, statuses = Countdown(lambda: files.write("config.json", SEALED, sealed=True)), set()
    for owner, verb in ((LogTail, "is_at"), (LocalStorage, "read"), (LocalStorage, "list_from")):
        monkeypatch.setattr(owner, verb, wait.before(getattr(owner, verb)))

    with served.client(served.key("snapshots:read", "snapshots:write")) as caller:
        for count in range(200):
            files.write("config.json", b'{"p": "plain"}', sealed=False)
            wait.left = count
            answer = caller.request(method, path.format(tenant=tenant, name=name), **options)
            was_sealed, wait.left = wait.left is None, None
            statuses.add(answer.status_code)
            assert b"zebra" not in shown(answer)
            if not was_sealed:
                break

    assert not was_sealed
    assert count > 1
    assert statuses <= {200, 206, 403}
    assert statuses & {200, 206}, statuses


def shown(answer):
    """The bytes of an answer, with those that it has packed or written as base64."""
    if answer.content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            return b"".join(map(archive.read, archive.namelist()))
    coded = base64.b64encode(SEALED)
    return answer.content.replace(coded, SEALED)


class Countdown:
    """An action before one of the next looks at a storage: 0 is the next one; None: no action."""

    def __init__(self, action):
        self.action = action
        self.left = None

    def before(self, verb):
        """The verb, with the action before it when its turn comes."""

        def counted(*args, **options):
            if self.left == 0:
                self.left = None
                self.action()
            elif self.left is not None:
                self.left -= 1
            return verb(*args, **options)

        return counted
