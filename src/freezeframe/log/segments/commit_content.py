"""Content of commit files: their digest, and their actions, parsed once."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from freezeframe.errors import CorruptLog
from freezeframe.log.format.action_columns import (
    DELTA_NAMES,
    FILE_SCHEMA,
    TOMBSTONE_SCHEMA,
    FileActions,
    from_adds,
    from_removes,
    no_rows,
    text_map,
)
from freezeframe.log.format.actions import Action, Add, CommitInfo, Remove, parse_line, to_json_line
from freezeframe.log.primitives.arrow import Bools, Ints, is_valid, to_arrow_flags
from freezeframe.log.primitives.json_fields import parse_json
from freezeframe.log.primitives.paths import LogFile, canonical_paths

# The SHA-256 of a commit's actions, stored in its commitInfo to detect damage.
#
# JSON has no checksum: a flipped bit in a partition value or a column's name would change the table
# without an error. A commit of this package begins with its ``commitInfo``, and its field
# ``contentSha256`` is the digest of every byte after that line. Other readers ignore the field;
# commits of other writers have no digest and are not checked.

DIGEST_KEY = "contentSha256"
_HEAD = b'{"commitInfo":'


def sign_content(info: CommitInfo, actions: Sequence[Action]) -> bytes:
    """Return the bytes of a commit: ``info`` with the digest first, then ``actions``, a line each."""
    rest = "".join(f"{to_json_line(action)}\n" for action in actions).encode()
    signed = replace(info, fields={**info.fields, DIGEST_KEY: hashlib.sha256(rest).hexdigest()})
    return f"{to_json_line(signed)}\n".encode() + rest


def require_digest(name: str, content: bytes) -> None:
    """Refuse a commit whose actions do not match its digest; one without a digest passes."""
    if not content.startswith(_HEAD):
        return
    head, _, rest = content.partition(b"\n")
    if DIGEST_KEY.encode() not in head:
        return
    try:
        expected = parse_json(head)["commitInfo"].get(DIGEST_KEY)
    except (ValueError, TypeError, KeyError, AttributeError):
        return  # the parser of the line reports its damage
    if expected is not None and hashlib.sha256(rest).hexdigest() != expected:
        raise CorruptLog(
            f"The commit {name} is damaged.",
            cause="The SHA-256 of its actions is not the recorded one.",
            remedy="Restore the file from a copy; until then read a version before it.",
            code="DELTA_TXN_LOG_FAILED_INTEGRITY",
            file=name,
        )


# The content of a commit file: file actions as Arrow columns, other actions as values.
#
# A commit of a large table has hundreds of thousands of ``add`` lines and a few others. Eight bytes
# of each line identify the others, which are parsed one by one; Arrow's JSON reader parses the file
# actions in bulk. Where Arrow fails (an unknown field of changing type, an odd number), each line is
# parsed separately: slower, with the same result.

_NEWLINE = ord("\n")
_ADD_HEAD = np.frombuffer(b'{"add":{', dtype="<u8")[0]
_REMOVE_HEAD = np.frombuffer(b'{"remove', dtype="<u8")[0]
PIECE_BYTES = 8 << 20
_BLOCK_BYTES = 1 << 20
_FEW_BYTES = 16 << 10  # Arrow's reader costs what reading some fifty lines one by one does
_SAMPLED_BYTES = 256 << 10
_SAMPLED_SPANS = 64
_LINE_BYTES = 64 << 10
_SCHEMAS = {"add": FILE_SCHEMA, "remove": TOMBSTONE_SCHEMA}


@dataclass(frozen=True, slots=True)
class CommitContent:
    """A parsed commit: ``spans`` are the lines of file actions, ``actions`` the other actions."""

    name: str
    spans: tuple[memoryview, ...]
    actions: tuple[Action, ...]

    @property
    def size(self) -> int:
        """The size of its file actions in bytes."""
        return sum(len(span) for span in self.spans)


def read_contents(read: Callable[[int, int], bytes], name: str, size: int) -> Iterator[CommitContent]:
    """Parse a commit of ``size`` bytes; a large one in pieces of some megabytes.

    ``read(offset, length)`` returns bytes of the file, fewer at its end. Each piece ends at a line
    end; together the pieces are the commit.
    """
    if size <= PIECE_BYTES:
        yield read_content(name, read(0, size + 1))
        return
    offset, lines = 0, 0
    seen: list[Action] = []
    length = PIECE_BYTES
    while piece := read(offset, length):
        end = piece.rfind(b"\n") + 1
        last = len(piece) < length or offset + len(piece) >= size
        if not end and not last:
            length *= 2  # a single line is longer than a piece
            continue
        whole = piece if last else memoryview(piece)[:end].toreadonly()
        if last:
            _require_whole(name, piece)
        offset += len(whole)
        length = PIECE_BYTES
        content, count = _take_apart(name, whole, lines)
        lines += count
        seen += content.actions
        del piece, whole
        yield content
        del content
    _require_single(name, seen)


def read_content(name: str, content: bytes) -> CommitContent:
    """Parse the bytes of a whole commit."""
    _require_whole(name, content)
    require_digest(name, content)
    found, _ = _take_apart(name, content, 0)
    _require_single(name, found.actions)
    return found


def _take_apart(name: str, content: bytes | memoryview, lines_before: int) -> tuple[CommitContent, int]:
    """Return the content of whole lines, and their number."""
    view = memoryview(content)
    spans: list[memoryview] = []
    actions: list[Action] = []
    moved: list[Add | Remove] = []
    begin = 0
    starts, ends, other = _lines(view)
    for row in np.flatnonzero(other):
        start, end = int(starts[row]), int(ends[row])
        if start > begin:
            spans.append(view[begin:start])
        begin = min(end + 1, len(view))
        line = bytes(view[start:end])
        if line.strip():
            action = _parse(name, lines_before + int(row) + 1, line)
            if isinstance(action, Add | Remove):
                moved.append(action)
            elif action is not None:
                actions.append(action)
    if begin < len(view):
        spans.append(view[begin:])
    if moved:  # file actions spelled with spaces are serialised again for Arrow's reader
        spans.append(memoryview("\n".join(json.dumps({item.KEY: item.to_json()}) for item in moved).encode()))
    return CommitContent(name, tuple(spans), tuple(actions)), len(ends) - 1


def parse_file_actions(contents: Sequence[CommitContent], partition_names: Sequence[str]) -> FileActions:
    """Return the file actions of commits in ascending order, paths canonical.

    ``partition_names`` are the physical names of the current partition columns; names that occur
    only in the commits are included too.
    """
    spans = [span for content in contents for span in content.spans]
    # Few actions are quicker one by one, unless it is they that import pandas (``arrow_numbers``).
    if "pandas" in sys.modules and sum(len(span) for span in spans) < _FEW_BYTES:
        with suppress(CorruptLog):  # Arrow reads more than one action of a line, as Spark does
            return _parse_each(contents)
    whole: Any = spans[0] if len(spans) == 1 else b"\n".join(spans)
    try:
        table, names = _read_fully(whole, _Shape.sample(spans, partition_names))
        del whole, spans
        found = []
        for action, schema in _SCHEMAS.items():
            if action not in table.schema.names:
                found.append((no_rows(schema), np.zeros(0, dtype=np.int64)))
                continue
            column = table[action]
            present = is_valid(column)
            if not present.all():
                column = column.filter(to_arrow_flags(present))
            chunks = [_columns(chunk, schema, names) for chunk in column.chunks if len(chunk)]
            rows = pa.Table.from_batches(chunks, schema=schema)
            if rows["path"].null_count:
                raise CorruptLog(
                    f"A line of the log is not a valid {action} action.",
                    cause="It has no path.",
                    remedy="Restore the file from a copy.",
                    code="DELTA_LOG_MALFORMED_JSON",
                )
            rows = rows.set_column(0, schema.field(0), canonical_paths(rows["path"]))
            found.append((rows, np.flatnonzero(present)))
        (adds, adds_order), (removes, removes_order) = found
        return FileActions(adds, adds_order, removes, removes_order)
    except (pa.ArrowInvalid, UnicodeDecodeError):  # the second for names and paths that are not UTF-8
        return _parse_each(contents)


def _require_whole(name: str, content: bytes) -> None:
    tail = content[-64:].rstrip() or content.rstrip()[-1:]
    if tail.endswith(b"}"):
        return
    empty = not tail
    raise CorruptLog(
        f"The commit {name} is {'empty' if empty else 'cut off'}.",
        cause="A writer without atomic create died there, or the file was truncated.",
        remedy="Restore it from a copy; until then read the version before it.",
        code="DELTA_LOG_MALFORMED_JSON",
        file=name,
    )


def _lines(content: memoryview) -> tuple[Ints, Ints, Bools]:
    """Start and end of each line, and whether it is a non-file action."""
    octets = np.frombuffer(content, dtype=np.uint8)
    ends = np.append(np.flatnonzero(octets == _NEWLINE), len(content))
    starts = np.concatenate([[0], ends[:-1] + 1])
    heads = np.ndarray(shape=(max(0, len(content) - 7),), dtype="<u8", buffer=content, strides=(1,))
    other = np.ones(len(starts), dtype=np.bool_)
    reachable = np.flatnonzero(starts < len(heads))
    head = heads[starts[reachable]]
    other[reachable] = (head != _ADD_HEAD) & (head != _REMOVE_HEAD)
    return starts, ends, other


def _parse(name: str, number: int, line: bytes) -> Action | None:
    try:
        return parse_line(line)
    except CorruptLog as error:
        raise CorruptLog(
            f"Line {number} of {name} is not an action.",
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
                remedy="If its writer meant the last one, which Spark takes, remove the others.",
                code="DELTA_DUPLICATE_ACTIONS_FOUND",
                file=name,
            )


@dataclass(frozen=True, slots=True)
class _Shape:
    """Schema for Arrow's JSON reader: fields of adds and removes, keys of the two maps.

    An absent field costs as much as a present one, so a large commit is first parsed with the fields
    of a few sample lines. Fields that occur elsewhere are inferred and added for a second pass.
    """

    fields: Mapping[str, frozenset[str]]
    keys: Mapping[str, tuple[str, ...]]

    @classmethod
    def sample(cls, spans: Sequence[memoryview], partition_names: Sequence[str]) -> _Shape:
        keys = {"partitionValues": tuple(partition_names), "tags": ()}
        if sum(len(span) for span in spans) < _SAMPLED_BYTES:
            return cls({action: frozenset(_delta_names(schema)) for action, schema in _SCHEMAS.items()}, keys)
        found: dict[str, set[str]] = {}
        for span in spans[:: math.ceil(len(spans) / _SAMPLED_SPANS)]:
            for line in (bytes(span[:_LINE_BYTES]).split(b"\n"), bytes(span[-_LINE_BYTES:]).split(b"\n")):
                for part in (line[0], line[-1] or line[-2:][0]):
                    _note_fields(part, found)
        return cls({action: frozenset(names) for action, names in found.items()}, keys)

    def schema(self) -> pa.Schema:
        return pa.schema(
            [
                (action, _json_type(schema, self.fields.get(action, frozenset()), self.keys))
                for action, schema in _SCHEMAS.items()
                if action in self.fields
            ]
        )

    def widen(self, table: pa.Table) -> _Shape:
        """This schema with the fields found beyond it."""
        fields, keys = dict(self.fields), dict(self.keys)
        for action, schema in _SCHEMAS.items():
            index = table.schema.get_field_index(action)
            if index < 0 or not pa.types.is_struct(table.schema.types[index]):
                continue
            known = set(_delta_names(schema))
            there = [field for field in table.schema.types[index] if not pa.types.is_null(field.type)]
            fields[action] = fields.get(action, frozenset()) | {f.name for f in there if f.name in known}
            for field in there:
                if field.name in keys and pa.types.is_struct(field.type):
                    keys[field.name] = tuple(
                        dict.fromkeys([*keys[field.name], *(f.name for f in field.type)])
                    )
        return _Shape(fields, keys)


def _read_fully(body: Any, shape: _Shape) -> tuple[pa.Table, Mapping[str, Sequence[str]]]:
    while True:
        table = _arrow_json(body, shape.schema())
        wider = shape.widen(table)
        if wider == shape:
            return table, shape.keys
        shape = wider


def _note_fields(line: bytes, found: dict[str, set[str]]) -> None:
    try:
        value = parse_json(line)
    except ValueError:
        return  # a sample may be half a line; Arrow's reader reports damage
    for action, schema in _SCHEMAS.items():
        if isinstance(value, dict) and isinstance(value.get(action), dict):
            names = {name for name, item in value[action].items() if item is not None}
            found.setdefault(action, set()).update(names & set(_delta_names(schema)))


def _delta_names(schema: pa.Schema) -> list[str]:
    return [DELTA_NAMES[name] for name in schema.names]


def _arrow_json(body: Any, schema: pa.Schema) -> pa.Table:
    block = _BLOCK_BYTES
    while True:
        try:
            return pj.read_json(
                pa.BufferReader(pa.py_buffer(body)),
                # For a single block the thread hand-over takes longer than the parsing.
                read_options=pj.ReadOptions(
                    use_threads=len(body) >= block, block_size=min(block, len(body) + 1)
                ),
                parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer"),
                # Arrow's default allocator retains the memory that the parser's threads release.
                memory_pool=pa.system_memory_pool(),
            )
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block > len(body):
                raise
            block *= 8  # a single line is longer than a block


def _json_type(schema: pa.Schema, fields: frozenset[str], keys: Mapping[str, Sequence[str]]) -> pa.DataType:
    kinds = []
    for field in schema:
        name = DELTA_NAMES[field.name]
        if name in fields:
            is_map = name in keys
            kinds.append(
                (name, pa.struct([(key, pa.string()) for key in keys[name]]) if is_map else field.type)
            )
    return pa.struct(kinds)


def _columns(chunk: pa.StructArray, schema: pa.Schema, names: Mapping[str, Sequence[str]]) -> pa.RecordBatch:
    # Most columns of most logs are all null; as children of one array of nulls they share one buffer.
    nothing = pa.nulls(len(chunk), pa.struct(list(schema)))
    columns = []
    for index, field in enumerate(schema):
        name = DELTA_NAMES[field.name]
        found = pc.struct_field(chunk, name) if chunk.type.get_field_index(name) >= 0 else None
        if found is None or found.null_count == len(found):
            found = nothing.field(index)
        elif name in names:
            members = [
                pc.struct_field(found, [key]) for key in names[name]
            ]  # a text would be a path of names
            keep_nulls = name == "partitionValues"
            found = text_map(members, names[name], is_valid(found), keep_nulls=keep_nulls)
        elif found.type != field.type:
            found = found.cast(field.type)
        columns.append(found)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _parse_each(contents: Sequence[CommitContent]) -> FileActions:
    """Parse line by line: the quickest for few lines, reads what Arrow cannot, locates a damaged line."""
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


# Cache of small commits: opening a log reads the same files for its heads and for its state.

KEPT_BYTES = 8 << 20


class CommitCache:
    """Thread-safe cache of parsed commits, limited to ``KEPT_BYTES`` in total."""

    def __init__(self) -> None:
        self._kept: dict[LogFile, tuple[CommitContent, ...]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, file: LogFile) -> tuple[CommitContent, ...] | None:
        """Return the pieces of a cached commit; None where it is not cached."""
        with self._lock:
            return self._kept.get(file)

    def has_room(self, file: LogFile) -> bool:
        """Return whether the cache has room for a commit of that size."""
        with self._lock:
            return file.size + self._bytes <= KEPT_BYTES

    def keep(self, file: LogFile, contents: Sequence[CommitContent]) -> None:
        """Cache a commit until ``clear``."""
        with self._lock:
            self._bytes += 0 if file in self._kept else file.size
            self._kept[file] = tuple(contents)

    def clear(self) -> None:
        """Remove all commits."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0
