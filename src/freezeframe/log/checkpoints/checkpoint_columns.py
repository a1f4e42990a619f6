"""Converts the columns of a Parquet checkpoint to the columns of a table's state.

A checkpoint stores all kinds of actions in one file, one action a row. Decoding covers only the
required leaves, and only row groups that hold a value of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.actions.action_columns import DELTA_NAMES, no_rows
from freezeframe.log.actions.actions import is_misspelt
from freezeframe.log.primitives.arrow_numbers import is_valid, to_arrow_flags
from freezeframe.log.primitives.canonical_paths import canonical_paths
from freezeframe.log.replay.replay import select_rows, younger_than
from freezeframe.log.statistics.file_statistics import leaf_paths
from freezeframe.log.statistics.statistics_json import statistics_texts

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
    """The file actions of one kind as rows of ``schema``, paths canonical.

    ``oldest`` (ms) leaves out removes with that deletion time or an earlier one, row group by row group.

    Raises:
        ValueError: required columns of a checkpoint are missing, or damage changed a letter of a name.
    """
    there = _fields(file)
    have = there.get(kind)
    if kind == "add" and not have and there.keys().isdisjoint(_REQUIRED_LEAVES):
        raise ValueError("a file of nothing but file actions has no add column")
    if not have:
        return no_rows(schema)
    wanted = {field.name: DELTA_NAMES[field.name] for field in schema if DELTA_NAMES[field.name] in have}
    parsed = "stats" in schema.names and "stats_parsed" in have
    batches = []
    for group in range(file.num_row_groups):
        if kind == "add" or is_valid(file.read_row_group(group, columns=[f"{kind}.path"])[kind]).any():
            rows = _group_rows(file, group, kind, schema, wanted, parsed=parsed)
            if oldest is not None and kind == "remove":
                rows = rows.filter(to_arrow_flags(younger_than(rows["deletion_timestamp"], oldest)))
            batches.append(rows)
    return pa.concat_tables(batches) if batches else no_rows(schema)


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


def _group_rows(
    file: Any, group: int, kind: str, schema: pa.Schema, wanted: dict[str, str], *, parsed: bool
) -> pa.Table:
    columns = [f"{kind}.{name}" for name in wanted.values()]
    table = file.read_row_group(group, columns=columns, use_threads=True)
    present = is_valid(table[kind])
    rows = select_rows(table, present)[kind]
    found = []
    for field in schema:
        if field.name not in wanted:
            found.append(pa.chunked_array([pa.nulls(len(rows), field.type)]))
            continue
        column = pc.struct_field(rows, wanted[field.name])
        found.append(column if column.type == field.type else column.cast(field.type))
    answer = pa.Table.from_arrays(found, schema=schema)
    if answer["path"].null_count:
        raise ValueError(f"{answer['path'].null_count} {kind} actions have no path")
    answer = answer.set_column(0, schema.field(0), canonical_paths(answer["path"]))
    if parsed and answer["stats"].null_count:
        answer = _with_parsed_stats(answer, file, group, present)
    answer.validate(full=True)  # Arrow does not check the UTF-8 of Parquet texts
    return answer


def _with_parsed_stats(answer: pa.Table, file: Any, group: int, present: Any) -> pa.Table:
    """Fill ``stats`` with JSON where the checkpoint stores statistics as a struct only."""
    table = file.read_row_group(group, columns=["add.stats_parsed"])
    structs = pc.struct_field(select_rows(table, present)["add"], "stats_parsed")
    index = answer.schema.get_field_index("stats")
    texts = pc.coalesce(answer["stats"], statistics_texts(structs, _moments(file)))
    return answer.set_column(index, answer.schema.field(index), texts)


def _moments(file: Any) -> set[tuple[str, ...]]:
    """The INT96 leaves of ``add.stats_parsed``: Arrow reads them without a zone, Spark means UTC."""
    paths = [path for field in file.schema_arrow for path in leaf_paths(field)]
    return {
        path[2:]
        for index, path in enumerate(paths)
        if path is not None
        and path[:2] == ("add", "stats_parsed")
        and file.schema.column(index).physical_type == "INT96"
    }


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
