"""Columns of a Parquet checkpoint, converted to the log's own columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.log.format.action_columns import (
    DELTA_NAMES,
    FILE_SCHEMA,
    TEXT_MAP,
    TOMBSTONE_SCHEMA,
    no_rows,
)
from freezeframe.log.format.actions import Action, Metadata, is_misspelt
from freezeframe.log.primitives import arrow
from freezeframe.log.primitives.arrow import is_valid, release_memory, select_rows, to_arrow_flags
from freezeframe.log.primitives.paths import canonical_paths
from freezeframe.log.scan.parsed_statistics import (
    parse_partition_values,
    parse_statistics,
    partition_type,
    statistics_type,
)
from freezeframe.log.segments.replay import younger_than

# Converts a checkpoint's ``stats_parsed`` columns to the JSON of ``add.stats``.
#
# Conversion is by column, never value by value through Python: decimals keep their digits, and dates
# beyond Python's range keep their years.

_TEXT_ROWS = 1 << 16
_ESCAPED = r'[\x00-\x1f"\\]'


def statistics_texts(structs: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return one JSON text per struct, null for a null struct, without null fields."""
    pieces = [
        chunk.slice(at, _TEXT_ROWS) for chunk in structs.chunks for at in range(0, len(chunk), _TEXT_ROWS)
    ]
    return pa.chunked_array([_texts(piece) for piece in pieces], pa.string())


def _texts(values: pa.Array) -> pa.Array:
    kind = values.type
    if kinds.is_struct(kind):
        entries = [
            pc.binary_join_element_wise(f"{json.dumps(field.name)}:", _texts(item), ",", "")
            for field, item in zip(values.type, values.flatten(), strict=True)
        ]
        # Arrow's null_handling="skip" would lose the rows that are all null.
        body = pc.binary_join_element_wise(*(pc.fill_null(entry, "") for entry in entries), "")
        whole = pc.binary_join_element_wise("{", pc.ascii_rtrim(body, ","), "}", "")
        return pc.if_else(values.is_valid(), whole, None)
    if kinds.is_timestamp(kind) or kinds.is_date(kind):
        return _quote_json(arrow.texts(values))
    if kinds.is_floating(kind):
        # Numbers as JSON; NaN and infinities quoted, as Spark does.
        plain = values.cast(pa.string())
        infinite = pc.if_else(pc.greater(values, 0), '"Infinity"', '"-Infinity"')
        return pc.if_else(pc.is_nan(values), '"NaN"', pc.if_else(pc.is_inf(values), infinite, plain))
    if kinds.is_integer(kind) or kinds.is_decimal(kind) or kinds.is_boolean(kind):
        return values.cast(pa.string())
    if kinds.is_string(kind) or kinds.is_binary(kind) or kinds.is_large_string(kind):
        values = values.cast(pa.string())
        if not pc.any(pc.match_substring_regex(values, _ESCAPED)).as_py():
            return _quote_json(values)
        builder = pa.lib.StringBuilder()
        builder.append_values([item if item is None else json.dumps(item) for item in values.to_pylist()])
        return builder.finish()
    return pa.nulls(len(values), pa.string())  # lists and maps have no statistics


def _quote_json(values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', values, '"', "")


# Converts the columns of a Parquet checkpoint to the columns of a table's state.
#
# A checkpoint stores all kinds of actions in one file, one action a row. Decoding covers only the
# required leaves, and only row groups that hold a value of them.

_PIECE_ROWS = 1 << 14
_PIECES_BETWEEN_RELEASES = 4
# A required leaf of each kind of action: where it is null, the row holds no such action.
_REQUIRED_LEAVES = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "checkpointMetadata": "version",
    "sidecar": "path",
}


_REQUIRED_FIELDS = {
    "add": {"path", "partitionValues", "size"},
    "remove": {"path"},
    **{kind: {leaf} for kind, leaf in _REQUIRED_LEAVES.items()},
}
_KNOWN_NAMES = {
    *_REQUIRED_LEAVES,
    *DELTA_NAMES.values(),
    "add",
    "remove",
    "partitionValues_parsed",
    "stats_parsed",
}


