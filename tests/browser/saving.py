"""Waiting for a file to be kept: the note in the corner that says so goes away by itself."""

from contextlib import contextmanager
from urllib.parse import quote


@contextmanager
def saving(page, path):
    """What the block does saves the file: left when the service has kept it."""

    def keeps(answer):
        request = answer.request
        return request.method == "PUT" and request.url.endswith(f"/files/{quote(path)}") and answer.ok

    with page.expect_response(keeps):
        yield
