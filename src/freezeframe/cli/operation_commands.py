"""Commands that follow from the catalogue of operations; Typer reads their arguments and checks them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from freezeframe.cli.local_caller import LocalCaller
from freezeframe.cli.location import TenantLocation, at_location
from freezeframe.cli.options import Json, Message, StreamArgument, Who, point
from freezeframe.cli.output import Output, write_json
from freezeframe.identifiers import StreamName
from freezeframe.service.operations.operation import Operation, described

_MESSAGE = "message"


def add_commands(app: typer.Typer, *operations: Operation) -> None:
    """Add the command of each operation, under the last of its words."""
    for item in operations:
        app.command(item.commands[0].split()[-1])(_command(item))


def _command(item: Operation) -> Callable[..., None]:
    """Return the command of an operation on a tenant: it calls it as the local user, and prints the result.

    What is needed is an argument, and a version that may be left out; all else is an option.
    """
    named = {parameter.name: described(parameter) for parameter in item.parameters}

    def command(
        location: TenantLocation, as_json: bool = False, who: str | None = None, **values: Any
    ) -> None:
        caller, words = LocalCaller(location, who), item.commands[0]
        for name, (_, said) in named.items():
            if said.is_point and values[name] is not None:
                values[name] = caller.tenant().at(point(values[name])).version
        if _MESSAGE in named:
            values[_MESSAGE] = values[_MESSAGE] or f"{words.split()[-1]} {values[next(iter(named))]}"
        show_result(item.call(caller, **values), words, Output(as_json=as_json))

    parameters = [_parameter("location", TenantLocation), *map(_given, item.parameters)]
    if item.action:
        parameters.append(_parameter("who", Who, None))
    command.__signature__ = inspect.Signature([*parameters, _parameter("as_json", Json, default=False)])  # type: ignore[attr-defined]
    command.__doc__, command.__name__ = item.run.__doc__, item.routes[0]
    return at_location(command)


def show_result(result: Any, words: str, output: Output) -> None:
    """Print a result; ``--json`` prints what the API answers, null where it answers nothing."""
    shown = json_of(result)
    rows = [value for value in (shown or {}).values() if isinstance(value, list)]
    if output.as_json:
        write_json(shown)
    elif rows:
        output.table("", rows[0])
    elif result is not None:
        output.record(shown)
    else:
        output.line(f"{words}: done.")


def json_of(result: Any) -> Any:
    """Return a result as the API answers it."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(result)


def _given(parameter: inspect.Parameter) -> inspect.Parameter:
    (kind, said), default = described(parameter), parameter.default
    if parameter.name == _MESSAGE:
        return _parameter(parameter.name, Message, None)
    if kind is StreamName:
        return _parameter(parameter.name, StreamArgument)
    text = said.text if default is not None else f"{said.text.rstrip('.')} (default: the newest)."
    if said.is_point:
        given: Any = Annotated[str | None, typer.Argument(metavar="VERSION", help=text)]
    elif default is inspect.Parameter.empty:
        given = Annotated[str, typer.Argument(metavar=parameter.name.upper(), help=text)]
    else:
        given = Annotated[kind, typer.Option(help=text, min=said.limits.get("ge"), max=said.limits.get("le"))]
    return _parameter(parameter.name, given, default)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
