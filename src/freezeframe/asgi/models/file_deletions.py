"""Files and folders that go together."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import Answer, Order, example

_Path = Annotated[str, Field(min_length=1, max_length=800)]
_NAMES_MAX = 10_000


class FileDeletion(Order):
    """Files, and folders with all below them, that are to go in one version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(paths=["a.csv"], folders=["exports"]))

    paths: list[_Path] = Field(default_factory=list, max_length=_NAMES_MAX)
    folders: list[_Path] = Field(default_factory=list, max_length=_NAMES_MAX)
    message: str = Field(default="", max_length=1000)


class FilesDeleted(Answer):
    """The version without them, and every path that went."""

    tenant_version: int
    paths: list[str]
