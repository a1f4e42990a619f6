"""Content of files: verified parts, JSON merge patches, and the index of paths."""

import json
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.given import tenant as open_tenant

from freezeframe.errors import CorruptData, InvalidName, InvalidOption, UnreadableInput
from freezeframe.identifiers import FilePath, fold_path
from freezeframe.storage import LocalStorage
from freezeframe.store.blobs.blob_store import (
    FileNames,
    SpareNames,
    folders_in,
    from_json_bytes,
    merge_patch,
    paths_in,
    to_json_bytes,
)

CONTENT = bytes(range(256)) * 20_000


class Counted(LocalStorage):
    """A local disk that counts the bytes that are read from blobs."""

    read_bytes = 0

    def read(self, name, offset=0, length=None):
        found = super().read(name, offset, length)
        if "/blobs/" in name:
            self.read_bytes += len(found)
        return found


@pytest.fixture
def storage(tmp_path):
    return Counted(tmp_path / "tenant")


@pytest.fixture
def files(storage):
    tenant = open_tenant(storage)
    tenant.files.write("large.bin", CONTENT)
    return tenant.files


def test_parts_after_the_first_are_read_alone(storage, files):
    """The first part costs a reading of all; those after it cost what they hold."""
    for first, last in ((0, 0), (5_000, 5_999), (len(CONTENT) - 10, len(CONTENT) + 50)):
        storage.read_bytes = 0
        assert CONTENT[first : last + 1] == b"".join(files.part("large.bin", first, last))
    assert storage.read_bytes == 10


def test_damage_after_the_proof_is_found(storage, files, tmp_path):
    assert CONTENT[:10] == b"".join(files.part("large.bin", 0, 9))
    (blob,) = (path for path in tmp_path.rglob("blobs/*/*") if path.is_file())
    with blob.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"damage")
    with pytest.raises(CorruptData):
        files.part("large.bin", 0, 9)


# RFC 7396, Appendix A: original, patch, result.
CASES = [
    ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
    ('{"a":"b"}', '{"a":null}', "{}"),
    ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
    ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
    ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
    ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
    ('["a","b"]', '["c","d"]', '["c","d"]'),
    ('{"a":"b"}', '["c"]', '["c"]'),
    ('{"a":"foo"}', "null", "null"),
    ('{"a":"foo"}', '"bar"', '"bar"'),
    ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
    ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
    ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
]


@pytest.mark.parametrize(("original", "patch", "result"), CASES)
def test_the_standards_own_examples(original, patch, result):
    """Each example of the standard gives its result, and neither argument is changed."""
    before, change = json.loads(original), json.loads(patch)
    assert json.loads(result) == merge_patch(before, change)
    assert (json.loads(original), json.loads(patch)) == (before, change)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "\\ud" not in json.dumps(value))


@settings(max_examples=examples(40))
@given(values)
def test_a_value_comes_back(value):
    assert value == from_json_bytes(to_json_bytes(value), "a.json")


