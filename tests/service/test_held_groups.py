"""The held jobs of a group, decided by one call: published, those that passed alone, or discarded."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select
from tests.runs.file_run import order

import freezeframe
from freezeframe.cli.local_caller import StoreCaller
from freezeframe.cli.main import main
from freezeframe.control.groups import submit_group
from freezeframe.control.submission import Submission
from freezeframe.control.tables import audit
from freezeframe.runs.held import Decision, publish
from freezeframe.service.operations import jobs
from freezeframe.store.tenant import open_job

FAILED = {"stream": "Lead", "check": "rows > 5", "reason": "rows = 1"}


def hold(store, queue, job):
    """What a worker does: the job is held, and that of b by a check."""
    context = store.tenant(job.tenant).context
    with open_job(replace(context, review=lambda effects, _: effects), job.job_id) as held:
        held.files.write("new", job.tenant.encode())
    checks = [FAILED] if job.tenant == "b" else []
    queue.finish(job, "held", json.dumps({"dry_run": {**held.dry_run.to_json(), "failed_checks": checks}}))


@pytest.fixture
def caller(tmp_path, monkeypatch):
    """The local user before a store, with a group of three held jobs; a check holds that of b."""
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    root = str(tmp_path / "store")
    with StoreCaller(root, "dev", create=True) as found:
        store, queue = freezeframe.open(root, "dev"), found.control.queue
        requests = {name: json.dumps(order(root, name, "g").to_json()) for name in "abc"}
        submit_group(
            queue.database,
            [Submission(request, "dev", name, "g", group="g") for name, request in requests.items()],
        )
        for name in requests:
            store.tenant(name, create=True)
            hold(store, queue, queue.claim("worker"))
        found.store = store
        yield found


def files(caller):
    """The tenants that have the file."""
    return [name for name in "abc" if "new" in [item.path for item in caller.store.tenant(name).files.list()]]


def test_those_that_passed_are_published_first(caller):
    """One that a check holds waits for a person; the same call again changes nothing."""
    for _ in range(2):
        done = jobs.publish_group.run(caller, "dev", "g", passed=True)
        assert (done.counts, done.left, done.refused) == ({"succeeded": 2, "held": 1}, 0, [])
        assert files(caller) == ["a", "c"]
    done = jobs.publish_group.run(caller, "dev", "g")
    assert (done.counts, files(caller)) == ({"succeeded": 3}, ["a", "b", "c"])
    with caller.control.database.read() as connection:
        query = select(audit.c.tenant).where(audit.c.action == "job.publish", audit.c.tenant > "")
        told = [name.partition("@")[0] for name in connection.execute(query).scalars()]
    assert sorted(told) == ["a", "b", "c"]


def test_one_that_cannot_be_published_stays_held(caller):
    """The others are published, and who was refused is told with the reason; then it is discarded."""
    caller.store.tenant("b").files.write("new", b"other")
    done = jobs.publish_group.run(caller, "dev", "g")
    assert (done.counts, [item.tenant for item in done.refused]) == ({"succeeded": 2, "held": 1}, ["b"])
    assert "the file 'new' was changed meanwhile" in done.refused[0].error

    assert jobs.discard_group.run(caller, "dev", "g").counts == {"succeeded": 2, "cancelled": 1}
    assert caller.store.tenant("b").files.read("new") == b"other"


CANARY = "job submit etl.py --tenant a --tenant b --tenant c --job-id canary --canary 1 --root {} --env dev"


def test_the_rest_of_a_group_begins_once_its_first_jobs_are_published(caller, tmp_path, monkeypatch):
    """Until then no worker gets one of them; a discarded canary keeps them waiting until it succeeds."""
    monkeypatch.chdir(tmp_path)
    Path("etl.py").write_text("")
    queue = caller.control.queue
    assert main(CANARY.format(caller.root).split()) == 0
    assert main(CANARY.format(caller.root).split()) == 0  # the same group
    for last in ("discard", "publish"):
        job = queue.claim("worker")
        assert (job.tenant, json.loads(job.request)["hold"], queue.claim("worker")) == ("a", True, None)
        hold(caller.store, queue, job)
        assert queue.claim("worker") is None
        getattr(jobs, f"{last}_group").run(caller, "dev", "canary")
        if last == "discard":
            assert queue.claim("worker") is None
            queue.retry("dev", "a", "canary")
    rest = [queue.claim("worker") for _ in range(3)]
    assert [job and (job.tenant, "hold" in json.loads(job.request)) for job in rest] == [
        ("b", False),
        ("c", False),
        None,
    ]


def test_a_published_canary_alone_starts_the_rest(caller, tmp_path, monkeypatch):
    """Also one that is published by its own id; all tenants may be canaries."""
    monkeypatch.chdir(tmp_path)
    Path("etl.py").write_text("")
    queue = caller.control.queue
    assert main(CANARY.format(caller.root).split()) == 0
    hold(caller.store, queue, queue.claim("worker"))
    decision = Decision(queue, caller.control.settings)
    publish(queue.get("dev", "a", "canary"), decision)
    assert queue.claim("worker").tenant == "b"
    for wrong in ("--wait", "--dry-run"):
        assert main([*CANARY.format(caller.root).replace("canary ", "other ").split(), wrong]) == 2
    alone = f"job submit etl.py --tenant a --canary 1 --root {caller.root} --env dev"
    assert main(alone.split()) == 2


def test_a_call_decides_some_of_many(caller, monkeypatch):
    """What is left is told, and the same call goes on."""
    monkeypatch.setattr(jobs, "_DECIDED_MAX", 2)
    done = jobs.publish_group.run(caller, "dev", "g")
    assert (done.counts, done.left) == ({"succeeded": 2, "held": 1}, 1)
    assert jobs.publish_group.run(caller, "dev", "g").counts == {"succeeded": 3}
