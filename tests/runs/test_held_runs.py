"""A script with hold: it is run once, its job waits, and a publication commits what it had staged."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from freezeframe.control.submission import Submission
from freezeframe.errors import ConflictError, FixTheRequest, InvalidOption, JobRevoked
from freezeframe.runs.dry_run_changes import kept_changes
from freezeframe.runs.held import Decision, discard, failed_checks, publish
from freezeframe.runs.queue.attempt import Times
from freezeframe.runs.queue.job_log import run_listed
from freezeframe.runs.queue.worker import Worker, WorkerOptions
from freezeframe.runs.running import run
from freezeframe.store.job import find_held_job, publish_job

pytestmark = pytest.mark.long

ETL = """
    import os, pandas as pd
    from freezeframe import update_snapshot
    update_snapshot("snapshots", "Lead", "Id", pd.DataFrame({"Id": ["007"], "Age": [7]}))
    open("snapshots/ids.json", "w").write("{}")
    print("ran")
"""
HEADER = """
# /// script
# [tool.freezeframe]
# hold = true
# ///
"""
CHECKED = """
# /// script
# [tool.freezeframe.checks]
# Lead = ["Age < 100", "deleted <= 0.5 * rows"]
# Other = "rows > 0"
# ///
import os, pandas as pd
from freezeframe import update_snapshot
ages = [int(age) for age in os.environ["PARAM_ages"].split()]
update_snapshot("snapshots", "Lead", "Id", pd.DataFrame({"Id": range(len(ages)), "Age": ages}), override=True)
"""
# Ends the script's process at once when its job is held, before it can say so.
KILLED = """
    import glob, os, signal, threading
    folder = os.path.dirname(os.path.dirname(os.environ["ROOT_DIR"]))
    def watch():
        while True:
            for name in glob.glob({store!r} + "/**/staging/*.json", recursive=True):
                if '"commit"' in open(name).read():
                    os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=watch, daemon=True).start()
"""


def test_a_held_run_waits_and_is_published(runs):
    """It tells what it would change; a second run of its id runs nothing; the publication is its commit."""
    held = runs.run(ETL, job_id="monday", hold=True)
    assert (held.status, held.tenant_version, held.receipt["committed"]) == ("held", None, False)
    assert held.dry_run.streams["Lead"].counts.inserted == 1
    assert kept_changes(held.job_root).rows["Lead"]["Id"].to_pylist() == ["007"]
    assert (runs.tenant.streams(), runs.tenant.version) == ((), -1)
    again = runs.run(ETL, job_id="monday", hold=True)
    assert (again.status, runs.lines, again.held_until) == ("held", [], held.held_until)
    assert (runs.run(ETL, job_id="monday").status, runs.lines) == ("held", [])  # nobody goes around it

    assert publish_job(runs.tenant.context, "monday").tenant_version == 0
    assert runs.tenant.stream("Lead").read().to_dict("records") == [{"Id": "007", "Age": 7}]
    assert runs.tenant.files.read_json("ids.json") == {}
    assert runs.run(ETL, job_id="monday", hold=True).status == "repeated"


def test_a_script_asks_for_it(runs):
    """Its header holds all its runs, but a dry run stays one; with a command for a target it is refused."""
    script = runs.script(HEADER + "open('snapshots/a', 'w').write('1')")
    assert runs.run(script, job_id="a").status == "held"
    assert runs.run(script, job_id="b", dry_run=True).status == "succeeded"
    for wrong in ({"then": ("true",)}, {"dry_run": True, "hold": True}):
        with pytest.raises(InvalidOption, match="A held job cannot"):
            runs.run(script, **wrong)


def test_a_job_that_is_killed_after_it_was_held_is_held(runs):
    """The tenant's directory decides, not what its process could still tell."""
    script = KILLED.format(store=runs.root) + ETL
    outcome = runs.run(script, job_id="monday", hold=True)

    assert outcome.status == "held"
    assert find_held_job(runs.tenant.context, "monday") is not None
    assert publish_job(runs.tenant.context, "monday").committed


def test_checks_decide_whether_a_job_is_committed(runs):
    """Those that pass: one commit as ever. One that fails: the job is held, with the rows and the numbers."""
    script = runs.script(CHECKED)
    passed = runs.run(script, job_id="a", parameters={"ages": "1 2 3 4"})
    assert (passed.status, passed.tenant_version, passed.dry_run) == ("succeeded", 0, None)

    failed = runs.run(script, job_id="b", parameters={"ages": "150"})

    told = [(item.check, item.reason) for item in failed.dry_run.failed_checks]
    assert failed.status == "held"
    assert told == [("Age < 100", "1 of 1 rows"), ("deleted <= 0.5 * rows", "deleted = 3, rows = 1")]
    ((check, rows),) = kept_changes(failed.job_root).failing
    assert (check.check, rows.to_pylist()) == ("Age < 100", [{"Id": 0, "Age": 150}])
    assert failed_checks(failed.to_json()) == [f"Lead: {text} ({reason})" for text, reason in told]
    tried = runs.run(script, parameters={"ages": "150"}, dry_run=True)
    assert tried.dry_run.failed_checks == failed.dry_run.failed_checks
    assert runs.tenant.stream("Lead").count() == 4
    assert publish_job(runs.tenant.context, "b").tenant_version == 1


