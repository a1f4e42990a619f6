"""Converts the columns of a Parquet checkpoint to the columns of a table's state.

A checkpoint stores all kinds of actions in one file, one action a row. Decoding covers only the
required leaves, and only row groups that hold a value of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.actions.action_columns import DELTA_NAMES, no_rows
from freezeframe.log.actions.actions import is_misspelt
from freezeframe.log.primitives.arrow_memory import release_memory
from freezeframe.log.primitives.arrow_numbers import is_valid, to_arrow_flags
from freezeframe.log.primitives.canonical_paths import canonical_paths
from freezeframe.log.replay.replay import select_rows, younger_than
from freezeframe.log.statistics.statistics_json import statistics_texts

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
    """(kind, fields in Delta's spelling) of every non-file action, without nulls.

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
    """The file actions of one kind as rows of ``schema``, paths canonical, without statistics.

    ``oldest`` (ms) leaves out removes with that deletion time or an earlier one.

    Raises:
        ValueError: required columns of a checkpoint are missing, or damage changed a letter of a name.
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
    """The statistics of each add of a file, as JSON; null for an add without.

    Raises:
        ValueError: as ``rows_of``.
    """
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
    """The rows that hold an action of one kind, some thousands at a time, with some of its fields."""
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
    """The file's columns and the fields of each, checked for names with one changed letter.

    A flipped bit in the footer renames a column; without the check its values would be lost silently.
    """
    schema = file.schema_arrow
    there = {one.name: _children(one.type) for one in schema}
    for kind, leaves in {
        **_REQUIRED_FIELDS,
        **{one: {leaf} for one, leaf in _REQUIRED_LEAVES.items()},
    }.items():
        if not leaves <= there.get(kind, leaves):
            raise ValueError(f"the column {kind!r} lacks some of {', '.join(sorted(leaves))}")
    for name in set(there) | there.get("add", set()) | there.get("remove", set()):
        if is_misspelt(name, _KNOWN_NAMES):
            raise ValueError(f"the column {name!r} is misspelt by damage")
    return there


def _children(kind: pa.DataType) -> set[str]:
    return {child.name for child in kind} if pa.types.is_struct(kind) else set()


def _rows(actions: pa.ChunkedArray, schema: pa.Schema, wanted: dict[str, str]) -> pa.Table:
    found = []
    for field in schema:
        if field.name in wanted:
            column = pc.struct_field(actions, wanted[field.name])
            found.append(column if column.type == field.type else column.cast(field.type))
        else:
            found.append(_nulls(len(actions), field.type))
    answer = pa.Table.from_arrays(found, schema=schema)
    answer = answer.set_column(0, schema.field(0), canonical_paths(answer["path"]))
    answer.validate(full=True)  # Arrow does not check the UTF-8 of Parquet texts
    return answer


def _nulls(count: int, kind: pa.DataType) -> pa.ChunkedArray:
    """Nulls in memory that all pieces share: most columns of most checkpoints hold nothing else."""
    shared = [
        _shared_nulls(kind).slice(0, min(count - at, _PIECE_ROWS)) for at in range(0, count, _PIECE_ROWS)
    ]
    return pa.chunked_array(shared, kind)


@cache
def _shared_nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(_PIECE_ROWS, kind)


def _plain(value: Any) -> Any:
    """Convert Parquet's maps (lists of pairs) to the objects of Delta's JSON."""
    if isinstance(value, bytes):
        raise ValueError("a text column is not marked as text")  # noqa: TRY004 - the file's fault, not ours
    if isinstance(value, list) and value and all(isinstance(one, tuple) for one in value):
        return {key: _plain(one) for key, one in value}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value
