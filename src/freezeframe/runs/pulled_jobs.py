"""A job in a folder of its own: its files, the state before it, and what it made of that, to compare with.

etl.py  lib/  sync-output/  parameters.json …   the files of the job, as they were when it began
freezeframe.toml                                names the store below, so that commands find it
store/                                          the tenant before the job, and in the environment
                                                ``job-result`` the streams and files that the job changed
_freezeframe/pulled.json                        the job's record
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from freezeframe import progress
from freezeframe.errors import InvalidOption, NotFound
from freezeframe.identifiers import StreamName, TenantId
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.runs.kept_jobs import KeptJob, output_hashes, parse_kept_job
from freezeframe.script.tenants import shared_engine, storage_at
from freezeframe.settings import Settings
from freezeframe.storage.local import failure, make_private, write_durably
from freezeframe.store.blobs.kept_inputs import open_inputs
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.diff.tenant_diff import differing, fate_of
from freezeframe.store.job import find_held_job
from freezeframe.store.model.directory import OURS, PULLED_FILE, PULLED_STORE
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.snapshot_store import Store
from freezeframe.store.table.keys import KeyNumbers
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import table_snapshot
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState
from freezeframe.store.tenants import ClonePart
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.scope import listed_state

_RESULT = "job-result"


@dataclass(frozen=True, slots=True)
class PulledJob:
    """A job in a folder. ``before`` is the tenant's version before it, ``after`` the one that it made.

    ``streams`` and ``files`` are those that it changed. Of the streams ``parts`` only some rows were pulled;
    ``left_out`` are sealed files.
    """

    folder: Path
    job: KeptJob
    before: int
    after: int | None = None
    streams: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def script(self) -> Path:
        """The script."""
        return self.folder / self.job.script

    @property
    def root(self) -> str:
        """The store with the state before the job."""
        return str(self.folder / PULLED_STORE)

    def to_json(self) -> dict[str, Any]:
        """Return the job, the versions and what was pulled of them."""
        named = {name: getattr(self, name) for name in _SAID}
        return {"folder": str(self.folder), "job": self.job.to_json(), **named}

    def request_fields(self) -> dict[str, Any]:
        """Return what a run in the folder has from the job, by the names of ``RunRequest``."""
        brought = self.folder / "sync-output"
        fields: dict[str, Any] = {name: value for name, value in self.job.options.items() if value}
        fields["parameters"] = dict(self.job.parameters)
        return fields | ({"input_dir": brought} if brought.is_dir() else {})

    def stores(self, settings: Settings) -> tuple[Store, Store]:
        """Return the store of the folder in the job's environment, and in that of what the job made."""
        here, made = (_store(self.folder, name, settings) for name in (self.job.environment, _RESULT))
        return here, made

    def reset(self, store: Store) -> None:
        """Bring the state before the job back, which earlier runs in the folder have changed."""
        if store.folder(self.job.tenant) is None:
            return
        if self.before == NO_VERSION:
            store.delete_tenant(self.job.tenant)
            return
        tenant = store.tenant(self.job.tenant)
        now, then = tenant.scope.state(), tenant.scope.state(0)
        if now.version:
            paths = (now.files.keys() | then.files.keys()) - set(self.left_out)
            tenant.restore(0, streams=now.streams.keys() | then.streams.keys(), files=paths)

    def difference(self, output: Path, stores: tuple[Store, Store]) -> JobDifference:
        """Return how the state here, after a run, differs from what the job made, as does the ``output``."""
        mine, made = (_seen(store, self.job.tenant) for store in stores)
        begun = _NOTHING if self.before == NO_VERSION else _seen(stores[0], self.job.tenant, 0)
        streams, files = dict[str, Counts](), dict[str, str]()
        for name in sorted({*self.streams, *differing(begun.state.streams, mine.state.streams)}):
            expected, found = (made if name in self.streams else begun).table(name), mine.table(name)
            if expected is None and found is None:
                continue
            keys = _keys_of(begun.table(name), expected) if name in self.parts else None
            counts = Comparison(expected, found, keys).counts()
            if counts.changed or expected is None or found is None:
                streams[name] = counts
        for path in sorted({*self.files, *differing(begun.state.files, mine.state.files)}):
            was = (made if path in self.files else begun).sha256(path)
            if path not in self.left_out and was != mine.sha256(path):
                files[path] = fate_of(was, mine.sha256(path))
        was_written, written = self.job.output, output_hashes(output)
        fates = {
            path: fate_of(was_written.get(path), written.get(path))
            for path in differing(was_written, written)
        }
        return JobDifference(streams, files, fates)


