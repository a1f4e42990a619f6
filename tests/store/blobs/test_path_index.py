"""Folders and pages of them, found without looking at every file."""

from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from freezeframe.store.blobs.blob_store import folders_in, paths_in

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
