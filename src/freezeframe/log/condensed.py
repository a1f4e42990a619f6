"""A segment whose file actions an engine condenses: its state, and its checkpoint in parts.

What the engine writes lies in a folder of its own below the log until it is read or has become the
parts of a checkpoint. A crash leaves that folder to the log's cleanup.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from freezeframe.errors import UnsupportedTable
from freezeframe.log.actions import Action, CheckpointMetadata, Sidecar
from freezeframe.log.checkpoint import (
    keeps_statistics,
    parquet_file_actions,
    read_checkpoint_actions,
    sidecar_name,
)
from freezeframe.log.checkpoint_parts import write_parts
from freezeframe.log.checkpoint_rows import CHECKPOINT_SCHEMA, file_rows, small_rows
from freezeframe.log.checkpoint_writer import PART_ACTIONS_MAX, parquet_bytes, write_hint
from freezeframe.log.commit_content import read_contents
from freezeframe.log.condensing import LogCondenser
from freezeframe.log.hint import Hint
from freezeframe.log.paths import CONDENSED_FOLDER, SIDECAR_FOLDER
from freezeframe.log.replay import FileState
from freezeframe.log.segment import LogSegment
from freezeframe.log.snapshot import Snapshot
from freezeframe.log.table_state import Heads, TableState
from freezeframe.storage.base import Storage

# About what a file action takes in a commit and in a checkpoint: by these the parts are cut, uncounted.
_COMMIT_ACTION_BYTES, _CHECKPOINT_ACTION_BYTES = 300, 50
CONDENSED_FROM_BYTES = 4 << 30
"""From so many bytes of log on the in-process replay is taken to be too large: see decision 0021."""


@dataclass(frozen=True, slots=True)
class CondensedStates:
    """States of which ``from_bytes`` or more of log would have to be read: ``condenser`` replays these."""

    condenser: LogCondenser
    from_bytes: int = CONDENSED_FROM_BYTES

    def takes(self, segment: LogSegment) -> bool:
        """Whether the segment is as large as that."""
        return segment_bytes(segment) >= self.from_bytes

    def state(self, storage: Storage, segment: LogSegment) -> TableState:
        """The whole state; see ``condensed_state``."""
        return condensed_state(storage, segment, self.condenser)


def segment_bytes(segment: LogSegment) -> int:
    """What a segment's checkpoint (without sidecars) and commits have, in bytes."""
    checkpoint = segment.checkpoint.files if segment.checkpoint else ()
    return sum(file.size for file in (*segment.deltas, *checkpoint))


def _about_actions(segment: LogSegment) -> int:
    commits = sum(file.size for file in segment.deltas)
    return commits // _COMMIT_ACTION_BYTES + (segment_bytes(segment) - commits) // _CHECKPOINT_ACTION_BYTES


def condensed_state(storage: Storage, segment: LogSegment, condenser: LogCondenser) -> TableState:
    """The whole state of the segment, its file actions replayed by ``condenser``.

    The state itself is in this process: what is spared is what replay needs beside it.

    Raises:
        CorruptLog, CorruptData: a file of the log is damaged.
        UnsupportedTable: the checkpoint keeps its statistics in a form that only this process reads.
        EngineUnavailable: the engine did not answer.
    """
    with _condensed(storage, segment, condenser, None) as names:
        tables = [parquet_file_actions(storage, name) for name in names]
    files = FileState.of(
        pa.concat_tables([adds for adds, _ in tables]), pa.concat_tables([removes for _, removes in tables])
    )
    return TableState(_heads(storage, segment), files)


