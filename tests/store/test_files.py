"""Files of a tenant: versions, folders, JSON, secrets, and what may not be."""

import io
import os
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.errors import (
    ConflictError,
    CorruptData,
    FileNotFound,
    InvalidName,
    InvalidOption,
    SealingUnavailable,
    UnreadableInput,
    VersionNotFound,
)
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store import Tenant

SECRET = "canary-7f3a9c-secret"


@pytest.fixture
def tenant(open_on, memory):
    return open_on(memory)


def test_each_write_is_a_version(tenant):
    """What was written is read back, now and as of every older version and moment."""
    first = tenant.files.write("a.bin", b"one")
    tenant.files.write("a.bin", b"two")
    tenant.files.delete("a.bin")
    assert [tenant.files.read("a.bin", version) for version in (0, 1)] == [b"one", b"two"]
    assert tenant.files.read("a.bin", as_of=first.modified) == b"one"
    assert tenant.files.read("a.bin", tenant_version=1) == b"two"
    with pytest.raises(FileNotFound):
        tenant.files.read("a.bin")
    with pytest.raises(VersionNotFound):
        tenant.files.read("a.bin", 9)
    with pytest.raises(InvalidOption):
        tenant.files.read("a.bin", 1, as_of=first.modified)
    kinds = [(item.version, item.deleted, item.size) for item in tenant.files.history("a.bin")]
    assert kinds == [(2, True, 0), (1, False, 3), (0, False, 3)]


def test_listing_tells_size_moment_and_hash(tenant):
    """A folder lists what is directly in it, or all below; each with what is stored."""
    for path in ("b.txt", "m/a.csv", "m/deep/c.csv", "mm"):
        tenant.files.write_text(path, path)
    assert [item.path for item in tenant.files.list()] == ["b.txt", "mm"]
    assert [item.path for item in tenant.files.list("m")] == ["m/a.csv"]
    assert [item.path for item in tenant.files.list("m", recursive=True)] == ["m/a.csv", "m/deep/c.csv"]
    entry = tenant.files.list("m")[0]
    assert (entry.size, entry.sealed, entry.version) == (7, False, 1)
    assert len(entry.sha256) == 64
    assert entry.to_json()["modified"].endswith("Z")
    assert [item.path for item in tenant.files.list(version=0, recursive=True)] == ["b.txt"]


def test_a_job_changes_files_together(tenant):
    """Inside a job its own changes are seen, outside nothing before its end; an error leaves nothing."""
    tenant.files.write("old", b"1")
    with tenant.job("j1") as job:
        job.files.write("new", b"2")
        job.files.write("new", b"3")
        job.files.move("old", "moved")
        assert job.files.read("new") == b"3"
        assert not job.files.exists("old")
        assert not tenant.files.exists("new")
    assert (
        job.receipt.tenant_version,
        job.receipt.files_written,
        job.receipt.files_deleted,
    ) == (1, ("moved", "new"), ("old",))
    with pytest.raises(ZeroDivisionError), tenant.job() as job:  # noqa: PT012 - the job is the statement
        job.files.write("x", b"")
        raise ZeroDivisionError
    assert [item.path for item in tenant.files.list()] == ["moved", "new"]
    assert tenant.version == 1


def test_bytes_that_no_version_names_are_not_left(tenant, memory):
    """A job that overwrites its own file, or fails, leaves no blob behind."""
    with tenant.job() as job:
        job.files.write("a", b"first")
        job.files.write("a", b"second")
    with suppress(ZeroDivisionError), tenant.job() as job:
        job.files.write("b", b"third")
        raise ZeroDivisionError
    blobs = [
        memory.read(f"_freezeframe/blobs/{item.name}") for item in memory.list_below("_freezeframe/blobs")
    ]
    assert blobs == [b"second"]


def test_json_is_patched_as_the_standard_says(tenant):
    """Objects are merged, null removes, anything else replaces; a first patch makes the file."""
    assert tenant.files.patch_json("c.json", {"a": {"b": 1, "x": None}}) == {"a": {"b": 1}}
    tenant.files.patch_json("c.json", {"a": {"c": [1, 2]}, "d": "é"})
    assert tenant.files.patch_json("c.json", {"a": {"b": None}}) == {"a": {"c": [1, 2]}, "d": "é"}
    assert tenant.files.read_json("c.json") == {"a": {"c": [1, 2]}, "d": "é"}
    for bad in (float("nan"), {1: 2}, object()):
        with pytest.raises(InvalidOption):
            tenant.files.write_json("c.json", bad)
    tenant.files.write_text("t", "{not json " + SECRET)
    with pytest.raises(UnreadableInput) as caught:
        tenant.files.read_json("t")
    assert SECRET not in str(caught.value)


def test_two_patches_at_once_lose_nothing(tenant, open_on, memory):
    """A patch that was made from a file that changed meanwhile is a conflict, not a lost update."""
    tenant.files.write_json("c.json", {})
    with pytest.raises(ConflictError), tenant.job() as job:  # noqa: PT012 - the job is the statement
        job.files.patch_json("c.json", {"mine": 1})
        open_on(memory).files.patch_json("c.json", {"theirs": 2})
    assert tenant.files.read_json("c.json") == {"theirs": 2}


@pytest.mark.parametrize(
    "path", ["A.txt", "FOLDER/x", "folder", "a.txt/b", "../a", "_freezeframe/log/x", "S.snapshot/x"]
)
def test_paths_that_cannot_lie_beside_others_are_refused(tenant, path):
    """Case twins, a file that is a folder, a folder that is a file, and what leads out of the tenant."""
    tenant.files.write("a.txt", b"1")
    tenant.files.write("folder/b", b"2")
    with pytest.raises(InvalidName):
        tenant.files.write(path, b"3")
    assert tenant.version == 1


