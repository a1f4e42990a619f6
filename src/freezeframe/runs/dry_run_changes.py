"""Rows and texts that a dry run would change, kept in the job's root.

They are a tenant's data, so they are where an erasure and the tenant's deletion find them, and never in a
queue's table: ``_freezeframe/changes/`` of the root has an Arrow file for each stream, in the form of
``Stream.changes``, and ``index.json``, which names them and has the difference of each text file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa

from freezeframe.errors import FreezeframeError
from freezeframe.runs.job_root import JobRoot
from freezeframe.storage.local import make_private, write_durably
from freezeframe.storage.safe_open import open_regular
from freezeframe.store.diff.row_diff_pages import Comparison
from freezeframe.store.diff.tenant_diff import StreamDifference, TenantDiff
from freezeframe.store.model.directory import OURS
from freezeframe.store.transaction.dry_run import DryRun

CHANGES_MAX = 1000
"""Changed rows of a stream that a dry run keeps, the first by key."""
_FOLDER, _INDEX = f"{OURS}/changes", "index.json"


@dataclass(frozen=True, slots=True)
class KeptChanges:
    """Changed rows by stream and unified differences by file (None: it is sealed, no text, or large).

    ``problems`` has the reason for each stream whose rows cannot be compared.
    """

    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    files: Mapping[str, str | None] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Index:
    rows: Mapping[str, str]
    files: Mapping[str, str | None]
    problems: Mapping[str, str]


def keep_changes(root: JobRoot, _: DryRun, difference: TenantDiff) -> None:
    """Write the changes of a dry run, while its staged rows can be read."""
    folder = root.path / _FOLDER
    make_private(folder)
    rows, problems = dict[str, str](), dict[str, str]()
    for number, (name, changed) in enumerate(difference.streams.items()):
        try:
            table = _first_changes(changed)
        except FreezeframeError as error:  # too many rows without a key, or a column of a reserved name
            problems[name] = f"{error.problem} {error.cause}"
            continue
        rows[name] = f"{number}.arrow"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
        write_durably(folder / rows[name], sink.getvalue().to_pybytes(), synced=False)
    files = {path: item.text() for path, item in difference.files.items()}
    index = json.dumps(asdict(_Index(rows, files, problems)), ensure_ascii=False)
    write_durably(folder / _INDEX, index.encode(), synced=False)


def kept_changes(job_root: str | os.PathLike[str]) -> KeptChanges:
    """Return the changes that a dry run kept in its root; empty ones if it kept none, or its root is gone."""
    folder = Path(job_root)
    try:
        index = _Index(**json.loads(_read(folder, _INDEX)))
        rows = {
            name: pa.ipc.open_file(pa.BufferReader(_read(folder, file))).read_all()
            for name, file in index.rows.items()
        }
        return KeptChanges(rows, index.files, index.problems)
    except (OSError, ValueError, TypeError):  # among them a file that the script replaced
        return KeptChanges()


def _first_changes(changed: StreamDifference) -> pa.Table:
    return Comparison(changed.before, changed.after).page(CHANGES_MAX).table


def _read(root: Path, name: str) -> bytes:
    with open_regular(root, f"{_FOLDER}/{name}") as file:
        return file.read()
