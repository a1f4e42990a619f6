"""Jobs as the service tells of them: nothing of the machine, and their log line by line."""

import json
import os

import pytest

from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import Schedules
from freezeframe.errors import InvalidOption, NotFound, UnreadableRequest
from freezeframe.script.tenants import open as open_store
from freezeframe.service.jobs import (
    ImportRequest,
    JobRequest,
    LogCursor,
    TenantJob,
    TenantJobs,
    parse_log_cursor,
)
from freezeframe.service.staged_blobs import StagedBlobs
from freezeframe.settings import Settings
from freezeframe.store.model.directory import job_roots_folder

JOB = TenantJob("dev", "acme", "j1")


@pytest.fixture
def place(tmp_path):
    """The store's root, with a folder of scripts beside it and a secret in neither."""
    (tmp_path / "scripts" / "sub").mkdir(parents=True)
    (tmp_path / "scripts" / "sub" / "etl.py").write_text("")
    (tmp_path / "secret.py").write_text("")
    (tmp_path / "scripts" / "link.py").symlink_to(tmp_path / "secret.py")
    return tmp_path


@pytest.fixture
def queue(place):
    """A queue in SQLite."""
    database = ControlDatabase.open(f"sqlite:///{place}/control.db")
    yield JobQueue(database)
    database.close()


@pytest.fixture
def jobs(place, queue):
    """The jobs of a service on that queue."""
    settings = Settings(service_scripts_dir=place / "scripts", state_dir=place / "state")
    schedules, uploads = Schedules(queue._database), StagedBlobs(place / "uploads", settings)
    return TenantJobs(queue, schedules, settings, str(place / "store"), uploads)


def _ended(queue, outcome):
    claimed = queue.claim("worker")
    return queue.finish(claimed, "failed", json.dumps(outcome))


def _root(place):
    """The root of a job of the tenant, as a run makes it."""
    tenant = open_store(str(place / "store"), "dev").tenant("acme", create=True)
    root = (
        job_roots_folder(tenant.context.storage, Settings(state_dir=place / "state")) / "20261126T000000-j1-0"
    )
    root.mkdir(parents=True)
    return root


@pytest.mark.parametrize("planted", ["link", "folder", "pipe", "row", "climbing row"])
def test_nothing_but_the_jobs_own_log_is_read(place, queue, jobs, planted):
    """A link, a pipe or a row of the queue that names another file shows nothing of it, and blocks nobody."""
    jobs.submit(JOB, JobRequest("sub/etl.py"), "ada")
    root, elsewhere = _root(place), place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "script.log").write_text("the secret\n")
    outcome = {"job_root": str(root), "log": str(root / "script.log"), "notebook": str(root / "etl.ipynb")}
    if planted == "link":
        (root / "script.log").symlink_to(elsewhere / "script.log")
    elif planted == "folder":
        root.rmdir()
        root.symlink_to(elsewhere)
    elif planted == "pipe":
        os.mkfifo(root / "script.log")
    elif planted == "row":
        outcome |= {"job_root": str(elsewhere), "log": str(elsewhere / "script.log")}
    else:
        outcome |= {"job_root": f"{root.parent}/..", "log": str(elsewhere / "script.log")}

    assert jobs.log_lines(_ended(queue, outcome), LogCursor())[0] == []


def test_nothing_of_the_machine_is_told(place, queue, jobs):
    """Paths of the job's folder and of the store are not in what the API says of a job."""
    jobs.submit(JOB, JobRequest("sub/etl.py"), "ada")
    root = str(place / "store" / "job-roots" / "x")
    error = {"code": "X", "problem": f"{root}/etl.py failed, see {place}/store/y", "cause": "", "remedy": ""}
    ended = _ended(queue, {"job_root": root, "log": f"{root}/script.log", "notebook": None, "error": error})
    told = repr(jobs.describe_job(ended))

    assert str(place) not in told
    assert "etl.py failed" in told


def test_as_many_jobs_of_a_tenant_run_at_once_as_the_settings_say(place, queue):
    """A job that comes by the service does not bring the number back to one."""
    settings = Settings(
        service_scripts_dir=place / "scripts", state_dir=place / "state", jobs_per_tenant_max=2
    )
    schedules, uploads = Schedules(queue._database), StagedBlobs(place / "uploads", settings)
    service = TenantJobs(queue, schedules, settings, str(place / "store"), uploads)
    for name in ("j1", "j2", "j3"):
        service.submit(TenantJob("dev", "acme", name), JobRequest("sub/etl.py"), "ada")

    assert [job and job.job_id for job in (queue.claim("worker") for _ in range(3))] == ["j1", "j2", None]


def test_a_log_is_told_line_by_line_and_goes_on(place, queue, jobs):
    """Each line has the place behind it; from there on the next ones are told, and another attempt's anew."""
    jobs.submit(JOB, JobRequest("sub/etl.py"), "ada")
    root = _root(place)
    (root / "script.log").write_bytes(b"one\ntwo \xff\nlast")
    ended = _ended(queue, {"job_root": str(root)})
    lines, behind = jobs.log_lines(ended, LogCursor())
    rest, _ = jobs.log_lines(ended, lines[0][1])

    assert [text for text, _ in lines] == ["one", "two \ufffd", "last"]
    assert [text for text, _ in rest] == ["two \ufffd", "last"]
    assert ([], behind) == jobs.log_lines(ended, behind)
    assert lines == jobs.log_lines(ended, LogCursor(7, 5))[0]
    assert behind == parse_log_cursor(str(behind))


@pytest.mark.parametrize("text", ["", "1", "1-", "-1-2", "1-2-3", "a-b", "1-99999999999999999"])
def test_a_place_that_cannot_be_one(text):
    """What is not an event's id is refused."""
    with pytest.raises(UnreadableRequest):
        parse_log_cursor(text)


@pytest.mark.parametrize("name", ["none.py", "link.py", "sub"])
def test_a_script_that_is_not_in_the_folder(jobs, name):
    """What is not a file in the folder, or a link out of it, is not there."""
    with pytest.raises(NotFound):
        jobs.submit(JOB, JobRequest(name), "ada")


@pytest.mark.parametrize("name", ["../secret.py", "/etc/passwd", "sub/../../secret.py", "sub\\etl.py", ""])
def test_a_script_by_a_way_out(jobs, name):
    """No name leads out of the folder."""
    with pytest.raises(InvalidOption.__bases__[0]):
        jobs.submit(JOB, JobRequest(name), "ada")


def test_an_import_of_what_there_is_not():
    """Kind and options are held to what there is before anything is kept."""
    with pytest.raises(InvalidOption):
        ImportRequest("Account", "xlsx")
    for key, update in (
        ((), {"mode": "append"}),
        (("Id",), {"override": True, "mode": "full"}),
        ((), {"x": 1}),
    ):
        with pytest.raises(InvalidOption):
            ImportRequest("Account", "csv", key, update)
