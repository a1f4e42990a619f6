"""Routes that follow from the catalogue of operations; FastAPI reads their parameters and checks them."""

import inspect
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field, create_model

from freezeframe.asgi.caller import CONDITIONAL, TenantCaller, TenantCalling
from freezeframe.asgi.routing import TENANT_PATH, RequestModel, api_router
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.service.operations.catalogue import FILE_OPERATIONS, STREAM_OPERATIONS, VERSION_OPERATIONS
from freezeframe.service.operations.operation import Operation, described

_BODY = "order"
_TAGS = {"files": FILE_OPERATIONS, "versions": VERSION_OPERATIONS, "streams": STREAM_OPERATIONS}
_NEEDED = inspect.Parameter.empty


def operation_routers() -> Iterator[APIRouter]:
    """Yield a router for each tag, with a route for each of its operations."""
    for tag, operations in _TAGS.items():
        router = api_router(tag)
        _add(router, operations)
        yield router


def _add(router: APIRouter, operations: Iterable[Operation]) -> None:
    for item in operations:
        nothing = {"response_class": Response} if item.result is None else {}
        router.add_api_route(
            TENANT_PATH + item.path.replace("{path}", "{path:path}"),  # a file's path may hold slashes
            _endpoint(item),
            methods=[item.method],
            status_code=item.status,
            response_model=item.result,
            dependencies=CONDITIONAL if item.action else None,
            name=item.routes[0],
            openapi_extra={"x-scopes": [item.scope]},
            **nothing,  # type: ignore[arg-type]
        )


def _endpoint(item: Operation) -> Any:
    """Return the route's function: its signature and its docstring are what FastAPI reads."""

    def endpoint(caller: TenantCaller, **values: Any) -> Any:
        order = values.pop(_BODY, None)
        members = {} if order is None else {name: getattr(order, name) for name in type(order).model_fields}
        return item.call(caller, **values, **members)

    of_body: dict[str, Any] = {}
    signature = [_keyword("caller", TenantCalling)]
    for parameter in item.parameters:
        kind, said = described(parameter)
        kind = str if kind in {FilePath, StreamName} else kind
        words = {"description": said.text, **said.limits}
        if f"{{{parameter.name}}}" not in item.path and item.body:
            default = ... if parameter.default is _NEEDED else parameter.default
            of_body[parameter.name] = (kind, Field(default, **words))
        else:
            place = Path if f"{{{parameter.name}}}" in item.path else Query
            signature.append(_keyword(parameter.name, Annotated[kind, place(**words)], parameter.default))
    if item.body:
        model = create_model(item.body, __base__=RequestModel, __doc__=item.run.__doc__, **of_body)
        signature.append(_keyword(_BODY, model))
    endpoint.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    endpoint.__doc__, endpoint.__name__ = item.run.__doc__, item.routes[0]
    return endpoint


def _keyword(name: str, annotation: Any, default: Any = _NEEDED) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
