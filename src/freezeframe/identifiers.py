"""Validated names: environments, tenants, streams, paths.

A ``TenantId``, a ``StreamName`` or a ``FilePath`` that exists is valid: the constructor refuses everything
else with ``InvalidName``, before any path is made of it. Names are kept as Unicode NFC, so
that two spellings of the same letters are one name. Each is a text of its own type: a function that
takes a ``TenantId`` cannot be given a text that was not checked (mypy holds it).
"""

import re
import unicodedata
from typing import Self

from freezeframe.errors import InvalidName

NAME_BYTES_MAX = 200  # leaves room for ".snapshot" and a temporary suffix below the usual 255
FILE_PATH_BYTES_MAX = 800  # an object's key has at most 1,024 bytes, and the store's own folders come first

# Names that Windows gives to devices; a store may be copied or mounted there one day.
_DEVICE = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$")
_OURS = re.compile(r"(?i)^_freezeframe($|\W)|^_delta_log$")
_REFUSED_CATEGORIES = frozenset({"Cc", "Cs", "Co", "Cn", "Zl", "Zp"})
# They turn or hide what is beside them: a name would look like another one.
_HIDING = frozenset(
    "\u061c\u200b\u200e\u200f\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_REFUSED_MARKS = frozenset('<>:"|?*')
_TABLE = re.compile(r"(?i)\.snapshot$")


def _check(kind: str, text: object) -> str:
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
        return "It contains a slash, which would lead to another folder."
    if name.startswith("."):
        return "It begins with a dot, which would name a hidden or a parent folder."
    if name != name.strip() or name.endswith("."):
        return "It begins or ends with a space, or ends with a dot, which some file systems drop."
    # Nearly all names are plain, and every request checks several.
    is_plain = name.isascii() and name.isprintable()
    if not is_plain and any(unicodedata.category(letter) in _REFUSED_CATEGORIES for letter in name):
        return "It holds a control, line-ending or unassigned character."
    if not is_plain and not _HIDING.isdisjoint(name):
        return "It holds a character that turns or hides letters, so that it looks like another name."
    if not _REFUSED_MARKS.isdisjoint(name):
        return 'It holds one of < > : " | ? *, which some file systems refuse.'
    if len(name.encode()) > NAME_BYTES_MAX:
        return f"It is longer than {NAME_BYTES_MAX} bytes in UTF-8."
    if _DEVICE.match(name) or _OURS.match(name):
        return "It is reserved."
    return ""


class TenantId(str):
    """A customer's own id, as the customer writes it; never used as a folder's name."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        """Return the checked name; a name that was checked before is returned unchanged."""
        return value if type(value) is cls else super().__new__(cls, _check("tenant", value))


class EnvironmentName(str):
    """Where tenants live beside others of the same ids: ``production``, ``staging``."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        """Return the checked name; a name that was checked before is returned unchanged."""
        return value if type(value) is cls else super().__new__(cls, _check("environment", value))


class StreamName(str):
    """The name of a stream, ``Account`` or, scoped to a flow, ``Account@qbo``."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        """Return the checked name; a name that was checked before is returned unchanged."""
        return value if type(value) is cls else super().__new__(cls, _check("stream", value))


class FilePath(str):
    """The name of a tenant's file: ``tenant-config.json`` or, in a folder, ``mappings/a.csv``.

    Relative, with ``/`` between folders, each part a name as streams have them; it never leads
    into a stream's table or into what freezeframe keeps for itself.
    """

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        """Return the checked path; a name that was checked before is returned unchanged."""
        return value if type(value) is cls else super().__new__(cls, _check_path(value))

    @property
    def case_folded(self) -> str:
        """The path without the differences that some file systems do not see: case, above all."""
        return fold_path(self)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that the file is in, outermost first: ``("a", "a/b")`` for ``a/b/c``."""
        return folders_of(self)


def fold_path(path: str) -> str:
    """Return a known path without the differences that some file systems do not see."""
    return unicodedata.normalize("NFC", path.casefold())


def folders_of(path: str) -> tuple[str, ...]:
    """Return the folders that a known path is in, outermost first."""
    parts = path.split("/")
    return tuple("/".join(parts[:count]) for count in range(1, len(parts)))


def _check_path(text: object) -> str:
    if not isinstance(text, str):
        return _check("file", text)
    path = unicodedata.normalize("NFC", text)
    parts = path.split("/")
    reason = next((reason for part in parts if (reason := _reason_against(part))), "")
    if _TABLE.search(parts[0]):
        reason = "A name that ends with .snapshot is a stream's table."
    if len(path.encode(errors="replace")) > FILE_PATH_BYTES_MAX:
        reason = f"It is longer than {FILE_PATH_BYTES_MAX} bytes in UTF-8."
    if reason:
        raise InvalidName(
            f"{text!r} cannot be a file's path.",
            cause=reason,
            remedy="Use a relative path such as mappings/a.csv, of letters, digits and . _ - @.",
            name=text,
        )
    return path
