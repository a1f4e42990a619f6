"""Routes that check parameters and permissions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Header, Query
from fastapi.routing import APIRoute

from freezeframe.asgi.bodies.received_body import strict_json
from freezeframe.asgi.dependencies.caller import (
    Caller,
    counted_principal,
    request_caller,
    request_tenant_caller,
)
from freezeframe.asgi.media_type import media_type
from freezeframe.errors import InvalidOption, TooLarge

# Route class: strict JSON bodies, and answers in worker threads.

JSON_BYTES_MAX = 1024 * 1024
# For callers not yet known: those who sign in.
ANONYMOUS_JSON_BYTES_MAX = 16 * 1024

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class CheckedRoute(APIRoute):
    """A route of the API; its handler sees a body that was read strictly."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _in_a_thread(endpoint), **options)

    def get_route_handler(self) -> Handler:
        """See ``APIRoute.get_route_handler``."""
        inner = super().get_route_handler()

        needs_caller = any(
            dependency.call in {request_caller, request_tenant_caller}
            for dependency in self.dependant.dependencies
        )

        async def handle(plain: Request) -> Response:
            request = _JsonRequest(plain.scope, plain.receive)
            await _read_json_body(request, needs_caller=needs_caller)
            return await inner(request)

        return handle


class _JsonRequest(Request):
    """A request whose JSON body is read strictly, once, in a worker thread."""

    _value: Any = None
    _is_parsed = False

    async def body_within(self, bytes_max: int) -> bytes:
        """The body; one that is longer than ``bytes_max`` is refused before all of it is in memory."""
        found = bytearray()
        async for chunk in self.stream():
            found += chunk
            if len(found) > bytes_max:
                raise _too_large(bytes_max)
        self._body = bytes(found)
        return self._body

    async def json(self) -> Any:
        """See ``Request.json``."""
        if not self._is_parsed:
            self._value = await run_in_threadpool(strict_json, await self.body())
            self._is_parsed = True
        return self._value


def _in_a_thread(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """The endpoint as a coroutine that runs it in a thread.

    Of a plain function FastAPI checks the answer in a thread as well, though it is of the right type by then:
    a second change of threads, which costs more than most answers do.
    """
    if inspect.iscoroutinefunction(endpoint):
        return endpoint

    @functools.wraps(endpoint)
    async def run(**values: Any) -> Any:
        caller = values.get("caller")
        if not isinstance(caller, Caller):
            return await run_in_threadpool(endpoint, **values)
        async with caller.service.turns.turn(caller.principal):
            return await run_in_threadpool(endpoint, **values)

    return run


async def _read_json_body(request: _JsonRequest, *, needs_caller: bool) -> None:
    """Read a JSON body and check that it is readable; any other body is left to its route.

    Who asks is known, and the request counted, before any of it is read.
    """
    kind = media_type(request)
    if kind != "application/json" and not kind.endswith("+json"):
        return
    if needs_caller:
        await counted_principal(request)
    bytes_max = JSON_BYTES_MAX if needs_caller else ANONYMOUS_JSON_BYTES_MAX
    announced = request.headers.get("content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced[:18]) > bytes_max:
        raise _too_large(bytes_max)
    if await request.body_within(bytes_max):
        await request.json()


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"A JSON body has at most {bytes_max:,} bytes here.", remedy="Send less, or send a file.")


# Route class that refuses what an operation does not know and would ignore: parameters, conditions.

_READING = frozenset({"GET", "HEAD"})
_CONDITIONS = frozenset({"if-match", "if-none-match"})
_PARAMETERS_MAX = 1000
_TOLD_LETTERS_MAX = 100


class StrictRoute(CheckedRoute):
    """A route of the API; a request with a parameter that the operation does not know is refused."""

    def get_route_handler(self) -> Handler:
        """See ``APIRoute.get_route_handler``."""
        inner = super().get_route_handler()
        fields = get_flat_params(self.dependant)
        known = frozenset(field.alias for field in fields if isinstance(field.field_info, Query))
        headers = {field.alias for field in fields if isinstance(field.field_info, Header)}
        ignored = () if _READING.intersection(self.methods or ()) else tuple(_CONDITIONS - headers)

        async def handle(request: Request) -> Response:
            if request.scope["query_string"]:
                require_known(request.scope["query_string"], known)
            for name in ignored:
                if name in request.headers:
                    raise _ignored_condition(name)
            return await inner(request)

        return handle


def _ignored_condition(name: str) -> InvalidOption:
    return InvalidOption(
        f"This operation does not know {name}.",
        cause="The change would be made whether the condition holds or not.",
        remedy="Leave the header out; /openapi.json names the operations that know it.",
        code="INVALID_REQUEST",
    )


def require_known(query: bytes, known: frozenset[str]) -> None:
    """Refuse a query with a parameter that is not among the known ones."""
    try:
        given = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
    except ValueError:
        raise InvalidOption(
            "The query has too many parameters.",
            cause=f"At most {_PARAMETERS_MAX:,} are looked at.",
            remedy="Ask in several requests.",
            code="INVALID_REQUEST",
        ) from None
    odd = next((name for name, _ in given if name not in known), None)
    if odd is not None:
        raise InvalidOption(
            f"There is no parameter {odd[:_TOLD_LETTERS_MAX]!r} here.",
            cause=f"The operation's parameters are: {', '.join(sorted(known)) or 'none'}.",
            remedy="Correct its name, or leave it out; it would change nothing.",
            code="INVALID_REQUEST",
        )
