"""The URL of the control database: from the settings, else a file in the store's root."""

from __future__ import annotations

from sqlalchemy import URL

from freezeframe.control.database.control_file import control_file
from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings


def database_url(settings: Settings, root: str) -> str:
    """The URL of the control database of the store at ``root``.

    Raises:
        InvalidOption: the root is not a directory, and no ``database_url`` is set.
    """
    if settings.database_url:
        return settings.database_url
    if "://" in root:
        raise InvalidOption(
            f"A store at {root} needs a control database of its own place.",
            cause="An object store cannot hold a database.",
            remedy="Set database_url (FREEZEFRAME_DATABASE_URL) to sqlite:///path or postgresql://….",
        )
    return URL.create("sqlite", database=str(control_file(root))).render_as_string()
