"""What a script says about itself: a description and its parameters, in the header of PEP 723.

A header is a comment that ``# /// script`` begins and ``# ///`` ends; inside is TOML. Ours is its table
``[tool.freezeframe]``. Nothing of the script is run to read it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freezeframe.errors import InvalidOption
from freezeframe.runs.model.request import PARAMETER_NAME_LENGTH_MAX, Scalar

HEADER_BYTES_MAX = 64 * 1024
_BLOCK = re.compile(r"^# /// script\s*$\n(?P<content>(?:^#(?:| .*)$\n)+?)^# ///\s*$", re.MULTILINE)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_FIELDS = frozenset({"type", "default", "description", "choices", "required"})


@dataclass(frozen=True, slots=True)
class ScriptParameter:
    """A parameter that a script declares: its name, its type, and what a caller may give.

    ``type`` is ``text``, ``integer``, ``number`` or ``boolean``. Without ``choices`` any value of
    the type may be given. A required one has no default.
    """

    name: str
    type: str = "text"
    default: Scalar = None
    description: str = ""
    choices: tuple[Scalar, ...] = ()
    is_required: bool = False

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or len(self.name) > PARAMETER_NAME_LENGTH_MAX:
            raise _wrong(f"{self.name!r} cannot be a parameter's name.")
        if self.type not in _KINDS:
            raise _wrong(f"{self.name} cannot have the type {self.type!r}.")
        if self.is_required and self.default is not None:
            raise _wrong(f"{self.name} is required and has a default.")
        for value in (*self.choices, *(() if self.default is None else (self.default,))):
            if not self.takes(value):
                raise _wrong(f"{value!r} cannot be a value of {self.name} ({self.type}).")

    def takes(self, value: Scalar) -> bool:
        """Whether the value has the type, and is one of the choices if there are any."""
        is_kind = isinstance(value, _KINDS[self.type]) and (
            self.type == "boolean" or not isinstance(value, bool)
        )
        return is_kind and (not self.choices or value in self.choices)


@dataclass(frozen=True, slots=True)
class ScriptHeader:
    """A script's description and parameters; ``parameters`` is None where it declares none."""

    description: str = ""
    parameters: tuple[ScriptParameter, ...] | None = None

    def filled(self, given: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
        """What a run is given, checked, with the declared defaults; a script that declares none takes any.

        Raises:
            InvalidOption: a name that the script does not declare, a value that it does not take, or one
                that is required is missing.
        """
        if self.parameters is None:
            return given
        known = {one.name: one for one in self.parameters}
        names = ", ".join(known) or "none"
        for name, value in given.items():
            if name not in known:
                raise InvalidOption(
                    f"The script has no parameter {name!r}.",
                    cause=f"Its header declares {names}.",
                    remedy="Give one of these, or declare it in the script.",
                )
            if value is not None and not known[name].takes(value):
                raise InvalidOption(
                    f"{name} cannot be {value!r}.", cause=_expected(known[name]), remedy="Give such a value."
                )
        for one in self.parameters:
            if one.is_required and given.get(one.name) is None:
                raise InvalidOption(
                    f"The parameter {one.name} is missing.",
                    cause="The script's header says that it is required.",
                    remedy=f"Give {one.name} ({one.type}).",
                )
        return {**{one.name: one.default for one in self.parameters if one.default is not None}, **given}


def read_script_header(script: Path) -> ScriptHeader:
    """The header of a script's first 64 KiB; an empty one of a notebook, or where there is none.

    Raises:
        InvalidOption: the header cannot be read, or declares what no parameter can be.
    """
    if script.suffix != ".py":
        return ScriptHeader()
    with script.open("rb") as file:
        return parse_script_header(file.read(HEADER_BYTES_MAX).decode(errors="replace"))


def parse_script_header(text: str) -> ScriptHeader:
    """The header in a script's text; errors as of ``read_script_header``."""
    found = _BLOCK.search(text.replace("\r\n", "\n"))
    if found is None:
        return ScriptHeader()
    content = "\n".join(line[2:] for line in found["content"].splitlines())
    try:
        ours = tomllib.loads(content).get("tool", {}).get("freezeframe", {})
        description, declared = ours.get("description", ""), ours.get("parameters")
        if not isinstance(description, str):
            raise _wrong("description is no text.")
        parameters = None if declared is None else tuple(_parameter(*one) for one in declared.items())
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        raise _wrong(str(error)) from error
    return ScriptHeader(description, parameters)


def _parameter(name: str, said: Any) -> ScriptParameter:
    """A parameter from its table, or from its default alone."""
    table = said if isinstance(said, dict) else {"default": said}
    if unknown := sorted(table.keys() - _FIELDS):
        raise _wrong(f"{name} has the unknown field {unknown[0]}.")
    choices, default = tuple(table.get("choices", ())), table.get("default")
    example = next(iter((*choices, *(() if default is None else (default,)))), "")
    if not isinstance(example, str | int | float | bool):
        raise _wrong(f"{name} cannot be {example!r}.")
    return ScriptParameter(
        name=name,
        type=table.get("type", _kind_of(example)),
        default=default,
        description=str(table.get("description", "")),
        choices=choices,
        is_required=table.get("required") is True,
    )


def _kind_of(value: Scalar) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "text"


def _expected(parameter: ScriptParameter) -> str:
    if parameter.choices:
        return f"It is one of {', '.join(str(one) for one in parameter.choices)}."
    return f"It takes a value of the type {parameter.type!r}."


def _wrong(cause: str) -> InvalidOption:
    return InvalidOption(
        "The script's header cannot be read.",
        cause=cause,
        remedy="Correct the table [tool.freezeframe] between `# /// script` and `# ///`.",
        code="SCRIPT_HEADER",
    )
