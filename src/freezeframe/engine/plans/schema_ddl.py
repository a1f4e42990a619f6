"""Arrow types as Spark's DDL, without PySpark.

Without a schema ``createDataFrame`` converts a timestamp without a zone to the session's zone; an
explicit schema preserves the difference.
"""

from __future__ import annotations

import pyarrow as pa

_NAMES: dict[pa.DataType, str] = {
    pa.null(): "void",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", tz="UTC"): "timestamp",
}


def spark_ddl(schema: pa.Schema) -> str:
    """The schema as ``createDataFrame`` and ``StructType.fromDDL`` take it.

    Args:
        schema: types that a stream can keep (``engine.arrow_columns.stored_type``).
    """
    return ", ".join(f"{_quote(field.name)} {_type(field.type)}" for field in schema)


def _type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_type(kind.key_type)},{_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{_quote(field.name)}: {_type(field.type)}' for field in kind)}>"
    return _NAMES[kind]


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