@pytest.mark.parametrize(
    "said", ["Lead = ['Age >']", "Lead = [1]", "Lead = 1", "'../x' = 'rows > 0'", "Lead = 'length(Id) = 1'"]
)
def test_what_is_no_check_is_refused_before_the_run(runs, said):
    """Nothing is made, neither tenant nor store; so is a command for a target beside checks."""
    with pytest.raises(FixTheRequest):
        runs.run(f"# /// script\n# [tool.freezeframe.checks]\n# {said}\n# ///\n")
    with pytest.raises(InvalidOption, match="checks cannot have a command"):
        runs.run(CHECKED, parameters={"ages": "1"}, then=("true",))
    assert not Path(runs.root).exists()


@pytest.fixture
def submit(queue, runs):
    """Put a run that is to be held into the queue, and let a worker run what is there."""

    def put(body, job_id):
        request = runs.request(body, job_id=job_id, hold=True)
        named = (request.environment, request.tenant, request.job_id)
        queue.submit(Submission(json.dumps(request.to_json()), *named))
        return work()

    def work():
        options = WorkerOptions(poll_seconds=0.05, times=Times(1.0, 0.05))
        Worker(queue.database, run, runs.settings, options).work("empty")
        return queue.get("default", "acme", "monday")

    put.work = work
    return put


def test_the_queue_knows_held_jobs(queue, runs, submit):
    """Held, refused while another commit is in the way, run again on demand, published once."""
    job, decision = submit(ETL, "monday"), Decision(queue, runs.settings, "eve")
    assert (job.status, job.outcome["dry_run"]["streams"]["Lead"]["inserted"]) == ("held", 1)
    with pytest.raises(InvalidOption):
        queue.retry("default", "acme", "monday")
    runs.tenant.files.write("ids.json", b"[]")
    with pytest.raises(ConflictError):
        publish(job, decision)
    assert publish(job, decision, again=True).status == "queued"
    with pytest.raises(InvalidOption):
        publish(queue.get("default", "acme", "monday"), decision)
    job = submit.work()
    assert job.status == "held"

    done = publish(job, decision)

    assert (done.status, done.outcome["tenant_version"], done.outcome["dry_run"]) == (
        "succeeded",
        runs.tenant.version,
        None,
    )
    assert publish(done, decision).outcome == done.outcome
    assert publish(job, decision).outcome == done.outcome
    for one in (job, done):
        with pytest.raises(InvalidOption):
            discard(one, decision)
    assert runs.tenant.stream("Lead").count() == 1


def test_a_discarded_job_can_be_run_again(queue, runs, submit):
    """It is cancelled, and nothing of it is there."""
    job = submit(ETL, "monday")
    done = discard(job, Decision(queue, runs.settings, "eve"))

    assert (done.status, done.outcome["error"]["code"]) == ("cancelled", "DISCARDED")
    assert runs.tenant.streams() == ()
    assert next(iter(runs.tenant.history())).who == "eve"
    queue.retry("default", "acme", "monday")
    assert submit.work().status == "held"


def test_an_erasure_leaves_a_held_job_to_be_run_again(queue, runs, submit):
    """The row says held, what it had staged is gone: it is refused, and again runs the job anew."""
    runs.run(ETL)
    job, decision = submit(ETL.replace("007", "008"), "monday"), Decision(queue, runs.settings)
    runs.tenant.erase("Lead", ["007"])

    with pytest.raises(JobRevoked, match="is not held"):
        publish(job, decision)
    assert publish(job, decision, again=True).status == "queued"
    assert submit.work().status == "held"


def test_a_run_that_is_held_anew_is_told_of(queue, runs, submit):
    """An erasure ended the hold that the queue knows: who looks at the job sees what is held now."""
    runs.run(ETL)
    submit(ETL.replace("007", "008"), "monday")
    runs.tenant.erase("Lead", ["007"])
    request = runs.request(
        ETL.replace('"007"', '"8", "9"').replace("[7]", "[7, 8]"), job_id="monday", hold=True
    )

    run_listed(queue, request, runs.settings, lambda one, _: run(one, settings=runs.settings), lambda: False)

    job = queue.get("default", "acme", "monday")
    assert (job.status, job.outcome["dry_run"]["streams"]["Lead"]["inserted"]) == ("held", 2)
    assert publish(job, Decision(queue, runs.settings)).status == "succeeded"


def test_a_worker_that_died_after_it_was_held_leaves_a_held_job(queue, runs, submit):
    """The next worker revokes nothing and runs nothing, also where no attempt is left."""
    request = runs.request(ETL, job_id="monday", hold=True)
    named = (request.environment, request.tenant, request.job_id)
    queue.submit(Submission(json.dumps(request.to_json()), *named, attempts_max=1))
    queue.claim("dead", lease_seconds=0)
    assert run(replace(request, token="t"), settings=runs.settings).status == "held"

    assert submit.work().status == "held"
    assert publish(queue.get(*named), Decision(queue, runs.settings)).status == "succeeded"
