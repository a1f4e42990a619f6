"""Who changes a tenant."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from functools import cache

# The author of a change and the message for the history.


@dataclass(frozen=True, slots=True)
class Author:
    """Author and message of a change; without ``who`` the operating system's user is meant."""

    who: str = ""
    message: str = ""

    def for_action(self, what: str) -> Author:
        """The author of a change that the history names ``what``, with the message behind it."""
        return Author(self.who, f"{what}: {self.message}" if self.message else what)


SYSTEM = Author()


# Request context: the service request that caused a change.


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The service request that causes a change.

    ``request_id`` goes into the entries of the log, where whoever has another trace of the request can find
    them by it. With ``job_id`` a change that names no job of its own is that job: made once, however often
    the request comes (see ``Tenant.job``).
    """

    request_id: str = ""
    job_id: str | None = None


NO_REQUEST = RequestContext()


# The operating system's user, the default author of changes.


@cache
def system_user() -> str:
    """The name of the process's user, or its number where the system knows no name."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container's user that is in no list
        return f"uid {number}"
