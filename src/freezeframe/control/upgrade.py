"""Migration of a control database to this release's schema, safe beside other processes.

Versions before ``0010`` were never released. ``replace`` keeps their jobs and schedules; keys and the audit
are made anew.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import Connection, MetaData, inspect, text

from freezeframe.control.tables import jobs, lanes, schedules
from freezeframe.errors import FormatTooNew, SetupError

VERSION_TABLE = "control_version"
_MIGRATIONS = Path(__file__).parent / "migrations"
_STEP = re.compile(r"(\d{4})_\w+\.py")
# Any number works, as long as every upgrade uses the same.
_LOCK = 7_346_021_905
_UNRELEASED = frozenset(f"000{number}" for number in range(1, 10))
# Versions whose jobs and schedules have the columns of today.
_KEPT_FROM = "0005"


def known_versions() -> tuple[str, ...]:
    """Return the versions that this freezeframe can make, oldest first: ``("0001", ...)``."""
    names = sorted(file.name for file in _MIGRATIONS.glob("*.py"))
    return tuple(match[1] for name in names if (match := _STEP.fullmatch(name)))


def is_current(connection: Connection) -> bool:
    """Return whether there is nothing to upgrade; only reads."""
    found = _version(connection)
    if found in _UNRELEASED:
        raise SetupError(
            f"The control database is at version {found}, which was never released.",
            cause=f"This freezeframe knows {known_versions()[0]} and later ones.",
            remedy="Stop the service and its workers, then run freezeframe upgrade: jobs and schedules stay, "
            "keys are made anew (freezeframe key create), the audit begins anew.",
            code="CONTROL_DATABASE_OLD",
            version=found,
        )
    if found is not None and found not in known_versions():
        raise FormatTooNew(
            f"The control database is at version {found}; this freezeframe knows {known_versions()[-1]}.",
            cause="A newer freezeframe upgraded it.",
            remedy=f"Install a freezeframe newer than {version('freezeframe')} here too.",
            version=found,
        )
    return found == known_versions()[-1]


def upgrade(connection: Connection) -> None:
    """Run the steps that are missing, in the transaction of ``connection``, one process at a time."""
    _lock(connection)
    if not is_current(connection):
        _run_steps(connection)


def replace(connection: Connection) -> str | None:
    """Migrate a database of an unreleased version to this one, and return its old version.

    A database of a released version, or a new one, is not changed, and None is returned.
    """
    _lock(connection)
    found = _version(connection)
    if found not in _UNRELEASED:
        return None
    kept = {item.name for item in (jobs, lanes, schedules)} if found >= _KEPT_FROM else set()
    dropped = MetaData()
    dropped.reflect(connection, resolve_fks=False)
    dropped.drop_all(connection, [table for table in dropped.sorted_tables if table.name not in kept])
    _run_steps(connection)
    return found


def _lock(connection: Connection) -> None:
    # SQLite's write transaction is such a lock already.
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    # The table's name is a constant of ours.
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()  # noqa: S608


def _run_steps(connection: Connection) -> None:
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
