"""Typed errors for failures of the control database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection

from freezeframe.errors import FreezeframeError, ReportDamage, SetupError, StorageFull, TryAgain

# Drivers' messages where a retry does not help; not all of these have an error code.
_SETUP = (
    "unable to open database file",
    "readonly database",
    "read-only database",
    "password authentication failed",
    "no pg_hba.conf entry",
    "permission denied",
    "no password supplied",
    "could not translate host name",
    "failed to resolve host",
)
_DAMAGE = ("file is not a database", "malformed")
_FULL = ("disk is full", "no space left", "disk full")
_ABSENT = "does not exist"


@contextmanager
def typed_errors(url: URL) -> Iterator[None]:
    """Whatever the database or its driver says about the connection leaves as one of our errors.

    A violated constraint or a wrong statement is not translated: that is a mistake of ours.

    Raises:
        TryAgain: it cannot be reached or is busy; nothing of the transaction happened, unless the answer
            to its commit was lost.
        StorageFull: no space is left where it is.
        SetupError: it refuses us, is not there, or its driver is not installed.
        ReportDamage: its file is damaged.
    """
    try:
        yield
    except (OperationalError, InterfaceError, NoFreeConnection) as error:
        raise _to_typed_error(url, _driver_message(error)) from error
    except DBAPIError as error:
        said = _driver_message(error)
        if error.connection_invalidated or any(words in said for words in _DAMAGE):
            raise _to_typed_error(url, said) from error
        raise
    except ModuleNotFoundError as error:
        raise SetupError(
            "The driver for PostgreSQL is not installed.",
            cause=str(error),
            remedy="Install it: pip install 'freezeframe[postgresql]'.",
        ) from error


def _driver_message(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip()


def _to_typed_error(url: URL, said: str) -> FreezeframeError:
    name = url.render_as_string(hide_password=True)
    folded = said.lower()
    if any(words in folded for words in _DAMAGE):
        return ReportDamage(
            f"The control database {name} is damaged.",
            cause=said,
            remedy="Put back a copy of it; the tenants' own data is not concerned.",
            code="CONTROL_DATABASE_DAMAGED",
        )
    if any(words in folded for words in _FULL):
        return StorageFull(
            f"The control database {name} has no space left.", cause=said, remedy="Make room and try again."
        )
    absent = _ABSENT in folded and ("database" in folded or "role" in folded)
    if absent or any(words in folded for words in _SETUP):
        return SetupError(
            f"The control database {name} cannot be used.",
            cause=said,
            remedy="Check the setting database_url, and who may read and write there.",
        )
    return TryAgain(
        f"The control database {name} cannot be reached, or is busy.",
        cause=said,
        remedy="Try again; if it goes on, look whether the database runs.",
        code="CONTROL_DATABASE_UNAVAILABLE",
    )
