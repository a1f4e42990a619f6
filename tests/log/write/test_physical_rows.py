"""Rows in the form of a table's data files."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
from tests.log.data_files import new_files
from tests.log.foreign_forms import with_mapping

from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.scan import rows
from freezeframe.storage import MemoryStorage


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
