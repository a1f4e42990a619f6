"""The state of a table at a version, and the effect of commits on it (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from freezeframe.errors import CorruptLog
from freezeframe.log.actions.actions import Action, CommitInfo, DomainMetadata, Metadata, Protocol, Txn
from freezeframe.log.replay.replay import FileState


@dataclass(frozen=True, slots=True)
class Heads:
    """The latest small actions: protocol, metadata, transactions by app, domains by name.

    Removed domains stay in the map until a checkpoint drops them, so that they hide older entries.
    """

    protocol: Protocol | None
    metadata: Metadata | None
    transactions: Mapping[str, Txn]
    domains: Mapping[str, DomainMetadata]
    commit_info: CommitInfo | None = None

    @classmethod
    def empty(cls) -> Heads:
        """Heads without any action."""
        return cls(None, None, {}, {})

    def after(self, actions: Iterable[Action]) -> Heads:
        """These heads after the given actions, in order; the latest action wins."""
        protocol, metadata, info = self.protocol, self.metadata, None
        transactions, domains = dict(self.transactions), dict(self.domains)
        for action in actions:
            match action:
                case Protocol():
                    protocol = action
                case Metadata():
                    metadata = action
                case Txn():
                    transactions[action.app_id] = action
                case DomainMetadata():
                    domains[action.domain] = action
                case CommitInfo():
                    info = action
                case _:
                    pass
        return Heads(protocol, metadata, transactions, domains, info)


@dataclass(frozen=True, slots=True)
class TableState:
    """Complete state of one version: heads and files."""

    heads: Heads
    files: FileState

    def with_files(self, files: FileState) -> TableState:
        """The same heads with other files."""
        return replace(self, files=files)

    def without_expired(self, oldest_tombstone: int | None) -> TableState:
        """The same state without expired tombstones; see ``FileState.without_expired``."""
        return self.with_files(self.files.without_expired(oldest_tombstone))


def require_heads(heads: Heads, version: int) -> tuple[Protocol, Metadata]:
    """Protocol and metadata, which every version >= 0 has (behaviour 33).

    Raises:
        CorruptLog: ``DELTA_STATE_RECOVER_ERROR``, naming the missing one.
    """
    if heads.protocol is None:
        raise _unrecoverable("protocol", version)
    if heads.metadata is None:
        raise _unrecoverable("metadata", version)
    return heads.protocol, heads.metadata


def _unrecoverable(name: str, version: int) -> CorruptLog:
    return CorruptLog(
        f"The {name} of your Delta table could not be recovered while Reconstructing version: {version}.",
        cause="Did you manually delete files in the _delta_log directory?",
        remedy="Restore the missing commit or checkpoint from a copy.",
        code="DELTA_STATE_RECOVER_ERROR",
    )
