"""Commands that follow from the catalogue of operations; Typer reads their arguments and checks them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, get_args

import typer

from freezeframe.cli.local_caller import LocalCaller, StoreCaller
from freezeframe.cli.location import TenantLocation, at_location
from freezeframe.cli.options import (
    AsOf,
    Environment,
    Json,
    Message,
    OfTenant,
    StoreRoot,
    StreamArgument,
    Who,
    parse_moment,
)
from freezeframe.cli.output import Output, write_json
from freezeframe.identifiers import FilePath, StreamName, TenantId
from freezeframe.service.operations.operation import Operation, described

View = Callable[[Any, Output], None]
_MESSAGE = "message"


def add_commands(app: typer.Typer, *operations: Operation, **views: View) -> None:
    """Add the command of each operation, under the last of its words.

    A result is printed by the view under the operation's id, else as ``show_result`` does.
    """
    for item in operations:
        name = item.run.__name__ if item.run else ""
        app.command(item.commands[0].split()[-1])(_command(item, views.get(name)))


def _command(item: Operation, view: View | None) -> Callable[..., None]:
    """Return the command of an operation: it calls it as the local user, and prints the result.

    What is needed is an argument, and a version that may be left out; all else is an option.
    """
    named = {parameter.name: described(parameter) for parameter in item.parameters}

    def show(result: Any, as_json: bool) -> None:
        if view is None or as_json:
            show_result(result, item, Output(as_json=as_json))
        else:
            view(result, Output())

    def of_tenant(
        location: TenantLocation, as_json: bool = False, who: str | None = None, **values: Any
    ) -> None:
        caller = LocalCaller(location, who)
        for name, (_, said) in named.items():
            if said.is_point and values[name] is not None:
                values[name] = caller.version(values[name])
        if _MESSAGE in named:
            words = item.commands[0].split()[-1]
            values[_MESSAGE] = values[_MESSAGE] or f"{words} {values[next(iter(named))]}"
        show(item.call(caller, **_values(named, values)), as_json)

    def of_store(
        root: str, environment: str | None = None, of: str | None = None, as_json: bool = False, **values: Any
    ) -> None:
        with StoreCaller(root, environment, of, create=item.place == "service") as caller:
            place = {"environment": caller.environment} if item.place == "environment" else {}
            result = item.call(caller, **place, **_values(named, values))
        show(result, as_json)

    command: Callable[..., None] = of_tenant if item.place == "tenant" else of_store
    given = [_given(parameter) for parameter in item.parameters]
    if item.place == "tenant":
        signature = [_parameter("location", TenantLocation), *given]
        signature += [_parameter("who", Who, None)] if item.action else []
    else:
        signature = [*given, _parameter("root", StoreRoot)]
        signature += [] if item.place == "service" else [_parameter("environment", Environment, None)]
        signature += [_parameter("of", OfTenant, None)] if item.place == "job" else []
    signature.append(_parameter("as_json", Json, default=False))
    # Typer reads a command's parameters from these two.
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    command.__doc__, command.__name__ = item.run.__doc__, item.run.__name__ if item.run else ""
    return at_location(command) if item.place == "tenant" else command


def show_result(result: Any, item: Operation, output: Output) -> None:
    """Print a result; ``--json`` prints what the API answers, null where it answers nothing."""
    shown = json_of(result)
    is_list = result is not None and (bool(item.columns) or "next_cursor" in shown)
    rows = [value for value in shown.values() if isinstance(value, list)][-1] if is_list else []
    if output.as_json:
        write_json(shown)
    elif result is None:
        output.line(f"{item.commands[0]}: done.")
    elif not is_list:
        output.record(shown)
    elif not rows:
        output.line(item.empty or f"{item.commands[0]}: nothing.")
    else:
        name = item.commands[0].split()[0]
        output.table("", [row if isinstance(row, Mapping) else {name: row} for row in rows], item.columns)
    if not output.as_json and result is not None and shown.get("next_cursor"):
        flag = next((described(one)[1].flag for one in item.parameters if one.name == "cursor"), "")
        output.line(f"There are more: {flag or '--cursor'} {shown['next_cursor']}")


def json_of(result: Any) -> Any:
    """Return a result as the API answers it."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(result)


def _values(named: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as the operation takes them: moments in UTC, no list for none."""
    found = dict(values)
    for name, (kind, _) in named.items():
        if datetime in get_args(kind) and found[name] is not None:
            moment = parse_moment(found[name])
            found[name] = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return found


def _given(parameter: inspect.Parameter) -> inspect.Parameter:
    (kind, said), default = described(parameter), parameter.default
    if parameter.name == _MESSAGE:
        return _parameter(parameter.name, Message, None)
    if kind is StreamName:
        return _parameter(parameter.name, StreamArgument)
    if datetime in get_args(kind):
        return _parameter(
            parameter.name, AsOf if parameter.name == "as_of" else _option(str | None, said), None
        )
    if said.is_point or said.is_argument or default is inspect.Parameter.empty:
        metavar = said.flag or ("VERSION" if said.is_point else parameter.name.upper())
        is_list = getattr(kind, "__origin__", None) is list
        argument = list[str] if is_list else str if default is inspect.Parameter.empty else str | None
        annotation: Any = Annotated[argument, typer.Argument(metavar=metavar, help=said.text)]
        return _parameter(parameter.name, annotation, default)
    names = {FilePath, StreamName, TenantId}
    kind = str | None if names.intersection(get_args(kind)) else kind
    kind = list[str] if isinstance(default, list) else kind
    return _parameter(parameter.name, _option(kind, said), default)


def _option(kind: Any, said: Any) -> Any:
    limits = {"min": said.limits.get("ge"), "max": said.limits.get("le")}
    return Annotated[kind, typer.Option(*([said.flag] if said.flag else []), help=said.text, **limits)]


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
