"""Plan of an update before any row is read: key, columns, deletions, compaction."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.equality import are_distinct
from freezeframe.errors import BadInput, InvalidOption, NullKeyError, TooManyDeletions
from freezeframe.log import Snapshot
from freezeframe.log.scan.block_index import column_bounds
from freezeframe.log.scan.rows import read_batches
from freezeframe.settings import Settings
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.columns import (
    SystemColumns,
    agree_system_columns,
    arrow_columns,
    delta_columns,
    physical_names,
    read_system_columns,
    stored_key,
    written_columns,
)
from freezeframe.store.schema.schema_evolution import (
    BatchValues,
    Evolution,
    SchemaRules,
    decided_columns,
    evolve,
)
from freezeframe.store.schema.type_compatibility import Path, Range, part_of
from freezeframe.store.table.reader import LiveFile, read_rows, row_count
from freezeframe.store.updates.batch import UpdateBatch

NO_COLUMNS: dict[str, Any] = {"type": "struct", "fields": []}


@dataclass(frozen=True, slots=True)
class Plan:
    """Effect of an update on a stream's columns and key, before any row is read (pure)."""

    update: Update
    key: tuple[str, ...]
    evolution: Evolution
    stored_schema: dict[str, Any] | None
    schema: dict[str, Any]
    own: SystemColumns
    """What the stream keeps beside its columns after the update; ``schema_evolution`` knows nothing of it."""
    stored_own: SystemColumns

    @property
    def is_plain(self) -> bool:
        """Whether the stream has no system columns, before and after."""
        return self.own == self.stored_own == SystemColumns()

    @property
    def filled_key(self) -> tuple[str, ...]:
        """The key's columns except those that never had a value."""
        known = set(decided_columns(self.evolution.target).names)
        return tuple(name for name in self.key if name in known)

    @property
    def changes_schema(self) -> bool:
        """Whether the table's metadata changes."""
        return self.stored_schema != self.schema

    @property
    def batch_schema(self) -> dict[str, Any]:
        """The columns of the batch."""
        return written_columns(self.schema, set(self.evolution.batch.column_names))


def plan_update(snapshot: Snapshot, batch: UpdateBatch, update: Update) -> Plan:
    """Plan the update's changes of the stream's key and columns."""
    is_new = snapshot.version < 0
    stored_schema = None if is_new else dict(snapshot.delta_schema)
    key = update.key if is_new else _agree_key(update, snapshot)
    if not batch.table.num_columns:
        raise BadInput(
            "The frame has no columns.",
            cause="A stream needs at least one.",
            remedy="Pass a frame with the columns of the stream, even if it has no rows.",
        )
    stored_own = read_system_columns(snapshot.metadata if not is_new else None)
    stored = arrow_columns(stored_schema or NO_COLUMNS)
    own = agree_system_columns(update, stored_own, key, stored.names, batch.table.column_names)
    evolution = _evolution(snapshot, stored_own.removed_from(stored), key, batch, update)
    if batch.rows and not decided_columns(evolution.target).names:
        raise BadInput(
            "The rows have no value at all.",
            cause="Rows with only nulls in columns without a type cannot be written.",
            remedy="Leave such rows out, or pass a PyArrow table whose columns have types."
            if is_new
            else "Leave such rows out.",
        )
    schema = delta_columns(own.added_to(evolution.target), stored_schema)
    plan = Plan(update, key, evolution, stored_schema, schema, own, stored_own)
    if key and batch.rows and not plan.filled_key:
        raise NullKeyError(
            f"Every row has a null in the key ({', '.join(key)}), and no column of it ever had a value.",
            cause="It cannot identify rows.",
            remedy="Fill the key, or pass null_keys='drop' to leave such rows out.",
        )
    return plan


def _evolution(
    snapshot: Snapshot, stored: pa.Schema, key: tuple[str, ...], batch: UpdateBatch, update: Update
) -> Evolution:
    keeps_columns = snapshot.version >= 0 and update.mode != "overwrite"
    evolution = evolve(
        stored if keeps_columns else None,
        batch.table,
        key=key,
        drop=update.drop_columns,
        ranges=functools.partial(_stored_range, snapshot) if keeps_columns else None,
        values=BatchValues(batch.values_known, batch.values),
        rules=SchemaRules(update.schema == "frozen", update.on_drift == "string"),
    )
    if update.mode != "overwrite":
        return evolution
    names = evolution.target.names
    known, kept = set(stored.names), set(names)
    return replace(
        evolution,
        added=tuple(name for name in names if name not in known),
        dropped=tuple(name for name in stored.names if name not in kept),
    )


