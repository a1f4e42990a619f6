"""Questions to the user, and exit codes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from freezeframe.errors import (
    ConflictError,
    FixTheRequest,
    FreezeframeError,
    IdempotencyConflict,
    InvalidOption,
    NotFound,
)

# Confirmation prompts before changes that are large or cannot be undone.


def require_yes(question: str) -> None:
    """Return only if the question is answered with yes on a terminal; ``--yes`` skips it.

    Raises:
        InvalidOption: there is nobody to ask.
        typer.Abort: the answer was no.
    """
    if not sys.stdin.isatty():
        raise InvalidOption(
            f"Confirmation required: {question}",
            cause="There is no terminal to ask on.",
            remedy="Add --yes; where the command has --dry-run, that shows the effect first.",
        )
    # Prompts go to standard error: standard output holds only the result.
    typer.confirm(question, abort=True, err=True)


# Exit codes by class of error.

OK = 0
FAILED = 1
USAGE = 2
CONFLICT = 3
NOT_FOUND = 4
INTERRUPTED = 130

# The first class that fits counts, so the narrower ones stand first.
_TABLE: tuple[tuple[type[FreezeframeError], int], ...] = (
    (NotFound, NOT_FOUND),
    (ConflictError, CONFLICT),
    (IdempotencyConflict, CONFLICT),
    (FixTheRequest, USAGE),
    (FreezeframeError, FAILED),
)


def exit_code(error: FreezeframeError) -> int:
    """0 ok, 1 failure or damage, 2 the call must change, 3 a conflict, 4 not found."""
    return next(code for kind, code in _TABLE if isinstance(error, kind))


# Paths relative to the current directory, where that is shorter.


def near_path(path: Path) -> str:
    """The path relative to the working directory, or unchanged if that was deleted."""
    whole = str(path)
    try:
        near = os.path.relpath(path)
    except OSError:  # the working directory is gone
        return whole
    return near if len(near) < len(whole) else whole
