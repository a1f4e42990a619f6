"""Schedules: each due time makes one job, whoever looks."""

import json
import threading
from datetime import UTC, datetime

import pytest

from freezeframe.control.database import ControlDatabase
from freezeframe.control.job import JobFilter
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import ScheduleRequest, Schedules, Timing
from freezeframe.errors import ConflictError, InvalidName, InvalidOption, NotFound

HOUR = 3600


@pytest.fixture
def database(database_url, clock):
    """An empty control database."""
    opened = ControlDatabase.open(database_url, clock)
    yield opened
    opened.close()


def hourly(name="sync", **options):
    return ScheduleRequest(name, "dev", "acme", Timing("@hourly"), '{"script": "etl.py"}', **options)


def test_a_due_time_makes_one_job(database, clock):
    """With an id of its own, in the request as well; the next due time follows."""
    schedules, queue = Schedules(database), JobQueue(database)
    (made,) = schedules.create(hourly(priority=3, attempts_max=2))
    assert made.next_due == datetime(2026, 11, 21, 9, tzinfo=UTC)
    clock.forward(HOUR - 1)
    assert schedules.submit_due() == ()
    clock.forward(1)

    (job,) = schedules.submit_due()

    assert schedules.submit_due() == ()
    assert f"sync-{made.sequence}-20261121T090000Z" == job.job_id
    assert {"script": "etl.py", "job_id": job.job_id} == json.loads(job.request)
    assert (job.schedule, job.priority, job.attempts_max, job.status) == ("sync", 3, 2, "queued")
    assert (job,) == queue.list(JobFilter(schedule="sync")).jobs
    found = schedules.get("dev", "acme", "sync")
    assert [found.last_due, found.next_due] == [datetime(2026, 11, 21, hour, tzinfo=UTC) for hour in (9, 10)]


def test_the_date_of_an_input_is_the_due_times_day(database, clock):
    """In the schedule's zone; other placeholders are left for the run."""
    request = '{"script": "etl.py", "input_dir": "in/{tenant}/{date}/{newest}"}'
    Schedules(database).create(
        ScheduleRequest("night", "dev", "acme", Timing("30 2 * * *", "Asia/Tokyo"), request)
    )
    clock.forward(24 * HOUR)

    (job,) = Schedules(database).submit_due()
    assert json.loads(job.request)["input_dir"] == "in/{tenant}/2026-11-22/{newest}"


def test_of_missed_times_the_latest_counts(database, clock):
    """Unless all are wanted."""
    schedules = Schedules(database)
    schedules.create(hourly())
    schedules.create(hourly("every", missed="all"))
    clock.forward(3 * HOUR + 60)
    jobs = schedules.submit_due()

    assert sorted(job.schedule for job in jobs) == ["every"] * 3 + ["sync"]
    assert [job.job_id[-16:] for job in jobs if job.schedule == "sync"] == ["20261121T110000Z"]


def test_many_who_look_at_once_make_one_job(database, clock):
    """Four threads ask at the same moment for the due times of five schedules."""
    schedules = Schedules(database)
    for number in range(5):
        schedules.create(hourly(f"s{number}"))
    clock.forward(HOUR)
    start, made = threading.Barrier(4), []

    def look():
        start.wait()
        made.extend(schedules.submit_due())

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Who passes over what another one has locked may end before that one has.
    made.extend(schedules.submit_due())

    assert [f"s{number}" for number in range(5)] == sorted(job.schedule for job in made)
    assert len(JobQueue(database).list().jobs) == 5


def test_a_disabled_schedule_rests(database, clock):
    """What it missed then is not made up for; enabled twice is enabled."""
    schedules = Schedules(database)
    schedules.create(hourly())
    assert schedules.disable("dev", "acme", "sync").next_due is None
    clock.forward(5 * HOUR + 60)
    assert schedules.submit_due() == ()
    again = schedules.enable("dev", "acme", "sync")
    assert again == schedules.enable("dev", "acme", "sync")
    assert schedules.submit_due() == ()
    assert again.next_due == datetime(2026, 11, 21, 14, tzinfo=UTC)


def test_names_are_a_tenants_own(database):
    """Another tenant may have the same; once deleted it is free, and its jobs' ids are new."""
    schedules = Schedules(database)
    (first,) = schedules.create(hourly())
    assert schedules.create(hourly()) == (first,)
    with pytest.raises(ConflictError, match="acme has another schedule sync"):
        schedules.create(hourly("new"), hourly(priority=1))
    assert len(schedules.list()) == 1  # none of several was made
    schedules.create(ScheduleRequest("sync", "dev", "beta", Timing("@daily"), "{}"))
    assert [item.definition.tenant for item in schedules.list(environment="dev")] == ["acme", "beta"]
    schedules.delete("dev", "acme", "sync")
    assert [item.definition.tenant for item in schedules.list()] == ["beta"]
    assert first.sequence != schedules.create(hourly())[0].sequence
    for call in (schedules.get, schedules.enable, schedules.disable, schedules.delete):
        with pytest.raises(NotFound):
            call("dev", "acme", "nope")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"name": "a/b"}, InvalidName),
        ({"tenant": ""}, InvalidName),
        ({"request": "7"}, InvalidOption),
        ({"missed": "some"}, InvalidOption),
        ({"attempts_max": 0}, InvalidOption),
    ],
)
def test_what_cannot_be_a_schedule_is_refused(options, error):
    """By its constructor."""
    good = {
        "name": "s",
        "environment": "dev",
        "tenant": "acme",
        "timing": Timing("@daily"),
        "request": "{}",
    }
    with pytest.raises(error):
        ScheduleRequest(**{**good, **options})