def _agree_key(update: Update, snapshot: Snapshot) -> tuple[str, ...]:
    stored = stored_key(snapshot.metadata)
    if update.mode == "overwrite":
        return update.key if update.sets_key else update.key or stored or ()
    if stored is None or not update.key or set(update.key) == set(stored):
        return stored or update.key
    if not stored:
        _require_first_key(update, snapshot)
        return update.key
    raise InvalidOption(
        f"The stream cannot be updated by the key {list(update.key)}.",
        cause=f"It was made with the key {list(stored)}. Under another key, one row could become two.",
        remedy="Use the stream's key, or replace its content with override=True to give it a new one.",
        key=list(update.key),
        stored_key=list(stored),
    )


def _require_first_key(update: Update, snapshot: Snapshot) -> None:
    """Refuse a first key that does not identify each stored row of a stream without one."""
    columns = arrow_columns(snapshot.delta_schema).names
    absent = [name for name in update.key if name not in columns]
    cause = f"They have no column {absent[0]!r}." if absent else ""
    if not absent:
        keys = read_rows(snapshot, update.key)
        if update.null_keys != "match" and any(column.null_count for column in keys.columns):
            cause = "Some have a null in it."
        elif not are_distinct(keys):
            cause = "Some share a key."
    if cause and row_count(snapshot):
        raise InvalidOption(
            f"The stream cannot get the key {list(update.key)}: it does not identify each of its rows.",
            cause=f"The stream has no key yet, and its rows were brought in without one. {cause}",
            remedy="Use a key that identifies each row, or remove those rows first. override=True "
            "replaces all stored rows by those of the call.",
            key=list(update.key),
            stored_key=[],
        )


def _stored_range(snapshot: Snapshot, name: str | Path) -> Range | None:
    """Return the smallest and the largest stored value of a column, from the files' statistics.

    Of parts of nested columns not all have statistics: these are read.
    """
    if not isinstance(name, str):
        return _range_of_part(snapshot, *name)
    field, key = arrow_columns(snapshot.delta_schema).field(name), physical_names(snapshot.delta_schema)[name]
    bounds = column_bounds(snapshot.files["stats"], field, key)
    has_values = pa.array(~bounds.only_nulls)
    low, high = bounds.low.filter(has_values), bounds.high.filter(has_values)
    if not len(low) or low.null_count or high.null_count:
        return None
    return pc.min(low).as_py(), pc.max(high).as_py()


def _range_of_part(snapshot: Snapshot, name: str, *path: str) -> Range:
    low, high = 0, 0
    for batch in read_batches(snapshot, [name]):
        ends = pc.min_max(part_of(pa.chunked_array([batch[name]]), path)).as_py()
        low, high = min(low, ends["min"] or 0), max(high, ends["max"] or 0)
    return low, high


# Small streams are rewritten as a whole, so that any Delta reader can read them. In large streams a
# changed row is marked as deleted in its file and written to a new one; a file with mostly marked rows,
# or one of many small files, is rewritten without the marked rows. A read therefore opens only a few
# files of each size class, and reads less than twice the live rows.

FileAction = Literal["left", "marked", "rewritten"]

MARKED_SHARE_MAX = 0.5
"""A file of which a larger share is deleted is written anew."""

FILES_PER_SIZE_MAX = 8
"""So many files of about one size become one file of the next size."""

SMALLEST_BYTES = 16 * 1024
"""Files up to this many bytes are of one size; each further size is eight times as large."""

SETTLED_BYTES = 8 * 1024 * 1024
"""Files from this size on are never joined with others: a few rows of each would rewrite all of them, while
a reader gains little by fewer of them."""


@dataclass(frozen=True, slots=True)
class FileRule:
    """Rules for a stream's files; see the settings of these names."""

    vectors_from_bytes: int
    is_plain: bool
    searched_rows_max: int = 0


