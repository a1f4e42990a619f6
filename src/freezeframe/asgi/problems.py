"""Problem documents (RFC 9457) for the errors of the tree in ``errors``.

``type`` is ``urn:freezeframe:error:<CODE>`` with the code of the error's class, a heading of
``docs/reference/errors.md``; the member ``code`` may be finer, as an error's may.
A problem never tells the location of the store on the machine.
"""

import http
import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.routing import Match

from freezeframe import errors
from freezeframe.errors import FreezeframeError
from freezeframe.store.model.update_options import as_parameter, say_options


def media_type(request: Request) -> str:
    """Return the media type of the Content-Type in lower case, without parameters; empty without one."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


class Problem(BaseModel):
    """A problem document (RFC 9457); `type` and `code` are stable and listed in the reference of errors."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:freezeframe:error:STREAM_NOT_FOUND",
                    "title": "There is no stream 'Acount'.",
                    "status": 404,
                    "detail": "Check the name.",
                    "code": "STREAM_NOT_FOUND",
                    "cause": "",
                    "remedy": "Check the name.",
                    "request_id": "4f1c",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    detail: str
    code: str
    cause: str
    remedy: str
    request_id: str
    errors: list[dict[str, Any]] | None = None


MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:freezeframe:error:"
_logger = logging.getLogger(__name__)

# The first class that fits counts, so the narrower ones stand first.
_STATUSES: tuple[tuple[type[FreezeframeError], int], ...] = (
    (errors.NotFound, 404),
    (errors.NotAuthenticated, 401),
    (errors.NotAllowed, 403),
    (errors.PreconditionFailed, 412),
    (errors.PreconditionRequired, 428),
    (errors.TooLarge, 413),
    (errors.UnreadableRequest, 400),
    (errors.RateLimited, 429),
    (errors.ConflictError, 409),
    (errors.AlreadyExists, 409),
    (errors.JobRevoked, 409),
    (errors.SealingUnavailable, 409),
    (errors.SetupError, 500),
    (errors.FixTheRequest, 422),
    (errors.StorageFull, 507),
    (errors.TryAgain, 503),
    (errors.ReportDamage, 500),
    (FreezeframeError, 500),
)
_FORM = "application/x-www-form-urlencoded"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_DETAILS_HIDDEN = frozenset({"file", "root"})


def status_of(kind: type[FreezeframeError]) -> int:
    """Return the HTTP status that an error of this class is answered with."""
    return next(status for known, status in _STATUSES if issubclass(kind, known))


def problem_response(
    error: FreezeframeError, request_id: str, *, hidden: str = "", status: int | None = None
) -> Response:
    """Return the problem response for ``error``; ``hidden`` (the store's root) is removed from its text."""
    answered = status or status_of(type(error))
    document = {
        "type": f"{TYPE_PREFIX}{type(error).code}",
        "title": _without(error.problem, hidden),
        "status": answered,
        "detail": _without(" ".join(part for part in (error.cause, error.remedy) if part), hidden),
        "code": error.error_code,
        "cause": _without(error.cause, hidden),
        "remedy": _without(error.remedy, hidden),
        "request_id": request_id,
        **{
            name: value
            for name, value in _visible_details(error.details, hidden).items()
            if name not in _RESERVED
        },
    }
    headers = {}
    if answered == http.HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="freezeframe"'
    retry_after = error.details.get("retry_after_seconds")
    if retry_after is not None or answered == http.HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(retry_after or 1)
    return JSONResponse(document, status_code=answered, headers=headers, media_type=MEDIA_TYPE)


_RESERVED = frozenset(
    {"type", "title", "status", "detail", "code", "cause", "remedy", "request_id", "instance"}
)


