"""The columns of a Parquet checkpoint as the columns of a table's state.

Only the leaves that are needed are decoded, and only of row groups that hold any: a checkpoint
keeps all kinds of actions side by side in one file, one kind a row.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.action_columns import DELTA_NAMES, no_rows
from freezeframe.log.arrow_numbers import is_valid
from freezeframe.log.canonical_paths import canonical_paths
from freezeframe.log.replay import select_rows


def actions_in(file: Any, kind: str) -> Iterator[dict[str, Any]]:
    """The bodies of all actions of one small kind, as Delta's fields; nulls left out."""
    schema = file.schema_arrow
    if schema.get_field_index(kind) < 0:
        return
    for group in _groups_with(file, f"{kind}."):
        table = file.read_row_group(group, columns=[kind], use_threads=False)
        present = select_rows(table, is_valid(table[kind]))
        for body in present[kind].to_pylist():
            yield {name: _plain(value) for name, value in body.items() if value is not None}


def rows_of(file: Any, kind: str, schema: pa.Schema) -> pa.Table:
    """The file actions of one kind as rows of ``schema``, paths canonical."""
    index = file.schema_arrow.get_field_index(kind)
    if index < 0:
        return no_rows(schema)
    have = {field.name for field in file.schema_arrow.field(index).type}
    wanted = {field.name: DELTA_NAMES[field.name] for field in schema if DELTA_NAMES[field.name] in have}
    groups = _groups_with(file, f"{kind}.")
    parsed = "stats" in schema.names and "stats_parsed" in have
    batches = [_group_rows(file, group, kind, schema, wanted, parsed=parsed) for group in groups]
    return pa.concat_tables(batches) if batches else no_rows(schema)


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
    return answer


def _with_parsed_stats(answer: pa.Table, file: Any, group: int, present: Any) -> pa.Table:
    """Statistics that a checkpoint keeps as a struct only, written as the JSON that commits have."""
    table = file.read_row_group(group, columns=["add.stats_parsed"])
    structs = pc.struct_field(select_rows(table, present)["add"], "stats_parsed").to_pylist()
    texts = [
        text if text is not None or struct is None else json.dumps(_statistics(struct), separators=(",", ":"))
        for text, struct in zip(answer["stats"].to_pylist(), structs, strict=True)
    ]
    builder = pa.lib.StringBuilder()
    builder.append_values(texts)
    index = answer.schema.get_field_index("stats")
    return answer.set_column(index, answer.schema.field(index), builder.finish())


def _statistics(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _statistics(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_statistics(one) for one in value]
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
        return text if value.tzinfo is None else f"{text}Z"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value) if value != value.to_integral_value() else int(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def _groups_with(file: Any, prefix: str) -> list[int]:
    """The row groups in which some leaf below ``prefix`` may be non-null, by the footer's counts."""
    metadata = file.metadata
    paths = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    leaves = [index for index, path in enumerate(paths) if path.startswith(prefix)]
    return [
        group
        for group in range(metadata.num_row_groups)
        if any(_may_hold(metadata.row_group(group).column(leaf)) for leaf in leaves)
    ]


def _may_hold(column: Any) -> bool:
    statistics = column.statistics
    if statistics is None or not statistics.has_null_count:
        return True
    return bool(statistics.null_count < column.num_values)


def _plain(value: Any) -> Any:
    """Parquet's maps come as lists of pairs; Delta's JSON has objects."""
    if isinstance(value, list) and value and all(isinstance(one, tuple) for one in value):
        return dict(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value
