"""What an import would do."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from freezeframe.asgi.models.base import Answer
from freezeframe.asgi.models.row_differences import ChangedRow
from freezeframe.asgi.models.streams import Counts


class ImportColumn(Answer):
    """A column of the file, of the stream, or of both; a type that is null is not there or not decided."""

    name: str
    fate: Literal["known", "new", "other type", "not in the file"]
    file_type: str | None
    stream_type: str | None
    is_key: bool


class ImportProblem(Answer):
    """Why the import would be refused."""

    title: str = Field(validation_alias="problem")
    cause: str
    remedy: str
    code: str


class ImportPreview(Answer):
    """What the import would do to the stream as it is now; nothing was kept."""

    columns: list[ImportColumn]
    key: list[str]
    rows: int = Field(description="Rows of the file, or of the part that was sent.")
    counts: Counts | None = Field(description="Null where rows were not counted.")
    uncounted: str = Field(description="Why rows were not counted; empty where they were.")
    examples: list[ChangedRow] = Field(description="At most ten rows, those whose cells change first.")
    problem: ImportProblem | None