def write_condensed_checkpoint(
    snapshot: Snapshot, condenser: LogCondenser, *, now_ms: int, part_actions_max: int = PART_ACTIONS_MAX
) -> Hint:
    """Write the snapshot's checkpoint in parts without its state ever being in this process.

    Of the state only the small actions and one part at a time are held here.

    Raises:
        StorageUnavailable: nothing of the checkpoint is used by readers; try again.
        CorruptLog, CorruptData, UnsupportedTable, EngineUnavailable: as of ``condensed_state``.
    """
    storage, segment = snapshot.storage, snapshot.segment
    heads = _heads(storage, segment)
    small = small_rows(snapshot.small_actions(heads))
    removed_after = now_ms - snapshot.deleted_file_retention_ms
    counts: dict[int, tuple[int, int]] = {}
    with _condensed(storage, segment, condenser, removed_after, part_actions_max) as names:

        def content(part: int, parts: int) -> bytes:
            adds, removes = [], []
            # A set with more parts than were condensed has empty ones at its end.
            for name in names[part - 1 : part] if part < parts else names[part - 1 :]:
                found = parquet_file_actions(storage, name)
                adds.append(found[0])
                removes.append(found[1])
            counts[part] = (sum(one.num_rows for one in adds), sum(one.num_rows for one in removes))
            rows = [batch for one in adds for batch in file_rows(one, "add", CHECKPOINT_SCHEMA)]
            rows += [batch for one in removes for batch in file_rows(one, "remove", CHECKPOINT_SCHEMA)]
            return parquet_bytes(CHECKPOINT_SCHEMA, [*([small] if part == 1 else []), *rows])

        parts, size = write_parts(storage, segment.folder, snapshot.version, max(2, len(names)), content)
    if not size:
        return Hint(snapshot.version, parts=parts)  # who completed it knows its numbers and writes the hint
    adds, removes = (sum(column) for column in zip(*counts.values(), strict=True))
    hint = Hint(snapshot.version, small.num_rows + adds + removes, parts, size or None, num_of_add_files=adds)
    write_hint(storage, segment.folder, hint)
    return hint


@contextlib.contextmanager
def _condensed(
    storage: Storage,
    segment: LogSegment,
    condenser: LogCondenser,
    removed_after_ms: int | None,
    part_actions_max: int = PART_ACTIONS_MAX,
) -> Iterator[Sequence[str]]:
    """The names of the condensed files, as the storage knows them, for as long as they are needed."""
    parquet, texts = _sources(storage, segment)
    folder = f"{segment.folder}/{CONDENSED_FOLDER}/{uuid.uuid4().hex}"
    try:
        names = condenser.condense(
            [storage.uri(name) for name in parquet],
            [storage.uri(name) for name in texts],
            storage.uri(folder),
            parts=-(-max(1, _about_actions(segment)) // part_actions_max),
            removed_after_ms=removed_after_ms,
        )
        yield [f"{folder}/{name}" for name in names]
    finally:
        for status in list(storage.list_below(folder)):
            storage.delete(f"{folder}/{status.name}")
        storage.prune(folder)


def _sources(storage: Storage, segment: LogSegment) -> tuple[list[str], list[str]]:
    """The Parquet files of the checkpoint, and the JSON files: those of the checkpoint and the commits."""
    parquet: list[str] = []
    texts: list[str] = []
    if segment.checkpoint is not None:
        for file in segment.checkpoint.files:
            (texts if file.name.endswith(".json") else parquet).append(segment.path(file))
        actions = read_checkpoint_actions(storage, segment.folder, segment.checkpoint)
        sidecars = [sidecar_name(action) for action in actions if isinstance(action, Sidecar)]
        parquet += [f"{segment.folder}/{SIDECAR_FOLDER}/{name}" for name in sidecars]
        for name in parquet:
            if not keeps_statistics(storage, name):
                raise UnsupportedTable(
                    f"The checkpoint file {name} cannot be condensed.",
                    cause="It keeps statistics as columns and not as text.",
                    remedy="Let this process make the state, or have the checkpoint written again by it.",
                )
    return parquet, texts + [segment.path(file) for file in segment.deltas]


def _heads(storage: Storage, segment: LogSegment) -> Heads:
    """All small actions of the segment, a piece of a commit at a time."""
    heads = Heads.empty()
    if segment.checkpoint is not None:
        found = read_checkpoint_actions(storage, segment.folder, segment.checkpoint)
        heads = heads.after(one for one in found if not isinstance(one, Sidecar | CheckpointMetadata))
    for file in segment.deltas:
        name = segment.path(file)

        def read(offset: int, length: int, name: str = name) -> bytes:
            return storage.read(name, offset, length)

        actions: list[Action] = []
        for content in read_contents(read, file.name, file.size):
            actions += content.actions
        heads = heads.after(actions)
    return heads
