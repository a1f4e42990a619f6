"""Replay of actions into the state of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import CorruptLog
from freezeframe.log.format.action_columns import (
    FILE_SCHEMA,
    TOMBSTONE_SCHEMA,
    FileActions,
    file_keys,
    no_rows,
)
from freezeframe.log.format.actions import Action, CommitInfo, DomainMetadata, Metadata, Protocol, Txn
from freezeframe.log.primitives.arrow import (
    Bools,
    Ints,
    is_valid,
    select_rows,
    to_arrow_flags,
    to_arrow_ints,
    to_flags,
    to_ints,
)
from freezeframe.log.primitives.listing import Words, find_repeated, fingerprints, rows_with

# Statistics that are read from a checkpoint on first use: most of its bytes, seldom needed.


@dataclass(frozen=True, slots=True)
class DeferredStatistics:
    """The ``stats`` of some of a checkpoint's files.

    ``read`` returns the texts of all of them, and reads them once; ``chosen`` flags those that are meant.
    """

    read: Callable[[], pa.ChunkedArray]
    chosen: Bools

    def __len__(self) -> int:
        return int(self.chosen.sum())

    def select(self, wanted: Bools) -> DeferredStatistics:
        """Return those of the files that are flagged; one flag for each file that was meant."""
        chosen = self.chosen.copy()
        chosen[np.flatnonzero(self.chosen)] = wanted
        return DeferredStatistics(self.read, chosen)

    def texts(self) -> pa.ChunkedArray:
        """Return one text or null for each file, in the order of the checkpoint."""
        texts = self.read()
        return texts if self.chosen.all() else pc.filter(texts, to_arrow_flags(self.chosen))


# Folding file actions into the files of a table. Pure: Arrow in, Arrow out.
#
# The state has three parts: a large immutable table (``base``), a flag for each removed row of it,
# and a small table of the files added since. A commit on a table of a million files therefore costs
# one look-up of the commit's paths, without a copy of a million rows.

CHUNKS_MAX = 32
RECENT_SHARE_MAX = 0.1
RECENT_ROWS_MIN = 10_000
LISTED_COLUMNS = [name for name in FILE_SCHEMA.names if name != "stats"]


@dataclass(frozen=True)
class FileState:
    """The live files of a table and its tombstones at one version.

    ``marks`` are the fingerprints of ``base``'s keys, ``tombstone_marks`` those of the tombstones';
    ``gone`` flags the rows of ``base`` that are not live (``None``: all are). ``deferred`` are the statistics
    of the first rows of ``base``, whose ``stats`` are null (``None``: of no rows). ``size`` is the sum of the
    live files' bytes, ``count`` their number. (path, deletion vector) is unique among the live files, and
    no tombstone has the key of one (protocol, section "Action Reconciliation").
    """

    base: pa.Table
    marks: Words
    gone: Bools | None
    recent: pa.Table
    tombstones: pa.Table
    tombstone_marks: Words
    count: int
    size: int
    unexpired: int = 0
    """How many tombstones there were when expired ones were last dropped."""
    deferred: DeferredStatistics | None = None
    lacks_tombstones: bool = False
    """Whether tombstones are left out that only the log has."""

    @classmethod
    def of(
        cls,
        files: pa.Table,
        tombstones: pa.Table,
        *,
        marks: Words | None = None,
        deferred: DeferredStatistics | None = None,
    ) -> FileState:
        """Make a state of live files; ``marks`` are the fingerprints of their keys, if known."""
        files = _settle(files)
        size = int(pc.sum(files["size"]).as_py() or 0)
        found = fingerprints(file_keys(files)) if marks is None else marks
        ended = fingerprints(file_keys(tombstones))
        recent = no_rows(FILE_SCHEMA)
        return cls(files, found, None, recent, tombstones, ended, files.num_rows, size, deferred=deferred)

    @classmethod
    def of_checkpoint(
        cls, files: pa.Table, tombstones: pa.Table, deferred: DeferredStatistics | None
    ) -> FileState:
        """Make a state of a checkpoint's files; one that it has twice, or in two sidecars, is there once."""
        keys = file_keys(files)
        marks = fingerprints(keys)
        suspects = find_repeated(marks)
        if len(suspects):
            wins = _last_of_each(keys, suspects, np.arange(len(suspects)))
            files, marks = select_rows(files, wins), marks[wins]
            deferred = deferred and deferred.select(wins[: len(deferred)])
        return cls.of(files, tombstones, marks=marks, deferred=deferred)

    @classmethod
    def empty(cls) -> FileState:
        """Return a state without files and tombstones."""
        return cls.of(no_rows(FILE_SCHEMA), no_rows(TOMBSTONE_SCHEMA))

    @cached_property
    def live(self) -> pa.Table:
        """The rows of ``files``, but with null for the statistics that are deferred."""
        live = self.base if self.gone is None else select_rows(self.base, ~self.gone)
        return pa.concat_tables([live, self.recent]) if self.recent.num_rows else live

    @property
    def file_list(self) -> pa.Table:
        """One row per live file, in ``FILE_SCHEMA`` without ``stats``."""
        return self.live.select(LISTED_COLUMNS)

    @cached_property
    def files(self) -> pa.Table:
        """One row per live file, in ``FILE_SCHEMA``; reads deferred statistics on first access."""
        deferred = self._live_deferred
        if deferred is None:
            return self.live
        later = self.live["stats"].slice(len(deferred))
        texts = pa.chunked_array([*deferred.texts().chunks, *later.chunks], pa.string())
        return self.live.set_column(FILE_SCHEMA.get_field_index("stats"), FILE_SCHEMA.field("stats"), texts)

    @property
    def _live_deferred(self) -> DeferredStatistics | None:
        if self.deferred is None or self.gone is None:
            return self.deferred
        return self.deferred.select(~self.gone[: len(self.deferred)])

    def compacted(self) -> FileState:
        """Return the same state with all live files in ``base``."""
        state = FileState.of(self.live, self.tombstones, deferred=self._live_deferred)
        return replace(state, unexpired=self.unexpired, lacks_tombstones=self.lacks_tombstones)

    def of_keys(self, keys: pa.ChunkedArray) -> pa.Table:
        """Return the live files with one of these ``file_keys``, as rows of ``file_list``."""
        near = rows_with(self.marks, fingerprints(keys))
        struck, _, _ = _remove_keys(self.base, near, self.gone, keys)
        hit = struck if self.gone is None else struck & ~self.gone
        recent, _, _ = _remove_keys(self.recent, np.arange(self.recent.num_rows), None, keys)
        found = pa.concat_tables([select_rows(self.base, hit), select_rows(self.recent, recent)])
        return found.select(LISTED_COLUMNS)

    def without_expired(self, oldest: int | None) -> FileState:
        """Return the state without tombstones deleted at or before ``oldest`` (ms; ``None``: with all).

        The scan runs only once the tombstones have doubled since the last one, not on every update.
        """
        if oldest is None or self.tombstones.num_rows <= 2 * self.unexpired:
            return self
        kept = younger_than(self.tombstones["deletion_timestamp"], oldest)
        if kept.all():
            return replace(self, unexpired=len(kept))
        left = self.tombstones.filter(to_arrow_flags(kept))  # a copy: slices would retain the whole table
        return replace(
            self, tombstones=left, tombstone_marks=self.tombstone_marks[kept], unexpired=left.num_rows
        )


