"""Names that were checked once and are trusted afterwards.

A ``TenantId`` or a ``StreamName`` that exists is valid: the constructor refuses everything
else with ``InvalidName``, before any path is made of it. Names are kept as Unicode NFC, so
that two spellings of the same letters are one name.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from freezeframe.errors import InvalidName

NAME_BYTES_MAX = 200  # leaves room for ".snapshot" and a temporary suffix below the usual 255

# Names that Windows gives to devices; a store may be copied or mounted there one day.
_DEVICE = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$")
_OURS = re.compile(r"(?i)^_freezeframe($|\W)|^_delta_log$")


def _checked(kind: str, text: object) -> str:
    if not isinstance(text, str):
        raise InvalidName(
            f"A {kind} name must be text, not {type(text).__name__}.",
            remedy=f"Pass the {kind} name as a string.",
            name=repr(text),
        )
    name = unicodedata.normalize("NFC", text)
    reason = _reason_against(name)
    if reason:
        raise InvalidName(
            f"{text!r} cannot be a {kind} name.",
            cause=reason,
            remedy="Use letters, digits, spaces and marks such as . _ - @, without slashes.",
            name=text,
        )
    return name


def _reason_against(name: str) -> str:
    if not name.strip():
        return "It is empty."
    if "/" in name or "\\" in name:
        return "It holds a slash, which would lead to another folder."
    if name.startswith("."):
        return "It begins with a dot, which would name a hidden or a parent folder."
    if name != name.strip() or name.endswith("."):
        return "It begins or ends with a space, or ends with a dot, which some file systems drop."
    if any(unicodedata.category(letter) in {"Cc", "Cs", "Co", "Cn"} for letter in name):
        return "It holds a control or unassigned character."
    if any(letter in '<>:"|?*' for letter in name):
        return 'It holds one of < > : " | ? *, which some file systems refuse.'
    if len(name.encode()) > NAME_BYTES_MAX:
        return f"It is longer than {NAME_BYTES_MAX} bytes in UTF-8."
    if _DEVICE.match(name) or _OURS.match(name):
        return "It is reserved."
    return ""


@dataclass(frozen=True, slots=True)
class TenantId:
    """A customer's own id, as the customer writes it; never used as a folder's name."""

    value: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _checked("tenant", self.value))

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class StreamName:
    """The name of a stream, ``Account`` or, scoped to a flow, ``Account@qbo``."""

    value: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _checked("stream", self.value))

    def __str__(self) -> str:
        return self.value
