"""Paths that are kept beside each other can lie beside each other on any disk."""

from hypothesis import given
from hypothesis import strategies as st

from freezeframe.errors import InvalidName
from freezeframe.identifiers import FilePath, fold_path
from freezeframe.store.blobs.blob_store import FileNames, SpareNames

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
