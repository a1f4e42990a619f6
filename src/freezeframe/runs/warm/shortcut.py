"""Connects to a running warm runner before heavy imports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from freezeframe.configuration.files import plain_value
from freezeframe.errors import FreezeframeError
from freezeframe.runs.warm.forwarding import forward, is_loaded
from freezeframe.runs.warm.place import SOCKET_NAME, is_supported, runner_folder
from freezeframe.runs.warm.spawning import start_runner


@dataclass(frozen=True, slots=True)
class PlainSettings:
    """By what a runner is found, as far as that can be read without checking it."""

    state_dir: Path
    runner_idle_seconds: int
    script_variables: str


def plain_settings() -> PlainSettings | None:
    """The three settings of a runner; None where they are not written in the plain way."""
    try:
        return PlainSettings(
            state_dir=plain_value("state_dir", Path.home() / ".cache" / "freezeframe"),
            runner_idle_seconds=plain_value("runner_idle_seconds", 1800),
            script_variables=plain_value("script_variables", ""),
        )
    except (ValueError, TypeError, RuntimeError, OSError, FreezeframeError):
        return None  # errors are reported where all settings are loaded


def forwarded_at_once(module: str, arguments: Sequence[str]) -> int | None:
    """What `forward` gives, if a runner of this user is there; None, and nothing done, if none is.

    Only time rests on the settings being read right: the runner's process reads them again, and checks them.
    """
    if is_loaded():
        return None
    settings = plain_settings()
    if settings is None or not settings.runner_idle_seconds or not is_supported():
        return None
    try:
        Path.cwd()
        is_there = (
            settings.state_dir.is_dir() and (runner_folder(settings, os.environ) / SOCKET_NAME).exists()
        )
    except (OSError, FreezeframeError):
        return None
    return forward(module, arguments, settings) if is_there else None


def start_for_later() -> None:
    """Start a runner for the commands to come, where there can be one; no harm is done where that fails."""
    settings = plain_settings()
    if settings is not None:
        with suppress(FreezeframeError, OSError):
            start_runner(settings)