def add_problem_handlers(application: FastAPI, root: str) -> None:
    """Make the application answer every error as a problem document, without a stack trace."""

    def answer_known_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, FreezeframeError)  # noqa: S101 - registered for these
        say_options(error, as_parameter)
        if status_of(type(error)) >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            _logger.error("%s: %s", error.error_code, error)
        return problem_response(error, request_id_of(request), hidden=root)

    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for these
        kind = media_type(request)
        return problem_response(_invalid(error, kind), request_id_of(request))

    def answer_routing_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for these
        answer = problem_response(_routing_error(error), request_id_of(request), status=error.status_code)
        answer.headers.update(error.headers or {})
        if error.status_code == http.HTTPStatus.METHOD_NOT_ALLOWED:
            answer.headers["Allow"] = ", ".join(_allowed_methods(request))
        return answer

    def answer_unexpected_error(request: Request, error: Exception) -> Response:
        _logger.error("An answer failed.", exc_info=error)
        problem = FreezeframeError(
            "The service failed with an unexpected error.",
            cause="The cause is in the service or its machine, not in the request.",
            remedy="Send the request id to the operator of the service, whose log has the details.",
        )
        return problem_response(problem, request_id_of(request))

    application.add_exception_handler(FreezeframeError, answer_known_error)
    application.add_exception_handler(RequestValidationError, invalid)
    application.add_exception_handler(HTTPException, answer_routing_error)
    application.add_exception_handler(Exception, answer_unexpected_error)


def request_id_of(request: Request) -> str:
    """Return the id that the request was given when it came in."""
    return str(request.scope.get("request_id", ""))


def to_openapi(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These statuses as OpenAPI declares them, each error with the problem document as its content."""
    problem = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    return {
        status: {
            "description": http.HTTPStatus(status).phrase,
            **(problem if status >= http.HTTPStatus.BAD_REQUEST else {}),
        }
        for status in statuses
    }


def _invalid(error: RequestValidationError, kind: str) -> FreezeframeError:
    """``kind`` is the Content-Type: what does not say that it is JSON was never read as JSON."""
    if kind == _FORM and ("body",) in {item["loc"] for item in error.errors()[:1]}:
        return errors.InvalidOption(
            "The body is declared as a form and was not read.",
            cause=f"Its Content-Type is {_FORM}, which curl and other clients send by default.",
            remedy="Send it with the header content-type: application/json.",
            code="INVALID_REQUEST",
        )
    found = [
        {"place": ".".join(map(str, item["loc"])), "problem": item["msg"]}
        for item in error.errors()[:20]  # a body with thousands of errors is not reported in full
    ]
    first = found[0] if found else {"place": "request", "problem": "invalid"}
    return errors.InvalidOption(
        f"{first['place']} cannot be taken: {first['problem']}.",
        cause="A parameter or a member of the body is missing or invalid.",
        remedy="Correct the parameters listed in errors; /openapi.json describes the API.",
        code="INVALID_REQUEST",
        errors=found,
    )


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of all operations of the path; each route of it knows only its own."""
    scope, routes = request.scope, request.app.router.routes

    def is_taken(method: str) -> bool:
        return any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)

    return [method for method in _METHODS if is_taken("GET" if method == "HEAD" else method)]


def _routing_error(error: HTTPException) -> FreezeframeError:
    status = error.status_code
    if status == http.HTTPStatus.NOT_FOUND:
        return errors.NotFound(
            "There is no such path.",
            cause="No operation has this path; paths and names in them do not end with a slash.",
            remedy="See /openapi.json for all paths.",
        )
    if status == http.HTTPStatus.METHOD_NOT_ALLOWED:
        return errors.FixTheRequest(
            "The path does not support this method.",
            cause="It supports other methods.",
            remedy="See the Allow header.",
            code="METHOD_NOT_ALLOWED",
        )
    if status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return errors.TooLarge(
            "The body is too large.",
            cause="The service takes at most service_body_bytes_max at once.",
            remedy="Send less, or stage it: POST …/blobs.",
        )
    return errors.UnreadableRequest(
        "The request cannot be read.", cause=str(error.detail), remedy="Correct it and send it again."
    )


def _visible_details(details: Mapping[str, Any], hidden: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dict(details), default=str))
    return {
        name: _without(value, hidden) if isinstance(value, str) else value
        for name, value in plain.items()
        if name not in _DETAILS_HIDDEN
    }


def _without(text: str, hidden: str) -> str:
    return text.replace(hidden, "the store") if hidden else text
