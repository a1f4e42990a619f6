"""The job queue against a model of plain dictionaries: any order of calls, on both databases."""

from contextlib import contextmanager, suppress

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, select
from tests.control.manual_clock import ManualClock

from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import Backoff, JobQueue
from freezeframe.control.submission import Submission
from freezeframe.control.tables import jobs, lanes
from freezeframe.errors import InvalidOption, JobRevoked

LEASE_SECONDS = 30
WAIT_SECONDS = 10
TENANTS = ("a", "b", "c")
FINAL = ("succeeded", "failed", "cancelled", "timed_out", "dead")


class QueueMachine(RuleBasedStateMachine):
    """Every call goes to the queue and to the model; both must say the same."""

    url = ""

    def __init__(self):
        super().__init__()
        self.clock = ManualClock()
        self.database = ControlDatabase.open(self.url, self.clock)
        with self.database.begin() as connection:
            connection.execute(delete(jobs))
            connection.execute(delete(lanes))
        self.queue = JobQueue(self.database, Backoff(WAIT_SECONDS, WAIT_SECONDS))
        self.model = []
        self.claimed = []

    def teardown(self):
        self.database.close()

    @rule(
        tenant=st.sampled_from(TENANTS),
        name=st.integers(0, 5),
        attempts_max=st.integers(1, 3),
        priority=st.sampled_from((0, 0, 5)),
    )
    def submit(self, tenant, name, attempts_max, priority):
        job_id = f"j{name}"
        found = self.queue.submit(
            Submission(
                "{}",
                environment="dev",
                tenant=tenant,
                job_id=job_id,
                attempts_max=attempts_max,
                priority=priority,
            )
        )
        known = self.known(tenant, job_id)
        if known is None:
            known = {
                "tenant": tenant,
                "job_id": job_id,
                "status": "queued",
                "attempts": 0,
                "attempts_max": attempts_max,
                "priority": priority,
                "run_at": self.clock.now_ms,
                "cancel": False,
                "lease": None,
                "until": None,
                "worker": "",
            }
            self.model.append(known)
        assert known["status"] == found.status

    @rule(worker=st.sampled_from(("w1", "w2")))
    def claim(self, worker):
        expected = self.next_job()
        found = self.queue.claim(worker, LEASE_SECONDS)
        if expected is None:
            assert found is None
            return
        silent = expected["status"] == "running"
        only_close = silent and (expected["cancel"] or expected["attempts"] >= expected["attempts_max"])
        assert (expected["tenant"], expected["job_id"]) == (found.tenant, found.job_id)
        assert (expected["worker"] if silent else "", only_close) == (found.taken_over_from, found.only_close)
        expected["attempts"] += 0 if only_close else 1
        expected |= {
            "status": "running",
            "lease": found.lease_id,
            "until": self.clock.now_ms + LEASE_SECONDS * 1000,
            "worker": worker,
        }
        self.claimed.append(found)

    @precondition(lambda self: self.claimed)
    @rule(data=st.data())
    def heartbeat(self, data):
        job, known = self.pick(data)
        if known["lease"] != job.lease_id:
            assert self.queue.heartbeat(job, LEASE_SECONDS) == "lost"
            return
        assert ("cancel" if known["cancel"] else "held") == self.queue.heartbeat(job, LEASE_SECONDS)
        known["until"] = self.clock.now_ms + LEASE_SECONDS * 1000

    @precondition(lambda self: self.claimed)
    @rule(data=st.data(), status=st.sampled_from(FINAL), may_retry=st.booleans())
    def finish(self, data, status, may_retry):
        job, known = self.pick(data)
        with self.fenced(job, known):
            found = self.queue.finish(job, status, may_retry=may_retry)
            again = may_retry and not known["cancel"] and known["attempts"] < known["attempts_max"]
            if again and status in {"failed", "timed_out"}:
                known |= {"status": "queued", "run_at": self.clock.now_ms + WAIT_SECONDS * 1000}
            else:
                known["status"] = status
            known["lease"] = None
            assert known["status"] == found.status

    @precondition(lambda self: self.claimed)
    @rule(data=st.data())
    def give_back(self, data):
        job, known = self.pick(data)
        with self.fenced(job, known):
            self.queue.give_back(job)
            if known["cancel"]:
                known["status"] = "cancelled"
            else:
                known |= {"status": "queued", "run_at": self.clock.now_ms}
                known["attempts"] -= 1
            known["lease"] = None

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def cancel(self, data):
        known = data.draw(st.sampled_from(self.model))
        found = self.queue.cancel("dev", known["tenant"], known["job_id"])
        if known["status"] not in FINAL:
            known["cancel"] = True
        if known["status"] == "queued":
            known["status"] = "cancelled"
        assert (known["status"], known["cancel"]) == (found.status, found.cancel_requested)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def retry(self, data):
        known = data.draw(st.sampled_from(self.model))
        with suppress(InvalidOption):
            self.queue.retry("dev", known["tenant"], known["job_id"], attempts=2)
            assert known["status"] in FINAL[1:]
            known |= {"status": "queued", "run_at": self.clock.now_ms, "cancel": False}
            known["attempts_max"] = known["attempts"] + 2
            return
        assert known["status"] in {"queued", "running", "succeeded"}

    @rule(seconds=st.sampled_from((1, WAIT_SECONDS, LEASE_SECONDS)))
    def let_time_pass(self, seconds):
        self.clock.forward(seconds)

    @invariant()
    def all_is_as_in_the_model(self):
        with self.database.read() as connection:
            rows = connection.execute(select(jobs).order_by(jobs.c.sequence)).all()
            running = dict(connection.execute(select(lanes.c.name, lanes.c.running)).all())
        assert [
            (known["job_id"], known["status"], known["attempts"], known["lease"]) for known in self.model
        ] == [(row.job_id, row.status, row.attempts, row.lease_id) for row in rows]
        for tenant in TENANTS:
            count = sum(item["status"] == "running" for item in self.model if item["tenant"] == tenant)
            assert count == running.get(f"dev/{tenant}", 0)
            assert count <= 1

    def next_job(self):
        now = self.clock.now_ms
        silent = [item for item in self.model if item["status"] == "running" and item["until"] <= now]
        if silent:
            return min(silent, key=lambda item: item["until"])
        free = [
            one
            for place, one in enumerate(self.model)
            if one["status"] == "queued"
            and one["run_at"] <= now
            and not any(
                other["tenant"] == one["tenant"]
                and (
                    other["status"] == "running"
                    or (other["status"] == "queued" and other["attempts"] and self.model.index(other) < place)
                )
                for other in self.model
            )
        ]
        return min(free, key=lambda item: -item["priority"], default=None)

    def known(self, tenant, job_id):
        return next(
            (item for item in self.model if (tenant, job_id) == (item["tenant"], item["job_id"])), None
        )

    def pick(self, data):
        job = data.draw(st.sampled_from(self.claimed))
        return job, self.known(job.tenant, job.job_id)

    @contextmanager
    def fenced(self, job, known):
        """The call inside is refused if the lease is not the job's present one."""
        if known["lease"] == job.lease_id:
            yield
            return
        with pytest.raises(JobRevoked):
            yield


@pytest.mark.long
def test_the_queue_is_as_its_model(database_url):
    """No job is lost, none is two workers', no tenant has two running, no void lease ends anything."""
    run(database_url, examples=12, steps=40)


@pytest.mark.nightly
def test_the_queue_is_as_its_model_in_long_histories(database_url):
    """The same for many histories."""
    run(database_url, examples=300, steps=60)


def run(url, examples, steps):
    machine = type("Machine", (QueueMachine,), {"url": url})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
        ),
    )
