"""The fields of results as JSON."""

from collections.abc import Mapping
from dataclasses import Field
from datetime import datetime
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
            self._names.get(name, name): _json(getattr(self, name))
            for name, item in self.__dataclass_fields__.items()
            if item.compare
        }


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Mapping):
        return {name: _json(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_json(item) for item in value]
    return value.to_json() if hasattr(value, "to_json") else value
