"""Difference of two versions of a tenant: streams by key, files by text."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from freezeframe.engine.frames.frames import DtypeBackend, Library, to_frame
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.storage import Storage
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.model.directory import blob_file
from freezeframe.store.model.receipt import Counts, html_table, rows_html, table_of
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import table_snapshot
from freezeframe.store.tenant_log.state import HeldFile, TenantState

Fate = Literal["added", "changed", "removed"]
_TEXT_BYTES_MAX = 10 * 1024 * 1024
_SHOWN_ROWS = 10


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """Columns by name with Delta's types; of a retyped one the old type and the new one."""

    added: Mapping[str, str]
    dropped: Mapping[str, str]
    retyped: Mapping[str, tuple[str, str]]

    @classmethod
    def between(cls, old: Mapping[str, str], new: Mapping[str, str]) -> ColumnChanges:
        """Return the difference between the columns of two versions."""
        return cls(
            {name: kind for name, kind in new.items() if name not in old},
            {name: kind for name, kind in old.items() if name not in new},
            {name: (kind, new[name]) for name, kind in old.items() if new.get(name, kind) != kind},
        )


NO_COLUMNS = ColumnChanges({}, {}, {})


@dataclass(frozen=True, slots=True)
class StreamDifference:
    """A stream that differs between the versions; rows are read on demand."""

    name: str
    fate: Fate
    before: Snapshot | None = field(repr=False)
    after: Snapshot | None = field(repr=False)

    @classmethod
    def between(cls, name: str, before: Snapshot | None, after: Snapshot) -> StreamDifference:
        """Return the difference of a stream that is there in the later version."""
        return cls(name, "added" if before is None else "changed", before, after)

    def _repr_html_(self) -> str:
        """Return the counts and the first changes in a notebook."""
        columns, rows = table_of({self.name: self.counts})
        changed = self.changes("arrow")
        shown = changed.slice(0, _SHOWN_ROWS)
        more = f", {_SHOWN_ROWS} of {len(changed):,}" if len(changed) > _SHOWN_ROWS else ""
        return html_table(self.name, columns, rows) + rows_html(f"Changes{more}", shown)

    def changes(self, as_: Library = "pandas", *, dtype_backend: DtypeBackend | None = None) -> Any:
        """The net changes, a row each: ``_change_type``, the columns, and ``_before``.

        It is ``insert``, ``update`` or ``delete``. The columns are those after (of a deletion the deleted
        values); ``_before`` is a struct of the old ones.
        """
        return to_frame(Comparison(self.before, self.after).table(), as_, dtype_backend)

    @property
    def counts(self) -> Counts:
        """The numbers of inserted, updated and deleted rows, counted in bounded memory.

        Too many rows without a key all count as deleted and inserted, except rows of shared files.
        """
        return Comparison(self.before, self.after).counts()


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A file that differs between the versions."""

    path: str
    fate: Fate
    before: HeldFile | None
    after: HeldFile | None
    storage: Storage

    @property
    def is_sealed(self) -> bool:
        """Whether either side is sealed; then no content is shown."""
        return any(side is not None and side.sealed for side in (self.before, self.after))

    def text(self, context_lines: int = 3) -> str | None:
        """Return the difference as a unified diff; None where a side is sealed, no UTF-8, or over 10 MB."""
        sides = [self._lines(side) for side in (self.before, self.after)]
        if self.is_sealed or None in sides:
            return None
        old, new = (side or [] for side in sides)
        return "\n".join(difflib.unified_diff(old, new, self.path, self.path, "", "", context_lines, ""))

    def _lines(self, side: HeldFile | None) -> list[str] | None:
        if side is None:
            return []
        if side.sealed or side.size > _TEXT_BYTES_MAX:
            return None
        try:
            return self.storage.read(blob_file(side.blob)).decode().splitlines()
        except UnicodeDecodeError:
            return None


@dataclass(frozen=True, slots=True)
class TenantDiff:
    """The differing streams and files of the versions ``before`` and ``after`` of a tenant, by name."""

    before: int
    after: int
    streams: Mapping[str, StreamDifference]
    files: Mapping[str, FileDifference]

    def to_json(self) -> dict[str, Any]:
        """Return names, fates and row counts, without values."""
        return {
            "before": self.before,
            "after": self.after,
            "streams": {
                name: {"fate": item.fate, **item.counts.to_json()} for name, item in self.streams.items()
            },
            "files": {
                path: {"fate": item.fate, "sealed": item.is_sealed} for path, item in self.files.items()
            },
        }

    def _repr_html_(self) -> str:
        versions = f"Version {self.before} to {self.after}"
        if not (self.streams or self.files):
            return html_table(f"{versions}: nothing differs", (), ())
        columns, rows = table_of({name: item.counts for name, item in self.streams.items()})
        fates = [(*row, self.streams[row[0]].fate) for row in rows]
        files = [(path, item.fate) for path, item in self.files.items()]
        listed = html_table("Files", ("file", ""), files) if files else ""
        return html_table(versions, (*columns, ""), fates) + listed


def tenant_diff(log: TenantLog, before: TenantState, after: TenantState) -> TenantDiff:
    """Return the difference between two states."""
    streams = {
        name: StreamDifference(
            name,
            fate_of(before.streams.get(name), after.streams.get(name)),
            _snapshot(log, before, name),
            _snapshot(log, after, name),
        )
        for name in differing(before.streams, after.streams)
    }
    paths = sorted(before.files.keys() | after.files.keys())
    files = {
        path: FileDifference(path, fate_of(old, new), old, new, log.storage)
        for path in paths
        for old, new in [(before.files.get(path), after.files.get(path))]
        if (old.blob if old else None) != (new.blob if new else None)
    }
    return TenantDiff(before.version, after.version, streams, files)


def _snapshot(log: TenantLog, state: TenantState, name: str) -> Snapshot | None:
    return table_snapshot(log, state, StreamName(name)) if name in state.streams else None


def differing(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return the names whose values differ, sorted; one that is not there has none."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def fate_of(before: object, after: object) -> Fate:
    """Return how something changed from ``before`` to ``after``; None means that it did not exist."""
    return "added" if before is None else "removed" if after is None else "changed"
