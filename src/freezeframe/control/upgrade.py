"""Migration of a control database to this release's schema, safe beside other processes."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from freezeframe.errors import FormatTooNew

VERSION_TABLE = "control_version"
_MIGRATIONS = Path(__file__).parent / "migrations"
_STEP = re.compile(r"(\d{4})_\w+\.py")
# Any number works, as long as every upgrade uses the same.
_LOCK = 7_346_021_905


def known_versions() -> tuple[str, ...]:
    """Return the versions that this freezeframe can make, oldest first: ``("0001", ...)``."""
    names = sorted(file.name for file in _MIGRATIONS.glob("*.py"))
    return tuple(match[1] for name in names if (match := _STEP.fullmatch(name)))


def is_current(connection: Connection) -> bool:
    """Return whether there is nothing to upgrade; only reads."""
    if not inspect(connection).has_table(VERSION_TABLE):
        found = None
    else:
        # The table's name is a constant of ours.
        found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()  # noqa: S608
    if found is not None and found not in known_versions():
        raise FormatTooNew(
            f"The control database is at version {found}; this freezeframe knows {known_versions()[-1]}.",
            cause="A newer freezeframe upgraded it, or one from before the first release made it.",
            remedy=f"Install a freezeframe newer than {version('freezeframe')} here too.",
            version=found,
        )
    return found == known_versions()[-1]


def upgrade(connection: Connection) -> None:
    """Run the steps that are missing, in the transaction of ``connection``, one process at a time."""
    # SQLite's write transaction is such a lock already.
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    if not is_current(connection):
        # Alembic takes a while to load, and is needed once in the life of most databases.
        from alembic.config import Config  # noqa: PLC0415
        from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
        from alembic.script import ScriptDirectory  # noqa: PLC0415

        steps = ScriptDirectory(str(_MIGRATIONS), version_locations=[str(_MIGRATIONS)])
        context = EnvironmentContext(
            Config(),
            steps,
            fn=lambda revision, _: steps._upgrade_revs("head", revision),  # noqa: SLF001 - as alembic.command.upgrade does
        )
        with context:
            context.configure(connection=connection, version_table=VERSION_TABLE)
            context.run_migrations()
