"""What a commit file says: its file actions as Arrow columns, everything else as values.

A commit of a large table is hundreds of thousands of ``add`` lines and a handful of others.
The few others are found by looking at eight bytes of each line and are parsed one by one; the
rest goes through Arrow's JSON reader at once. Where that reader cannot follow (an unknown
field of changing type, an odd number), each line is parsed by itself: slower, the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from freezeframe.errors import CorruptLog
from freezeframe.log.action_columns import (
    DELTA_NAMES,
    FILE_SCHEMA,
    TEXT_MAP,
    TOMBSTONE_SCHEMA,
    FileActions,
    from_adds,
    from_removes,
    text_map,
)
from freezeframe.log.actions import Action, Add, Remove, parse_line
from freezeframe.log.arrow_numbers import is_valid, to_arrow_flags
from freezeframe.log.canonical_paths import canonical_paths

_NEWLINE = ord("\n")
_ADD_HEAD = np.frombuffer(b'{"add":{', dtype="<u8")[0]
_REMOVE_HEAD = np.frombuffer(b'{"remove', dtype="<u8")[0]
_BLOCK_BYTES = 2 << 20
_MAPS = ("partition_values", "tags")


@dataclass(frozen=True, slots=True)
class CommitContent:
    """One commit taken apart: ``spans`` hold the lines of file actions, ``actions`` are the others."""

    name: str
    spans: tuple[memoryview, ...]
    actions: tuple[Action, ...]

    @property
    def size(self) -> int:
        """The bytes of its file actions."""
        return sum(len(span) for span in self.spans)

    def without_files(self) -> CommitContent:
        """The same without its file actions: what may be kept without keeping the file's bytes."""
        return CommitContent(self.name, (), self.actions)


def read_content(name: str, content: bytes) -> CommitContent:
    """Take the bytes of a commit apart.

    Raises:
        CorruptLog: the file is empty, or a line that is no add or remove is torn or no action
            (``DELTA_LOG_MALFORMED_JSON``), naming file and line.
    """
    _require_whole(name, content)
    view = memoryview(content)
    spans: list[memoryview] = []
    actions: list[Action] = []
    moved: list[Add | Remove] = []
    begin = 0
    for start, end, number in _other_lines(content):
        if start > begin:
            spans.append(view[begin:start])
        begin = min(end + 1, len(content))
        line = content[start:end]
        if line.strip():
            action = _parse(name, number, line)
            if isinstance(action, Add | Remove):
                moved.append(action)
            elif action is not None:
                actions.append(action)
    if begin < len(content):
        spans.append(view[begin:])
    if moved:  # file actions spelled with spaces are written again as Arrow's reader is given them
        spans.append(memoryview("\n".join(json.dumps({one.KEY: one.to_json()}) for one in moved).encode()))
    _require_single(name, actions)
    return CommitContent(name, tuple(spans), tuple(actions))


def parse_file_actions(contents: Sequence[CommitContent], partition_names: Sequence[str]) -> FileActions:
    """The file actions of commits in ascending order, paths canonical.

    ``partition_names`` are the (physical) names of the partition columns in force; others that
    turn up in the commits are found and kept as well.

    Raises:
        CorruptLog: a line is torn or no action, naming file and line.
    """
    spans = [span for content in contents for span in content.spans]
    if not spans:
        return FileActions.empty()
    whole: Any = spans[0] if len(spans) == 1 else b"\n".join(spans)
    names = {"partition_values": list(partition_names), "tags": []}
    try:
        table = _arrow_json(whole, names)
        found = _map_names(table, names)
        if found != names:
            table = _arrow_json(whole, found)
            names = found
    except pa.ArrowInvalid:
        return _parse_each(contents)
    del whole, spans
    return _to_actions(table, names)


def _require_whole(name: str, content: bytes) -> None:
    tail = content[-64:].rstrip()
    if tail.endswith(b"}"):
        return
    empty = not tail and not content.strip()
    raise CorruptLog(
        f"The commit {name} is {'empty' if empty else 'cut off'}.",
        cause="A writer without atomic create died there, or the file was truncated.",
        remedy="Restore it from a copy; until then read the version before it.",
        code="DELTA_LOG_MALFORMED_JSON",
        file=name,
    )


def _other_lines(content: bytes) -> Iterator[tuple[int, int, int]]:
    """(start, end, line number) of the lines that do not begin as a file action does."""
    octets = np.frombuffer(content, dtype=np.uint8)
    ends = np.append(np.flatnonzero(octets == _NEWLINE), len(content))
    starts = np.concatenate([[0], ends[:-1] + 1])
    heads = np.ndarray(shape=(max(0, len(content) - 7),), dtype="<u8", buffer=content, strides=(1,))
    other = np.ones(len(starts), dtype=np.bool_)
    reachable = np.flatnonzero(starts < len(heads))
    head = heads[starts[reachable]]
    other[reachable] = (head != _ADD_HEAD) & (head != _REMOVE_HEAD)
    for row in np.flatnonzero(other):
        yield int(starts[row]), int(ends[row]), int(row) + 1


