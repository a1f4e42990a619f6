"""Write the reference pages that follow from the code: commands, settings, errors, types.

Run as ``python tools/write_reference.py``; with ``--check`` it writes nothing and fails where a
page is not what the code says.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import difflib
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import typer
from type_matrix import SIZES, TYPES, Cell, Place, Policy, cells

from freezeframe import errors
from freezeframe.asgi.problems import status_of
from freezeframe.cli.application import app
from freezeframe.cli.output import exit_code
from freezeframe.settings import Settings

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
ORIGIN = "<!-- Written by tools/write_reference.py from the code; change it there. -->\n\n"


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` compare them; 1 where one differs."""
    pages = {
        "commands.md": commands(),
        "settings.md": settings(),
        "errors.md": error_tree(),
        "type-matrix.md": type_matrix(),
    }
    stale = 0
    for name, text in pages.items():
        file = FOLDER / name
        if "--check" not in arguments:
            file.write_text(text, encoding="utf-8")
        elif (found := file.read_text(encoding="utf-8") if file.exists() else "") != text:
            stale += 1
            sys.stderr.writelines(
                difflib.unified_diff(
                    found.splitlines(keepends=True), text.splitlines(keepends=True), str(file), "the code"
                )
            )
    if stale:
        sys.stderr.write("Run: .venv/bin/python tools/write_reference.py\n")
    return 1 if stale else 0


def commands() -> str:
    """Every command with its arguments and options, by the sections of the command's own help."""
    group = typer.main.get_command(app)
    lines = ["# Commands", "", ORIGIN.strip(), "", *_COMMAND_WORDS]
    for section in dict.fromkeys(part.section for part in group.parts.values()):  # type: ignore[attr-defined]
        lines += [f"## {section}", ""]
        for first, part in group.parts.items():  # type: ignore[attr-defined]
            if part.section == section:
                for name, command in _commands(f"freezeframe {first}", group.get_command(None, first)):  # type: ignore[attr-defined]
                    lines += _command(name, command)
    return "\n".join(lines).rstrip() + "\n"


