"""The PostgreSQL role of workers: it does a worker's work, and makes nobody an administrator."""

import re
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy
from tests.control.conftest import made_database, postgresql_server  # noqa: F401 - a fixture

from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import ScheduleRequest, Schedules, Timing
from freezeframe.control.submission import Submission
from freezeframe.errors import SetupError
from freezeframe.service.access.keys import Keys
from freezeframe.service.access.sessions import Person, Sessions

SQL = (Path(__file__).parents[2] / "deploy" / "worker-role.sql").read_text()


@pytest.fixture
def worker_url(postgresql_server):  # noqa: F811 - the fixture
    """The database of a service that was started once, as the workers' role sees it."""
    with made_database(postgresql_server) as url:
        ControlDatabase.open(url).close()
        admin = sqlalchemy.make_url(url)
        engine = sqlalchemy.create_engine(admin.set(drivername="postgresql+psycopg"))
        role, _, grants = re.sub(r"^--.*$", "", SQL, flags=re.MULTILINE).partition("\\gexec")
        grants = re.sub(r"^\\.*$", "", grants, flags=re.MULTILINE).replace(":'password'", "'secret'")
        with engine.begin() as connection:
            made = connection.exec_driver_sql(role.replace("%", "%%")).scalar_one()
            for statement in filter(str.strip, (made, *grants.split(";"))):
                connection.exec_driver_sql(statement)
        yield admin.set(username="freezeframe_worker", password="secret").render_as_string(
            hide_password=False
        )
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP OWNED BY freezeframe_worker")
            connection.exec_driver_sql("DROP ROLE freezeframe_worker")
        engine.dispose()


@pytest.mark.long
def test_a_worker_does_its_work(worker_url):
    """Jobs are handed in, taken and ended; schedules are looked at."""
    with closing(ControlDatabase.open(worker_url)) as database:
        queue, schedules = JobQueue(database), Schedules(database)
        queue.submit(Submission("{}", environment="dev", tenant="acme", job_id="j"))
        schedules.create(ScheduleRequest("nightly", "dev", "acme", Timing("@daily"), "{}"))
        claimed = queue.claim("worker")
        ended = queue.finish(claimed, "succeeded", "{}")

        assert ended.status == "succeeded"
        assert [item.definition.name for item in schedules.list()] == ["nightly"]


@pytest.mark.parametrize("what", ["key", "session", "audit", "revocation"])
def test_a_worker_makes_nobody_an_administrator(worker_url, what):
    """Neither a key nor a session, and no line of the audit."""
    with closing(ControlDatabase.open(worker_url)) as database:
        keys = Keys(database)
        attempts = {
            "key": lambda: keys.create("mine", scopes=["admin"]),
            "session": lambda: Sessions(database, keys, 1).begin(Person("me", "me", "admin")),
            "audit": lambda: _delete(database, "audit"),
            "revocation": lambda: _delete(database, "keys"),
        }
        with pytest.raises(SetupError, match="cannot be used") as caught:
            attempts[what]()

        assert "permission denied for table" in caught.value.cause
        assert (what == "audit") == ("GRANT SELECT, INSERT ON audit TO" in caught.value.remedy)


def _delete(database, table):
    with database.begin() as connection:
        connection.execute(sqlalchemy.text(f"DELETE FROM {table}"))
