"""The media type of a request's body."""

from __future__ import annotations

from fastapi import Request


def media_type(request: Request) -> str:
    """The media type of the Content-Type, in small letters, without parameters; empty: none is said."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
