"""An update of rows in memory without moving the stream: find, fill, write what changes, mark what goes.

Spark finds where the batch's keys are, by a scan of the key's columns in the files that can have
them. Old values are read only where a row is to be compared or completed, and only the columns
that it takes. Rows that do not change are not written, but where a file is written anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freezeframe.engine.base import FindTask, TableEngine
from freezeframe.errors import CorruptData
from freezeframe.log import Snapshot, rows
from freezeframe.storage import Storage
from freezeframe.store.columns import arrow_columns, physical_names, written_columns
from freezeframe.store.entries import Counts
from freezeframe.store.file_choice import Choice, FileRule, LiveFile, choose
from freezeframe.store.filling import Filled, Flags, fill
from freezeframe.store.incoming import Incoming
from freezeframe.store.key_ranges import may_hold
from freezeframe.store.live_files import deleted_positions, live_files
from freezeframe.store.plan import Plan
from freezeframe.store.staging import Attempt

LANDED_BYTES_MAX = 64 * 1024 * 1024
"""Batches of up to this many bytes, as Spark wrote them, are taken into memory."""

PATCHED_BYTES_MAX = 16 * 1024 * 1024 * 1024
"""Streams of more bytes are merged by Spark alone."""

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Patch:
    """What becomes of the files: new ones by path, old ones that go, and rows that are marked in others."""

    counts: Counts
    written: tuple[str, ...]
    removed: tuple[str, ...]
    marked: Mapping[str, _Numbers]
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Patching:
    """What it takes to patch a stream: ``folder`` is its table in ``storage``."""

    engine: TableEngine
    storage: Storage
    folder: str
    snapshot: Snapshot
    plan: Plan
    rule: FileRule
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class _Met:
    """Rows of the batch that are stored: file by file, ascending by position.

    ``files`` are paths, ``file`` an index into them, ``row`` a position, ``place`` a row of the batch.
    """

    files: tuple[str, ...]
    file: _Numbers
    row: _Numbers
    place: _Numbers

    def positions(self, which: Flags | None = None) -> dict[str, _Numbers]:
        """By path the positions of all rows, or of the flagged ones."""
        file, row = (self.file, self.row) if which is None else (self.file[which], self.row[which])
        # They are sorted by file, so a file's rows lie together.
        begins = np.searchsorted(file, np.arange(len(self.files) + 1))
        parts = (row[begins[index] : begins[index + 1]] for index in range(len(self.files)))
        return {path: part for path, part in zip(self.files, parts, strict=True) if len(part)}


def can_be_patched(plan: Plan, snapshot: Snapshot) -> bool:
    """Whether the update is one that leaves stored rows where they are, unless they change."""
    files = snapshot.files
    paths = files["path"].to_pylist()
    names = {path.rpartition("/")[2] for path in paths}
    return (
        plan.update.mode == "upsert"
        and plan.is_plain
        and not plan.evolution.changes_stored_files
        # Spark tells a row's file by its name; other writers may have used one twice.
        and len(names) == len(paths)
        and all("numRecords" in (text or "") for text in files["stats"].to_pylist())
        and sum(files["size"].to_pylist()) <= PATCHED_BYTES_MAX
    )


def batch_rows(plan: Plan, incoming: Incoming, attempt: Attempt) -> pa.Table | None:
    """The batch in memory, in the types of the plan; None if Spark landed it and is to move it as well."""
    batch = plan.evolution.batch
    if incoming.in_memory:
        return batch
    landed = attempt.read_landed(incoming.paths, LANDED_BYTES_MAX)
    if landed is None:
        return None
    try:
        columns = [
            landed[field.name].cast(field.type)
            if field.name in landed.column_names
            else pa.nulls(len(landed), field.type)
            for field in batch.schema
        ]
    except pa.ArrowException:
        return None  # Spark fits values to types that Arrow does not, such as structs with fewer fields
    return pa.table(columns, schema=batch.schema)


def described(choices: Sequence[Choice]) -> str:
    """What became of the files, in a few words for the table's history."""
    if all(choice.fate == "rewritten" for choice in choices) and len({one.reason for one in choices}) == 1:
        return f"rewritten: {choices[0].reason}"
    fates = [choice.fate for choice in choices]
    return ", ".join(f"{fates.count(fate)} files {fate}" for fate in ("left", "marked", "rewritten"))


def patch(work: Patching, batch: pa.Table) -> Patch:
    """Bring ``batch`` (each key once, in the types of the plan) into the stream's files.

    Raises:
        CorruptData: a stored file is missing or damaged, or holds a key twice.
    """
    met = _met(work, batch)
    filled = _filled(work, batch, met)
    changing = met.positions(filled.changed)
    is_new = np.ones(len(batch), np.bool_)
    is_new[met.place] = False
    inserted, updated = int(is_new.sum()), len(filled.rows)
    counts = Counts(inserted, updated, len(batch) - inserted - updated, 0)
    if not counts.changed:
        return Patch(counts, (), (), {}, ())
    live = live_files(work.snapshot)
    choices = choose(live, {path: len(part) for path, part in changing.items()}, work.rule)
    rewritten = [choice.file for choice in choices if choice.fate == "rewritten"]
    content = _content(work, rewritten, changing, [filled.rows, _new_rows(filled.rows.schema, batch, is_new)])
    written = work.attempt.write(content, written_columns(work.plan.schema))
    marked = {choice.file.path: changing[choice.file.path] for choice in choices if choice.fate == "marked"}
    return Patch(counts, written, tuple(file.path for file in rewritten), marked, choices)


