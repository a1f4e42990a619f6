"""What the service says and is told of hotglue.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import TypedDict


class FileDone(TypedDict):
    """A file that was written or removed."""

    file: str
