"""``freezeframe job``, ``worker`` and ``schedule`` on the command line, with scripts that are really run."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from tests.waiting import until

from freezeframe.cli.location import control
from freezeframe.cli.main import main

pytestmark = pytest.mark.long

ETL = """
import json, os, sys, time
print("for", os.environ["TENANT"])
with open(os.path.join(os.environ["ROOT_DIR"], "snapshots", "ledger.txt"), "a") as ledger:
    ledger.write(os.environ["JOB_ID"])
if os.environ.get("FLOW") == "slow":
    print("waiting", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a script; the store is made beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "etl.py").write_text(ETL)
    return ["--root", str(tmp_path / "store")]


@pytest.fixture
def told(capsys, place):
    """Run a command that must succeed and give the JSON that it prints."""

    def run(*arguments):
        capsys.readouterr()
        assert main([*arguments, *place, "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return run


def test_a_job_from_submission_to_its_log(told, place, capsys, tmp_path):
    """Submitted twice it is one; a worker runs it; its end, its log and the exit code of wait are told."""
    submit = ["job", "submit", "etl.py", "--tenant", "acme", "--job-id", "j1", "--param", "n=1"]
    assert told(*submit)["status"] == "queued"
    assert [job["job_id"] for job in (told(*submit), *told("job", "list")["jobs"])][1:] == ["j1"]
    assert main([*submit, "--flow", "other", *place]) == 3
    (tmp_path / "gone.py").write_text(ETL)
    told("job", "submit", "gone.py", "--tenant", "acme", "--job-id", "j2")
    told("job", "cancel", "j2")
    assert told("job", "submit", "gone.py", "--tenant", "acme", "--job-id", "j2")["status"] == "cancelled"
    again = told("job", "submit", "gone.py", "--tenant", "acme", "--job-id", "j2", "--again")
    assert (again["status"], again["attempts_max"]) == ("queued", 3)
    (tmp_path / "gone.py").unlink()
    capsys.readouterr()
    assert main(["worker", "--drain", *place]) == 0
    printed = capsys.readouterr().out

    assert [line.split()[3] for line in printed.splitlines()] == [
        "running",
        "succeeded",
        "running",
        "failed",
    ], printed
    assert (
        (found := told("job", "wait", "j1"))["status"],
        found["outcome"]["tenant_version"],
    ) == ("succeeded", 0)
    assert main(["job", "wait", "j2", *place]) == 1
    assert "There is no file" in capsys.readouterr().out
    assert told("job", "logs", "j1") == {"line": "for acme"}
    assert main(["job", "logs", "-f", "j1", *place]) == 0
    assert capsys.readouterr().out.startswith("for acme\n")
    assert told("job", "retry", "j2")["status"] == "queued"
    assert told("job", "cancel", "j2")["status"] == "cancelled"
    assert [job["job_id"] for job in told("job", "list", "--status", "cancelled")["jobs"]] == ["j2"]
    assert told(*submit, "--again", "--wait")["status"] == "succeeded"
    assert told("file", "read", "ledger.txt", "--tenant", "acme")["content"] == "j1"


def _ask_to_end(handler):
    """SIGTERM as soon as it is heard by another one than this process's own handler, which would end it."""
    until(lambda: signal.getsignal(signal.SIGTERM) != handler)
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_worker_ends_when_it_is_asked(place, capsys):
    """SIGTERM: it claims nothing more, and its exit code is 0."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    asked = threading.Thread(target=_ask_to_end, args=(before[signal.SIGTERM],))
    asked.start()
    try:
        assert main(["worker", *place]) == 0
    finally:
        asked.join()
        for number, handler in before.items():
            signal.signal(number, handler)
    assert " works for sqlite:///" in capsys.readouterr().out


@pytest.mark.nightly
def test_a_worker_that_is_asked_twice_gives_back(told, place, tmp_path):
    """SIGTERM twice: the script is ended, nothing of it is visible, and the job is queued as before."""
    told("job", "submit", "etl.py", "--tenant", "acme", "--job-id", "j", "--flow", "slow")
    code = "import sys; from freezeframe.cli.main import main; sys.exit(main())"
    worker = subprocess.Popen(
        [sys.executable, "-c", code, "worker", *place], stdout=subprocess.PIPE, text=True
    )
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(worker.stdout))
    reader.start()
    until(lambda: list(tmp_path.glob("store/job-roots/*/*/script.log")))
    for _ in range(2):
        worker.send_signal(signal.SIGTERM)
        time.sleep(0.3)

    assert worker.wait(timeout=30) == 0
    reader.join()
    worker.stdout.close()
    assert [f" {line.split()[3]} " for line in lines[1:]] == [" running ", " queued "]
    job = told("job", "show", "j")
    assert (job["status"], job["attempts"]) == ("queued", 0)


def test_what_is_not_there_is_said(place, capsys, tmp_path):
    """Exit code 4 for a job, a script or a schedule; 2 for what cannot be, or is not one thing."""
    submit = ["job", "submit", "etl.py", "--tenant"]
    for tenant in ("a", "b"):
        assert main([*submit, tenant, "--job-id", "same", *place]) == 0
    for code, arguments in (
        (4, ["job", "logs", "nope"]),
        (4, ["job", "logs", "same", "--tenant", "a"]),
        (4, ["job", "cancel", "same", "--tenant", "c"]),
        (4, ["job", "submit", "nope.py", "--tenant", "a"]),
        (4, ["job", "submit", "etl.py", "--tenant", "a", "--input", "nope"]),
        (4, ["job", "submit", "etl.py", "--tenant", "a", "--config", "nope.json"]),
        (4, ["schedule", "disable", "nope", "--tenant", "a"]),
        (2, ["job", "show", "same"]),
        (2, ["job", "retry", "same", "--tenant", "a"]),
        (2, [*submit, "a", "--param", "novalue"]),
        (2, [*submit, "a", "--at", "tomorrow"]),
        (2, [*submit, "a", "--attempts", "0"]),
        (2, ["worker", "--once", "--drain"]),
        (2, ["schedule", "create", "s", "etl.py", "--tenant", "a", "--cron", "often"]),
        (1, ["job", "wait", "same", "--tenant", "a", "--timeout", "0"]),
    ):
        assert code == main([*arguments, *place]), arguments
    assert "Traceback" not in capsys.readouterr().err
    assert main(["job", "list", "--root", "s3://bucket/x"]) == 2
    (tmp_path / "empty").mkdir()
    assert main(["job", "list", "--root", str(tmp_path / "empty")]) == 0
    assert "There are no such jobs." in capsys.readouterr().out


@pytest.mark.parametrize("command", [["job", "list"], ["job", "show", "x"], ["schedule", "list"]])
def test_looking_makes_no_store(tmp_path, command):
    """A mistyped root is exit code 4, and nothing is there afterwards either."""
    assert main([*command, "--root", str(tmp_path / "absent")]) == 4
    assert not (tmp_path / "absent").exists()


def test_schedules_come_and_go(told, capsys, place):
    """Made, listed, disabled, enabled, deleted."""
    schedule = ["schedule", "create", "daily", "etl.py", "--tenant", "acme", "--cron", "@daily"]
    made = told(*schedule, "--zone", "Europe/Berlin", "--param", "full=true")
    assert (made["cron"], made["zone"], made["enabled"]) == ("0 0 * * *", "Europe/Berlin", True)
    assert main([*schedule, *place]) == 3
    assert [made] == told("schedule", "list")["schedules"]
    assert told("schedule", "disable", "daily", "--tenant", "acme")["next_due"] is None
    assert told("schedule", "enable", "daily", "--tenant", "acme")["next_due"] is not None
    assert told("schedule", "delete", "daily", "--tenant", "acme")["deleted"] is True
    capsys.readouterr()
    assert main(["schedule", "list", *place]) == 0
    assert "There are no schedules" in capsys.readouterr().out


def test_a_schedule_of_many_tenants(told, capsys, place):
    """One for each, or none; again it adds those that have come since; changed and deleted together."""
    for tenant in ("a-1", "a-2", "b-1"):
        told("tenant", "create", tenant)
    create = ["schedule", "create", "nightly", "etl.py", "--cron", "@daily"]
    assert [row["tenant"] for row in told(*create, "--prefix", "a-")] == ["a-1", "a-2"]
    assert [row["tenant"] for row in told(*create, "--all-tenants")] == ["a-1", "a-2", "b-1"]
    told("tenant", "create", "c-1")
    assert main([*create, "--zone", "Europe/Berlin", "--tenant", "c-1", "--tenant", "b-1", *place]) == 3
    assert main([*create, "--tenants-from", "nobody.txt", *place]) == 4
    assert len(told("schedule", "list")["schedules"]) == 3
    disabled = told("schedule", "disable", "nightly", "--prefix", "a-")
    assert [(row["tenant"], row["enabled"]) for row in disabled] == [("a-1", False), ("a-2", False)]
    assert all(row["enabled"] for row in told("schedule", "enable", "nightly", "--all-tenants"))
    assert main(["schedule", "disable", "nightly", "--prefix", "c", *place]) == 4
    assert "has a schedule nightly" in capsys.readouterr().err
    assert told("schedule", "delete", "nightly", "--all-tenants")["tenants"] == 3
    assert told("schedule", "list")["schedules"] == []


def test_what_is_queued_takes_the_options_of_a_run(told, place, tmp_path):
    """Files are found from where the command was given, whatever folder a worker is in."""
    options = ["--tenant", "acme", "--connector", "quickbooks", "--job-type", "write", "--sync-type", "full"]
    for name in ("config", "state", "catalog"):
        (tmp_path / f"{name}.json").write_text("{}")
        options += [f"--{name}", f"{name}.json"]
    told("job", "submit", "etl.py", "--job-id", "j", *options, "--who", "ada")
    told("schedule", "create", "s", "etl.py", "--cron", "@daily", *options, "--who", "ada")
    with control(place[1], None) as found:
        queued = found.queue.get("default", "acme", "j").request
        (schedule,) = found.schedules.list(environment="default", tenant="acme")

    expected = {name: str(tmp_path / f"{name}.json") for name in ("config", "state", "catalog")}
    expected |= {"connector_id": "quickbooks", "job_type": "write", "sync_type": "full", "who": "ada"}
    for request in map(json.loads, (queued, schedule.definition.request)):
        assert {name: request[name] for name in expected} == expected


def test_a_database_of_the_settings_is_taken(told, tmp_path, monkeypatch):
    """Instead of the file in the store's root."""
    monkeypatch.setenv("FREEZEFRAME_DATABASE_URL", f"sqlite:///{tmp_path / 'elsewhere.db'}")

    assert told("job", "list")["jobs"] == []
    assert (tmp_path / "elsewhere.db").exists()
    assert not (tmp_path / "store").exists()


def test_waiting_without_a_worker_ends_and_says_so(place, capsys):
    """By the limit of the wait; the job stays in the queue."""
    submit = ["job", "submit", "etl.py", "--tenant", "acme", "--job-id", "j", "--wait", *place]
    assert main([*submit, "--wait-timeout", "0"]) == 1
    assert "Cause: No worker has been seen." in capsys.readouterr().err
