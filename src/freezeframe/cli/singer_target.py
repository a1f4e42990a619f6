"""``target-freezeframe``: a Singer target, as a command of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from freezeframe.cli.application import carry_out
from freezeframe.errors import InputNotFound, InvalidOption

if TYPE_CHECKING:
    from freezeframe.singer.config import AboutFormat, TargetConfig

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> int:
    """Run the target and return its exit code, by the table of the ``freezeframe`` command."""
    return carry_out(sys.argv[1:], app, "target-freezeframe")


@app.command()
def target(
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A JSON file of settings; ENV reads TARGET_FREEZEFRAME_… as well."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--input", help="A file with a tap's output (default: standard input).")
    ] = None,
    about: Annotated[bool, typer.Option("--about", help="Print the settings and capabilities.")] = False,
    form: Annotated[str, typer.Option("--format", help="Of --about: text, json or markdown.")] = "text",
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Bring a Singer tap's output into a tenant's streams, as one commit.

    The last STATE is printed once it is committed. For example: tap-shop | target-freezeframe --config a.json
    """
    if version or about:
        from freezeframe.singer import config as description

        sys.stdout.write(
            f"{description.version_line() if version else description.about(_about_format(form))}\n"
        )
        return
    from freezeframe.singer.config import load_config

    settings = load_config(config or [])
    if source is None:
        _load(sys.stdin.buffer, settings)
        return
    if not source.is_file():
        raise InputNotFound(f"There is no file {source}.", remedy="Check the path.", path=str(source))
    with source.open("rb") as lines:
        _load(lines, settings)


def _load(lines: BinaryIO, settings: TargetConfig) -> None:
    from freezeframe.singer.load import load

    receipt, state = load(lines, settings)
    for name, counts in receipt.streams.items():
        sys.stderr.write(
            f"{name}: {counts.inserted} inserted, {counts.updated} updated, {counts.unchanged} unchanged, "
            f"{counts.deleted} deleted\n"
        )
    sys.stderr.write(f"{settings.tenant}: version {receipt.tenant_version}\n")
    if state is not None:
        sys.stdout.write(f"{state}\n")
        sys.stdout.flush()


def _about_format(form: str) -> AboutFormat:
    if form not in ("text", "json", "markdown"):
        raise InvalidOption(f"--format cannot be {form!r}.", remedy="Use text, json or markdown.")
    return form  # type: ignore[return-value]  # the line above is what narrows it
