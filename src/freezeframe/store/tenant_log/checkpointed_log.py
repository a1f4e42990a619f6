"""An append-only log with JSON checkpoints and a hint, whose state fits in memory.

Base class of both logs of a store: the tenant log and the registry of tenants. Subclasses define the
entries; ``SnapshotManagement`` handles segments, fallbacks and staleness.
"""

from __future__ import annotations

import functools
import logging
import uuid
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from freezeframe.errors import CorruptLog, StorageUnavailable
from freezeframe.log import LogOptions, LogSegment, SnapshotManagement
from freezeframe.log.checkpoints.checkpoint import CHECKPOINT_DAMAGED
from freezeframe.log.checkpoints.hint import Hint, hint_text
from freezeframe.log.primitives.paths import HINT_NAME, LogFile, version_prefix
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.concurrency import run_concurrently
from freezeframe.store.tenant_log.entry_chain import Chain, require_version
from freezeframe.store.tenant_log.tail import LogTail

_logger = logging.getLogger(__name__)


class LogState(Protocol):
    """Interface of a log's folded state."""

    @property
    def version(self) -> int:
        """The version of the newest entry; -1 before the first one."""

    @property
    def chain(self) -> Chain:
        """The hash chain up to the newest entry read."""

    def after(self, version: int, *entries: Any) -> Self:
        """The state once ``entries`` are ``version`` and those that follow it."""


S = TypeVar("S", bound=LogState)


@dataclass(frozen=True, slots=True)
class StateSnapshot(Generic[S]):
    """A log's state and the files it was read from."""

    segment: LogSegment
    state: S

    @property
    def version(self) -> int:
        """The log's version; -1 before the first entry."""
        return self.state.version

    def uncache(self) -> None:
        """Does nothing: the state is always in memory."""


class CheckpointedLog(SnapshotManagement[StateSnapshot[S]], Generic[S]):
    """The log in ``folder``; ``title`` names it in messages."""

    title: str

    def __init__(
        self, storage: Storage, folder: str, settings: Settings, empty: S, checkpoint_interval: int
    ) -> None:
        self._empty = empty
        self._checkpoint_interval = checkpoint_interval
        self._tail = LogTail(storage, folder)
        super().__init__(storage, folder, LogOptions(staleness_limit_ms=settings.staleness_limit_ms))

    @abstractmethod
    def parse_checkpoint(self, content: bytes, name: str) -> S:
        """Parse a checkpoint's bytes; ``CorruptLog`` if they are damaged."""

    @abstractmethod
    def checkpoint_content(self, state: S) -> bytes:
        """The content of a checkpoint of the state."""

    @abstractmethod
    def entry(self, version: int) -> Any:
        """The entry of a version; ``CorruptLog`` if it is damaged."""

    def listed_entry(self, file: LogFile) -> Any:
        """The entry in a listed file."""
        return self.entry(file.version)

    def create_snapshot(
        self,
        segment: LogSegment,
        previous: StateSnapshot[S] | None = None,
        new_commits: Sequence[LogFile] | None = None,
    ) -> StateSnapshot[S]:
        """Fold the state from the segment's files.

        Raises:
            CorruptLog: an entry or the checkpoint is damaged.
        """
        if previous is not None and new_commits is not None:
            state, files = previous.state, tuple(new_commits)
        else:
            state, files = self._read_checkpoint(segment), segment.commits
        entries = run_concurrently(
            self.storage, *(functools.partial(self.listed_entry, file) for file in files)
        )
        return StateSnapshot(segment, state.after(state.version + 1, *entries))

    def current_state(self) -> S:
        """The log's current state, after an update from the storage."""
        return self.update().state

    def update_internal(self, *, is_async: bool = False) -> StateSnapshot[S]:
        """See ``SnapshotManagement.update_internal``; a log that has not grown is not listed."""
        started = self.options.clock()
        if self._tail.is_at(self.current_snapshot.version):
            return self._touch(started)
        snapshot = super().update_internal(is_async=is_async)
        self._tail.note(snapshot.version)
        return snapshot

    def checkpoint_if_due(self, version: int) -> None:
        """Write a checkpoint every few versions, which bounds the time to open the log.

        Of a tenant log to be called once what the entry says has landed in its tables. A failure costs
        speed only.
        """
        if version == 0 or version % self._checkpoint_interval:
            return
        try:
            self.write_checkpoint(self.snapshot_at(version=version).state)
        except StorageUnavailable:
            _logger.warning("Checkpoint %s of %s was not written", version, self.title, exc_info=True)

    def write_checkpoint(self, state: S) -> None:
        """Write a checkpoint of a state.

        Raises:
            StorageUnavailable: it could not be written.
        """
        name = f"{version_prefix(state.version)}.checkpoint.{uuid.uuid4()}.json"
        content = self.checkpoint_content(state)
        self.storage.put_if_absent(f"{self.folder}/{name}", content)
        hint = hint_text(Hint(version=state.version, size=1, size_in_bytes=len(content)))
        self.storage.replace(f"{self.folder}/{HINT_NAME}", hint.encode())
        self._tail.forget()  # the next look lists, and begins at the checkpoint

    def _head_of(self, state: S) -> str:
        """The predecessor hash for the next entry; read from the entry for a checkpoint without a chain."""
        return self.entry(state.version).sha256 if state.chain.head is None else state.chain.head

    def _read_checkpoint(self, segment: LogSegment) -> S:
        if segment.checkpoint is None:
            return self._empty
        (file,) = segment.checkpoint.files
        try:
            state = self.parse_checkpoint(self.storage.read(segment.path(file)), file.name)
            require_version(state.version, file.version, self.title)
        except (CorruptLog, FileNotFoundError) as error:
            # This code makes the update fall back to an older checkpoint, or to the entries alone.
            raise CorruptLog(
                f"The checkpoint {file.name!r} of {self.title} cannot be used.",
                cause=str(error),
                remedy="Delete it: the state is rebuilt without it.",
                code=CHECKPOINT_DAMAGED,
                file=file.name,
            ) from error
        return state
