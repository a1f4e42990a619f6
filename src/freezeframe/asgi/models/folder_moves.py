"""A folder that gets another path."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import Answer, Order, example

_Path = Annotated[str, Field(min_length=1, max_length=800)]


class FolderMove(Order):
    """A folder that is to get another path, with all that is below it, in one version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(path="exports", target="archive/exports"))

    path: _Path
    target: _Path
    message: str = Field(default="", max_length=1000)


class FolderMoved(Answer):
    """The folder's new path, and how many files are below it, the marks of empty folders included."""

    path: str
    files: int
