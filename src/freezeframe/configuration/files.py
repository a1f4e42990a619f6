"""Settings files: where they are, how they are read and edited."""

import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from freezeframe.errors import InputNotFound, InvalidOption, SetupError

# The project's file is the nearest ``freezeframe.toml`` in the working folder or above it, no higher than
# the repository's root (the folder with ``.git``) or the home directory; outside of both it is the working
# folder's own alone. ``FREEZEFRAME_CONFIG`` names another one in its place. The user's file is
# ``freezeframe/freezeframe.toml`` in the user's configuration folder (``XDG_CONFIG_HOME``, or
# ``~/.config``).

FILE_NAME = "freezeframe.toml"
FILE_VARIABLE = "FREEZEFRAME_CONFIG"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One settings file; ``text`` is retained for line numbers and for editing."""

    path: Path
    text: str = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)

    def line_of(self, name: str) -> int | None:
        """Return the line number of a setting, from 1; None where the notation is not plain."""
        key = rf"""^[ \t]*("?{re.escape(name)}"?|'{re.escape(name)}')[ \t]*="""
        found = re.search(key, self.text, re.MULTILINE)
        return None if found is None else self.text.count("\n", 0, found.start(1)) + 1

    def place_of(self, name: str) -> str:
        """``file:line`` of a setting, for messages."""
        line = self.line_of(name)
        return str(self.path) if line is None else f"{self.path}:{line}"


def project_file(start: Path | None = None) -> Path | None:
    """Return the project's file as seen from a folder (default: the working folder); None without any."""
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
    home, folders = Path.home(), [here, *here.parents]
    ends = (count for count, folder in enumerate(folders, 1) if (folder / ".git").exists() or folder == home)
    # Above a folder of no repository and no home lie places where anybody may write, such as /tmp.
    found = (folder / FILE_NAME for folder in folders[: next(ends, 1)])
    return next((file for file in found if file.is_file()), None)


def user_file() -> Path:
    """Return the user's file; it need not be there."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG rules say that a relative path is not an answer.
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
    return base / "freezeframe" / FILE_NAME


def read_settings_file(path: Path) -> SettingsFile:
    """Return what a file says, not yet compared with the settings that there are."""
    try:
        named = os.environ.get(FILE_VARIABLE)
        if not named or path != Path(named).expanduser().resolve():  # not named on purpose
            status = path.stat()
            if status.st_uid not in {os.geteuid(), 0} or status.st_mode & stat.S_IWOTH:
                raise SetupError(
                    f"The settings file {path} is not used.",
                    cause="It belongs to another user, or others can write to it, and settings can name"
                    " commands.",
                    remedy=f"If you trust it, set {FILE_VARIABLE}={path}; or take it over by chown and chmod"
                    " o-w.",
                    path=str(path),
                )
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


# ``plain_value`` is for a process that only has to find the warm runner, as pydantic takes long to load. The
# sources and their order are those of `layers`; the runner's process loads and checks all settings.

_PREFIX = "FREEZEFRAME_"


def plain_value(name: str, default: str | int | Path) -> Any:
    """Return what the environment, the project's file, the user's or the default says a setting is.

    A text where the default is a number is read as one, and as a path where it is a path: in a file one is
    meant from the file's own folder.
    """
    variables = {key.upper(): value for key, value in os.environ.items() if value}
    if (variable := variables.get(f"{_PREFIX}{name.upper()}")) is not None:
        return _convert(variable, default, Path())
    for path in (project_file(), user_file()):
        if path is not None and path.is_file():
            values: Mapping[str, Any] = read_settings_file(path).values
            if name in values:
                return _convert(values[name], default, path.parent)
    return default


def _convert(value: Any, default: str | int | Path, folder: Path) -> str | int | Path:
    if isinstance(default, int):
        return int(value)
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")  # noqa: TRY004 - as int() says it
    if isinstance(default, str):
        return value
    return folder / Path(value).expanduser() if value and folder != Path() else Path(value)


Scalar = str | int | float | bool


def write_setting(path: Path, name: str, value: Scalar) -> None:
    """Set a name in a settings file, which need not be there; the file is changed whole or not at all.

    All else in it stays as it is, comments included.
    """
    import tomlkit  # noqa: PLC0415 - only what writes settings needs it

    document = tomlkit.parse(read_settings_file(path).text if path.exists() else "")
    document[name] = value
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = document.as_string()
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise SetupError(
            f"The settings file {path} cannot be written.",
            cause=str(error),
            remedy="Make it writable, or name another one.",
            path=str(path),
        ) from error
