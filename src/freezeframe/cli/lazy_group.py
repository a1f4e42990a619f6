"""A group of commands that are loaded when they are used, so that ``--help`` waits for none of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup


@dataclass(frozen=True, slots=True)
class Part:
    """A command that is not loaded yet; ``target`` is ``module:name`` of what this package has for it."""

    target: str
    help: str
    section: str

    def loaded(self, name: str) -> Any:
        """The command, ready to be invoked."""
        module, _, attribute = self.target.partition(":")
        found = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
        holder = typer.Typer(add_completion=False, rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=name, help=self.help)
            return typer.main.get_group(holder).commands[name]
        holder.command(name)(found)
        return typer.main.get_command(holder)


class LazyGroup(TyperGroup):
    """Commands by their parts; a class of it says which, in ``parts``, sections one after the other."""

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
            self._loaded[cmd_name] = self.parts[cmd_name].loaded(cmd_name)
        return self._loaded.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """A list for each section."""
        width = max(map(len, self.parts), default=0)
        for section in dict.fromkeys(part.section for part in self.parts.values()):
            rows = [(name, part.help) for name, part in self.parts.items() if part.section == section]
            with formatter.section(section):
                # The same width in all, so that the sections read as one table.
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The names that begin so, told without loading any; after a hyphen the options."""
        if incomplete.startswith("-"):
            return super(TyperGroup, self).shell_complete(ctx, incomplete)
        from typer._click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=part.help)
            for name, part in self.parts.items()
            if name.startswith(incomplete)
        ]
