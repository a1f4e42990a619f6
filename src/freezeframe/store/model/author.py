"""The author of a change and the message for the history."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Author:
    """Author and message of a change; without ``who`` the operating system's user is meant."""

    who: str = ""
    message: str = ""

    def for_action(self, what: str) -> Author:
        """The author of a change that the history names ``what``, with the message behind it."""
        return Author(self.who, f"{what}: {self.message}" if self.message else what)


SYSTEM = Author()