def test_a_twin_that_came_meanwhile_is_refused(tenant, open_on, memory):
    """The look at other names is repeated on the state that is committed on."""
    with pytest.raises(InvalidName), tenant.job() as job:  # noqa: PT012 - the job is the statement
        job.files.write("Config.json", b"1")
        open_on(memory).files.write("config.json", b"2")
    assert [item.path for item in tenant.files.list()] == ["config.json"]


@pytest.mark.parametrize("content", ["text", 7, None, ["a"], [b"a", 3]])
def test_only_bytes_are_taken(tenant, content):
    """Text and other things that are not bytes are refused, and nothing is written."""
    with pytest.raises(InvalidOption):
        tenant.files.write("a", content)
    assert tenant.version == -1


def test_streams_and_chunks_are_taken_and_given(open_on, local):
    """An open file or chunks go in, chunks come out; large content is never whole in one piece."""
    tenant = open_on(local)
    content = os.urandom(9_000_001)
    tenant.files.write("big", io.BytesIO(content))
    tenant.files.write("parts", iter([b"a", bytearray(b"b"), b""]))
    pieces = list(tenant.files.chunks("big"))
    assert content == b"".join(pieces)
    assert max(map(len, pieces)) < len(content)
    assert tenant.files.read("parts") == b"ab"


@pytest.mark.parametrize("sealed", [False, True])
def test_damage_is_found_at_each_read(keyed, sealed):
    """A flipped bit, a cut blob and a missing one are CorruptData, never content."""
    storage = MemoryStorage()
    tenant = Tenant(storage, None, keyed)
    tenant.files.write("a", b"x" * 5000, sealed=sealed)
    (blob,) = [f"_freezeframe/blobs/{item.name}" for item in storage.list_below("_freezeframe/blobs")]
    good = storage.read(blob)
    for bad in (good[:-1], good[:2000] + bytes([good[2000] ^ 1]) + good[2001:], b""):
        storage.replace(blob, bad)
        for read in (tenant.files.read, lambda path: b"".join(tenant.files.chunks(path))):
            with pytest.raises(CorruptData):
                read("a")
    storage.delete(blob)
    with pytest.raises(CorruptData):
        tenant.files.read("a")


def test_secrets_are_nowhere_in_the_clear(keyed, tmp_path):
    """A sealed file stays sealed when patched and moved; no byte on disk and no message shows it."""
    tenant = Tenant(LocalStorage(tmp_path / "t"), None, keyed)
    with tenant.job("first") as job:
        job.files.write_json("tenant-config.json", {"api_key": SECRET}, sealed=True)
    tenant.files.patch_json("tenant-config.json", {"more": SECRET})
    moved = tenant.files.move("tenant-config.json", "folder/config.json")
    assert moved.sealed
    assert tenant.files.read_json("folder/config.json") == {"api_key": SECRET, "more": SECRET}
    assert tenant.files.read_json("tenant-config.json", 0) == {"api_key": SECRET}
    found = [path for path in (tmp_path / "t").rglob("*") if path.is_file()]
    assert len(found) > 6
    assert [path for path in found if SECRET.encode() in path.read_bytes()] == []


def test_sealing_without_a_key_is_refused_before_anything_is_written(tenant):
    """There is no sealing in name only."""
    with pytest.raises(SealingUnavailable):
        tenant.files.write("a", b"1", sealed=True)
    assert tenant.version == -1


def test_the_same_job_again_is_answered_though_its_seal_differs(keyed):
    """Two sealings of the same bytes differ, but the input of the job is the same."""
    storage = MemoryStorage()
    for _ in range(2):
        with Tenant(storage, None, keyed).job("once") as job:
            job.files.write("a", b"secret", sealed=True)
    assert (job.receipt.tenant_version, job.receipt.repeated) == (0, True)


@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER])
def test_a_crash_leaves_all_files_or_none(open_on, memory, way):
    """A job of three file changes is there whole or not at all, wherever the process dies."""
    open_on(memory).files.write("a", b"old")
    number = 0
    while True:
        storage = memory.copy()
        tenant = open_on(storage)
        faulty = FaultyStorage(storage, [Fault(number, way)])
        try:
            with open_on(faulty).job() as job:
                job.files.write("a", b"new")
                job.files.write("b", b"new")
        except Crash:
            pass
        else:
            break
        seen = {item.path: tenant.files.read(item.path) for item in tenant.files.list()}
        assert seen in ({"a": b"old"}, {"a": b"new", "b": b"new"})
        number += 1
    assert number > 5


names = st.sampled_from(["a", "b", "f/a", "f/b", "A", "f", "g/h/i"])
steps = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "move"]), names, names, st.binary(max_size=3)), max_size=15
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_files_behave_like_a_dictionary_with_a_past(open_on, taken):
    """Any sequence of changes gives what a dictionary gives, at each version; a refusal changes nothing."""
    tenant = open_on(MemoryStorage())
    model, past = {}, []
    for verb, path, other, content in taken:
        after = dict(model)
        try:
            if verb == "write":
                tenant.files.write(path, content)
                after[path] = content
            elif verb == "delete":
                tenant.files.delete(path)
                del after[path]
            else:
                tenant.files.move(path, other)
                after[other] = after.pop(path)
        except (InvalidName, FileNotFound, InvalidOption):
            assert len(past) == tenant.version + 1
            continue
        model = after
        past.append(model)
    for version, expected in enumerate(past):
        found = tenant.files.list(recursive=True, version=version)
        assert {item.path: tenant.files.read(item.path, version) for item in found} == expected
