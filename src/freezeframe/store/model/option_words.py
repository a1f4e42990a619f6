"""Errors about options in the words of the door at which they appear.

Messages name an option as Python does: ``on_drift='string'``, ``override=True``, ``order_by``. The command
line and the service say the same in theirs: ``--on-drift string``, ``on_drift=string``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from freezeframe.errors import FreezeframeError
from freezeframe.store.model.update_options import UpdateOptions

_NAMES = ("key", "schema_from", "types", "parse_dates", "escape", *UpdateOptions.__annotations__)
_VALUE = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|True|False|\d+(?:\.\d+)?"""
# A name in quotes is a column's; a single word without a value may be plain English.
_OPTION = re.compile(
    rf"(?<![\w'\"])(?:(?P<given>{'|'.join(_NAMES)})=(?P<value>{_VALUE})?"
    rf"|(?P<bare>{'|'.join(name for name in _NAMES if '_' in name)}))(?![\w'\"])"
)

_TYPES = re.compile(r"""types=\{['"]?(.+?)['"]?: ['"](\w+)['"]\}""")

Say = Callable[[str, str], str]
"""The words for an option and a value of it as Python writes it, "" for none."""


def as_flag(name: str, value: str) -> str:
    """An option on the command line."""
    flag = f"--{name.replace('_', '-')}"
    if value in ("", "True"):
        return flag
    return f"--no-{flag[2:]}" if value == "False" else f"{flag} {_plain(value)}"


def as_parameter(name: str, value: str) -> str:
    """An option in a request."""
    return f"{name}={_plain(value)}" if value else name


def say_types(text: str) -> str:
    """A sentence whose ``types={"Phone": "string"}`` is said as a flag."""
    return _TYPES.sub(r"--types \1=\2", text)


def say_options(error: FreezeframeError, say: Say) -> FreezeframeError:
    """The same error, whose sentences name options by ``say``."""
    for part in ("problem", "cause", "remedy"):
        text = _TYPES.sub(lambda found: say("types", f"{found[1]}={found[2]}"), getattr(error, part))
        text = _OPTION.sub(lambda found: say(found["given"] or found["bare"], found["value"] or ""), text)
        setattr(error, part, text)
    return error


def _plain(value: str) -> str:
    """A value without the quotes and brackets that a shell or an address does not need."""
    inner = value.strip("[]'\"")
    if value in ("True", "False"):
        return value.lower()
    return inner if re.fullmatch(r"[\w.…-]+", inner) else value
