"""Routers, bases of models, and routes that read JSON strictly and refuse unknown parameters."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Self
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response, params
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from freezeframe.asgi.bodies import announced_size, strict_json
from freezeframe.asgi.caller import counted_principal, request_caller, request_tenant_caller
from freezeframe.asgi.problems import media_type, to_openapi
from freezeframe.errors import InvalidOption, TooLarge
from freezeframe.service.operations.caller import Caller


class ResponseModel(BaseModel):
    """Base of responses; ``of`` makes one from the attributes of an object."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @classmethod
    def of(cls, found: object, **others: Any) -> Self:
        """Return a model from the attributes of ``found``; ``others`` are the fields that it lacks."""
        if not others:
            return cls.model_validate(found)
        names = cls.model_fields.keys() - others.keys()
        return cls.model_validate({name: getattr(found, name) for name in names} | others)


class RequestModel(BaseModel):
    """Base of request bodies; an unknown member is refused, because it may be a typing error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def example(**members: Any) -> dict[str, Any]:
    """One example, as a model's configuration takes it."""
    return {"examples": [members]}


TENANT_PATH = "/environments/{environment}/tenants/{tenant}"
"""The beginning of each path of a tenant; any of its routes may answer 404."""
JSON_BYTES_MAX = 1024 * 1024
# For unauthenticated callers, who sign in.
ANONYMOUS_JSON_BYTES_MAX = 16 * 1024

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class CheckedRoute(APIRoute):
    """A route of the API; its handler sees a body that was read strictly."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if TENANT_PATH in path:
            options["responses"] = {**to_openapi(404), **(options.get("responses") or {})}
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
        """Return the body, or refuse it as soon as more than ``bytes_max`` bytes have arrived."""
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
    """Return the endpoint as a coroutine that runs it in a thread.

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

    The caller is authenticated and the request counted before its body is read.
    """
    kind = media_type(request)
    if kind != "application/json" and not kind.endswith("+json"):
        return
    if needs_caller:
        await counted_principal(request)
    bytes_max = JSON_BYTES_MAX if needs_caller else ANONYMOUS_JSON_BYTES_MAX
    if (announced_size(request) or 0) > bytes_max:
        raise _too_large(bytes_max)
    if await request.body_within(bytes_max):
        await request.json()


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"A JSON body has at most {bytes_max:,} bytes here.", remedy="Send less, or send a file.")


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
        known = frozenset(field.alias for field in fields if isinstance(field.field_info, params.Query))
        headers = {field.alias for field in fields if isinstance(field.field_info, params.Header)}
        ignored = () if _READING.intersection(self.methods or ()) else tuple(_CONDITIONS - headers)

        async def handle(request: Request) -> Response:
            if request.scope["query_string"]:
                require_known(request.scope["query_string"], known)
            for name in ignored:
                if name in request.headers:
                    raise InvalidOption(
                        f"This operation does not know {name}.",
                        cause="It would ignore the condition.",
                        remedy="Leave the header out; /openapi.json lists the operations that accept it.",
                        code="INVALID_REQUEST",
                    )
            return await inner(request)

        return handle


def require_known(query: bytes, known: frozenset[str]) -> None:
    """Refuse a query with a parameter that is not among the known ones."""
    try:
        parameters = parse_qsl(
            query.decode("latin-1"), keep_blank_values=True, max_num_fields=_PARAMETERS_MAX
        )
    except ValueError:
        raise InvalidOption(
            "The query has too many parameters.",
            cause=f"At most {_PARAMETERS_MAX:,} are looked at.",
            remedy="Ask in several requests.",
            code="INVALID_REQUEST",
        ) from None
    odd = next((name for name, _ in parameters if name not in known), None)
    if odd is not None:
        raise InvalidOption(
            f"There is no parameter {odd[:_TOLD_LETTERS_MAX]!r} here.",
            cause=f"The operation's parameters are: {', '.join(sorted(known)) or 'none'}.",
            remedy="Correct its name, or leave it out; it would change nothing.",
            code="INVALID_REQUEST",
        )


_ANY = (400, 401, 403, 409, 413, 415, 422, 429, 431, 500, 503)


def api_router(tag: str, route_class: type[CheckedRoute] = StrictRoute) -> APIRouter:
    """Return a router of ``/api/v1``; another ``route_class`` may accept unknown parameters."""
    return APIRouter(
        prefix="/api/v1",
        tags=[tag],
        route_class=route_class,
        responses=to_openapi(*_ANY),
        redirect_slashes=False,
    )
