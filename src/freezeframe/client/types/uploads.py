"""What the service says and is told of uploads.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class UploadState(TypedDict):
    """A resumable upload: what it becomes, and how far it has come."""

    id: str
    purpose: Literal["file", "import"]
    path: str
    length: int
    offset: int
    expires: str
