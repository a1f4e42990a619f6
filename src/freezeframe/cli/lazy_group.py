"""A command group that imports a command when it is used, which keeps ``--help`` quick."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, get_args

import typer
from typer.core import TyperGroup

from freezeframe.cli.examples import example


@dataclass(frozen=True, slots=True)
class Part:
    """A command that is not loaded yet; ``target`` is ``module:name`` in this package."""

    target: str
    help: str
    section: str

    def load(self, name: str) -> Any:
        """The command, ready to be invoked."""
        module, _, attribute = self.target.partition(":")
        found = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
        holder = typer.Typer(add_completion=False, rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            holder.add_typer(typer.Typer(no_args_is_help=True), name=name, help=self.help)
            group = typer.main.get_group(holder).commands[name]
            group.commands = _CommandsOnDemand(name, found)  # type: ignore[attr-defined]  # it is a group
            return group
        holder.command(name)(found)
        return _with_plain_help(typer.main.get_command(holder), name)


class _CommandsOnDemand(Mapping[str, Any]):
    """A group's commands, each of which is made when it is used: most of the time goes into its options."""

    def __init__(self, name: str, group: typer.Typer) -> None:
        self._name = name
        self._given = {
            command.name or getattr(command.callback, "__name__", ""): command
            for command in group.registered_commands
        }

    def __getitem__(self, name: str) -> Any:
        holder = typer.Typer(add_completion=False, rich_markup_mode=None)
        holder.registered_commands = [self._given[name]]
        command = typer.main.get_command(holder)
        command.name = name
        return _with_plain_help(command, f"{self._name} {name}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def _with_plain_help(command: Any, words: str) -> Any:
    """The command with an example, and help that says TEXT, NUMBER, PATH or MOMENT for Python's types."""
    command.epilog = example(words)
    for param in command.params:
        kind = param.type_descriptor
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None  # noqa: ARG005 - its name says enough
        elif not (param.metavar or kind.is_choice or param.is_flag):
            param.metavar = _kind(kind.annotation)
        if _kind(kind.annotation) == "PATH":
            param.process_value = functools.partial(_path, param, param.process_value)
    return command


def _path(parameter: Any, convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    """The path; an empty text is refused, because Python takes it for the working directory."""
    if "" in (value if isinstance(value, list | tuple) else (value,)):
        raise typer.BadParameter("The path is empty.", ctx, parameter)
    return convert(ctx, value)


def _kind(annotation: Any) -> str:
    inner = next(iter(get_args(annotation)), annotation)
    return {int: "NUMBER", float: "NUMBER", Path: "PATH", datetime: "MOMENT"}.get(inner, "TEXT")


class LazyGroup(TyperGroup):
    """A command group whose subclasses list their commands in ``parts``, section by section."""

    parts: ClassVar[Mapping[str, Part]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._loaded: dict[str, Any] = {}
        # Typer looks here for the names that a mistyped one may mean.
        self.commands = {name: typer.core.TyperCommand(name) for name in self.parts}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's signature
        """The names, in order."""
        return list(self.parts)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """The command of that name, loaded; None if there is none."""
        if cmd_name in self.parts and cmd_name not in self._loaded:
            self._loaded[cmd_name] = self.parts[cmd_name].load(cmd_name)
        return self._loaded.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """Write a list of commands for each section."""
        width = max(map(len, self.parts), default=0)
        for section in dict.fromkeys(part.section for part in self.parts.values()):
            rows = [(name, part.help) for name, part in self.parts.items() if part.section == section]
            with formatter.section(section):
                # The same width in all sections, so that they align.
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Completions of names without loading a command; of options after a hyphen."""
        if incomplete.startswith("-"):
            return super(TyperGroup, self).shell_complete(ctx, incomplete)
        from typer._click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=part.help)
            for name, part in self.parts.items()
            if name.startswith(incomplete)
        ]
