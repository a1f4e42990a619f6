"""The fields of results as JSON."""

import base64
import math
from collections.abc import Mapping
from dataclasses import Field
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