@dataclass(frozen=True, slots=True)
class FileChoice:
    """The action on a file, and its reason as ``stream explain`` shows it."""

    file: LiveFile
    action: FileAction
    reason: str


def rule_of(settings: Settings) -> FileRule:
    """Return the file rules from the settings."""
    is_plain = settings.compatibility == "plain"
    searched_rows_max = settings.searched_rows_max if settings.engine == "auto" else 0
    return FileRule(settings.vectors_from_bytes, is_plain, searched_rows_max)


def choose(files: Sequence[LiveFile], touched: Mapping[str, int], rule: FileRule) -> tuple[FileChoice, ...]:
    """Return the action on each file, in order; ``touched`` is the number of changed rows by path."""
    total = sum(file.size for file in files)
    if total < rule.vectors_from_bytes:
        reason = f"the whole stream is smaller than {rule.vectors_from_bytes:,} bytes"
        return tuple(FileChoice(file, "rewritten", reason) for file in files)
    alone = {file.path: lone_choice(file, touched.get(file.path, 0), rule) for file in files}
    crowded = _crowded_files([file for file in files if alone[file.path].action != "rewritten"])
    return tuple(
        FileChoice(file, "rewritten", "it is one of many small files that become one")
        if file.path in crowded
        else alone[file.path]
        for file in files
    )


def size_class(size: int) -> int:
    """Return the class of files of similar size; 0 for the smallest."""
    found, bytes_max = 0, SMALLEST_BYTES
    while size > bytes_max:  # a logarithm would be off by one at some of the bounds
        found, bytes_max = found + 1, bytes_max * FILES_PER_SIZE_MAX
    return found


def lone_choice(file: LiveFile, touched: int, rule: FileRule, moved: int = 0) -> FileChoice:
    """Return the action on a file by itself; ``moved`` are rows of it that are in new files unchanged."""
    gone = file.deleted + touched + moved
    if gone > file.rows * MARKED_SHARE_MAX:
        return FileChoice(file, "rewritten", f"{gone:,} of its {file.rows:,} rows are deleted then")
    if not touched + moved:
        return left_choice(file)
    if rule.is_plain:
        return FileChoice(file, "rewritten", f"{touched:,} rows change and deletion vectors are not allowed")
    return FileChoice(file, "marked", f"{touched:,} of its {file.rows:,} rows change")


def left_choice(file: LiveFile) -> FileChoice:
    """Return that nothing is done with a file."""
    return FileChoice(file, "left", "no row of it changes")


def _crowded_files(files: Sequence[LiveFile]) -> set[str]:
    """Files to compact: all files of each crowded size class and of the smaller classes."""
    sizes: dict[int, list[LiveFile]] = {}
    for file in files:
        if file.size < SETTLED_BYTES:
            sizes.setdefault(size_class(file.size), []).append(file)
    crowded = [size for size, of_size in sizes.items() if len(of_size) >= FILES_PER_SIZE_MAX]
    if not crowded:
        return set()
    return {file.path for size, of_size in sizes.items() if size <= max(crowded) for file in of_size}


# Rule: ``docs/reference/semantics.md``, "Full extracts".


def require_few_deletions(update: Update, *, lost: int, live: int) -> None:
    """Refuse an extract that lacks more than ``max_delete_ratio`` of the ``live`` rows.

    ``live`` are the stored rows that are neither flagged as deleted nor of the past.
    """
    if not live or lost / live <= update.max_delete_ratio:
        return
    raise TooManyDeletions(
        f"The full extract would delete {lost} of {live} rows ({lost / live:.0%}); "
        f"at most {update.max_delete_ratio:.0%} are allowed.",
        cause="Their keys are not in the batch: it may have been cut off, filtered, or be empty.",
        remedy=f"If they are gone for good, pass max_delete_ratio={_ratio_that_allows(lost, live)}; "
        "1.0 allows everything, an empty batch included.",
        deleted=lost,
        stored=live,
        ratio=lost / live,
        max_delete_ratio=update.max_delete_ratio,
    )


def _ratio_that_allows(lost: int, live: int) -> float:
    """Return the smallest ratio in whole percent that permits this number of deletions."""
    return -(-100 * lost // live) / 100
