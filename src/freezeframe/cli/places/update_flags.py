"""The options of an update, and of reading CSV, as flags: one set for all commands that bring rows in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, cast

import typer

from freezeframe.cli.places.place import expand
from freezeframe.cli.terminal.confirmation import require_yes
from freezeframe.store.model.update_options import (
    Deletes,
    History,
    ModeOption,
    NullKeys,
    Nulls,
    OnDrift,
    SchemaRule,
    UpdateOptions,
)

FLAGS: dict[str, Any] = {
    "mode": Annotated[
        ModeOption | None,
        typer.Option(help="upsert (default), or full: stored rows that the file lacks are deleted."),
    ],
    "override": Annotated[
        bool | None, typer.Option("--override", help="Replace all rows, columns and types; needs no key.")
    ],
    "replace_where": Annotated[
        str | None,
        typer.Option(
            metavar="SQL", help='Replace the stored rows for which this is true; needs no key: "Month = 10".'
        ),
    ],
    "deletes": Annotated[
        Deletes | None, typer.Option(help="With --mode full: remove, or flag deleted rows in _deleted.")
    ],
    "max_delete_ratio": Annotated[
        float | None, typer.Option(help="With --mode full: the share of rows that may go (default: 0.5).")
    ],
    "nulls": Annotated[
        Nulls | None, typer.Option(help="keep (default) stored cells where a value is missing, or overwrite.")
    ],
    "null_keys": Annotated[
        NullKeys | None, typer.Option(help="Rows without a key: error (default), match, or drop.")
    ],
    "order_by": Annotated[
        list[str] | None, typer.Option(help="A column by which rows of one key arrive; the last counts.")
    ],
    "drop_duplicates": Annotated[
        bool | None,
        typer.Option(
            "--drop-duplicates/--no-drop-duplicates",
            help="Of rows that share a key the last counts (default), or they are an error.",
        ),
    ],
    "drop_column": Annotated[list[str] | None, typer.Option(help="A column to leave out and remove.")],
    "schema": Annotated[
        SchemaRule | None, typer.Option(help="evolve (default), or frozen: refuse new columns and types.")
    ],
    "on_drift": Annotated[
        OnDrift | None, typer.Option(help="Types that do not fit: error (default), or string: kept as text.")
    ],
    "history": Annotated[
        History | None, typer.Option(help="scd2 keeps changed and deleted rows; none ends that.")
    ],
}


def with_update(command: Callable[..., None]) -> Callable[..., None]:
    """The command with these flags in place of its parameter ``update``: an ``UpdateOptions``."""
    return expand(command, "update", FLAGS, _given)


CSV_FLAGS: dict[str, Any] = {
    "types": Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=TYPE", help="The type that a CSV column must be of: Phone=string."),
    ],
    "parse_dates": Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A CSV column of dates or times, which are text without it."),
    ],
    "escape": Annotated[
        str | None,
        typer.Option(help="What stands before a quote in CSV, if not a quote: a backslash in Spark's."),
    ],
}


def with_csv(command: Callable[..., None]) -> Callable[..., None]:
    """The command with these flags in place of its parameter ``csv``: options of ``import_stream``."""
    return expand(command, "csv", CSV_FLAGS, _csv_options)


def require_yes_for(update: UpdateOptions, streams: Iterable[str], what: str) -> None:
    """Ask before rows are deleted that the file or files (``what``) do not have."""
    names, mode = ", ".join(dict.fromkeys(streams)), update.get("mode")
    if update.get("override"):
        require_yes(f"Replace all rows of {names} by {what}?")
    elif update.get("replace_where") is not None:
        require_yes(f"Replace the rows of {names} where {update['replace_where']} by {what}?")
    elif mode == "full":
        require_yes(f"Delete the rows of {names} that {what} does not have?")


def _given(**flags: Any) -> UpdateOptions:
    return cast("UpdateOptions", {name: value for name, value in flags.items() if value not in (None, [])})


def _csv_options(
    types: list[str] | None, parse_dates: list[str] | None, escape: str | None
) -> dict[str, Any]:
    from freezeframe.script.types.known_types import types_of_words

    return {"types": types_of_words(types or ()), "parse_dates": parse_dates or None, "escape": escape or ""}
