"""Context, route and result of staging an update."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log import Snapshot
from freezeframe.log.scan.data_files import file_uri
from freezeframe.store.model.receipt import Counts
from freezeframe.store.table.commit import TableChange
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.updates.plan import FileAction, FileChoice, Plan
from freezeframe.store.updates.source import Incoming
from freezeframe.store.updates.update_place import UpdatePlace

RouteKind = Literal["nothing", "load", "patch", "partial merge", "merge"]
"""``load``: the batch is the new content. ``patch``: changed rows are written beside the stored ones.
``partial merge`` and ``merge``: some of the files, or all of them, are merged with the batch by Spark."""

EngineName = Literal["spark", "process", ""]
"""Who searched or merged the stored rows: Spark or the job's own process; empty where none were met."""

_FATES: tuple[FileAction, ...] = ("left", "marked", "rewritten")


@dataclass(frozen=True, slots=True)
class Route:
    """The route of an update, its reason, and the action on each file."""

    kind: RouteKind
    reason: str
    choices: tuple[FileChoice, ...] = ()
    engine: EngineName = ""

    def __str__(self) -> str:
        fates = [choice.action for choice in self.choices]
        counted = [f"{fates.count(fate)} {fate}" for fate in _FATES if fate in fates]
        return f"{self.kind}: {self.reason}" + (f"; files: {', '.join(counted)}" if counted else "")


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Result of staging: row counts, and the commit to make (None: nothing changes)."""

    counts: Counts
    plan: Plan | None
    rewrite: TableChange | None
    route: Route
    changed_keys: pa.Table | None = None
    """The keys of the rows that are new or updated; only a patch knows them."""


@dataclass(frozen=True, slots=True)
class UpdateContext:
    """Context of staging one update."""

    place: UpdatePlace
    snapshot: Snapshot
    incoming: Incoming
    plan: Plan
    staging: StagingFolder
    moment_us: int
    """The moment of the update, after the stream's last commit whatever the clock says."""

    def uris(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The engine's URIs of the stream's files, given by their paths in the log."""
        return tuple(file_uri(self.place.storage, self.place.folder, path) for path in paths)

    def bytes_of(self, paths: Iterable[str]) -> int:
        """Bytes of the stream's files together, as the log tells them."""
        files = self.snapshot.files
        wanted = pc.is_in(files["path"], pa.array(list(paths), pa.string()))
        return int(pc.sum(files["size"].filter(wanted)).as_py() or 0)

    @property
    def live(self) -> tuple[str, ...]:
        """The paths of the stream's live files in the log."""
        return () if self.snapshot.version < 0 else tuple(self.snapshot.file_list["path"].to_pylist())
