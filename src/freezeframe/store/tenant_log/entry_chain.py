"""Hash chain of a log's entries: each binds its version and the hash of the one before (pure).

The hash of an entry covers both, so an entry that was replaced, swapped or put under another number does
not fit its neighbours. Entries written before chains have neither; they are accepted up to the first
chained one. The newest entry has no successor: what replaces it is found if its version or its
predecessor differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freezeframe.errors import CorruptLog

_VERSION, _PREVIOUS = "version", "previous"


@dataclass(frozen=True, slots=True)
class Link:
    """Link of an entry: its version and the SHA-256 of its predecessor (empty for version 0)."""

    version: int
    previous: str

    def __post_init__(self) -> None:
        if self.version < 0 or bool(self.version) != bool(self.previous):
            raise ValueError(f"{self!r} is not a link: every version but 0 has a predecessor")

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Link | None:
        """The link in an entry's JSON; None in an entry from before chains."""
        if _PREVIOUS not in record:
            return None
        return cls(int(record[_VERSION]), str(record[_PREVIOUS]))

    def to_json(self) -> dict[str, Any]:
        """The two members of an entry's JSON."""
        return {_VERSION: self.version, _PREVIOUS: self.previous}


@dataclass(frozen=True, slots=True)
class Chain:
    """Head of a log as read: the newest entry's SHA-256, and whether that entry is chained.

    ``head`` is empty for a log without entries, and None where it is not known: a state that was read
    from a checkpoint of before.
    """

    head: str | None = ""
    is_begun: bool = False

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Chain:
        """The chain in a checkpoint's JSON."""
        return cls(record.get("head"), bool(record.get("chained", False)))

    def to_json(self) -> dict[str, Any]:
        """The two members of a checkpoint's JSON; none where the head is not known."""
        return {"head": self.head, "chained": self.is_begun} if self.head else {}

    def after(self, version: int, link: Link | None, sha256: str, log: str) -> Chain:
        """The chain once the entry with this link and hash is ``version``; ``log`` is for messages.

        Raises:
            CorruptLog: the entry is not the one that was written as ``version`` after the head.
        """
        if link is None and self.is_begun:
            raise broken_chain_error(
                log, version, "It does not name its predecessor, as the entry before it does."
            )
        if link is not None:
            require_version(link.version, version, log)
            if self.head is not None and link.previous != self.head:
                cause = f"It was written after another entry {version - 1} than the one that is there."
                raise broken_chain_error(log, version, cause)
        return Chain(sha256, link is not None)


def require_version(found: int, version: int, log: str) -> None:
    """Refuse an entry or checkpoint that is stored under another version.

    Raises:
        CorruptLog: it does.
    """
    if found != version:
        raise broken_chain_error(log, version, f"The file under that number is of version {found}.")


def broken_chain_error(log: str, version: int, cause: str) -> CorruptLog:
    """The error for an entry that does not fit its neighbours."""
    return CorruptLog(
        f"Entry {version} of {log} does not continue the one before it.",
        cause=f"{cause} Somebody changed the log's files, or the storage let two writers create one name.",
        remedy="Ask the storage by freezeframe doctor, and restore the log from a backup.",
        version=version,
    )