def _parse(name: str, number: int, line: bytes) -> Action | None:
    try:
        return parse_line(line)
    except CorruptLog as error:
        raise CorruptLog(
            f"Line {number} of {name} is no action.",
            cause=error.cause,
            remedy=error.remedy,
            code=error.error_code,
            file=name,
            line=number,
        ) from error


def _require_single(name: str, actions: Sequence[Action]) -> None:
    for key in ("protocol", "metaData"):
        if sum(key == action.KEY for action in actions) > 1:
            raise CorruptLog(
                f"The commit {name} has more than one {key} action.",
                cause="A commit may hold one (Delta protocol, Action Reconciliation).",
                remedy="Restore the file from a copy.",
                code="DELTA_DUPLICATE_ACTIONS_FOUND",
                file=name,
            )


def _arrow_json(body: Any, names: Mapping[str, Sequence[str]]) -> pa.Table:
    schema = pa.schema(
        [("add", _json_type(FILE_SCHEMA, names)), ("remove", _json_type(TOMBSTONE_SCHEMA, names))]
    )
    block = _BLOCK_BYTES
    while True:
        try:
            return pj.read_json(
                pa.BufferReader(pa.py_buffer(body)),
                read_options=pj.ReadOptions(block_size=min(block, len(body) + 1)),
                parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer"),
            )
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block > len(body):
                raise
            block *= 8  # a single line is longer than a block


def _json_type(schema: pa.Schema, names: Mapping[str, Sequence[str]]) -> pa.DataType:
    fields = []
    for field in schema:
        kind = field.type
        if field.name in _MAPS:
            kind = pa.struct([(name, pa.string()) for name in names[field.name]])
        fields.append((DELTA_NAMES[field.name], kind))
    return pa.struct(fields)


def _map_names(table: pa.Table, known: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    found = {}
    for column in _MAPS:
        names = list(known[column])
        for action in ("add", "remove"):
            kind = table.schema.field(action).type
            index = kind.get_field_index(DELTA_NAMES[column])
            if index >= 0 and pa.types.is_struct(kind.field(index).type):
                names += [field.name for field in kind.field(index).type if field.name not in names]
        found[column] = names
    return found


def _to_actions(table: pa.Table, names: Mapping[str, Sequence[str]]) -> FileActions:
    found = []
    for action, schema in (("add", FILE_SCHEMA), ("remove", TOMBSTONE_SCHEMA)):
        column = table[action]
        present = is_valid(column)
        if not present.all():
            column = column.filter(to_arrow_flags(present))
        chunks = [_columns(chunk, schema, names) for chunk in column.chunks if len(chunk)]
        rows = pa.Table.from_batches(chunks, schema=schema)
        _require_paths(rows, action)
        rows = rows.set_column(0, schema.field(0), canonical_paths(rows["path"]))
        found.append((rows, np.flatnonzero(present)))
    (adds, adds_order), (removes, removes_order) = found
    return FileActions(adds, adds_order, removes, removes_order)


def _columns(chunk: pa.StructArray, schema: pa.Schema, names: Mapping[str, Sequence[str]]) -> pa.RecordBatch:
    columns = []
    for field in schema:
        found = pc.struct_field(chunk, DELTA_NAMES[field.name])
        if field.name in _MAPS:
            found = _to_map(found, names[field.name], keep_nulls=field.name == "partition_values")
        elif field.type == DELETION_VECTOR_TYPE and found.type != field.type:
            found = found.cast(field.type)
        columns.append(found)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


DELETION_VECTOR_TYPE = FILE_SCHEMA.field("deletion_vector").type


def _to_map(found: pa.StructArray, names: Sequence[str], *, keep_nulls: bool) -> pa.Array:
    if found.null_count == len(found):
        return pa.nulls(len(found), TEXT_MAP)
    columns = [pc.struct_field(found, name) for name in names]
    return text_map(columns, names, is_valid(found), keep_nulls=keep_nulls)


def _require_paths(rows: pa.Table, action: str) -> None:
    if rows["path"].null_count:
        raise CorruptLog(
            f"A line of the log is no {action} action.",
            cause="It has no path.",
            remedy="Restore the file from a copy.",
            code="DELTA_LOG_MALFORMED_JSON",
        )


def _parse_each(contents: Sequence[CommitContent]) -> FileActions:
    """Line by line: for what Arrow's reader cannot take, and to name the line that is damaged."""
    adds: list[tuple[int, Add]] = []
    removes: list[tuple[int, Remove]] = []
    order = 0
    for content in contents:
        for number, line in enumerate(b"\n".join(content.spans).split(b"\n"), 1):
            if not line.strip():
                continue
            action: Any = _parse(content.name, number, line)
            order += 1
            if isinstance(action, Add):
                adds.append((order, action))
            elif isinstance(action, Remove):
                removes.append((order, action))
    tables = from_adds(add for _, add in adds), from_removes(remove for _, remove in removes)
    files, tombstones = (table.set_column(0, "path", canonical_paths(table["path"])) for table in tables)
    return FileActions(
        files,
        np.array([at for at, _ in adds], dtype=np.int64),
        tombstones,
        np.array([at for at, _ in removes], dtype=np.int64),
    )
