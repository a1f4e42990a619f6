"""Changing one setting in a file, with everything else in it, comments included, left as it is."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from contextlib import suppress
from pathlib import Path

from freezeframe.configuration.files import assignment, first_table, read_settings_file
from freezeframe.errors import InvalidOption, SetupError

Scalar = str | int | float | bool


def write_setting(path: Path, name: str, value: Scalar) -> None:
    """Set a name in a settings file, which need not be there; the file is changed whole or not at all.

    Raises:
        SetupError: the file cannot be read or written, or is not to be trusted.
        InvalidOption: it is not TOML, or writes the setting in a way that only its author can change.
    """
    text = read_settings_file(path).text if path.exists() else ""
    changed = with_setting(text, name, value)
    if changed is None:
        raise InvalidOption(
            f"{path} writes the setting {name!r} in a way that cannot be changed here.",
            remedy=f"Change it there: {name} = {_toml(value)}",
            path=str(path),
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, changed)
    except OSError as error:
        raise SetupError(
            f"The settings file {path} cannot be written.",
            cause=str(error),
            remedy="Make it writable, or name another one.",
            path=str(path),
        ) from error


def with_setting(text: str, name: str, value: Scalar) -> str | None:
    """The TOML text with one top-level name set; None where that cannot be done line by line."""
    line = f"{name} = {_toml(value)}"
    end = first_table(text)
    found = assignment(name).search(text, 0, end)
    if found is None:
        head = text[:end].rstrip("\n")
        tables = f"\n{text[end:].lstrip(chr(10))}" if end < len(text) else ""
        changed = f"{head}\n{line}\n{tables}" if head else f"{line}\n{tables}"
    else:
        stop = text.find("\n", found.start())
        stop = len(text) if stop < 0 else stop
        changed = text[: found.start()] + line + _comment(text[found.end() : stop]) + text[stop:]
    return changed if _means(changed, {**tomllib.loads(text), name: value}) else None


def _comment(rest: str) -> str:
    """The comment after a value on its line; nothing else is accepted there."""
    for place, letter in enumerate(rest):
        if letter == "#" and _is_value(rest[:place]):
            return "  " + rest[place:]
    return ""


def _is_value(text: str) -> bool:
    try:
        tomllib.loads(f"value = {text.strip()}")
    except tomllib.TOMLDecodeError:
        return False
    return True


def _means(text: str, wanted: dict[str, object]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _toml(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's text is TOML's, but for the one letter that only TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _replace(path: Path, text: str) -> None:
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
