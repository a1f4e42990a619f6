"""The fields of results as JSON, and the results that are of files."""

import base64
import math
from collections.abc import Mapping
from dataclasses import Field, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from freezeframe.clock import rfc3339


class JsonFields:
    """Base of results that are dataclasses: their fields as JSON values.

    A field that takes no part in comparisons is left out.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    _names: ClassVar[Mapping[str, str]] = {"version": "tenant_version"}
    """The names of fields in JSON, where they are others."""

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name, ``version`` as ``tenant_version``; moments are RFC 3339."""
        return {
            self._names.get(name, name): json_field(getattr(self, name))
            for name, item in self.__dataclass_fields__.items()
            if item.compare
        }


def json_field(value: Any) -> Any:
    """Return a value of a result, nested or not, as JSON has it."""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Mapping):
        return {name: json_field(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [json_field(item) for item in value]
    return value.to_json() if hasattr(value, "to_json") else json_scalar(value)


def json_scalar(value: Any) -> Any:
    """Return a value that is not nested as JSON has it; text where JSON has no such value, as for NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if hasattr(value, "isoformat") else value


@dataclass(frozen=True, slots=True)
class FileEntry(JsonFields):
    """A file at a moment. ``size`` and ``sha256`` describe the stored bytes (sealed: the ciphertext).

    ``version`` is the tenant version that wrote these bytes, ``modified`` its time (UTC).
    """

    path: str
    size: int
    modified: datetime
    sha256: str
    sealed: bool
    version: int


@dataclass(frozen=True, slots=True)
class FileRevision(JsonFields):
    """A version of a file: the tenant version, its time, author and job, and the file's content then.

    A deletion has ``deleted`` true, no SHA-256 and the size 0.
    """

    version: int
    modified: datetime
    deleted: bool
    size: int
    sha256: str
    sealed: bool
    job_id: str | None
    author: str
    message: str
