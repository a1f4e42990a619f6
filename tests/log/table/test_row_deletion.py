"""Deleting rows by vectors: what goes, what stays, what is refused."""

import io
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.log.data_files import new_files
from tests.log.tables import with_mapping

from freezeframe.errors import InvalidOption, UnsupportedTable
from freezeframe.log.format.actions import Add, Remove
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.scan import rows
from freezeframe.log.table.row_deletion import mark_rows
from freezeframe.storage import MemoryStorage


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


# Rows in the form of a table's data files.


def test_mapped_columns_are_written_under_physical_names_with_ids(make_table):
    """At every depth the file has physical names, ids at the top, and reads back under the table's names."""
    kinds = pa.schema(
        [
            ("a b", pa.int64()),
            ("s", pa.struct([("x y", pa.string())])),
            ("l", pa.list_(pa.struct([("z;", pa.int32())]))),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("p", pa.string()),
        ]
    )
    schema, id_max = with_mapping(arrow_to_delta(kinds))
    keys = {"columnMapping.mode": "name", "columnMapping.maxColumnId": str(id_max)}
    table = make_table(MemoryStorage(), schema=schema, **keys)
    table.create()
    row = {"a b": 1, "s": {"x y": "q"}, "l": [{"z;": 3}, None], "m": [("k", 4)], "p": "w"}
    files = new_files(pa.Table.from_pylist([row], kinds), schema, table.protocol, table.metadata)
    names = {field["metadata"]["delta.columnMapping.physicalName"] for field in schema["fields"]}
    [file] = files
    fields = pq.ParquetFile(io.BytesIO(file.content)).schema_arrow
    assert {field.name for field in fields} < names
    assert all(field.metadata[b"PARQUET:field_id"] for field in fields)
    assert set(file.add.partition_values) < names
    table.storage.put_if_absent(f"t/{file.name}", file.content)
    table.begin().commit([file.add], "WRITE")
    assert [row] == rows.read(table.fresh()).to_pylist()
