"""The built-in script of a replay: it runs kept jobs again in a copy of the tenant, and stages what differs.

    tmp/replay/store    the tenant as it was before the first job; each job is committed there
    tmp/replay/0 …      the folder of each job, as ``job pull`` writes it, with the mended script

The copy is in the job's root: an erasure finds it there, and it is gone at the end. Whatever ends the replay
leaves the tenant as it was, because all that it changes there is the one transaction of its own job.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from freezeframe import progress
from freezeframe.errors import FreezeframeError, InvalidOption, TryAgain, kinds_of
from freezeframe.identifiers import TenantId
from freezeframe.runs.job_root import JobRoot, read_result
from freezeframe.runs.kept_jobs import KeptJob, script_files
from freezeframe.runs.process.environment import PARAMETER_PREFIX
from freezeframe.runs.pulled_jobs import PulledJob, write_kept_files
from freezeframe.runs.replay.replays import Replay, find_replayed, parse_replay
from freezeframe.runs.request import RunOutcome, RunRequest
from freezeframe.runs.running import run
from freezeframe.runs.script_header import REPLAY_OPTIONS
from freezeframe.script.tenants import open_tenant, shared_engine, storage_at
from freezeframe.storage.local import make_private, write_durably
from freezeframe.store.model.directory import PULLED_FILE, PULLED_STORE
from freezeframe.store.replay import Replayed, stage_replay
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant import Job
from freezeframe.store.tenant_log.state import NO_VERSION
from freezeframe.store.tenants import ClonePart

_SHOWN_MAX = 20


def main(variables: Mapping[str, str]) -> None:
    """Run the jobs of a replay in a copy of the tenant, and stage in the open job what they would have made.

    Raises:
        FreezeframeError: one of them failed.
        ConflictError: a stream that one of them used was changed by others between them; or what they changed
            is changed meanwhile.
    """
    root = JobRoot(Path(variables["ROOT_DIR"]))
    job, wanted = open_tenant(root.snapshots), parse_replay(variables[f"{PARAMETER_PREFIX}{REPLAY_OPTIONS}"])
    if not isinstance(job, Job) or job.is_repeated:
        return
    context, found = job.context, find_replayed(job.context, wanted, job.scope.state())
    folder, tenant = root.temporary / "replay", TenantId(context.tenant_id)
    # Version 0 is what the replay is compared with, and nothing of the copy is kept.
    settings = context.settings.model_copy(update={"keep_versions": 0, "keep_inputs_days": 0})
    try:
        make_private(folder)
        storage = storage_at(str(folder / PULLED_STORE), settings)
        store = Store(storage, shared_engine(), settings, variables["ENV_ID"])
        if found.made.before.version != NO_VERSION:
            # A mended script may read other streams than the jobs did.
            streams = found.streams if wanted.script is None else None
            store.create_clone(context.storage, tenant, part=ClonePart(found.made.before, streams))
        for number, (kept, place) in enumerate(found.jobs):
            there = folder / str(number)
            write_kept_files(context, kept, place, there)
            again = _request(there, _mend(there, kept, wanted))
            _say(f"Replaying {number + 1} of {len(found.jobs)}: {kept.job_id} ({again.script.name})")
            outcome = run(again, settings=settings, on_line=_say)
            _require_success(kept.job_id, outcome)
            result = read_result(JobRoot(outcome.job_root))
            found.require_own(() if result is None else result.streams or ())
        _tell(stage_replay(job, found.made, store.tenant(tenant, create=True)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _mend(folder: Path, kept: KeptJob, wanted: Replay) -> KeptJob:
    """Lay the mended script and what it imports over the kept one; return the job as it runs."""
    if wanted.script is not None:
        for name, path in script_files(wanted.script).items():
            (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
        kept = replace(kept, script=wanted.script.name)
        if hashlib.sha256((folder / kept.script).read_bytes()).hexdigest() != wanted.sha256:
            raise InvalidOption(
                f"{wanted.script} is another one than when the replay was asked for.",
                cause="The history names the script by its SHA-256.",
                remedy="Ask for the replay again.",
            )
    # So nothing reaches a target, and no check of a single job holds it.
    make_private((folder / PULLED_FILE).parent)
    write_durably(folder / PULLED_FILE, json.dumps({"job": kept.to_json()}).encode(), synced=False)
    (folder / PULLED_STORE).symlink_to(folder.parent / PULLED_STORE)
    return kept


def _request(folder: Path, kept: KeptJob) -> RunRequest:
    """Return the run of a job in its folder, for the copy of the tenant."""
    there = PulledJob(folder, kept, NO_VERSION)
    root = str((folder / PULLED_STORE).resolve())
    return RunRequest(
        root, kept.environment, kept.tenant, there.script, kept.job_id, **there.request_fields()
    )


def _require_success(job_id: str, outcome: RunOutcome) -> None:
    if outcome.is_success:
        for name, receipt in (outcome.receipt or {}).get("streams", {}).items():
            counts = ", ".join(f"{receipt[kind]:,} {kind}" for kind in ("inserted", "updated", "deleted"))
            _say(f"  {name}: {counts}")
        return
    error: Mapping[str, Any] = outcome.error or {}
    may_help = any(error.get("code") == kind.code for kind in kinds_of(TryAgain))
    raise FreezeframeError(
        f"The job {job_id} failed when it was replayed; nothing of the replay was kept.",
        cause=f"{error.get('problem', outcome.status)} {error.get('cause', '')}".strip(),
        remedy=error.get("remedy") or "See the log.",
        code="REPLAYED_JOB_FAILED",
        job_id=job_id,
        is_permanent=not may_help,
    )


def _tell(done: Replayed) -> None:
    """Say in the report how much stays as it is, and in the log, which is a tenant's own, which cells."""
    for name, effect in done.streams.items():
        counts = ", ".join(f"{count:,} {kind}" for kind, count in effect.counts.to_json().items() if count)
        _say(f"{name}: {effect.reason or counts or 'nothing changes'}")
        if effect.reason:
            progress.remark(f"The stream {name} stays as it is: {effect.reason}.")
        if effect.kept_rows:
            count = effect.kept_cells
            rows = "1 row keeps" if effect.kept_rows == 1 else f"{effect.kept_rows:,} rows keep"
            kept = "1 cell, which was" if count == 1 else f"{count:,} cells, which were"
            progress.remark(f"In {name} {rows} {kept} changed again since; the log names the first.")
        for row in effect.kept[:_SHOWN_MAX]:
            cells = {column: values[2] for column, values in row.cells.items()}
            _say(f"  {dict(row.key)} stays ({row.reason}): {cells}")
    for path in done.files_kept:
        _say(f"{path}: stays, it was changed again since")
        progress.remark(f"The file {path} stays as it is: it was changed again since.")


def _say(line: str) -> None:
    print(line)  # noqa: T201 - the job's log tells what was done


if __name__ == "__main__":
    main(os.environ)
