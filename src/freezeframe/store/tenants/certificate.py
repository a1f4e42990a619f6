"""Certificate of a tenant's deletion: the removed files, and proof that none are left."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from freezeframe.clock import rfc3339
from freezeframe.errors import CorruptLog


@dataclass(frozen=True, slots=True)
class DeletionCertificate:
    """What was removed with a tenant, with these guarantees.

    1. ``files_left`` is 0: the folder was listed after the removal and nothing was there;
    2. ``listing_sha256`` is of the sorted names and sizes of all that was removed, and of nothing else.

    ``versions``, ``streams`` and ``files`` are the tenant's as its log had them (-1: its log could not
    be read any more); ``objects`` and ``size_bytes`` are what lay in its folder. ``keys`` data keys were
    removed first: from then on no copy of a sealed file can be opened.
    """

    environment: str
    tenant: str
    folder: str
    requested: datetime
    finished: datetime
    versions: int
    streams: int
    files: int
    objects: int
    size_bytes: int
    keys: int
    listing_sha256: str
    files_left: int = 0

    def __post_init__(self) -> None:
        if self.files_left:
            raise ValueError(f"{self.files_left} files are left: there is nothing to certify")

    def to_json(self) -> dict[str, Any]:
        """All fields by name; moments are RFC 3339."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("requested", "finished"):
            found[name] = rfc3339(found[name])
        return found

    def to_bytes(self) -> bytes:
        """The serialised certificate."""
        return json.dumps(self.to_json(), ensure_ascii=False, indent=2).encode() + b"\n"


def parse_certificate(content: bytes, name: str) -> DeletionCertificate:
    """The certificate in a file's bytes; ``name`` is for messages.

    Raises:
        CorruptLog: the bytes are none.
    """
    try:
        record = json.loads(content)
        for moment in ("requested", "finished"):
            record[moment] = datetime.fromisoformat(record[moment]).astimezone(UTC)
        return DeletionCertificate(**record)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLog(
            f"The certificate {name!r} cannot be read.",
            cause=f"It is damaged ({error}).",
            remedy="Restore it from a backup.",
            file=name,
        ) from error