def settings() -> str:
    """Every setting with its variable, what it may be, and its default."""
    lines = ["# Settings", "", ORIGIN.strip(), "", *_SETTING_WORDS]
    for name, field in Settings.model_fields.items():
        default = "`~/.cache/freezeframe`" if name == "state_dir" else f"`{_told(field.default)}`"
        lines += [f"## `{name}`", "", str(field.description), ""]
        lines += [f"Variable `FREEZEFRAME_{name.upper()}`, {_kind(field)}, default {default}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _told(default: Any) -> str:
    """A default as a settings file would say it."""
    return "none" if default is None or default == "" else json.dumps(default).strip('"')


def _kind(field: Any) -> str:
    """What a value may be, in a word or two."""
    choices = [arg for arg in get_args(field.annotation) if isinstance(arg, str)]
    if choices:
        return "one of " + ", ".join(f"`{choice}`" for choice in choices)
    kinds = {bool: "`true` or `false`", int: "a whole number", float: "a number", str: "text"}
    return kinds.get(field.annotation, "a file or folder")


_COMMAND_WORDS = [
    "| exit code | means |",
    "| --- | --- |",
    "| 0 | it went well |",
    "| 1 | failure or damage |",
    "| 2 | the call must change |",
    "| 3 | a conflict: somebody else was first |",
    "| 4 | what was named is not there |",
    "| 130 | interrupted; nothing is half done |",
    "",
    "Results go to standard output, errors and progress to standard error; `--json` makes results and errors",
    "[JSON](json-output.md). `freezeframe --quiet COMMAND` shows no progress, `freezeframe --version` prints",
    "the version, and `freezeframe --install-completion` lets bash, zsh or fish complete commands, tenants",
    "and streams. `NO_COLOR` and `TERM=dumb` are heeded. An option without a default is left out, or is as",
    "the [settings](settings.md) say.",
    "",
]
_SETTING_WORDS = [
    "A value comes from the first of these that has one: a command's flag, the environment",
    "(`FREEZEFRAME_…`), the project's `freezeframe.toml`, the user's `freezeframe.toml`, the default.",
    "`freezeframe config show --origin` lists all values and where each comes from, down to the line.",
    "",
    "- The project's file is the nearest one in the working folder or above it, no higher than the folder",
    "  with `.git` or the home directory; outside of both, the working folder's own alone.",
    "  `FREEZEFRAME_CONFIG` names another one in its place.",
    "- The user's file is `~/.config/freezeframe/freezeframe.toml` (or below `XDG_CONFIG_HOME`).",
    "- A file is TOML with one `name = value` a line. Names that are no settings and values of another kind",
    "  are errors, with file and line. Relative paths are meant from the file's own folder.",
    "- A file that belongs to another user, or that everybody may write to, is refused unless",
    "  `FREEZEFRAME_CONFIG` names it: settings name commands that are run.",
    "",
]


def error_tree() -> str:
    """Every error class with its code and exit code."""
    lines = ["# Errors", "", ORIGIN.strip(), ""]
    lines += ["Catch a class for all below it. An instance may refine its code (Delta's own error classes)."]
    lines += ["Each has `problem`, `cause`, `remedy`, `error_code`, `details` and `to_json()`."]
    lines += [
        "The service answers it as a problem whose `type` is `urn:freezeframe:error:` and the heading.",
        "",
    ]
    for depth, kind in _classes(errors.FreezeframeError, 0):
        above = f" Below `{kind.__bases__[0].__name__}`." if depth else ""
        first = " ".join(inspect.getdoc(kind).split("\n\n")[0].split())  # type: ignore[union-attr]
        lines += [f"## `{kind.code}`", "", f"`{kind.__name__}`: {first}{above}"]
        lines += [f"Exit code {exit_code(kind('what happened'))}, HTTP status {status_of(kind)}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def type_matrix() -> str:
    """What becomes of each type that meets each other type."""
    lines = ["# Which types meet which", "", ORIGIN.strip(), "", *_MATRIX_WORDS]
    parts: tuple[tuple[str, Place, Policy], ...] = (
        ("Values", "value", "widen"),
        ('Values with `schema="frozen"`', "value", "strict"),
        ('Values with `on_drift="string"`', "value", "string"),
        ("Keys", "key", "widen"),
        ('Keys with `schema="frozen"`', "key", "strict"),
        ('Keys with `on_drift="string"`', "key", "string"),
    )
    for title, place, policy in parts:
        lines += [f"## {title}", "", *_matrix(place, policy), ""]
    return "\n".join(lines).rstrip() + "\n"


def _matrix(place: Place, policy: Policy) -> Iterator[str]:
    numbers = [str(number) for number in range(1, len(TYPES) + 1)]
    yield f"| | stored | {' | '.join(numbers)} |"
    yield f"| --- | --- |{' --- |' * len(TYPES)}"
    by_size = [list(cells(place, policy, size)) for size in SIZES]
    for row, kind in enumerate(TYPES):
        found = [_mark([item[row * len(TYPES) + place_] for item in by_size]) for place_ in range(len(TYPES))]
        yield f"| {row + 1} | `{kind.name}` | {' | '.join(found)} |"


def _mark(found: list[Cell]) -> str:
    marks = dict.fromkeys(_MARKS[cell.fate] for cell in found)
    return "/".join(marks)


_MARKS = {"same": "=", "taken": "+", "widened": "↑", "text": "T", "refused": "·"}
_MATRIX_WORDS = [
    "An update keeps every value exactly, or is refused before anything is written. Rows are the stored",
    "types, columns are the incoming ones, by number.",
    "",
    "| sign | meaning |",
    "| --- | --- |",
    "| = | the same type |",
    "| + | the values take the stored type, in which they are exact |",
    "| ↑ | the stored type becomes one that holds both sides exactly |",
    "| T | the column becomes text, which represents every value exactly |",
    "| · | refused: `SchemaDriftError`, or for a key `BadInput` or `NullKeyError` |",
    "| ·/+ | depends on the values: first for the largest that the types have, then for 0 and 1 |",
    "",
    "A column without any value takes the stored type, whatever its own. A key of whole numbers becomes",
    "text (T) if a value is not a number, and no value can mean a stored number in another form (`007`,",
    "`7.0`, `+7`): first for `007` and `NA`, then for `X9` and `0`. A text column that once held whole",
    "numbers still accepts them ([decision 0026](../decisions/0026-a-key-of-numbers-becomes-text.md)).",
    "",
    "Tests check every cell, for both sets of values, with a batch in memory; the values of a Spark frame",
    "decide alike. Parts of lists, objects and maps follow these rules one by one: `9.5`, then `10`.",
    "",
]


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = command.list_commands(None) if hasattr(command, "list_commands") else []
    if not children:
        yield name, command
    for child in sorted(children):
        yield from _commands(f"{name} {child}", command.get_command(None, child))


def _command(name: str, command: Any) -> Iterator[str]:
    yield from (f"### `{name}`", "", (command.help or "").strip(), "")
    yield from ("```", (command.epilog or "").removeprefix("Example: "), "```", "")
    parameters = [param for param in command.params if param.name != "help"]
    if parameters:
        yield from ("| | | default |", "| --- | --- | --- |", *map(_parameter, parameters), "")


def _parameter(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    label = (
        ", ".join(f"`{opt}`" for opt in parameter.opts)
        if is_option
        else f"`{parameter.metavar or parameter.name.upper()}`"
    )
    default = parameter.default
    shown = "" if default in (None, False, "") or callable(default) else f"`{default}`"
    needed = "required" if parameter.required else shown
    return f"| {label} | {parameter.help or ''} | {needed} |"


def _classes(kind: type[errors.FreezeframeError], depth: int) -> Iterator[tuple[int, Any]]:
    yield depth, kind
    for child in kind.__subclasses__():
        yield from _classes(child, depth + 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
