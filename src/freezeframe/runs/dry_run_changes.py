"""Rows and texts that a dry run or a held job would change, kept in the job's root.

They are a tenant's data, so they are where an erasure and the tenant's deletion find them, and never in a
queue's table: ``_freezeframe/changes/`` of the root has an Arrow file for each stream, in the form of
``Stream.changes``, and ``index.json``, which names them and has the difference of each text file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from freezeframe.errors import FreezeframeError
from freezeframe.runs.job_root import JobRoot
from freezeframe.runs.request import RunRequest
from freezeframe.storage.local import make_private, write_durably
from freezeframe.storage.safe_open import open_regular
from freezeframe.store.diff.checks import FailedCheck, failed_checks
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.diff.tenant_diff import TenantDiff
from freezeframe.store.model.directory import OURS
from freezeframe.store.transaction.dry_run import DryRun

CHANGES_MAX = 1000
"""Changed rows of a stream that a dry run keeps, the first by key."""
_COMPARED_BYTES_MAX = 200_000  # comparing lines takes long for large files, and the run waits for it
_FOLDER, _INDEX = f"{OURS}/changes", "index.json"


@dataclass(frozen=True, slots=True)
class KeptChanges:
    """Changed rows by stream and unified differences by file (None: it is sealed, no text, or large).

    ``problems`` has the reason for each stream whose rows cannot be compared, ``failing`` the first rows that
    fail a check, with their key and the columns that the check names.
    """

    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    files: Mapping[str, str | None] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    failing: Sequence[tuple[FailedCheck, pa.Table]] = ()


def review(root: JobRoot, request: RunRequest, effects: DryRun, difference: TenantDiff) -> DryRun | None:
    """Try the request's checks on what its job would commit; None: it may be committed.

    The changes of a job that may not be are kept, while its staged rows can be read.
    """
    failed = [
        check
        for name, texts in request.checks.items()
        if name in difference.streams
        for check in failed_checks(difference.streams[name], effects.streams[name].counts, texts)
    ]
    if not (failed or request.hold or request.dry_run):
        return None
    _keep_changes(root, difference, failed)
    return replace(effects, failed_checks=tuple(failed))


def _keep_changes(root: JobRoot, difference: TenantDiff, failed: Sequence[FailedCheck]) -> None:
    folder = root.path / _FOLDER
    make_private(folder)
    rows, problems = dict[str, str](), dict[str, str]()
    for number, (name, changed) in enumerate(difference.streams.items()):
        try:
            table = Comparison(changed.before, changed.after).page(CHANGES_MAX).changes.table
        except FreezeframeError as error:  # too many rows without a key, or a column of a reserved name
            problems[name] = f"{error.problem} {error.cause}"
            continue
        rows[name] = _keep_table(folder, f"{number}.arrow", table)
    failing = [
        {**check.to_json(), "file": _keep_table(folder, f"check-{number}.arrow", check.failing)}
        for number, check in enumerate(failed)
        if check.failing is not None
    ]
    files = {
        path: None
        if any(side is not None and side.size > _COMPARED_BYTES_MAX for side in (item.before, item.after))
        else item.text()
        for path, item in difference.files.items()
    }
    index = {"rows": rows, "files": files, "problems": problems, "failing": failing}
    write_durably(folder / _INDEX, json.dumps(index).encode(), synced=False)


def _keep_table(folder: Path, name: str, table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    write_durably(folder / name, sink.getvalue().to_pybytes(), synced=False)
    return name


def kept_changes(job_root: str | os.PathLike[str]) -> KeptChanges:
    """Return the changes that a dry run kept in its root; empty ones if it kept none, or its root is gone."""
    folder = Path(job_root)
    try:
        index = json.loads(_read(folder, _INDEX))
        tables = {name: _table(folder, file) for name, file in index["rows"].items()}
        failing = [
            (FailedCheck(item["stream"], item["check"], item["reason"]), _table(folder, item["file"]))
            for item in index.get("failing", ())
        ]
        return KeptChanges(**{**index, "rows": tables, "failing": failing})
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return KeptChanges()  # also where the script replaced a file


def _table(root: Path, name: str) -> pa.Table:
    return pa.ipc.open_file(pa.BufferReader(_read(root, name))).read_all()


def _read(root: Path, name: str) -> bytes:
    with open_regular(root, f"{_FOLDER}/{name}") as file:
        return file.read()