def younger_than(deleted: pa.ChunkedArray, oldest: int) -> Bools:
    """Return the mask of the deletion timestamps after ``oldest``; a missing timestamp counts as expired."""
    return is_valid(deleted) & (to_ints(deleted) > oldest)


def apply_actions(before: FileState, actions: FileActions) -> FileState:
    """Return state after ``actions``: the last action of each file wins (section "Action Reconciliation")."""
    if actions.adds.num_rows == 0 and actions.removes.num_rows == 0:
        return before
    adds, removes, marks = _last_actions(actions)
    adds = _settle(adds)
    if before.count == 0 and before.tombstones.num_rows == 0 and not before.lacks_tombstones:
        return FileState.of(adds, removes, marks=marks[: adds.num_rows])
    keys = _join(file_keys(adds), file_keys(removes))
    near = rows_with(before.marks, marks)
    gone, base_count, base_size = _remove_keys(before.base, near, before.gone, keys)
    rows = np.arange(before.recent.num_rows)
    old, recent_count, recent_size = _remove_keys(before.recent, rows, None, keys)
    recent = select_rows(before.recent, ~old) if recent_count else before.recent
    ended = rows_with(before.tombstone_marks, marks)
    back, back_count, _ = _remove_keys(before.tombstones, ended, None, keys)
    tombstones = select_rows(before.tombstones, ~back) if back_count else before.tombstones
    tombstone_marks = before.tombstone_marks[~back] if back_count else before.tombstone_marks
    after = FileState(
        before.base,
        before.marks,
        gone if base_count else before.gone,
        _few_chunks(pa.concat_tables([recent, adds])),
        _few_chunks(pa.concat_tables([tombstones, removes])),
        np.concatenate([tombstone_marks, marks[adds.num_rows :]]),
        before.count - base_count - recent_count + adds.num_rows,
        before.size - base_size - recent_size + int(pc.sum(adds["size"]).as_py() or 0),
        before.unexpired,
        before.deferred,
        before.lacks_tombstones,
    )
    # Merge ``recent`` into ``base`` once it grows too large for quick look-ups.
    scattered = 0 if after.gone is None else int(after.gone.sum())
    limit = max(RECENT_ROWS_MIN, int(RECENT_SHARE_MAX * after.base.num_rows))
    if after.recent.num_rows + scattered <= limit:
        return after
    return after.compacted()


def _last_actions(actions: FileActions) -> tuple[pa.Table, pa.Table, Words]:
    """Return the last adds and removes, and the fingerprints of their keys in that order."""
    adds, removes = actions.adds, actions.removes
    keys = _join(file_keys(adds), file_keys(removes))
    marks = fingerprints(keys)
    # Equal keys have equal fingerprints, so only rows with a shared fingerprint are compared by key.
    suspects = find_repeated(marks)
    if len(suspects) == 0:
        return adds, removes, marks
    order = np.concatenate([actions.adds_order, actions.removes_order])[suspects]
    wins = _last_of_each(keys, suspects, np.argsort(order, kind="stable"))
    chosen = select_rows(adds, wins[: adds.num_rows]), select_rows(removes, wins[adds.num_rows :])
    return (*chosen, marks[wins])


