"""Erased rows are in no version, and their bytes in no file."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.proof.model import content, frame
from freezeframe.proof.place import Place
from freezeframe.proof.task import Task

PROMISE = "An erased row is in no version that can be read, and its key in no byte that is left."
_VERSIONS = 6
_ERASED = 3


def run(task: Task) -> None:
    """See the module."""
    for place, random in task.rounds():
        tenant = place.tenant(checkpoint_interval=3)
        canaries = [random.randbytes(12).hex() for _ in range(_ERASED)]
        for number in range(_VERSIONS):
            rows = {f"key-{key}": number for key in range(8)} | dict.fromkeys(canaries, number)
            tenant.stream("Account").update(frame(rows), key="Id")
        task.require(bool(_traces(place, canaries)), "the keys were not found before they were erased")
        erased = tenant.erase("Account", canaries)
        task.require(erased.left.is_clean, "rows with the keys were left")
        task.require(erased.rows_erased == _ERASED, f"{erased.rows_erased} rows were erased")
        for name in _traces(place, canaries):
            task.report(f"{name} holds an erased key")
        newcomer = place.tenant()
        kept = {f"key-{key}": _VERSIONS - 1 for key in range(8)}
        for entry in newcomer.history():
            found = content(newcomer.at(entry.version))[0]["Account"]
            task.require(found == kept, f"version {entry.version} reads otherwise after the erasure")
        task.counts.update(rows_erased=_ERASED, versions=_VERSIONS)


def _traces(place: Place, canaries: list[str]) -> list[str]:
    """The files that hold one of the keys, as bytes or in a column of a Parquet file."""
    storage = place.storage()
    found = []
    for name in sorted(one.name for one in storage.list_below("")):
        stored = storage.read(name)
        decoded = str(_rows(stored)).encode() if name.endswith(".parquet") else b""
        if any(key.encode() in stored or key.encode() in decoded for key in canaries):
            found.append(name)
    return found


def _rows(stored: bytes) -> list[dict[str, object]]:
    table: pa.Table = pq.read_table(io.BytesIO(stored))
    rows: list[dict[str, object]] = table.to_pylist()
    return rows
