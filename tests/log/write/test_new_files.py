"""New data files: what goes in comes out, in the table's physical form, or is refused."""

import hashlib
import io
import json
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.log.foreign_forms import with_mapping

from freezeframe.errors import BadInput, MissingColumn, SchemaDriftError
from freezeframe.log.actions.actions import Metadata, Protocol
from freezeframe.log.scan import rows
from freezeframe.log.scan.data_files import SHA256_TAG
from freezeframe.log.schema.schema import arrow_to_delta
from freezeframe.log.write.new_files import new_files

PLAIN = Protocol(1, 2)


def made(data, schema=None, partition=(), protocol=PLAIN, **configuration):
    metadata = Metadata("id", None, tuple(partition), configuration)
    return new_files(data, schema or arrow_to_delta(data.schema), protocol, metadata)


def stored(file):
    return pq.ParquetFile(io.BytesIO(file.content), page_checksum_verification=True).read()


def test_a_file_is_named_once_and_signed():
    """Its name is new, its size and digest are of its bytes, its statistics of its rows."""
    data = pa.table({"n": [3, None, 1]})
    [first], [second] = made(data), made(data)
    assert first.name != second.name
    assert (len(first.content), first.name) == (first.add.size, first.add.path)
    assert {SHA256_TAG: hashlib.sha256(first.content).hexdigest()} == first.add.tags
    found = json.loads(first.add.stats)
    assert tuple(found[key] for key in ("numRecords", "minValues", "maxValues", "nullCount")) == (
        3,
        {"n": 1},
        {"n": 3},
        {"n": 1},
    )
    assert data.equals(stored(first))


def test_no_rows_make_no_file():
    """An empty batch writes nothing."""
    assert made(pa.table({"n": pa.array([], pa.int64())})) == []


def test_rows_are_parted_by_value():
    """One file for each combination of partition values, null among them, without these columns."""
    data = pa.table(
        {"n": [1, 2, 3, 4], "p": ["a", None, "a", "b c"], "d": [date(2020, 1, 1)] * 3 + [None]},
    )
    files = made(data, partition=["p", "d"])
    found = {tuple(file.add.partition_values.values()): stored(file).to_pydict() for file in files}
    day = "2020-01-01"
    assert {("a", day): {"n": [1, 3]}, (None, day): {"n": [2]}, ("b c", None): {"n": [4]}} == found


def test_missing_columns_are_null_and_others_are_cast_without_loss():
    """A column that the rows lack is null; a narrower type is widened; the order is the table's."""
    schema = arrow_to_delta(pa.schema([("a", pa.int64()), ("b", pa.decimal128(9, 2)), ("c", pa.string())]))
    data = pa.table({"b": pa.array([Decimal("1.5")], pa.decimal128(3, 1)), "a": pa.array([7], pa.int8())})
    [file] = made(data, schema)
    assert stored(file).to_pylist() == [{"a": 7, "b": Decimal("1.50"), "c": None}]


@pytest.mark.parametrize(
    ("data", "schema", "error"),
    [
        (pa.table({"n": ["1"]}), pa.schema([("n", pa.int64())]), SchemaDriftError),
        (pa.table({"n": [2**40]}), pa.schema([("n", pa.int32())]), SchemaDriftError),
        (pa.table({"n": [1.5]}), pa.schema([("n", pa.int64())]), SchemaDriftError),
        (pa.table({"x": [1]}), pa.schema([("n", pa.int64())]), MissingColumn),
        (pa.table({"n": [None]}), pa.schema([pa.field("n", pa.int64(), nullable=False)]), SchemaDriftError),
    ],
)
def test_rows_that_do_not_fit_are_refused(data, schema, error):
    """Text for numbers, numbers too large or broken, unknown columns, nulls where none may be."""
    with pytest.raises(error):
        made(data, arrow_to_delta(schema))


def test_nan_cannot_partition():
    """NaN equals nothing, so no partition could hold it."""
    with pytest.raises(BadInput, match="NaN"):
        made(pa.table({"n": [1], "f": [float("nan")]}), partition=["f"])


def test_mapped_columns_are_written_under_physical_names_with_ids(make_table):
    """At every depth the file has physical names, ids at the top, and reads back under the table's names."""
    from freezeframe.storage import MemoryStorage

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
