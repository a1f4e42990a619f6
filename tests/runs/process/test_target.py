"""A job ends when its target has answered: commands between the script's end and the commit."""

import json
import time
from pathlib import Path

import pytest
from tests.waiting import until

from freezeframe.errors import InvalidOption

pytestmark = pytest.mark.long

SENDS = """
    import os
    import pandas as pd
    from freezeframe import update_snapshot
    from freezeframe.gluestick import to_singer
    leads = update_snapshot("snapshots", "Lead", "Id", pd.DataFrame({"Id": ["007", "008"], "Age": [7, 8]}))
    to_singer(leads, "Lead", "etl-output", keys=["Id"])
"""
# A Singer target: it appends each record to a file, gives it an id, and refuses one it does not like.
TARGET = """
import json, os, sys
ids = {}
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "RECORD":
        continue
    row = message["record"]
    if row["Id"] == os.environ.get("REFUSES"):
        sys.exit(f"{row['Id']}: no such customer")
    with open(sys.argv[1], "a") as file:
        file.write(row["Id"] + "\\n")
    ids[row["Id"]] = len(ids)
json.dump(ids, open("snapshots/ids.json", "w"))
print("sent", len(ids), "rows for", os.environ["TENANT"], os.environ["JOB_ID"])
"""


class Target:
    """A target's program, and what it has received."""

    def __init__(self, folder):
        self.received, program = folder / "received.txt", folder / "target.py"
        program.write_text(TARGET)
        self.command = f"python3 {program} {self.received} < etl-output/data.singer"

    @property
    def rows(self):
        """Ids in the order in which they came."""
        return self.received.read_text().split() if self.received.exists() else []


@pytest.fixture
def target(tmp_path):
    """A target that has received nothing yet."""
    return Target(tmp_path)


def test_a_job_is_committed_once_its_target_has_the_rows(runs, target):
    """Rows and what the target wrote under snapshots/ are one version; its output is in the job's log."""
    outcome = runs.run(SENDS, job_id="monday", then=(target.command,))
    assert (outcome.status, outcome.tenant_version) == ("succeeded", 0)
    assert (outcome.receipt["files_written"], list(outcome.receipt["streams"])) == (["ids.json"], ["Lead"])
    assert target.rows == ["007", "008"]
    assert runs.tenant.files.read_json("ids.json") == {"007": 0, "008": 1}
    assert "sent 2 rows for acme monday" in outcome.log.read_text()


def test_a_refused_row_leaves_the_job_to_be_run_again(runs, target):
    """Nothing is kept, the reason is the target's last line, and the same job sends its rows again."""
    failed = runs.run(SENDS, job_id="monday", then=(f"REFUSES=008 {target.command}", "touch later"))
    assert (failed.status, failed.exit_code, failed.error["code"]) == ("failed", 1, "TARGET_FAILED")
    assert failed.error["cause"] == "008: no such customer"
    assert not (failed.job_root / "later").exists()
    assert (runs.tenant.version, runs.tenant.streams()) == (-1, ())
    outcome = runs.run(SENDS, job_id="monday", then=(target.command,))
    assert (outcome.status, outcome.tenant_version, target.rows) == ("succeeded", 0, ["007", "007", "008"])


def test_a_script_names_its_target_and_a_run_another_one(runs):
    """The commands of the script's header are replaced by those that a run is given."""
    header = '\ufeff# /// script\n# [tool.freezeframe]\n# then = "echo of the header"\n# ///\n'
    script = runs.script("")
    script.write_text(header)
    runs.run(script)
    assert runs.lines == ["of the header"]
    runs.run(script, then=("echo first", "echo second"))
    assert runs.lines == ["first", "second"]


def test_a_job_can_keep_its_changes_although_the_target_failed(runs):
    """With keep_on_failure the job is committed, and its report says what the target did."""
    outcome = runs.run(SENDS, then=("exit 3",), keep_on_failure=True)
    assert (outcome.status, runs.tenant.version) == ("succeeded", 0)
    assert "exit 3 ended with exit code 3" in outcome.remarks[0]
    script = runs.script("")
    script.write_text(
        '# /// script\n# [tool.freezeframe]\n# then = "true"\n# keep_on_failure = true\n# ///\n'
    )
    assert runs.run(script, then=("exit 3",)).status == "failed"


