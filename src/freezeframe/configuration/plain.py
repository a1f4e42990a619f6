"""Settings read as they stand, without the library that checks them, which takes long to load.

For a process that only has to find another one. It takes the same sources in the same order as `layers`; who
really works with a setting loads all of them and has them checked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from freezeframe.configuration.files import project_file, read_settings_file, user_file

_PREFIX = "FREEZEFRAME_"


def plain_value(name: str, default: str | int | Path) -> Any:
    """What the environment, the project's file, the user's or the default says a setting is.

    A text where the default is a number is read as one, and as a path where it is a path: in a file one is
    meant from the file's own folder.

    Raises:
        ValueError: it says something of another type.
        FreezeframeError: a file cannot be read, or is not to be trusted.
    """
    variables = {key.upper(): value for key, value in os.environ.items() if value}
    if (told := variables.get(f"{_PREFIX}{name.upper()}")) is not None:
        return _convert(told, default, Path())
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