_SAID = ("before", "after", "streams", "files", "parts", "left_out")


@dataclass(frozen=True, slots=True)
class JobDifference:
    """How a run differs from the job that it repeats: rows by stream, fates of files and of written files.

    It leads from what the job made to what the run made: inserted rows are there only after the run.
    """

    streams: Mapping[str, Counts] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    output: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the run did just what the job did."""
        return not (self.streams or self.files or self.output)

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name."""
        streams = {name: counts.to_json() for name, counts in self.streams.items()}
        return {"streams": streams, "files": dict(self.files), "output": dict(self.output)}


@dataclass(frozen=True, slots=True)
class _Seen:
    """A state of a tenant, with the log that its tables are opened by."""

    state: TenantState
    log: TenantLog | None = None

    def table(self, name: str) -> Snapshot | None:
        if self.log is None or name not in self.state.streams:
            return None
        return table_snapshot(self.log, self.state, StreamName(name))

    def sha256(self, path: str) -> str | None:
        held = self.state.files.get(path)
        return None if held is None else held.sha256


_NOTHING = _Seen(TenantState())


def _seen(store: Store, tenant_id: str, version: int | None = None) -> _Seen:
    if store.folder(tenant_id) is None:
        return _NOTHING
    tenant = store.tenant(tenant_id)
    return _Seen(tenant.scope.state(version), tenant.context.log)