@pytest.mark.parametrize(
    ("leaves", "command", "ended"),
    [
        ("import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "exit 3", "exit code 3"),
        ("import sys; sys.stdout.close()", "echo told; exit 3", "exit code 3"),
        ("", "kill -40 $$", "signal 40"),
    ],
)
def test_a_target_that_failed_is_noticed_however_the_script_left_its_process(runs, leaves, command, ended):
    """A script may ignore the ends of processes and close its output; a signal may have no name."""
    failed = runs.run(leaves, then=(command,))
    assert (failed.status, failed.error["code"], runs.tenant.version) == ("failed", "TARGET_FAILED", -1)
    assert f"ended with {ended}" in failed.error["problem"]


def test_no_part_of_a_secret_is_shown(runs):
    """A long line is cut between words, so that a secret in it is whole, and masked."""
    secret = "s3cret" * 20
    settings = runs.settings.model_copy(update={"s3_secret_access_key": secret})
    failed = runs.run("", settings=settings, then=(f"echo {'x' * 1950} {secret}; exit 3",))
    assert "s3cret" not in json.dumps(failed.error)


def test_a_dry_run_sends_nothing(runs, target):
    """The target's command is not run, and the report says so."""
    outcome = runs.run(SENDS, then=(target.command,), dry_run=True)
    assert (outcome.status, target.rows) == ("succeeded", [])
    assert outcome.remarks == ("The target's command was not run: a dry run sends nothing.",)


def test_a_job_killed_behind_the_answer_sends_again_and_commits_once(runs, target):
    """The rows reach the target at least once, and the tenant's log has the job once."""
    died = runs.run(SENDS, job_id="monday", then=(target.command, "kill -9 $PPID"))
    assert (died.status, died.error["code"], runs.tenant.version) == ("failed", "SCRIPT_DIED", -1)
    assert runs.run(SENDS, job_id="monday", then=(target.command,)).tenant_version == 0
    assert target.rows == ["007", "008", "007", "008"]
    again = runs.run(SENDS, job_id="monday", then=(target.command,))
    assert (again.status, runs.tenant.version, len(target.rows)) == ("repeated", 0, 4)


@pytest.mark.parametrize("stopped", ["cancelled", "timed_out"])
def test_a_run_that_is_stopped_ends_its_target(runs, tmp_path, stopped):
    """A cancellation and a time limit reach the command and all that it started."""
    place = tmp_path / "process"
    sleeps = f"sleep 600 & echo $! > {place}; wait"
    given = {"timeout_seconds": 2} if stopped == "timed_out" else {"is_cancelled": place.exists}
    begun = time.monotonic()
    outcome = runs.run("", then=(sleeps,), **given)
    assert (outcome.status, runs.tenant.version) == (stopped, -1)
    assert time.monotonic() - begun < 60
    until(lambda: not Path(f"/proc/{place.read_text().strip()}").exists())


@pytest.mark.parametrize("then", [("",), ("a\0b",), (5,)])
def test_what_is_no_command_is_refused(runs, then):
    """An empty one, one with a NUL character, and what is no text, before anything is made."""
    with pytest.raises(InvalidOption, match="then cannot have"):
        runs.request("", then=then)
    assert not Path(runs.root).exists()


@pytest.mark.parametrize(
    "said",
    [
        *("then = 5", "then = ['']", "keep_on_failure = 'yes'", "keep-on-failure = true"),
        "///\n# /// script\n# more = 1",
    ],
)
def test_a_header_that_names_no_command_is_refused(runs, said):
    """The run says what is wrong in the header, and makes nothing."""
    script = runs.script("")
    script.write_text(f"# /// script\n# [tool.freezeframe]\n# {said}\n# ///\n")
    with pytest.raises(InvalidOption, match="header cannot be read"):
        runs.run(script)
    assert not Path(runs.root).exists()


def test_a_request_keeps_its_commands_as_json(runs):
    """What is kept in the queue is the same request; one without a target has nothing of it."""
    request = runs.request("", then=("send a", "send b"), keep_on_failure=True)
    assert json.loads(json.dumps(request.to_json()))["then"] == ["send a", "send b"]
    assert not {"then", "keep_on_failure"} & set(runs.request("").to_json())