def small_actions_in(file: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kind, fields in Delta's spelling) of every non-file action, without nulls.

    The footer's statistics could locate these rows, but on a damaged footer they make Arrow abort
    the process. Reading one leaf of each kind raises an error instead.
    """
    there = _fields(file)
    leaves = {kind: leaf for kind, leaf in _REQUIRED_LEAVES.items() if kind in there}
    for group in range(file.num_row_groups):
        columns = [f"{kind}.{leaf}" for kind, leaf in leaves.items()]
        table = file.read_row_group(group, columns=columns, use_threads=False)
        for kind in leaves:
            present = is_valid(table[kind])
            if present.any():
                bodies = file.read_row_group(group, columns=[kind], use_threads=False)[kind]
                for body in select_rows(pa.table({kind: bodies}), present)[kind].to_pylist():
                    yield kind, {name: _plain(value) for name, value in body.items() if value is not None}


def rows_of(file: Any, kind: str, schema: pa.Schema, oldest: int | None = None) -> pa.Table:
    """Return the file actions of one kind as rows of ``schema``, paths canonical, without statistics.

    ``oldest`` (ms) leaves out removes with that deletion time or an earlier one.
    """
    there = _fields(file)
    have = there.get(kind)
    if kind == "add" and not have and there.keys().isdisjoint(_REQUIRED_LEAVES):
        raise ValueError("a file of nothing but file actions has no add column")
    if not have:
        return no_rows(schema)
    wanted = {
        field.name: DELTA_NAMES[field.name]
        for field in schema
        if DELTA_NAMES[field.name] in have and field.name != "stats"
    }
    batches = []
    for table in _pieces(file, kind, [f"{kind}.{name}" for name in wanted.values()]):
        rows = _rows(table[kind], schema, wanted)
        if rows["path"].null_count:
            raise ValueError(f"{rows['path'].null_count} {kind} actions have no path")
        if oldest is not None and kind == "remove":
            rows = rows.filter(to_arrow_flags(younger_than(rows["deletion_timestamp"], oldest)))
        batches.append(rows)
    return pa.concat_tables(batches) if batches else no_rows(schema)


def statistics_of(file: Any) -> pa.ChunkedArray:
    """Return the statistics of each add of a file, as JSON; null for an add without."""
    have = _fields(file).get("add", set()) & {"stats", "stats_parsed"}
    pieces = []
    for table in _pieces(file, "add", [f"add.{name}" for name in sorted(have) or ["path"]]):
        adds = table["add"]
        texts = pa.chunked_array([pa.nulls(len(adds), pa.string())])
        if "stats" in have:
            texts = pc.struct_field(adds, "stats").cast(pa.string())
        if "stats_parsed" in have and texts.null_count:
            texts = pc.coalesce(texts, statistics_texts(pc.struct_field(adds, "stats_parsed")))
        texts.validate(full=True)  # Arrow does not check the UTF-8 of Parquet texts
        pieces += texts.chunks
    return pa.chunked_array(pieces, pa.string())


def _pieces(file: Any, kind: str, columns: list[str]) -> Iterator[pa.Table]:
    """Yield the rows that hold an action of one kind, some thousands at a time, with some of its fields."""
    for group in range(file.num_row_groups):
        if kind != "add" and not is_valid(file.read_row_group(group, columns=[f"{kind}.path"])[kind]).any():
            continue
        batches = file.iter_batches(_PIECE_ROWS, row_groups=[group], columns=columns)
        for number, batch in enumerate(batches, 1):
            table = pa.Table.from_batches([batch])
            yield select_rows(table, is_valid(table[kind]))
            if number % _PIECES_BETWEEN_RELEASES == 0:
                release_memory()


def _fields(file: Any) -> dict[str, set[str]]:
    """Return the file's columns and the fields of each, checked for names with one changed letter.

    A flipped bit in the footer renames a column; without the check its values would be lost silently.
    """
    schema = file.schema_arrow
    there = {
        item.name: {child.name for child in item.type} if pa.types.is_struct(item.type) else set()
        for item in schema
    }
    for kind, leaves in {
        **_REQUIRED_FIELDS,
        **{item: {leaf} for item, leaf in _REQUIRED_LEAVES.items()},
    }.items():
        if not leaves <= there.get(kind, leaves):
            raise ValueError(f"the column {kind!r} lacks some of {', '.join(sorted(leaves))}")
    for name in set(there) | there.get("add", set()) | there.get("remove", set()):
        if is_misspelt(name, _KNOWN_NAMES):
            raise ValueError(f"the column {name!r} is misspelt by damage")
    return there


def _rows(actions: pa.ChunkedArray, schema: pa.Schema, wanted: dict[str, str]) -> pa.Table:
    found = []
    for field in schema:
        if field.name in wanted:
            column = pc.struct_field(actions, wanted[field.name])
            found.append(column if column.type == field.type else column.cast(field.type))
        else:
            # Nulls in memory that all pieces share: most columns of most checkpoints hold nothing else.
            count = len(actions)
            shared = [
                _shared_nulls(field.type).slice(0, min(count - at, _PIECE_ROWS))
                for at in range(0, count, _PIECE_ROWS)
            ]
            found.append(pa.chunked_array(shared, field.type))
    answer = pa.Table.from_arrays(found, schema=schema)
    answer = answer.set_column(0, schema.field(0), canonical_paths(answer["path"]))
    answer.validate(full=True)  # Arrow does not check the UTF-8 of Parquet texts
    return answer


@cache
def _shared_nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(_PIECE_ROWS, kind)


def _plain(value: Any) -> Any:
    """Convert Parquet's maps (lists of pairs) to the objects of Delta's JSON."""
    if isinstance(value, bytes):
        raise ValueError("a text column is not marked as text")  # noqa: TRY004 - the file's fault, not ours
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return {key: _plain(item) for key, item in value}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


# Rows of a Parquet checkpoint: one action each, in the column of its kind, other columns null.
#
# The schema is that of the protocol's section "Checkpoint Schema". Statistics are stored as JSON text,
# which every reader supports, or as structs where the table's properties ask for them.

_TEXTS = pa.list_(pa.field("element", pa.string()))


def _rename_fields(schema: pa.Schema) -> pa.DataType:
    return pa.struct([pa.field(DELTA_NAMES[field.name], field.type) for field in schema])


CHECKPOINT_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        ("add", _rename_fields(FILE_SCHEMA)),
        ("remove", _rename_fields(TOMBSTONE_SCHEMA)),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", TEXT_MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", _TEXTS),
                    ("configuration", TEXT_MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", _TEXTS),
                    ("writerFeatures", _TEXTS),
                ]
            ),
        ),
        (
            "domainMetadata",
            pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        ),
    ]
)
_STRUCTS = ("partitionValues_parsed", "stats_parsed")


def schemas_for(files: pa.Table) -> tuple[pa.Schema, pa.Schema]:
    """Return schemas of a checkpoint and of its sidecars for ``files``, which may have columns of structs."""
    add = CHECKPOINT_SCHEMA.field("add")
    more = [pa.field(name, files.schema.field(name).type) for name in _STRUCTS if name in files.schema.names]
    wide = CHECKPOINT_SCHEMA.set(
        CHECKPOINT_SCHEMA.get_field_index("add"), pa.field("add", pa.struct([*add.type, *more]))
    )
    return wide, pa.schema([wide.field("add"), wide.field("remove")])


def with_structs(files: pa.Table, metadata: Metadata, time_zone: tzinfo) -> pa.Table:
    """Return the files with the columns that the table's properties ask for; text alone by default.

    ``delta.checkpoint.writeStatsAsStruct`` adds typed statistics and partition values,
    ``delta.checkpoint.writeStatsAsJson=false`` leaves out the texts.
    """
    properties = metadata.configuration
    found = files
    if properties.get("delta.checkpoint.writeStatsAsStruct", "false").lower() == "true":
        if metadata.partition_columns:
            kind = partition_type(metadata.schema, metadata.partition_columns)
            typed = parse_partition_values(files["partition_values"], kind, time_zone)
            found = found.append_column("partitionValues_parsed", typed)
        kind = statistics_type(metadata.schema, metadata.partition_columns)
        found = found.append_column("stats_parsed", parse_statistics(files["stats"], kind))
    if properties.get("delta.checkpoint.writeStatsAsJson", "true").lower() == "false":
        nothing = pa.chunked_array([pa.nulls(files.num_rows, pa.string())])
        found = found.set_column(files.schema.get_field_index("stats"), "stats", nothing)
    return found


def small_rows(actions: Sequence[Action], schema: pa.Schema) -> pa.Table:
    """Rows of the non-file actions, in the given order."""
    rows = [{action.KEY: _pairs(action.to_json())} for action in actions]
    return pa.Table.from_pylist(rows, schema=schema)


def file_rows(files: pa.Table, kind: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows of the ``add`` or ``remove`` actions of ``files`` in the columns of ``schema``, table by table."""
    target = schema.field(kind).type
    # Each table becomes a row group of its own, which costs kilobytes even for a few rows.
    for batch in files.combine_chunks().to_batches():
        actions = pa.StructArray.from_arrays(batch.columns, fields=list(target))
        yield pa.Table.from_arrays(
            [actions if field.name == kind else pa.nulls(batch.num_rows, field.type) for field in schema],
            schema=schema,
        )


def _pairs(body: Mapping[str, Any]) -> dict[str, Any]:
    """Convert objects that are maps in Parquet to Arrow's lists of pairs."""
    found = dict(body)
    if "configuration" in found and isinstance(found["configuration"], Mapping):
        found["configuration"] = list(found["configuration"].items())
    if "format" in found:
        found["format"] = {**found["format"], "options": list(found["format"]["options"].items())}
    return found
