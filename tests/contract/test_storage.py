"""What every storage promises, asked of all: disk, memory, overlay, object store, faulty without faults."""

import os
import threading
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore
from tests.buckets import made_bucket, seaweed_bucket
from tests.examples import examples

from freezeframe.errors import InvalidName
from freezeframe.storage import LocalStorage, MemoryStorage, PrefixStorage
from freezeframe.storage.base import OverlayStorage
from freezeframe.storage.location import S3Access
from freezeframe.storage.memory import FaultyStorage
from freezeframe.storage.objects import ObjectStorage

KINDS = (
    "local",
    "memory",
    "overlay",
    "objects",
    "objects below a prefix",
    "faulty",
    "a folder of local",
    "a folder of objects",
)
# Servers of this machine, which answer over HTTP: for the tests that take each kind once.
SERVED = ("moto", "seaweedfs")


def make(kind, folder):
    match kind:
        case "local":
            return LocalStorage(folder / "root")
        case "memory":
            return MemoryStorage()
        case "overlay":
            return OverlayStorage(MemoryStorage(), {}, 0)
        case "objects":
            return ObjectStorage(MemoryStore(), "memory://bucket")
        case "objects below a prefix":
            return ObjectStorage(MemoryStore(), "memory://bucket/a/b", "a/b")
        case "a folder of local":
            return PrefixStorage(LocalStorage(folder / "root"), "tenants/a")
        case "a folder of objects":
            return PrefixStorage(ObjectStorage(MemoryStore(), "memory://bucket"), "tenants/a")
        case _:
            return FaultyStorage(LocalStorage(folder / "root"))


@pytest.fixture(scope="module")
def moto():
    """A bucket of moto's server, as a storage for each folder of it."""
    with made_bucket() as bucket:
        access = S3Access.of_variables(os.environ)
        yield lambda folder: ObjectStorage.at(f"s3://{bucket}/{folder}", **access.obstore_options())


@pytest.fixture(scope="module")
def seaweedfs(tmp_path_factory):
    """A bucket of SeaweedFS, as a storage for each folder of it."""
    with seaweed_bucket(tmp_path_factory.mktemp("weed")) as bucket:
        access = S3Access.of_variables(os.environ)
        yield lambda folder: ObjectStorage.at(f"s3://{bucket}/{folder}", **access.obstore_options())


@pytest.fixture(params=(*KINDS, "moto", pytest.param("seaweedfs", marks=pytest.mark.long)))
def storage(request, tmp_path):
    if request.param in SERVED:
        return request.getfixturevalue(request.param)(uuid.uuid4().hex)
    return make(request.param, tmp_path)


def names(storage, folder, start=""):
    return [status.name for status in storage.list_from(folder, start)]


def test_what_was_created_is_read_back(storage):
    """A created file is there whole, from a name with folders, of bytes and of chunks."""
    storage.put_if_absent("a/b/c.json", b"whole")
    storage.put_if_absent("a/b/d.json", iter([b"in ", b"", b"parts"]))
    storage.put_if_absent("empty", b"")
    assert [storage.read(name) for name in ("a/b/c.json", "a/b/d.json", "empty")] == [
        b"whole",
        b"in parts",
        b"",
    ]


def test_a_taken_name_stays_as_it_is(storage):
    """The second creator is told so and changes nothing."""
    storage.put_if_absent("a/x", b"first")
    with pytest.raises(FileExistsError):
        storage.put_if_absent("a/x", b"second")
    assert storage.read("a/x") == b"first"
    assert names(storage, "a") == ["x"]