def _last_of_each(keys: pa.ChunkedArray, suspects: Ints, turn: Ints) -> Bools:
    """Flag the rows that are not suspects, and of suspects with equal keys the last one in this turn."""
    encoded = keys.take(to_arrow_ints(suspects)).combine_chunks().dictionary_encode()
    codes = to_ints(encoded.indices)
    last = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
    last[codes[turn]] = suspects[turn]  # of repeated codes NumPy keeps the value assigned last
    wins = np.ones(len(keys), dtype=np.bool_)
    wins[suspects] = False
    wins[last] = True
    return wins


def _remove_keys(
    table: pa.Table, near: Ints, gone: Bools | None, keys: pa.ChunkedArray
) -> tuple[Bools, int, int]:
    """Remove the rows with ``keys`` among ``near``: (removed flags, newly removed rows, their bytes)."""
    flags = np.zeros(table.num_rows, dtype=np.bool_) if gone is None else gone.copy()
    near = near[~flags[near]]
    if len(near) == 0:
        return flags, 0, 0
    wanted = np.zeros(table.num_rows, dtype=np.bool_)
    wanted[near] = True
    rows = select_rows(table.select(["path", "size", "deletion_vector"]), wanted)
    hit = to_flags(pc.is_in(file_keys(rows), value_set=keys.combine_chunks()))
    flags[near[hit]] = True
    return flags, int(hit.sum()), int(to_ints(rows["size"])[hit].sum())


def _join(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([*left.chunks, *right.chunks], type=pa.string())


def _settle(files: pa.Table) -> pa.Table:
    # dataChange describes the commit of an action; in a state it is always false.
    flags = to_arrow_flags(np.zeros(files.num_rows, dtype=np.bool_))
    index = files.schema.get_field_index("data_change")
    return files.set_column(index, FILE_SCHEMA.field("data_change"), flags)


def _few_chunks(table: pa.Table) -> pa.Table:
    """Return the table in at most ``CHUNKS_MAX`` chunks; small chunks are merged, large ones not copied."""
    lengths = [len(chunk) for chunk in table.column(0).chunks]
    if len(lengths) <= CHUNKS_MAX:
        return table
    first = lengths[0]
    if first < table.num_rows - first:
        return table.combine_chunks()
    return pa.concat_tables([table.slice(0, first), table.slice(first).combine_chunks()])


@dataclass(frozen=True, slots=True)
class Heads:
    """The latest small actions: protocol, metadata, transactions by app, domains by name.

    Removed domains stay in the map until a checkpoint drops them, so that they hide older entries.
    """

    protocol: Protocol | None
    metadata: Metadata | None
    transactions: Mapping[str, Txn]
    domains: Mapping[str, DomainMetadata]
    commit_info: CommitInfo | None = None

    @classmethod
    def empty(cls) -> Heads:
        """Heads without any action."""
        return cls(None, None, {}, {})

    def after(self, actions: Iterable[Action]) -> Heads:
        """These heads after the given actions, in order; the latest action wins."""
        protocol, metadata, info = self.protocol, self.metadata, None
        transactions, domains = dict(self.transactions), dict(self.domains)
        for action in actions:
            match action:
                case Protocol():
                    protocol = action
                case Metadata():
                    metadata = action
                case Txn():
                    transactions[action.app_id] = action
                case DomainMetadata():
                    domains[action.domain] = action
                case CommitInfo():
                    info = action
                case _:
                    pass
        return Heads(protocol, metadata, transactions, domains, info)


@dataclass(frozen=True, slots=True)
class TableState:
    """Complete state of one version: heads and files."""

    heads: Heads
    files: FileState

    def with_files(self, files: FileState) -> TableState:
        """Return the same heads with other files."""
        return replace(self, files=files)

    def without_expired(self, oldest_tombstone: int | None) -> TableState:
        """Return the same state without expired tombstones; see ``FileState.without_expired``."""
        return self.with_files(self.files.without_expired(oldest_tombstone))


def require_heads(heads: Heads, version: int) -> tuple[Protocol, Metadata]:
    """Protocol and metadata, which every version >= 0 has (protocol, section "Action Reconciliation")."""
    if heads.protocol is None:
        raise _unrecoverable("protocol", version)
    if heads.metadata is None:
        raise _unrecoverable("metadata", version)
    return heads.protocol, heads.metadata


def _unrecoverable(name: str, version: int) -> CorruptLog:
    return CorruptLog(
        f"The {name} of your Delta table could not be recovered while Reconstructing version: {version}.",
        cause="Did you manually delete files in the _delta_log directory?",
        remedy="Restore the missing commit or checkpoint from a copy.",
        code="DELTA_STATE_RECOVER_ERROR",
    )
