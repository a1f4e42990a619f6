"""A tenant as one archive: out and in again, and what is refused on the way in."""

import gzip
import hashlib
import io
import json
import os
import tarfile

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.errors import FreezeframeError, InvalidOption, SealingUnavailable, UnreadableInput
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenants.archive_index import Member

SECRET = b"canary-secret-55d1"


def store(chosen=None):
    return Store(MemoryStorage(), None, chosen or Settings())


@pytest.fixture
def archive(keyed, tmp_path):
    """An archive of a tenant with a stream, files and a secret."""
    origin = store(keyed)
    with origin.tenant("acme", create=True).job() as job:
        job.stream("Account").update(pd.DataFrame({"Id": ["007", "8"], "Größe": [1, 2]}), key="Id")
        job.files.write("m/données.csv", b"a,b\n")
        job.files.write("big", os.urandom(3_000_000))
        job.files.write("empty", b"")
        job.files.write("secret.json", SECRET, sealed=True)
    target = tmp_path / "acme.tar.gz"
    origin.export_tenant("acme", target)
    return target


def test_it_comes_back_as_it_was(archive, keyed):
    """Rows with their types and key, files and secrets are there; the secret is sealed."""
    assert archive.stat().st_mode & 0o777 == 0o600
    assert SECRET not in gzip.decompress(archive.read_bytes())
    goal = store(keyed)
    tenant = goal.import_tenant(archive, "copy")
    rows = tenant.stream("Account").read(as_="arrow").to_pydict()
    assert rows == {"Id": ["007", "8"], "Größe": [1, 2]}
    assert tenant.stream("Account").key() == ("Id",)
    found = {one.path: one.sealed for one in tenant.files.list(recursive=True)}
    assert found == {"big": False, "empty": False, "m/données.csv": False, "secret.json": True}
    assert [tenant.files.read(path) for path in ("secret.json", "m/données.csv", "empty")] == [
        SECRET,
        b"a,b\n",
        b"",
    ]
    with pytest.raises(InvalidOption):
        goal.import_tenant(archive, "copy")
    with pytest.raises(InvalidOption):
        goal.export_tenant("copy", archive)


def test_without_the_master_key_secrets_stay_closed(archive, keyed, tmp_path):
    """Neither the export of sealed files nor their import works without the key; nothing is left."""
    goal = store()
    with pytest.raises(SealingUnavailable):
        goal.import_tenant(archive, "copy")
    assert goal.tenants() == ()
    other = store(keyed)
    other.import_tenant(archive, "copy")
    unkeyed = Store(other._storage, None, Settings())
    with pytest.raises(SealingUnavailable):
        unkeyed.export_tenant("copy", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def members(archive):
    with tarfile.open(archive) as tar:
        return {one.name: tar.extractfile(one).read() for one in tar}


def forged(tmp_path, parts):
    """An archive of these (name or header, content) parts."""
    target = tmp_path / "forged.tar.gz"
    with tarfile.open(target, "w:gz") as tar:
        for name, content in parts:
            header = tarfile.TarInfo(name) if isinstance(name, str) else name
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return target


def resigned(content, change):
    record = json.loads(content)
    del record["sha256"]
    change(record)
    return json.dumps({**record, "sha256": hashlib.sha256(json.dumps(record).encode()).hexdigest()}).encode()


def refused(goal, source, **options):
    with pytest.raises(FreezeframeError) as caught:
        goal.import_tenant(source, "copy", **options)
    assert goal.tenants() == ()
    assert list(goal._storage.list_below("tenants")) == []
    return caught.value


@pytest.mark.parametrize(
    "path",
    ["../escape", "/etc/passwd", "a/../../b", "_freezeframe/log/1.json", "Account.snapshot/x", "a\0b", ""],
)
def test_names_that_lead_out_are_refused(archive, keyed, tmp_path, path):
    """A validly signed index with a forged path is refused before anything is written."""
    found = members(archive)

    def change(record):
        next(one for one in record["members"] if one["kind"] == "file")["path"] = path

    found["index.json"] = resigned(found["index.json"], change)
    assert isinstance(refused(store(keyed), forged(tmp_path, found.items())), UnreadableInput)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_links_and_special_members_are_refused(archive, keyed, tmp_path, kind):
    """Anything but a plain file under the expected number is refused."""
    found = list(members(archive).items())
    header = tarfile.TarInfo(found[1][0])
    header.type, header.linkname = kind, "/etc/passwd"
    source = forged(tmp_path, [found[0], (header, b""), *found[2:]])
    assert isinstance(refused(store(keyed), source), UnreadableInput)


def test_a_commit_that_names_foreign_files_is_refused(archive, keyed, tmp_path):
    """A stream cannot be made to read another tenant's files, by a path that climbs or is absolute."""
    found = members(archive)
    number = next(
        i for i, one in enumerate(json.loads(found["index.json"])["members"]) if one["kind"] == "commit"
    )
    name = f"{number:08d}"
    lines = found[name].decode().split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith('{"add"'))
    for path in ("/etc/passwd", "../../other/part.parquet", "s3://bucket/x", "nothing.parquet"):
        add = json.loads(lines[place])
        add["add"]["path"] = path
        text = "\n".join([*lines[:place], json.dumps(add), *lines[place + 1 :]]).encode()

        def change(record, text=text):
            record["members"][number] |= {"size": len(text), "sha256": hashlib.sha256(text).hexdigest()}

        parts = {**found, "index.json": resigned(found["index.json"], change), name: text}
        refused(store(keyed), forged(tmp_path, parts.items()))


