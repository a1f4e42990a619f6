"""A client of the REST service: operations as methods, problems as this library's errors.

>>> with Client("http://127.0.0.1:8750", key="id.secret") as client:  # doctest: +SKIP
...     client.list_streams("default", "acme")["streams"]
['Account']
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from freezeframe.client.operations import Operations
from freezeframe.extras import requires_extra

with requires_extra("client"):
    import httpx

    from freezeframe.client.connection import Connection

_TIMEOUT_SECONDS = 60.0


class Client(Operations):
    """A service at a URL, asked with a key (``id.secret``); threads may share it.

    Each operation of the service is a method of the same name. What the service refuses is raised as
    the error that the library itself would raise: ``StreamNotFound``, ``ConflictError``.
    """

    def __init__(self, url: str, key: str = "", *, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._connection = Connection(httpx.Client(base_url=url, headers=headers, timeout=timeout_seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connection.close()
