"""What a request says that its body is."""

import pytest
from fastapi import Request

from freezeframe.asgi.media_type import media_type


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (b"text/csv", "text/csv"),
        (b"Application/JSON ; charset=utf-8", "application/json"),
        (b"; charset=utf-8", ""),
        (None, ""),
    ],
)
def test_the_media_type_is_told_without_what_is_beside_it(header, told):
    """Parameters, spaces and capitals do not count; no header is not a media type."""
    headers = [] if header is None else [(b"content-type", header)]
    assert told == media_type(Request({"type": "http", "headers": headers}))
