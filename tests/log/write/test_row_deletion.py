"""Deleting rows by vectors: what goes, what stays, what is refused."""

import json
from dataclasses import replace

import pytest

from freezeframe.errors import InvalidOption, UnsupportedTable
from freezeframe.log.format.actions import Add, Remove
from freezeframe.log.scan import rows
from freezeframe.log.table.row_deletion import mark_rows


def paths(snapshot):
    return snapshot.files["path"].to_pylist()


def numbers(snapshot):
    return sorted(rows.read(snapshot)["n"].to_pylist())


def test_deletions_add_up(table):
    """A second deletion keeps the first; rows that are gone already are not counted again."""
    table.append(range(6))
    for wanted, gone, left in (([0, 1], 2, [2, 3, 4, 5]), ([1, 5], 1, [2, 3, 4])):
        begun = table.begin()
        deletion = mark_rows(begun.snapshot, {paths(begun.snapshot)[0]: wanted})
        assert gone == deletion.deleted_rows
        table.storage.put_if_absent(f"t/{deletion.file.name}", deletion.file.content)
        begun.commit(deletion.actions, "DELETE")
        assert left == numbers(table.fresh())


def test_a_file_that_loses_all_its_rows_is_removed(table):
    """No vector is written for a file of which nothing is left."""
    table.append(range(3))
    begun = table.begin()
    deletion = mark_rows(begun.snapshot, {paths(begun.snapshot)[0]: range(3)})
    assert (None, 3, [Remove]) == (deletion.file, deletion.deleted_rows, [type(a) for a in deletion.actions])
    begun.commit(deletion.actions, "DELETE")
    assert numbers(table.fresh()) == []


def test_many_files_share_one_vector_file(table):
    """The vectors of one call are in one file, each for its own data file."""
    table.append(range(3))
    table.append(range(3, 6))
    begun = table.begin()
    deletion = mark_rows(begun.snapshot, {path: [1] for path in paths(begun.snapshot)})
    adds = [action for action in deletion.actions if isinstance(action, Add)]
    assert 2 == len({add.deletion_vector.offset for add in adds}) == len(adds)
    table.storage.put_if_absent(f"t/{deletion.file.name}", deletion.file.content)
    begun.commit(deletion.actions, "DELETE")
    assert numbers(table.fresh()) == [0, 2, 3, 5]


def test_nothing_to_delete_is_nothing_to_do(table):
    """Without positions there is no file and no action."""
    table.append(range(3))
    deletion = mark_rows(table.fresh(), {paths(table.fresh())[0]: []})
    assert (deletion.file, deletion.actions, deletion.deleted_rows) == (None, (), 0)


@pytest.mark.parametrize(("path", "position"), [(None, 3), ("not-there.parquet", 0)])
def test_rows_that_are_not_there_are_refused(table, path, position):
    """A position beyond the file's end, and a file that is not live, are mistakes of the caller."""
    table.append(range(3))
    with pytest.raises(InvalidOption):
        mark_rows(table.fresh(), {path or paths(table.fresh())[0]: [position]})


def test_a_file_of_unknown_length_is_refused(table):
    """Without a row count in the log a vector could hide that the file was changed."""
    [add] = table.adds(range(3))
    table.begin().commit([replace(add, stats=json.dumps({"minValues": {}}))], "WRITE")
    with pytest.raises(UnsupportedTable, match="how many rows"):
        mark_rows(table.fresh(), {add.path: [0]})