def _met(work: Patching, batch: pa.Table) -> _Met:
    """The stored rows, not deleted ones, whose key is in the batch."""
    plan = work.plan
    keys = batch.select(list(plan.key))
    candidates = _candidates(work, keys)
    if not candidates.num_rows or not len(batch):
        nothing = np.empty(0, np.int64)
        return _Met((), nothing, nothing, nothing)
    paths = tuple(candidates["path"].to_pylist())
    work.engine.require_shared(work.storage.uri(""))
    found = work.engine.find(
        FindTask(
            stored=tuple(work.storage.uri(f"{work.folder}/{unquote(path)}") for path in paths),
            stored_schema=_key_columns(plan.stored_schema or {}, plan.key),
            target_schema=_unmapped(_key_columns(plan.schema, plan.key)),
            keys=(work.attempt.uri(work.attempt.land_keys(keys)),),
            null_keys="match" if plan.update.null_keys == "match" else "error",
            rows=len(keys),
        )
    )
    return _sorted(paths, found, deleted_positions(work.snapshot, candidates), plan.key)


def _candidates(work: Patching, keys: pa.Table) -> pa.Table:
    files = work.snapshot.files
    schema = work.snapshot.schema
    held = may_hold(files["stats"].to_pylist(), keys, arrow_columns(schema), physical_names(schema))
    return files.filter(pa.array(held, pa.bool_()))


def _sorted(
    paths: tuple[str, ...], found: pa.Table, deleted: Mapping[str, _Numbers], key: Sequence[str]
) -> _Met:
    file = found["file"].to_numpy().astype(np.int64)
    row, place = found["row"].to_numpy(), found["place"].to_numpy()
    alive = np.ones(len(file), np.bool_)
    for index, path in enumerate(paths):
        if path in deleted:
            here = file == index
            alive[here] = ~np.isin(row[here], deleted[path], assume_unique=True)
    file, row, place = file[alive], row[alive], place[alive]
    if len(np.unique(place)) < len(place):
        raise CorruptData(
            f"The stored rows hold a key ({', '.join(key)}) more than once.",
            cause=f"{len(place)} stored rows have {len(np.unique(place))} keys of the batch.",
            remedy="Replace the stream's content with override=True.",
        )
    order = np.lexsort((row, file))
    return _Met(paths, file[order], row[order], place[order])


def _filled(work: Patching, batch: pa.Table, met: _Met) -> Filled:
    plan = work.plan
    target = arrow_columns(written_columns(plan.schema)).remove_metadata()
    target = pa.schema([field.remove_metadata() for field in target])
    stored = [field["name"] for field in written_columns(plan.stored_schema or {"fields": []})["fields"]]

    def old_values(names: Sequence[str], which: Flags) -> pa.Table:
        return rows.read_at(work.snapshot, met.positions(which), names)

    return fill(
        batch.take(pa.array(met.place)),
        target,
        [name for name in stored if name in target.names],
        plan.key,
        old_values,
        keeps_nulls=plan.update.nulls == "keep",
    )


def _new_rows(schema: pa.Schema, batch: pa.Table, is_new: Flags) -> pa.Table:
    new = batch.filter(pa.array(is_new))
    columns = [
        new[field.name] if field.name in new.column_names else pa.nulls(len(new), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _content(
    work: Patching, rewritten: Sequence[LiveFile], changing: Mapping[str, _Numbers], last: Sequence[pa.Table]
) -> Iterator[pa.Table]:
    """What is written: the rows that stay of files that go, then the changed and the new ones."""
    schema = last[0].schema
    for kept in rows.read_without(
        work.snapshot, {file.path: changing.get(file.path, np.empty(0, np.int64)) for file in rewritten}
    ):
        columns = [
            kept.column(field.name).cast(field.type)
            if field.name in kept.schema.names
            else pa.nulls(kept.num_rows, field.type)
            for field in schema
        ]
        yield pa.table(columns, schema=schema)
    yield from (table for table in last if len(table))


def _key_columns(schema: Mapping[str, object], key: Sequence[str]) -> dict[str, object]:
    fields = {field["name"]: field for field in schema["fields"]}  # type: ignore[attr-defined]
    return {"type": "struct", "fields": [fields[name] for name in key]}


def _unmapped(schema: dict[str, object]) -> dict[str, object]:
    """The columns under their own names: the file of keys has nothing to do with the table's files."""
    fields = [{**field, "metadata": {}} for field in schema["fields"]]  # type: ignore[attr-defined]
    return {**schema, "fields": fields}
