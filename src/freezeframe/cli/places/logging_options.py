"""Logging options of the long-running commands."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer


class LogFormatName(StrEnum):
    """Format of log lines."""

    TEXT = "text"
    JSON = "json"


class LogLevelName(StrEnum):
    """Lowest level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogFormatOption = Annotated[
    LogFormatName | None, typer.Option("--log-format", help="text or json (default: from the settings).")
]
LogLevelOption = Annotated[
    LogLevelName | None,
    typer.Option("--log-level", help="info has a line for each request and job (default: warning)."),
]


def begin_logging(kind: LogFormatName | None, level: LogLevelName | None, root: str) -> None:
    """Write this process's log, and those of the processes that it starts, as the options or settings say."""
    from freezeframe.observation import configure_logging
    from freezeframe.settings import load_settings

    for name, value in (("FORMAT", kind), ("LEVEL", level)):
        if value is not None:
            os.environ[f"FREEZEFRAME_LOG_{name}"] = value.value
    settings = load_settings(root=root)
    configure_logging(settings.log_format, settings.log_level)