def pulled_job(folder: Path) -> PulledJob | None:
    """Return the job that was pulled into a folder; None: there is none."""
    try:
        record = json.loads((folder / PULLED_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    named: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    return PulledJob(**{**named, "folder": folder.absolute(), "job": parse_kept_job(record["job"])})


def find_kept_job(context: TenantContext, job_id: str) -> tuple[KeptJob, str]:
    """Return the kept job, and the folder of its contents.

    Raises:
        NotFound: its input is not kept, or there is no such job.
    """
    log, state = context.log, context.log.current_state()
    try:
        folder, record = open_inputs(context.storage, context.settings, state.erased).find(job_id)
    except NotFound:
        if log.known_job(state, job_id) is None and find_held_job(context, job_id) is None:
            raise NotFound(
                f"The tenant has no job {job_id}.",
                cause="None of that id has committed or is held, and the input of none that failed is kept.",
                remedy="See freezeframe job list and tenant history.",
                code="JOB_NOT_FOUND",
                job_id=job_id,
            ) from None
        raise
    return parse_kept_job(record), folder


def write_kept_files(context: TenantContext, job: KeptJob, place: str, folder: Path) -> None:
    """Write the files of a kept job into a new or empty folder; damage is an error."""
    kept = open_inputs(context.storage, context.settings, int(place.partition("-")[0]))
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise InvalidOption(
                f"{folder} is not empty.", cause="It gets the files of a job.", remedy="Name a new folder."
            )
        make_private(folder)
        for name, file in job.files.items():
            path = folder / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            chunks = progress.count_bytes(kept.chunks(place, file))
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
                target.writelines(chunks)
    except OSError as error:
        raise failure("write", str(folder), error) from error


def pull(context: TenantContext, job_id: str, folder: Path, *, rows_max: int | None = None) -> PulledJob:
    """Pull a job into a new or empty folder: its files, the state before it, and what it made of that.

    With ``rows_max`` at most so many rows of each stream with a key, those that the job changed first. Sealed
    files and the connector's settings are left out.

    Raises:
        NotFound: its input is not kept, or there is no such job.
        VersionNotFound: the version before it is no longer kept.
        InvalidOption: the folder is not empty.
    """
    progress.begin("pulling", "bytes")
    job, place = find_kept_job(context, job_id)
    before, after = _states(context, job)
    changed, files = tuple[str, ...](), tuple[str, ...]()
    if after is not None:
        begun = before or TenantState()
        changed = tuple(differing(begun.streams, after.streams))
        files = tuple(differing(begun.files, after.files))
        before, after = (_as_read(context, job, state, {*changed}, {*files}) for state in (before, after))
    was, made = (_NOTHING if state is None else _Seen(state, context.log) for state in (before, after))
    if after is None:
        made = was
    seen = None if job.streams is None else {*job.streams, *changed}
    names = sorted(was.state.streams.keys() | made.state.streams.keys())
    keys = dict[str, pa.Table]()
    for name in names if rows_max is not None else ():
        if seen is None or name in seen:
            chosen = _first_keys(was.table(name), made.table(name), rows_max or 0)
            keys |= {} if chosen is None else {name: chosen}
    write_kept_files(context, job, place, folder)
    states = {job.environment: ClonePart(before, seen, _unsealed(before), keys)}
    states[_RESULT] = ClonePart(after, changed, {*files} & {*(_unsealed(after) or ())}, keys)
    for environment, part in states.items():
        if part.state is not None:
            _store(folder, environment, context.settings).create_clone(
                context.storage, TenantId(job.tenant), part=part
            )
    sealed = {path for state in (was.state, made.state) for path, held in state.files.items() if held.sealed}
    found = PulledJob(
        folder.absolute(),
        job,
        NO_VERSION if before is None else before.version,
        None if after is None else after.version,
        changed,
        files,
        tuple(keys),
        tuple(sorted(sealed)),
    )
    toml = {"root": PULLED_STORE, "environment": job.environment, "tenant": job.tenant}
    texts = {
        PULLED_FILE: json.dumps(found.to_json()),
        "freezeframe.toml": "".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in toml.items()
        ),
    }
    make_private(folder / OURS)
    for name, text in texts.items():
        write_durably(folder / name, text.encode(), synced=False)
    return found


def _states(context: TenantContext, job: KeptJob) -> tuple[TenantState | None, TenantState | None]:
    """Return the states before a job and after it; None: the tenant had no version, or the job made none."""
    log, now = context.log, context.log.current_state()
    record = log.known_job(now, job.job_id)
    after = None if record is None else listed_state(log, now, record.version)
    version = job.base if after is None else after.version - 1
    return (None if version == NO_VERSION else listed_state(log, now, version)), after


def _as_read(
    context: TenantContext,
    job: KeptJob,
    state: TenantState | None,
    streams: AbstractSet[str],
    files: AbstractSet[str],
) -> TenantState | None:
    """Return the state with all but these streams and files as when the job began, if that is kept.

    Others may have committed between that and the job's commit, which does not fail for what was only read.
    """
    now = context.log.current_state()
    if state is None or not (job.base == NO_VERSION or now.is_listed(job.base)):
        return state
    base = TenantState() if job.base == NO_VERSION else listed_state(context.log, now, job.base)
    return replace(
        state,
        streams=_all_but(streams, base.streams, state.streams),
        files=_all_but(files, base.files, state.files),
    )


def _all_but(names: AbstractSet[str], base: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in base.items() if name not in names}
    return rest | {name: value for name, value in state.items() if name in names}


def _unsealed(state: TenantState | None) -> set[str] | None:
    if state is None:
        return None
    return {path for path, held in state.files.items() if not held.sealed}


def _store(folder: Path, environment: str, settings: Settings) -> Store:
    settings = settings.model_copy(update={"keep_versions": 0})  # each run begins with version 0, so it stays
    return Store(storage_at(str(folder / PULLED_STORE), settings), shared_engine(), settings, environment)


def _first_keys(before: Snapshot | None, after: Snapshot | None, rows_max: int) -> pa.Table | None:
    """Return the keys of at most so many rows, of those first that differ; None: the stream is pulled whole.

    That is one without a key by which rows are found, and one that has no more rows.
    """
    there = after or before
    if there is None or max(map(_count, (before, after))) <= rows_max:
        return None
    comparison, key = Comparison(before, after), list(stored_key(there.metadata) or ())
    if not comparison.is_by_key:
        return None
    parts, count = list[pa.Table](), 0
    for changes in comparison.batches():
        parts.append(changes.keys.slice(0, rows_max - count))
        count += len(parts[-1])
        if count == rows_max:
            break
    changed = pa.concat_tables(parts) if count else None
    numbers = None if changed is None else KeyNumbers(changed)
    for batch in rows.read_batches(before, key) if before is not None and count < rows_max else ():
        table = pa.Table.from_batches([batch])
        if changed is not None and numbers is not None:
            table = table.cast(changed.schema)
            found, _ = numbers.found_in(table)
            table = table.take(pa.array(np.setdiff1d(np.arange(len(table)), found)))
        parts.append(table.slice(0, rows_max - count))
        count += len(parts[-1])
        if count == rows_max:
            break
    return pa.concat_tables(parts)


def _count(table: Snapshot | None) -> int:
    return 0 if table is None else rows.count(table)


def _keys_of(*tables: Snapshot | None) -> pa.Table:
    """Return the keys of all rows of two states of a stream, each once, in the types of the first."""
    found: list[pa.Table] = []
    for table in filter(None, tables):
        for batch in rows.read_batches(table, stored_key(table.metadata)):
            keys = pa.Table.from_batches([batch])
            found.append(keys if not found else keys.select(found[0].column_names).cast(found[0].schema))
    whole = pa.concat_tables(found)
    return whole.group_by(whole.column_names).aggregate([])
