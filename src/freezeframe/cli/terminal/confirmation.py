"""Confirmation prompts before changes that are large or cannot be undone."""

from __future__ import annotations

import sys

import typer

from freezeframe.errors import InvalidOption


def require_yes(question: str) -> None:
    """Return only if the question is answered with yes on a terminal; ``--yes`` skips it."""
    if not sys.stdin.isatty():
        raise InvalidOption(
            f"Confirmation required: {question}",
            cause="There is no terminal to ask on.",
            remedy="Add --yes; where the command has --dry-run, that shows the effect first.",
        )
    # Prompts go to standard error: standard output holds only the result.
    typer.confirm(question, abort=True, err=True)
