"""A tenant as dictionaries: what it holds, its operations, and what each of them makes of that.

The proofs and the tests with random operations carry out steps, and compare the tenant with the model.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from freezeframe.store import Job, Tenant

Rows = Mapping[str, int]
"""The values of the column ``v`` by ``Id``."""
Content = tuple[dict[str, dict[str, int]], dict[str, bytes]]
"""The rows of each stream, and the bytes of each file."""
Change = tuple[Literal["upsert", "override", "write", "delete"], str, Any]
"""A change by a job: what it does, to which stream or file, with which rows or bytes."""

STREAMS = ("Account", "Lead")


def frame(rows: Rows) -> pa.Table:
    """Rows of the columns ``Id`` and ``v``."""
    return pa.table({"Id": pa.array(list(rows), pa.string()), "v": pa.array(list(rows.values()), pa.int64())})


def rows_of(columns: Mapping[str, Iterable[Any]]) -> dict[str, int]:
    """Return the rows by ``Id``; a repeated key gets a name of its own, so that it equals nothing."""
    found: dict[str, int] = {}
    for key, value in zip(columns["Id"], columns["v"], strict=True):
        found[f"{key} again" if key in found else key] = value
    return found


def content(reader: Tenant | Job, known: dict[tuple[str, int], dict[str, int]] | None = None) -> Content:
    """Read all rows of all streams and the bytes of all files.

    The rows of a table's version that ``known`` has are not read again; those that are read are added to it.
    """
    known = {} if known is None else known
    streams = {}
    for name in reader.streams():
        stream = reader.stream(name)
        place = (name, stream.stream_version)
        if place not in known:
            known[place] = rows_of(stream.read(as_="arrow").to_pydict())
        streams[name] = known[place]
    return streams, {item.path: reader.files.read(item.path) for item in reader.files.list(recursive=True)}


def changed(held: Content, changes: Iterable[Change]) -> Content:
    """Return what the changes make of the content of a tenant."""
    streams, files = {name: dict(rows) for name, rows in held[0].items()}, dict(held[1])
    for kind, name, value in changes:
        if kind == "override":
            streams[name] = dict(value)
        elif kind == "upsert" and (value or name not in streams):
            streams.setdefault(name, {}).update(value)
        elif kind == "write":
            files[name] = value
        elif kind == "delete":
            files.pop(name, None)
    return streams, files


def carry_out(job: Job | Tenant, changes: Iterable[Change]) -> None:
    """Make the changes by a job."""
    for kind, name, value in changes:
        if kind in {"upsert", "override"}:
            job.stream(name).update(frame(value), key="Id", override=kind == "override")
        elif kind == "write":
            job.files.write(name, value)
        elif job.files.exists(name):
            job.files.delete(name)


def numbered(number: object, rows: Rows, kind: Literal["upsert", "override"] = "upsert") -> list[Change]:
    """Return the changes that bring rows to each of ``STREAMS``, and write a number or a name into a file."""
    return [*((kind, name, rows) for name in STREAMS), ("write", "state.json", str(number).encode())]


@dataclass(frozen=True, slots=True)
class Step:
    """An operation of a tenant: its kind, of which stream or job, and with what.

    A job has its changes, a restoration its version, an erasure its key, gc the versions to keep.
    """

    kind: Literal["job", "restore", "gc", "erase"]
    value: Any
    name: str = ""

    def run(self, tenant: Tenant) -> None:
        """Carry out the operation."""
        if self.kind == "job":
            with tenant.job(self.name or None) as job:
                carry_out(job, self.value)
        elif self.kind == "restore":
            tenant.restore(self.value)
        elif self.kind == "erase":
            tenant.erase(self.name, [self.value])
        else:
            tenant.set_retention(keep_versions=self.value)
            tenant.gc()

    def expected(self, held: Content, past: Mapping[int, Content]) -> Content:
        """Return what the tenant holds after it; ``past`` has what it held at the version to restore."""
        if self.kind == "job":
            return changed(held, self.value)
        if self.kind == "restore":
            return past[self.value]
        if self.kind == "gc":
            return held
        kept = {key: value for key, value in held[0][self.name].items() if key != self.value}
        return held[0] | {self.name: kept}, held[1]