def test_too_large_and_too_packed_is_refused(archive, keyed, tmp_path):
    """The caps on bytes and on the ratio hold, by the index and by what really comes."""
    assert "allowed" in str(refused(store(keyed), archive, bytes_max=1_000_000))
    zeros = bytes(40_000_000)
    member = Member("file", len(zeros), hashlib.sha256(zeros).hexdigest(), path="zeros").to_json()

    def change(record):
        record["members"] = [member]

    index = resigned(members(archive)["index.json"], change)
    bomb = forged(tmp_path, [("index.json", index), ("00000000", zeros)])
    assert "times its size" in str(refused(store(keyed), bomb))
    header = tarfile.TarInfo("x" * 5_000_000)
    assert "header" in str(refused(store(keyed), forged(tmp_path, [(header, b"")])))


def test_what_is_missing_or_added_is_refused(archive, keyed, tmp_path):
    """A member left out, one too many, one changed, no index, and files that are not an archive."""
    found = list(members(archive).items())
    changed = [(name, content if name != "00000002" else content + b"x") for name, content in found]
    for parts in (found[:-1], [*found, ("more", b"")], changed, found[1:], []):
        refused(store(keyed), forged(tmp_path, parts))
    junk = tmp_path / "junk"
    for content in (b"", b"no archive", gzip.compress(b"no tar")):
        junk.write_bytes(content)
        refused(store(keyed), junk)
    refused(store(keyed), tmp_path / "absent")


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), cut=st.booleans())
def test_a_damaged_archive_is_never_half_imported(archive, keyed, tmp_path, place, cut):
    """Cut off anywhere or with a flipped byte: a typed error and no tenant, or (in padding) the whole."""
    content = archive.read_bytes()
    at = int(place * len(content))
    bad = content[:at] if cut else content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]
    source = tmp_path / "bad"
    source.write_bytes(bad)
    goal = store(keyed)
    try:
        tenant = goal.import_tenant(source, "copy")
    except FreezeframeError:
        assert goal.tenants() == ()
        assert list(goal._storage.list_below("tenants")) == []
    else:
        assert tenant.files.read("secret.json") == SECRET
        assert len(tenant.files.list(recursive=True)) == 4
