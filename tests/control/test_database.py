"""The control database: it makes itself, upgrades itself, and says in our words what is wrong with it."""

import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from freezeframe.control.database import (
    ControlDatabase,
    _run_when_unlocked,
    database_url,
    insert_if_absent,
)
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.control.tables import lanes, metadata
from freezeframe.control.upgrade import VERSION_TABLE, known_versions
from freezeframe.errors import FormatTooNew, InvalidOption, ReportDamage, SetupError, TryAgain
from freezeframe.settings import Settings

# Forked at once, so that the libraries are loaded once.
OPEN = """
import os, sys
from freezeframe.control.database import ControlDatabase, database_url
children = []
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        ControlDatabase.open(sys.argv[1])
        os._exit(0)
    children.append(child)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def test_migrations_make_what_the_tables_say(database):
    """After all steps the database has exactly the tables, columns and indexes of the schema."""
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})

        assert compare_metadata(context, metadata) == []


def test_a_database_of_before_gets_what_is_new(database, database_url):
    """One whose jobs have no group is upgraded when it is opened; its jobs stay, and have none."""
    JobQueue(database).submit(Submission('{"a": 1}', "dev", "acme", "j"))
    with database.begin() as connection:
        connection.execute(sqlalchemy.text(f"UPDATE {VERSION_TABLE} SET version_num = '0010'"))
        connection.execute(sqlalchemy.text("DROP INDEX ix_jobs_of_group"))
        connection.execute(sqlalchemy.text('ALTER TABLE jobs DROP COLUMN "group"'))

    with closing(ControlDatabase.open(database_url)) as opened, opened.read() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
        found = JobQueue(opened).get("dev", "acme", "j")
        assert (found.job_id, found.group) == ("j", "")


@pytest.mark.long
def test_several_processes_make_it_at_once(database_url, run_python):
    """All of them find it ready."""
    process = run_python(OPEN, database_url, 4)

    assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)
    with closing(ControlDatabase.open(database_url)) as database:
        assert set(JobQueue(database).counts().values()) == {0}


@pytest.mark.parametrize("version", ["9999", "0009"])
def test_a_database_of_an_unknown_version_is_refused(database, database_url, version):
    """A newer one, and one from before the first release: which it is and what to install is said."""
    with database.begin() as connection:
        connection.execute(sqlalchemy.text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))

    with pytest.raises(FormatTooNew, match=f"{version}; this freezeframe knows {known_versions()[-1]}"):
        ControlDatabase.open(database_url)
    with database.read() as connection:
        found = connection.execute(sqlalchemy.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one()
    assert found == version


def test_a_failed_transaction_changes_nothing(database):
    """An exception inside rolls back, and leaves as it is."""
    made = []

    def write_and_fail():
        with database.begin() as connection:
            for running in (0, 9):
                values = {"name": "a", "running": running, "running_max": 1}
                made.append(insert_if_absent(connection, lanes, values))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()

    assert made == [True, False]
    with database.read() as connection:
        assert connection.execute(sqlalchemy.select(lanes)).all() == []


def test_a_constraint_is_not_taken_for_trouble_with_the_connection(database):
    """A mistake of ours is not called busy."""
    with pytest.raises(sqlalchemy.exc.IntegrityError), database.begin() as connection:
        connection.execute(lanes.insert().values(name="a", running=-1, running_max=1))


def test_sqlite_is_durable_and_its_owners_alone(tmp_path):
    """Write-ahead log, full synchronisation, foreign keys; mode 0600 in folders that are made."""
    file = tmp_path / "a" / "b" / "control.db"

    with closing(ControlDatabase.open(f"sqlite:///{file}")) as database, database.read() as connection:
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    assert found == ["wal", 2, 1, 30000]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_each_thread_of_a_worker_finds_a_connection(tmp_path):
    """Forty that hold one, as those do that wait for a writer, and one more that only reads."""
    with (
        closing(ControlDatabase.open(f"sqlite:///{tmp_path / 'control.db'}")) as database,
        ExitStack() as held,
    ):
        for _ in range(40):
            held.enter_context(database.read())
        with database.read() as connection:
            assert connection.execute(sqlalchemy.select(lanes)).all() == []


def test_a_reader_does_not_wait_for_a_writer(database):
    """What is being written is not seen, and holds nobody up who only reads."""
    with database.begin() as writing:
        insert_if_absent(writing, lanes, {"name": "a", "running": 0, "running_max": 1})
        with database.read() as connection:
            assert connection.execute(sqlalchemy.select(lanes)).all() == []


@pytest.mark.parametrize("url", ["", "mysql://u:secret@h/d", "sqlite://", "sqlite:///:memory:", "no url"])
def test_what_is_no_database_is_refused(url):
    """The error names no password."""
    with pytest.raises(InvalidOption) as refused:
        ControlDatabase.open(url)

    assert "secret" not in str(refused.value)


def test_trouble_becomes_typed_errors(tmp_path):
    """Unreachable: try again. Refused: fix the setting. Damaged: say so. No password is told."""
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"no database at all" * 100)
    folder = tmp_path / "folder"
    folder.mkdir()

    with pytest.raises(TryAgain) as unreachable:
        ControlDatabase.open("postgresql://u:secret@127.0.0.1:1/d")
    with pytest.raises(ReportDamage, match="damaged"):
        ControlDatabase.open(f"sqlite:///{damaged}")
    for place in (folder, damaged / "control.db"):
        with pytest.raises(SetupError):
            ControlDatabase.open(f"sqlite:///{place}")
    assert "secret" not in str(unreachable.value)


def test_a_database_or_user_that_is_not_there_is_a_mistake_of_setting(postgresql_server):
    """Trying again would not help."""
    url = sqlalchemy.make_url(postgresql_server)
    for wrong in (url.set(database="nope"), url.set(username="nobody_at_all")):
        with pytest.raises(SetupError, match="cannot be used"):
            ControlDatabase.open(wrong.render_as_string(hide_password=False))


def test_many_writers_wait_for_each_other_and_none_for_long(tmp_path):
    """Threads that write all the time to one file: each has its turns, and every row is there."""
    writers, rows = 4, 25
    url = f"sqlite:///{tmp_path / 'control.db'}"

    def write(number):
        with closing(ControlDatabase.open(url)) as database:
            for row in range(rows):
                with database.begin() as connection:
                    name = f"{number}-{row}"
                    insert_if_absent(connection, lanes, {"name": name, "running": 0, "running_max": 1})

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    with closing(ControlDatabase.open(url)) as database, database.read() as connection:
        assert writers * rows == len(connection.execute(sqlalchemy.select(lanes.c.name)).all())


def test_a_writer_who_never_comes_first_is_told_so(tmp_path, monkeypatch):
    """Another one does not end its transaction: the error says to try again, and the connection holds."""
    url = f"sqlite:///{tmp_path / 'control.db'}"
    with closing(ControlDatabase.open(url)) as busy, closing(ControlDatabase.open(url)) as waiting:
        monkeypatch.setattr("freezeframe.control.database.BUSY_SECONDS", 0.05)
        with busy.begin(), pytest.raises(TryAgain), waiting.begin():
            pass
        with waiting.begin() as connection:
            assert insert_if_absent(connection, lanes, {"name": "a", "running": 0, "running_max": 1})


def test_a_file_that_is_being_recovered_is_waited_for():
    """Who comes while another process mends what a killed one left is told so by a code of its own."""
    tried = []

    def act():
        tried.append(len(tried))
        if len(tried) < 3:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
            raise error

    _run_when_unlocked(act)
    assert tried == [0, 1, 2]


def test_it_is_in_the_store_unless_the_settings_say_otherwise(tmp_path):
    """A file in the root's own folder, whatever the root is called."""
    root = tmp_path / "a ?b%20#c"
    ControlDatabase.open(database_url(Settings(), str(root))).close()

    assert (root / "_freezeframe" / "control.db").exists()
    assert database_url(Settings(database_url="postgresql://h/d"), "s3://bucket") == "postgresql://h/d"


def test_a_bucket_holds_no_database():
    """Without the setting it is refused, with what to set."""
    with pytest.raises(InvalidOption, match="database_url"):
        database_url(Settings(), "s3://bucket/prefix")
