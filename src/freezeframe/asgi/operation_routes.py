"""Routes that follow from the catalogue of operations; FastAPI reads their parameters and checks them."""

import inspect
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, get_args
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response
from pydantic import ConfigDict, Field, create_model

from freezeframe.asgi.caller import CONDITIONAL, Calling, Environment, TenantCalling
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.parameters import MomentText, TenantVersion
from freezeframe.asgi.routing import TENANT_PATH, RequestModel, api_router
from freezeframe.identifiers import FilePath, StreamName, TenantId
from freezeframe.service.operations.caller import Caller
from freezeframe.service.operations.catalogue import OPERATIONS
from freezeframe.service.operations.operation import Operation, SeenVersion, described

_BODY, _ENVIRONMENT, _RESPONSE = "order", "environment", "response"
_PLACES = {"tenant": TENANT_PATH, "job": TENANT_PATH, "environment": "/environments/{environment}"}
_LONG = re.compile(r"{(path|key)}")  # they may hold slashes
_NAMED = re.compile(r"{(\w+)}")
_NEEDED = inspect.Parameter.empty


def operation_routers() -> Iterator[APIRouter]:
    """Yield a router for each tag, with a route for each of its operations."""
    routers: dict[str, APIRouter] = {}
    for item in OPERATIONS:
        if item.run is not None and item.method:
            _add(routers.setdefault(item.tag, api_router(item.tag)), item)
    yield from routers.values()


def _add(router: APIRouter, item: Operation) -> None:
    nothing = {"response_class": Response} if item.result is None else {}
    place = _PLACES.get(item.place, "")
    names_something = "{" in item.path or (item.place == "environment" and bool(item.action))
    router.add_api_route(
        place + _LONG.sub(r"{\1:path}", item.path),
        _endpoint(item),
        methods=[item.method],
        status_code=item.status,
        response_model=item.result,
        responses=to_openapi(404) if names_something and place != TENANT_PATH else None,
        dependencies=CONDITIONAL if item.action and item.place == "tenant" else None,
        name=item.routes[0],
        openapi_extra={"x-scopes": item.scope.replace("everywhere", "admin").split()},
        **nothing,  # type: ignore[arg-type]
    )


def _endpoint(item: Operation) -> Any:
    """Return the route's function: its signature and its docstring are what FastAPI reads."""

    def endpoint(caller: Caller, **values: Any) -> Any:
        order, response = values.pop(_BODY, None), values.pop(_RESPONSE, None)
        members = {} if order is None else {name: getattr(order, name) for name in type(order).model_fields}
        done = item.call(caller, **values, **members)
        if response is not None:
            for name, text in item.headers.items():
                response.headers[name] = _NAMED.sub(
                    lambda found: quote(getattr(done, found[1]), safe=""), text
                )
        return done

    of_body: dict[str, Any] = {}
    signature = [_keyword("caller", TenantCalling if item.place in {"tenant", "job"} else Calling)]
    if item.place == "environment":
        signature.append(_keyword(_ENVIRONMENT, Environment))
    for parameter in item.parameters:
        kind, said = described(parameter)
        words = {"description": said.text or None, **said.limits}
        is_of_path = f"{{{parameter.name}}}" in item.path
        if parameter.annotation == SeenVersion:
            signature.append(_keyword(parameter.name, TenantVersion))
        elif item.body and not is_of_path:
            default = ... if parameter.default is _NEEDED else parameter.default
            of_body[parameter.name] = (_sent(kind), Field(default, **words))
        else:
            place = (Path if is_of_path else Query)(**words)
            signature.append(_keyword(parameter.name, Annotated[_sent(kind), place], parameter.default))
    if item.body:
        signature.append(_keyword(_BODY, _model(item, of_body)))
    if item.headers:
        signature.append(_keyword(_RESPONSE, Response))
    endpoint.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    endpoint.__doc__, endpoint.__name__ = item.run.__doc__, item.routes[0]
    return endpoint


def _model(item: Operation, members: Mapping[str, Any]) -> Any:
    """Return the model of an operation's body."""
    config = (
        ConfigDict(json_schema_extra={"examples": [dict(item.example)]}) if item.example else ConfigDict()
    )
    base = type(item.body, (RequestModel,), {"model_config": config})
    return create_model(item.body, __base__=base, __doc__=item.run.__doc__, **members)


def _sent(kind: Any) -> Any:
    """Return a parameter's type as a request sends it: names are text, which the operation checks."""
    texts = {FilePath, StreamName, TenantId}
    if kind in texts or texts.intersection(get_args(kind)):
        return str if kind in texts else str | None
    return MomentText | None if datetime in get_args(kind) else kind


def _keyword(name: str, annotation: Any, default: Any = _NEEDED) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
