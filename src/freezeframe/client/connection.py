"""Requests to a service, and its problems as the errors of this library.

Whatever the service answers that is not a success is raised as the class of ``freezeframe.errors`` that the
problem's ``type`` names, with its sentences and details.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any
from urllib.parse import quote

import httpx

from freezeframe.errors import FreezeframeError, StorageUnavailable

Content = bytes | Iterable[bytes] | IO[bytes]
_OK = 400
_WITH_SLASHES = "path"
_NAME = re.compile(r"{(\w+)}")
TENANT = "/api/v1/environments/{environment}/tenants/{tenant}"
_PLAIN_MEMBERS = frozenset({"type", "title", "status", "detail", "code", "cause", "remedy"})


class Connection:
    """One service, asked with one key."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def json(self, method: str, path: str, **given: Any) -> Any:
        """The JSON value of an answer; errors as the module says."""
        return self._send(method, path, **given).json()

    def content(self, method: str, path: str, **given: Any) -> bytes:
        """The bytes of an answer."""
        return self._send(method, path, **given).content

    def headers(self, method: str, path: str, **given: Any) -> dict[str, str]:
        """The headers of an answer that has nothing else to say."""
        return dict(self._send(method, path, **given).headers)

    def lines(self, method: str, path: str, **given: Any) -> Iterator[str]:
        """The lines of an answer as they come."""
        with self._http.stream(method, path, **_arguments(**given)) as answer:
            if answer.status_code >= _OK:
                answer.read()
                raise error_of(answer)
            yield from answer.iter_lines()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _send(self, method: str, path: str, **given: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **_arguments(**given))
        except httpx.TransportError as error:
            raise StorageUnavailable(
                f"The service at {self._http.base_url} cannot be reached.",
                cause=f"{type(error).__name__}: {error}",
                remedy="Check its address, and try again: what a request with an idempotency key did "
                "is not done twice.",
            ) from error
        if answer.status_code >= _OK:
            raise error_of(answer)
        return answer


def path_of(template: str, *values: str) -> str:
    """The path with its names filled in, each as one part of it (but a file's path, which has parts)."""
    found = dict(zip(_NAME.findall(template), values, strict=True))
    parts = {name: value.split("/") if name == _WITH_SLASHES else [value] for name, value in found.items()}
    return template.format(**{name: "/".join(map(_quote, some)) for name, some in parts.items()})


def _quote(part: str) -> str:
    # A name of dots only would be resolved as a path step, and the request would go elsewhere.
    return part.replace(".", "%2E") if set(part) == {"."} else quote(part, safe="")


def error_of(answer: httpx.Response) -> FreezeframeError:
    """The error that an answer tells of."""
    try:
        problem = answer.json()
        code, kind_code = problem["code"], problem["type"].rpartition(":")[2]
    except (ValueError, KeyError, TypeError):
        problem = {"title": f"The service answered {answer.status_code}.", "detail": answer.text[:500]}
        code = kind_code = FreezeframeError.code
    kind = _by_code(FreezeframeError).get(kind_code, FreezeframeError)
    details = {name: value for name, value in problem.items() if name not in _PLAIN_MEMBERS}
    return kind(
        str(problem.get("title", "")),
        cause=str(problem.get("cause", problem.get("detail", ""))),
        remedy=str(problem.get("remedy", "")),
        code=code,
        http_status=answer.status_code,
        **details,
    )


def _by_code(kind: type[FreezeframeError]) -> dict[str, type[FreezeframeError]]:
    found = {kind.code: kind}
    for child in kind.__subclasses__():
        found |= _by_code(child)
    return found


def _arguments(
    *,
    query: Mapping[str, Any] | None = None,
    headers: Mapping[str, Any] | None = None,
    body: Any = None,
    content: Content | None = None,
    content_type: str = "",
) -> dict[str, Any]:
    """What httpx is told: parameters that are None are left out."""
    sent = {name: str(value) for name, value in (headers or {}).items() if value is not None}
    if content_type:
        sent["content-type"] = content_type
    asked = {name: _text(value) for name, value in (query or {}).items() if value is not None}
    arguments: dict[str, Any] = {"params": asked, "headers": sent}
    if body is not None:
        arguments["json"] = body
    if content is not None:
        arguments["content"] = content
    return arguments


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
