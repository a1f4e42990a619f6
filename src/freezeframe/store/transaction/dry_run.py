"""What a job would change: the result of a dry run, which comes in place of a commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from freezeframe.storage import Storage
from freezeframe.store.diff.checks import FailedCheck
from freezeframe.store.diff.tenant_diff import (
    NO_COLUMNS,
    ColumnChanges,
    Fate,
    FileDifference,
    StreamDifference,
    TenantDiff,
    fate_of,
)
from freezeframe.store.model.receipt import Counts, html_table
from freezeframe.store.schema.columns import stored_key, type_names
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.staged import StagedFiles, StagedTable


@dataclass(frozen=True, slots=True)
class StreamEffect:
    """Effect of a job on a stream that it updates; ``columns`` of a new stream are no changes."""

    fate: Literal["added", "changed", "unchanged"]
    counts: Counts
    key: tuple[str, ...] = ()
    columns: ColumnChanges = NO_COLUMNS

    def to_json(self) -> dict[str, Any]:
        """Return fate, counts, key and changes of columns as one object."""
        columns = {
            "columns_added": dict(self.columns.added),
            "columns_dropped": dict(self.columns.dropped),
            "columns_retyped": {name: list(kinds) for name, kinds in self.columns.retyped.items()},
        }
        return {"fate": self.fate, **self.counts.to_json(), "key": list(self.key), **columns}


@dataclass(frozen=True, slots=True)
class FileEffect:
    """Effect of a job on a file: its new size (of a removed one None), and whether it is sealed."""

    fate: Fate
    size_bytes: int | None
    sealed: bool


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a job would change in the tenant as it was at ``tenant_version`` (-1: before its first version).

    ``streams`` has every stream that the job updates, also one that stays as it is; ``files`` has those
    that it adds, changes or removes; ``failed_checks`` those that keep it from its commit.
    """

    tenant_version: int
    streams: Mapping[str, StreamEffect] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, FileEffect] = field(default_factory=lambda: MappingProxyType({}))
    failed_checks: tuple[FailedCheck, ...] = ()

    @property
    def changes_anything(self) -> bool:
        """Whether a stream or a file would change."""
        return bool(self.files) or any(effect.fate != "unchanged" for effect in self.streams.values())

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name, without values of rows and files."""
        return {
            "tenant_version": self.tenant_version,
            "streams": {name: effect.to_json() for name, effect in self.streams.items()},
            "files": {path: asdict(effect) for path, effect in self.files.items()},
            "failed_checks": [check.to_json() for check in self.failed_checks],
        }

    def _repr_html_(self) -> str:
        caption = f"Dry run, compared with version {self.tenant_version}"
        rows = [
            (name, effect.fate, *effect.counts.to_json().values()) for name, effect in self.streams.items()
        ]
        rows += [(path, effect.fate, "", "", "", "") for path, effect in self.files.items()]
        return html_table(caption, ("stream or file", "", *Counts().to_json()), rows)


def parse_dry_run(record: Mapping[str, Any]) -> DryRun:
    """Parse the form of ``to_json``."""
    return DryRun(
        int(record["tenant_version"]),
        MappingProxyType({name: _stream_effect(item) for name, item in record["streams"].items()}),
        MappingProxyType({path: FileEffect(**item) for path, item in record["files"].items()}),
        tuple(FailedCheck(**check) for check in record.get("failed_checks", ())),
    )


def _stream_effect(record: Mapping[str, Any]) -> StreamEffect:
    retyped = {name: (old, new) for name, (old, new) in record["columns_retyped"].items()}
    return StreamEffect(
        record["fate"],
        Counts(**{name: record[name] for name in Counts().to_json()}),
        tuple(record["key"]),
        ColumnChanges(record["columns_added"], record["columns_dropped"], retyped),
    )


def effects_of(
    tables: Mapping[str, StagedTable], staged: StagedFiles, storage: Storage, state: TenantState
) -> tuple[DryRun, TenantDiff]:
    """Return what staged changes would do to ``state``, on which they are rebased, and the difference."""
    streams, effects = dict[str, StreamDifference](), dict[str, StreamEffect]()
    for name, table in sorted(tables.items()):
        if table.results:  # else it was only read
            # A dropped stream still has a table, but the tenant has no such stream.
            before = table.base if name in state.streams else None
            after = table.view()
            key = (stored_key(after.metadata) or ()) if after.version >= 0 else ()
            if not table.content:
                effects[name] = StreamEffect("unchanged", table.counts, key)
            elif before is None:
                effects[name] = StreamEffect("added", table.counts, key)
            else:
                columns = ColumnChanges.between(
                    type_names(before.delta_schema), type_names(after.delta_schema)
                )
                effects[name] = StreamEffect("changed", table.counts, key, columns)
            if table.content:
                streams[name] = StreamDifference.between(name, before, table.view())
    files, now = dict[str, FileDifference](), staged.current_files()
    for path in sorted(staged.changes):
        old, new = state.files.get(path), now.get(path)
        if old or new:  # else the job added and removed it
            files[path] = FileDifference(path, fate_of(old, new), old, new, storage)
    sizes = {path: None if item.after is None else item.after.size for path, item in files.items()}
    dry_run = DryRun(
        state.version,
        MappingProxyType(effects),
        MappingProxyType(
            {path: FileEffect(item.fate, sizes[path], item.is_sealed) for path, item in files.items()}
        ),
    )
    return dry_run, TenantDiff(state.version, state.version + 1, streams, files)
