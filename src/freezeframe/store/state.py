"""What a tenant holds at one version of its log, folded from the entries (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from freezeframe.errors import CorruptLog
from freezeframe.identifiers import StreamName
from freezeframe.store.entries import Entry

NO_VERSION = -1


@dataclass(frozen=True, slots=True)
class TenantState:
    """Each stream's table version at one tenant version, and the entry that made it.

    ``head`` is the newest entry; its commits may not have been landed in the tables yet, while
    those of all entries before it have been, because a writer finishes what is pending before
    it adds an entry. A state from a checkpoint alone has no head: all is landed.
    """

    version: int = NO_VERSION
    timestamp_ms: int = 0
    streams: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    head: Entry | None = None

    def after(self, version: int, entry: Entry) -> TenantState:
        """The state once ``entry`` is version ``version``.

        Raises:
            CorruptLog: the entry does not continue this state (a table version is skipped).
        """
        streams = dict(self.streams)
        for change in entry.changes:
            expected = streams.get(str(change.stream), NO_VERSION) + 1
            if change.table_version != expected:
                raise CorruptLog(
                    f"Entry {version} of the tenant log does not continue the one before it.",
                    cause=f"It brings {str(change.stream)!r} to table version {change.table_version}, "
                    f"not {expected}.",
                    remedy="Restore the tenant's directory from a backup.",
                    version=version,
                )
            streams[str(change.stream)] = change.table_version
        return TenantState(version, entry.timestamp_ms, MappingProxyType(streams), entry)

    def table_version(self, stream: StreamName) -> int:
        """The stream's table version, -1 where the tenant has no such stream."""
        return self.streams.get(str(stream), NO_VERSION)

    def next_timestamp_ms(self, now_ms: int) -> int:
        """The commit time of the next entry: now, but always after this one."""
        return max(now_ms, self.timestamp_ms + 1)

    def to_checkpoint(self) -> bytes:
        """The state as the content of a checkpoint file."""
        record = {"version": self.version, "timestamp": self.timestamp_ms, "streams": dict(self.streams)}
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def parse_checkpoint(content: bytes, name: str) -> TenantState:
    """The state in a checkpoint file's bytes; ``name`` is for messages.

    Raises:
        CorruptLog: the bytes are no whole checkpoint.
    """
    try:
        record: dict[str, Any] = json.loads(content)
        streams = {str(StreamName(name)): int(version) for name, version in record["streams"].items()}
        return TenantState(int(record["version"]), int(record["timestamp"]), MappingProxyType(streams))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptLog(
            f"The tenant log's checkpoint {name!r} cannot be read.",
            cause=f"It is damaged or cut off ({error}).",
            remedy="Delete it: the state is then rebuilt from an older checkpoint or from the entries.",
            file=name,
        ) from error