def test_of_many_creators_exactly_one_succeeds(storage):
    """Eight threads create the same thirty names: one success each, and its bytes are kept."""
    won = {number: [] for number in range(30)}
    start = threading.Barrier(8)

    def create(writer):
        start.wait()
        for number, winners in won.items():
            content = f"{writer} of {number}".encode()
            try:
                storage.put_if_absent(f"race/{number}", content)
            except FileExistsError:
                continue
            winners.append(content)

    threads = [threading.Thread(target=create, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: [storage.read(f"race/{number}")] for number in won} == won


def test_ranges_are_cut_at_the_end(storage):
    """A range gives the bytes that are there, none beyond the end."""
    storage.put_if_absent("x", b"0123456789")
    ranges = [(0, 3), (3, 4), (8, 5), (10, 1), (50, 2), (4, None), (0, 0)]
    wanted = [b"012", b"3456", b"89", b"", b"", b"456789", b""]
    assert [storage.read("x", offset, length) for offset, length in ranges] == wanted


@pytest.mark.parametrize("arguments", [(), (2, 3)])
def test_an_absent_file_is_said_to_be_absent(storage, arguments):
    """Reading what is not there is ``FileNotFoundError``, whole and by range, also beside others."""
    storage.put_if_absent("a/x", b"1")
    for name in ("nothing", "a/y", "a/x/y", "b/x"):
        with pytest.raises(FileNotFoundError):
            storage.read(name, *arguments)


def test_a_listing_is_one_folder_in_order(storage):
    """Files directly in the folder, in order of their bytes, with their sizes; no sub-folders."""
    for name in ("f/10", "f/9", "f/B", "f/a", "f/é", "f/sub/1", "g/1", "f2"):
        storage.put_if_absent(name, name.encode())
    found = list(storage.list_from("f"))
    assert [status.name for status in found] == ["10", "9", "B", "a", "é"]
    assert [status.size for status in found] == [4, 3, 3, 3, 4]
    assert all(status.modified_ms >= 0 for status in found)
    assert names(storage, "f/sub") == ["1"]
    assert names(storage, "") == ["f2"]


def test_a_listing_begins_where_it_is_told(storage):
    """``start`` is the first name that is listed, whether it is there or not."""
    for number in (0, 7, 9, 10, 11, 100):
        storage.put_if_absent(f"log/{number:020d}.json", b"{}")
    storage.put_if_absent("log/_last_checkpoint", b"{}")
    starts = (f"{9:020d}", f"{10:020d}.json", f"{12:020d}", "_", "~")
    assert [len(names(storage, "log", start)) for start in starts] == [5, 4, 2, 1, 0]


def test_an_absent_folder_is_empty(storage):
    """A folder that nobody made lists as nothing."""
    assert names(storage, "nowhere") == []
    assert names(storage, "nowhere/at/all", "5") == []


def test_replace_creates_and_overwrites(storage):
    """A derived copy is replaced whole."""
    storage.replace("a/hint", b"a longer first content")
    storage.replace("a/hint", b"second")
    assert storage.read("a/hint") == b"second"


def test_delete_is_final_and_forgiving(storage):
    """A deleted name is free again; deleting what is not there is fine."""
    storage.put_if_absent("a/x", b"1")
    storage.delete("a/x")
    storage.delete("a/x")
    storage.delete("never/was")
    assert names(storage, "a") == []
    storage.put_if_absent("a/x", b"2")
    assert storage.read("a/x") == b"2"


def test_all_files_below_a_folder_are_told(storage):
    """Files at any depth below the folder, with their sizes, and none beside it."""
    for name in ("f/1", "f/a/22", "f/a/b/333", "g/1", "f2"):
        storage.put_if_absent(name, name.rpartition("/")[2].encode())
    found = {status.name: status.size for status in storage.list_below("f")}
    assert found == {"1": 1, "a/22": 2, "a/b/333": 3}
    assert list(storage.list_below("nowhere")) == []
    assert len(list(storage.list_below(""))) == 5


def test_pruning_takes_no_file(storage):
    """Folders that hold nothing go, and with them those above; files stay."""
    for name in ("f/a/b/1", "f/a/2", "g/1"):
        storage.put_if_absent(name, b"")
    storage.delete("f/a/b/1")
    storage.prune("f")
    assert [status.name for status in storage.list_below("f")] == ["a/2"]
    storage.delete("f/a/2")
    storage.prune("f/a")
    storage.prune("never/was")
    assert [status.name for status in storage.list_below("")] == ["g/1"]
    if storage.local_path("f") is not None:
        assert not storage.local_path("f").exists()


@pytest.mark.parametrize("kind", ["local", "objects", "faulty", "a folder of local"])
@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a\0b"])
def test_a_name_never_leaves_the_root(kind, name, tmp_path):
    """A name that climbs or is absolute is refused by every verb."""
    storage = make(kind, tmp_path)
    for call in (storage.read, storage.delete, lambda n: storage.put_if_absent(n, b"")):
        with pytest.raises(InvalidName):
            call(name)


def test_odd_names_are_kept(storage):
    """Spaces, percent signs, plus signs and letters of any script are part of a name, not escapes."""
    odd = ["a b", "50%25", "1+1=2", "key=v:w", "a#b?c", "ünï", "日本", "emoji🙂", "x" * 200]
    for name in odd:
        storage.put_if_absent(f"odd/{name}", name.encode())
    assert sorted(odd, key=str.encode) == names(storage, "odd")
    assert [name.encode() for name in odd] == [storage.read(f"odd/{name}") for name in odd]


def test_local_files_have_a_path(tmp_path):
    """Only files of this machine have a path, and it leads to the same bytes."""
    local = LocalStorage(tmp_path)
    local.put_if_absent("a/x", b"1")
    assert local.local_path("a/x").read_bytes() == b"1"
    assert [make(kind, tmp_path).local_path("a/x") for kind in ("memory", "objects", "faulty")] == [None] * 3


steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "replace", "delete", "read", "list"]),
        st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a"]),
        st.binary(max_size=4),
    ),
    max_size=25,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(25))
@given(steps)
def test_every_storage_behaves_like_a_dictionary(kind, tmp_path_factory, taken):
    """Any sequence of calls gives what a plain dictionary would give."""
    storage = make(kind, tmp_path_factory.mktemp("storage"))
    model = {}
    for verb, name, content in taken:
        if verb == "put" and name in model:
            with pytest.raises(FileExistsError):
                storage.put_if_absent(name, content)
        elif verb == "put":
            storage.put_if_absent(name, content)
            model[name] = content
        elif verb == "replace":
            storage.replace(name, content)
            model[name] = content
        elif verb == "delete":
            storage.delete(name)
            model.pop(name, None)
        elif verb == "read" and name not in model:
            with pytest.raises(FileNotFoundError):
                storage.read(name)
        elif verb == "read":
            assert model[name] == storage.read(name)
        else:
            below = sorted(key[2:] for key in model if key.startswith("d/") and "/" not in key[2:])
            assert below == names(storage, "d")
