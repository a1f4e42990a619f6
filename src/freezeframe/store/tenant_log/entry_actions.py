"""Actions of a tenant log entry: changes of streams, files and the tenant itself.

A change is a value with a JSON form. A stream's change holds the exact bytes of the commit that it
makes, so that whoever comes after a crash lands the very same one; a file's change names the blob
that already holds the bytes. Protocol: ``docs/reference/tenant-log.md``, "An entry".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from freezeframe.identifiers import StreamName
from freezeframe.store.model.row_counts import Counts

THIS_VERSION = -1
_DIGEST_LENGTH = 64


@dataclass(frozen=True, slots=True)
class StreamChange:
    """A stream becomes ``table_version`` by exactly one commit of its table.

    1. ``content`` is the text of that commit's N.json; a long one is kept in a staged file instead
       and ``sha256`` names it. With neither, the version is there already and is only taken over.
    2. ``is_external``: the version need not follow the one that the log knew (adopt, repair).
    """

    stream: StreamName
    table_version: int
    content: str
    counts: Counts
    sha256: str = ""
    is_external: bool = False

    def __post_init__(self) -> None:
        if self.table_version < 0:
            raise ValueError(f"a table version cannot be negative: {self.table_version}")
        if self.content and self.sha256:
            raise ValueError("a commit is held in the entry or in a staged file, not in both")
        if self.sha256:
            _require_digest(self.sha256)

    @property
    def lands(self) -> bool:
        """Whether the entry contains a commit of the table."""
        return bool(self.content or self.sha256)

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        record: dict[str, Any] = {
            "name": str(self.stream),
            "tableVersion": self.table_version,
            "content": self.content,
            "counts": self.counts.to_json(),
        }
        if self.sha256:
            record["sha256"] = self.sha256
        if self.is_external:
            record["external"] = True
        return {"stream": record}


@dataclass(frozen=True, slots=True)
class FileChange:
    """The file ``path`` of the tenant has the content of ``blob``; ``blob`` None: deleted.

    ``blob`` is a name below ``_freezeframe/blobs/``: ``<writeId>/<name>``, written before the entry and
    belonging to that one transaction. ``sha256`` and ``size`` (bytes) are of what is stored, which for
    a ``sealed`` file is its ciphertext.
    """

    path: str
    blob: str | None
    sha256: str = ""
    size: int = 0
    sealed: bool = False

    def __post_init__(self) -> None:
        for name in (self.path, self.blob):
            if name is not None:
                _require_relative(name)
        if self.size < 0:
            raise ValueError(f"a size cannot be negative: {self.size}")
        if self.blob is not None:
            _require_digest(self.sha256)

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return {
            "file": {
                "path": self.path,
                "blob": self.blob,
                "sha256": self.sha256,
                "size": self.size,
                "sealed": self.sealed,
            }
        }


@dataclass(frozen=True, slots=True)
class TenantChange:
    """Change of the tenant itself; every part is optional.

    ``tags``: name to tenant version, None removes the tag. ``policy``: the whole new retention policy
    as JSON. ``released`` streams leave the log and are anybody's; ``dropped`` ones are gone for
    readers, and their tables stay until no listed version needs them. ``revoked`` transactions, and
    runs of jobs by their ``revoked_tokens``, can not commit any more. ``floor``: versions below it are
    not listed any more; ``THIS_VERSION``: nothing before the entry itself is kept at all (an erasure).
    """

    tags: Mapping[str, int | None] = field(default_factory=lambda: MappingProxyType({}))
    policy: Mapping[str, Any] | None = None
    released: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    floor: int | None = None
    revoked_tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (*self.released, *self.dropped):
            StreamName(name)

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object, without omitted parts."""
        record = {
            "tags": dict(self.tags),
            "policy": None if self.policy is None else dict(self.policy),
            "released": list(self.released),
            "dropped": list(self.dropped),
            "revoked": list(self.revoked),
            "revokedTokens": list(self.revoked_tokens),
            "floor": self.floor,
        }
        return {"tenant": {name: value for name, value in record.items() if value not in (None, {}, [])}}


Change = StreamChange | FileChange | TenantChange


def parse_change(record: Mapping[str, Any]) -> Change:
    """The change in one JSON object of an entry.

    Raises:
        ValueError, KeyError, TypeError, InvalidName: it is none.
    """
    ((kind, body),) = record.items()
    if kind == "stream":
        return StreamChange(
            stream=StreamName(body["name"]),
            table_version=int(body["tableVersion"]),
            content=body["content"],
            counts=Counts(**body["counts"]),
            sha256=body.get("sha256", ""),
            is_external=bool(body.get("external", False)),
        )
    if kind == "file":
        return FileChange(
            path=body["path"],
            blob=body["blob"],
            sha256=body["sha256"],
            size=int(body["size"]),
            sealed=bool(body["sealed"]),
        )
    if kind == "tenant":
        return TenantChange(
            tags=MappingProxyType(dict(body.get("tags", {}))),
            policy=body.get("policy"),
            released=tuple(body.get("released", ())),
            dropped=tuple(body.get("dropped", ())),
            revoked=tuple(body.get("revoked", ())),
            revoked_tokens=tuple(body.get("revokedTokens", ())),
            floor=body.get("floor"),
        )
    raise ValueError(f"the change {kind!r} is not known")


def _require_relative(name: str) -> None:
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name!r} is not a name below the tenant's directory")


def _require_digest(text: str) -> None:
    if len(text) != _DIGEST_LENGTH or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"{text!r} is not a SHA-256")
