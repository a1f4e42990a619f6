"""``freezeframe run``: what it prints, its JSON and its exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import freezeframe
from freezeframe.cli.main import main

pytestmark = pytest.mark.long


@pytest.fixture
def store(tmp_path, tmp_path_factory, monkeypatch):
    """An empty folder to stand in, with a state folder that all tests here share."""
    state = tmp_path_factory.getbasetemp() / "run-state"
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(state))
    monkeypatch.setenv("FREEZEFRAME_RUNNER_IDLE_SECONDS", "10")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _script(folder, text):
    path = folder / "etl.py"
    path.write_text(text)
    return str(path)


def test_a_run_says_what_it_did(store, capsys):
    """Files, version and places in a few lines; what the script prints as it comes, made harmless."""
    script = _script(
        store, "print('l\\x1b[2J'); open('snapshots/a', 'w').write('1'); open('etl-output/b', 'w')"
    )
    assert main(["run", "--tenant", "acme", "--job-id", "x", script]) == 0
    said = capsys.readouterr().out
    assert "l\\x1b[2J" in said
    assert "Files written: a" in said
    assert "acme is at version 0" in said
    assert "Output: " in said
    assert (store / "freezeframe-data" / "job-roots").is_dir()
    assert "Log: freezeframe-data/job-roots/" in said
    assert main(["run", "--tenant", "acme", "--job-id", "x", script]) == 0
    said = capsys.readouterr().out
    assert "not run again" in said
    assert "That was version 0 of acme.\n" in said
    (store / "other.py").write_text("")
    assert main(["run", "--tenant", "acme", "--job-id", "x", "other.py"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "other.py was not run. The job x ran" in said


def test_a_run_that_makes_a_tenant_says_so(store, capsys):
    """A mistyped id is told with the ids that it is close to; a known one is not."""
    script = _script(store, "print('done')")
    assert main(["run", "--tenant", "acme", script]) == 0
    assert "Made a new tenant: acme.\n" in capsys.readouterr().out
    assert main(["run", "--tenant", "acme", script]) == 0
    assert "Made a new tenant" not in capsys.readouterr().out
    assert main(["run", "--tenant", "acmee", script]) == 0
    said = capsys.readouterr().out
    assert "Made a new tenant: acmee. The store has acme: is one of them meant?" in said
    assert main(["run", "--tenant", "akme", script, "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["made_tenant"], sorted(outcome["similar_tenants"])) == (True, ["acme", "acmee"])


def test_a_failed_run_for_a_mistyped_tenant_keeps_none(store, capsys):
    """The log is kept where the report says; a tenant that was there before, or has a version, stays."""
    script = _script(store, "print('before'); 1 / 0")
    for name in ("there", "acme"):
        assert main(["run", "--tenant", name, _script(store, "print(1)")]) == 0
    _script(store, "print('before'); 1 / 0")
    capsys.readouterr()
    assert main(["run", "--tenant", "akme", script]) == 1
    said = capsys.readouterr()
    assert "There is no tenant akme yet, and the failed run made none. The store has acme" in said.out
    root = re.search(r"The job's root is (.+)", said.out)[1]
    assert (store / root / "script.log").read_text().startswith("before\n")
    assert main(["run", "--tenant", "akme", script, "--json"]) == 1
    outcome = json.loads(capsys.readouterr().out)
    assert "before\n" in Path(outcome["log"]).read_text()
    assert outcome["error"]["details"]["script_line"] == "etl.py, line 1"
    assert main(["run", "--tenant", "acme", script]) == 1
    assert freezeframe.open("freezeframe-data").tenants() == ("acme", "there")


def test_a_failed_run_keeps_a_tenant_for_which_a_job_is_held(store):
    """Another run made nothing visible yet; what it has staged is not deleted with the tenant."""
    held = store / "held.py"
    held.write_text("open('snapshots/a', 'w').write('1')")
    line = [sys.executable, "-m", "freezeframe", "run", str(held), "--root", str(store / "freezeframe-data")]
    line += ["--tenant", "akme", "--job-id", "monday", "--hold"]
    script = _script(store, f"import subprocess; subprocess.run({line}, check=True); 1 / 0")
    assert main(["run", "--tenant", "akme", script]) == 1
    assert main(["job", "publish", "monday", "--tenant", "akme"]) == 0
    assert [file.path for file in freezeframe.open("freezeframe-data").tenant("akme").files.list()] == ["a"]


def test_the_audit_has_the_tenants_that_runs_make_and_take_back(store, capsys):
    """Where the store has a control database, under the job's id: the service's audit and the tenant's."""
    assert main(["key", "create"]) == 0
    assert main(["run", "--tenant", "acme", "--job-id", "x", _script(store, "print(1)")]) == 0
    assert main(["run", "--tenant", "akme", "--job-id", "y", _script(store, "1 / 0")]) == 1
    capsys.readouterr()
    told = []
    for place in ([], ["--tenant", "acme"]):
        assert main(["audit", "list", *place, "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out)["entries"])

    assert [(item["action"], item["subject"], item["details"].get("job_id")) for item in told[0][:-1]] == [
        ("tenant.delete", "default/akme", "y"),
        ("tenant.create", "default/akme", "y"),
        ("tenant.create", "default/acme", "x"),
    ]
    assert [(item["action"], item["subject"]) for item in told[1]] == [("tenant.create", "acme")]


def test_a_run_names_what_was_not_read_as_it_looks(store, capsys):
    """Numbers kept as text and files that no reader takes, once each, in the report and in its JSON."""
    (store / "in").mkdir()
    (store / "in" / "App-1.csv").write_text("Id,Version\n1,1.10\n2,1.9\n")
    (store / "in" / "App.xlsx").write_text("")
    script = _script(
        store,
        "from freezeframe.script import read_csv_folder, update_snapshot\n"
        "for _ in range(2): frame = read_csv_folder('sync-output')['App']\n"
        "update_snapshot('snapshots', 'App', 'Id', frame)\n"
        "print(read_csv_folder('sync-output/App-1.csv', as_='arrow')['App'].schema.types)",
    )
    assert main(["run", "--tenant", "acme", "--input", "in", script]) == 0
    said = capsys.readouterr().out
    assert 1 == said.count("Column 'Version' of 'App' looks like numbers and was kept as text: 1.10 (line 2)")
    assert "takes such files: App.xlsx" in said
    assert main(["run", "--tenant", "acmf", "--input", "in", script, "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert 2 == len(outcome["remarks"])


def test_a_run_without_input_or_changes_says_so(store, capsys):
    """An empty sync-output is named with its reason, and a version that holds no change is called so."""
    script = _script(store, "open('errors.txt', 'w').write('a warning')")
    (store / "empty").mkdir()
    assert main(["run", "--tenant", "acme", script]) == 0
    said = capsys.readouterr().out
    assert "The script's sync-output was empty: there was no --input.\n" in said
    assert "Nothing was changed; the run is kept as version 0 of acme" in said
    assert "The script succeeded, but wrote freezeframe-data/" in said
    assert main(["run", "--tenant", "acme", "--input", "empty", script]) == 0
    said = capsys.readouterr().out
    assert "sync-output was empty: nothing is in empty.\n" in said
    assert "kept as version 1 of acme" in said


def test_columns_that_came_or_lack_are_told(store, capsys, monkeypatch):
    """A run tells which columns of a source changed; the first rows of a stream are not a change."""
    monkeypatch.setenv("FREEZEFRAME_ENGINE", "auto")
    script = _script(
        store,
        "import os, pandas as pd\nfrom freezeframe import update_snapshot\n"
        "columns = os.environ['PARAM_columns'].split()\n"
        "update_snapshot('snapshots', 'Lead', columns[0], pd.DataFrame({name: ['1'] for name in columns}))",
    )
    command = ["run", "--tenant", "acme", script, "--param"]
    assert main([*command, "columns=Id City Name"]) == 0
    assert "Columns of" not in capsys.readouterr().out
    assert main([*command, "columns=Id Phone Name"]) == 0
    assert "Columns of Lead: added Phone; missing City\n" in capsys.readouterr().out


def test_json_is_the_outcome(store, capsys):
    """One JSON object on standard output, whatever the script prints; the error goes to standard error."""
    script = _script(store, "import os; print('noise'); raise SystemExit(int(os.environ['PARAM_code']))")
    options = ["run", "--root", "s", "--tenant", "acme", script, "--json", "--param"]
    assert main([*options, "code=0"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "succeeded"
    assert main([*options, "code=7"]) == 1
    said = capsys.readouterr()
    outcome = json.loads(said.out)
    assert (
        outcome["status"],
        outcome["exit_code"],
        outcome["error"]["code"],
    ) == ("failed", 7, "SCRIPT_FAILED")
    assert json.loads(said.err)["error"]["code"] == "SCRIPT_FAILED"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["no.py"], 4),
        (["--tenant", "../x", "etl.py"], 2),
        (["--param", "novalue", "etl.py"], 2),
        (["--var", "novalue", "etl.py"], 2),
        (["--input", "absent", "etl.py"], 4),
        (["--input", "etl.py", "etl.py"], 4),
        (["--memory", "0", "etl.py"], 2),
        (["--timeout", "-1", "etl.py"], 2),
    ],
)
def test_a_wrong_call_runs_nothing(store, capsys, options, code):
    """What is not there is 4, what cannot be is 2, each with a remedy, and no store comes to be."""
    _script(store, "pass")
    assert code == main(["run", "--tenant", "acme", *options])
    assert "\nRemedy: " in capsys.readouterr().err
    assert not (store / "freezeframe-data").exists()


def test_a_run_is_among_the_jobs_of_its_store(store, capsys):
    """Where the store has a control database: with its outcome, its log, and `run` as what it was."""
    script = _script(store, "print('hello'); raise SystemExit(len(open('parameters.json').read()) > 5)")
    assert main(["run", "--tenant", "acme", "--job-id", "before", script]) == 0
    assert main(["job", "submit", "--tenant", "beta", "--job-id", "queued", script]) == 0
    assert main(["run", "--tenant", "acme", "--job-id", "good", script]) == 0
    assert 0 != main(["run", "--tenant", "acme", "--job-id", "bad", "--param", "long=enough", script])
    capsys.readouterr()

    assert main(["job", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(item["job_id"], item["status"]) for item in listed["jobs"]] == [
        ("bad", "failed"),
        ("good", "succeeded"),
        ("queued", "queued"),
    ]
    assert main(["job", "logs", "bad"]) == 0
    assert "hello" in capsys.readouterr().out


def test_a_control_database_that_cannot_be_opened_keeps_no_script_from_running(store, capsys, caplog):
    """The script is run; that it is not among the jobs is a warning."""
    control = store / "freezeframe-data" / "_freezeframe" / "control.db"
    script = _script(store, "print('done')")
    assert main(["run", "--tenant", "acme", script]) == 0
    control.write_text("no database")

    assert main(["run", "--tenant", "acme", script]) == 0
    assert "not listed among the jobs" in caplog.text


def test_an_interrupt_cancels_the_run(store):
    """Ctrl-C: the script is stopped with time to tidy up, nothing changed, exit code 130."""
    script = _script(store, "import time; print('begun', flush=True); time.sleep(600)")
    process = subprocess.Popen(
        [sys.executable, "-m", "freezeframe", "run", "--tenant", "acme", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)  # half of what the script sleeps
    assert process.returncode == 130
    assert "cancelled" in errors


def test_output_copies_what_the_script_wrote_for_others(store, capsys):
    """Into a folder that may be there already; a run that fails copies nothing."""
    script = _script(
        store, "import os; open('etl-output/a.csv', 'w').write('1'); 1 / int(os.environ['PARAM_n'])"
    )
    options = ["run", script, "--tenant", "acme", "--output", "out"]
    assert main([*options, "--param", "n=0"]) == 1
    assert not (store / "out").exists()
    (store / "file").touch()
    assert main([*options[:-1], "file", "--param", "n=1"]) == 2  # before it runs: the job would be committed
    (store / "out").mkdir()
    capsys.readouterr()
    assert main([*options, "--param", "n=1"]) == 0
    assert "\nOutput: out\n" in capsys.readouterr().out
    assert (store / "out" / "a.csv").read_text() == "1"


def test_output_follows_no_link_out_of_its_folder(store, capsys):
    """A link inside is copied as its file; one that leads elsewhere, or to a folder, is named instead."""
    (store / "secret").write_text("not the script's to give away")
    script = _script(
        store,
        "import os; os.chdir('etl-output'); open('a.csv', 'w').write('1'); os.symlink('a.csv', 'near.csv')\n"
        f"os.symlink({str(store / 'secret')!r}, 'far.csv')\n"
        "os.symlink('.', 'again'); os.symlink('no', 'lost')",
    )
    assert main(["run", script, "--tenant", "acme", "--output", "out"]) == 0
    assert sorted(path.name for path in (store / "out").iterdir()) == ["a.csv", "near.csv"]
    assert (store / "out" / "near.csv").read_text() == "1"
    assert capsys.readouterr().err.count("was not copied") == 3


def test_a_dry_run_says_what_would_change(store, capsys, monkeypatch):
    """Counts, columns, files, and with --diff rows, cells and lines; output goes where a real run's goes."""
    monkeypatch.setenv("FREEZEFRAME_ENGINE", "auto")
    text = """import os, pandas as pd, freezeframe
        rows = pd.DataFrame({"Id": [1, 2], "Name": ["Ada", os.environ["PARAM_name"]]})
        freezeframe.update_snapshot("snapshots", "Account", "Id", rows.assign(**{os.environ["PARAM_new"]: 1}))
        open("snapshots/note", "w").write(os.environ["PARAM_name"])
        open("etl-output/b", "w")"""
    command = ["run", _script(store, text.replace("\n        ", "\n")), "--tenant", "acme"]
    second = [*command, "--param", "name=Bob", "--param", "new=Count"]
    assert main([*command, "--param", "name=Bo", "--param", "new=Total", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "A real run would make a new tenant: acme." in said
    assert "These changes are to acme without a version" in said
    assert not (store / "freezeframe-data").exists()
    assert main([*command, "--param", "name=Bo", "--param", "new=Total"]) == 0
    capsys.readouterr()

    assert main([*second, "--dry-run", "--diff", "--limit", "1", "--output", "out"]) == 0

    said = " ".join(capsys.readouterr().out.split())
    assert "Account: 1 of 2 changes change Id cells update 1 Count: (null) → 1 ---" in said
    assert "-Bo +Bob" in said
    assert "Account 0 2 0 0" in said
    assert "Columns of Account: added Count long; missing Total Files changed: note" in said
    assert "Dry run, nothing was committed. These changes are to version 0 of acme" in said
    assert (store / "out" / "b").exists()
    assert main([*second, "--dry-run", "--diff", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["dry_run"]
    assert [row["Name"] for row in found["streams"]["Account"]["changes"]] == ["Ada", "Bob"]
    assert found["files"]["note"]["text"].endswith("-Bo\n+Bob")
    assert main([*second, "--diff"]) == 2
    assert main([*command, "--dry-run"]) == 1
    capsys.readouterr()
    assert main(["tenant", "history", "--tenant", "acme", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["versions"]) == 1
