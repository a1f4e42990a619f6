"""The files that settings are written in: which ones count, and what they say.

The project's file is the nearest ``freezeframe.toml`` in the working folder or above it, no higher than the
repository's root (the folder with ``.git``) or the home directory; outside of both it is the working folder's
own alone. ``FREEZEFRAME_CONFIG`` names another one in its place. The user's file is
``freezeframe/freezeframe.toml`` in the user's configuration folder (``XDG_CONFIG_HOME``, or ``~/.config``).
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from freezeframe.errors import InputNotFound, InvalidOption, SetupError

FILE_NAME = "freezeframe.toml"
FILE_VARIABLE = "FREEZEFRAME_CONFIG"
_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One settings file; ``text`` is retained for line numbers and for editing."""

    path: Path
    text: str = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)

    def line_of(self, name: str) -> int | None:
        """The line number of a setting, from 1; None where the notation is not plain."""
        found = assignment(name).search(self.text)
        return None if found is None else self.text.count("\n", 0, found.start(1)) + 1

    def place_of(self, name: str) -> str:
        """``file:line`` of a setting, for messages."""
        line = self.line_of(name)
        return str(self.path) if line is None else f"{self.path}:{line}"


def assignment(name: str) -> re.Pattern[str]:
    """What finds the line that sets a name: the first group is its key."""
    return re.compile(rf"""^[ \t]*("?{re.escape(name)}"?|'{re.escape(name)}')[ \t]*=""", re.MULTILINE)


def first_table(text: str) -> int:
    """Where the first table of a TOML text begins: settings stand before it."""
    found = _HEADER.search(text)
    return len(text) if found is None else found.start()


def project_file(start: Path | None = None) -> Path | None:
    """The project's file as the module says, seen from a folder (the working one); None without any.

    Raises:
        InputNotFound: the variable names a file that is not there.
    """
    named = os.environ.get(FILE_VARIABLE)
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise InputNotFound(
                f"There is no settings file {path}.",
                cause=f"{FILE_VARIABLE} names it.",
                remedy=f"Correct {FILE_VARIABLE}, or unset it.",
                path=str(path),
            )
        return path.resolve()
    here = Path.cwd() if start is None else start.resolve()
    return next((folder / FILE_NAME for folder in _search_path(here) if (folder / FILE_NAME).is_file()), None)


def user_file() -> Path:
    """The user's file; it need not be there."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG rules say that a relative path is not an answer.
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
    return base / "freezeframe" / FILE_NAME


def read_settings_file(path: Path) -> SettingsFile:
    """What a file says, not yet compared with the settings that there are.

    Raises:
        SetupError: it cannot be read, or somebody else could have written it.
        InvalidOption: it is not TOML.
    """
    try:
        _require_ours(path)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(
            f"The settings file {path} cannot be read.",
            cause=str(error),
            remedy="Make it readable (UTF-8), or remove it.",
            path=str(path),
        ) from error
    try:
        return SettingsFile(path, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidOption(
            f"The settings file {path} is not TOML.",
            cause=str(error),
            remedy='Write each setting as NAME = VALUE with text in quotes: spark = "auto".',
            path=str(path),
        ) from error


def _search_path(here: Path) -> list[Path]:
    """The folders to look in, the nearest first."""
    home = Path.home()
    folders = [here, *here.parents]
    for count, folder in enumerate(folders, start=1):
        if (folder / ".git").exists() or folder == home:
            return folders[:count]
    # Above a folder of no repository and no home lie places where anybody may write, such as /tmp.
    return [here]


def _require_ours(path: Path) -> None:
    """Settings name commands that are run, so nobody else may have written a file that was merely found."""
    if os.environ.get(FILE_VARIABLE) and path == project_file():
        return  # named on purpose
    status = path.stat()
    if status.st_uid in {os.geteuid(), 0} and not status.st_mode & stat.S_IWOTH:
        return
    raise SetupError(
        f"The settings file {path} is not used.",
        cause="It is another user's, or everybody may write to it, and settings name commands to run.",
        remedy=f"If you trust it, name it: {FILE_VARIABLE}={path}; or take it over by chown and chmod o-w.",
        path=str(path),
    )