@pytest.mark.parametrize("content", [b"", b"{", b'{"a":1,"a":2}', b"[NaN]", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused(content):
    """Cut off, a member twice, numbers that are none, no UTF-8, and nesting without end."""
    with pytest.raises(UnreadableInput):
        from_json_bytes(content, "a.json")


@pytest.mark.parametrize("value", [float("inf"), {1: 2}, {"a": {None: 1}}, b"x", {"a": object()}, [[{2: 1}]]])
def test_what_json_cannot_say_is_refused(value):
    """Keys that are not text would come back as others, so they are refused at any depth."""
    with pytest.raises(InvalidOption):
        to_json_bytes(value)


NAMES = st.sampled_from(["a", "b", "a-", "a0", "a!", "é"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@given(st.sets(PATHS, max_size=30), st.sampled_from(["", "a/", "a-/", "a/b/", "x/"]), PATHS, st.booleans())
def test_what_is_found_is_what_a_look_at_all_finds(paths, within, after, recursive):
    """In order, behind a path, in a folder: whatever lies beside it under similar names."""
    files = MappingProxyType(dict.fromkeys(paths))
    inside = sorted(path for path in paths if path.startswith(within))
    direct = [path for path in inside if recursive or "/" not in path[len(within) :]]
    above = {
        path[:place]
        for path in inside
        for place in range(len(within), len(path))
        if path[place] == "/" and (recursive or "/" not in path[len(within) : place])
    }

    assert direct == list(paths_in(files, within, recursive=recursive))
    assert [path for path in direct if path > after] == list(
        paths_in(files, within, after, recursive=recursive)
    )
    found = list(folders_in(files, within, recursive=recursive))
    assert sorted(above) == sorted(found)
    assert len(found) == len(set(found))


class Counting(str):
    """A text that counts how often such texts are compared."""

    __slots__ = ()
    compared = 0

    def __lt__(self, other):
        Counting.compared += 1
        return str.__lt__(self, other)

    __hash__ = str.__hash__


def test_a_page_costs_what_is_on_it():
    """Of ten thousand files in one folder a page of a few is found with a few comparisons."""
    files = MappingProxyType({Counting(f"f/{number:05}"): None for number in range(10_000)})
    list(paths_in(files, "", recursive=False))
    Counting.compared = 0
    page = paths_in(files, "f/", "f/07000", recursive=False)

    assert [next(page), next(page)] == ["f/07001", "f/07002"]
    assert list(folders_in(files, "", recursive=False)) == ["f"]
    assert Counting.compared < 100


names = st.sampled_from(["a", "A", "b", "ß", "SS", "é", "É"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@given(st.lists(paths, max_size=8))
def test_what_is_kept_can_lie_on_a_disk_without_case(tried):
    """Of any sequence of paths the accepted ones are files of a disk that sees no case, each its own."""
    kept = []
    for path in tried:
        try:
            FileNames(kept).require(FilePath(path))
        except InvalidName:
            continue
        kept.append(path)
    disk = {}
    for path in set(kept):
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            part = "/".join(parts[:count])
            kind = "file" if count == len(parts) else "folder"
            assert (part, kind) == disk.setdefault(fold_path(part), (part, kind))


@given(paths, paths)
def test_a_refusal_has_a_reason(first, second):
    """Two paths are refused beside each other only if they begin alike, but for case."""
    try:
        FileNames([first]).require(FilePath(second))
    except InvalidName:
        shorter, longer = sorted((fold_path(first).split("/"), fold_path(second).split("/")), key=len)
        assert shorter[0] == longer[0]
        assert first != second


@given(st.lists(st.tuples(st.booleans(), paths), max_size=12), paths)
def test_names_that_came_and_went_leave_no_trace(steps, asked):
    """What was added and removed answers like the names that are left, written down anew."""
    names = FileNames()
    left = []
    for is_added, path in steps:
        if is_added and _answer(names, path) is None:
            names.add(path)
            left = [*(name for name in left if name != path), path]
        elif not is_added:
            names.remove(path)
            left = [name for name in left if name != path]
    assert _answer(FileNames(left), asked) == _answer(names, asked)


def _answer(names, path):
    try:
        names.require(FilePath(path))
    except InvalidName as error:
        return error.cause
    return None


@given(st.lists(st.lists(paths, max_size=6), min_size=1, max_size=4), paths)
def test_names_of_one_job_become_those_of_the_next(jobs, asked):
    """Whatever the last job left, the next one's names answer like names that were made anew."""
    spare = SpareNames()
    for job in jobs:
        kept = _fitting(job)
        names = spare.take(kept.keys())
        assert _answer(FileNames(kept), asked) == _answer(names, asked)
        if _answer(names, asked) is None:
            names.add(asked)
        spare.give_back(names)


def test_names_are_nobody_elses_until_they_are_given_back():
    """Two jobs of a tenant at once have names of their own; what the next one gets was given back."""
    spare = SpareNames()
    first, second = spare.take({"a"}), spare.take({"a"})
    assert first is not second
    spare.give_back(first)
    assert first is spare.take({"a", "b"})


def _fitting(tried):
    """Of the paths those that can lie beside the ones before them."""
    kept = {}
    for path in tried:
        if _answer(FileNames(kept), path) is None:
            kept[path] = path
    return kept
