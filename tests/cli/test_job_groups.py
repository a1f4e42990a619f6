"""A script for many tenants by one command: which tenants, their inputs, and the end of all."""

import io
import json
from pathlib import Path

import pytest

from freezeframe.cli.location import control
from freezeframe.cli.main import main
from freezeframe.script.tenants import open as open_store

TENANTS = ("acme", "globex", "initech")
SCRIPT = """
import os, pathlib
root = pathlib.Path(os.environ["ROOT_DIR"])
text = (root / "sync-output" / "note.txt").read_text()
if text == "broken":
    raise KeyError("Email")
(root / "snapshots" / "note.txt").write_text(text)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a script, three tenants, and a sync's folders of the first two; options of the store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "etl.py").write_text(SCRIPT)
    for name in TENANTS:
        open_store("store").tenant(name, create=True)
    for name, text in (("acme", "new"), ("globex", "broken")):
        for day in ("2026-11-26", "2026-11-27"):
            (tmp_path / "data" / name / day).mkdir(parents=True)
        (tmp_path / "data" / name / day / "note.txt").write_text(text)
    return ["--root", "store"]


@pytest.fixture
def told(place, capsys):
    """Run a command that ends with a code, and return the JSON that it prints."""

    def run(*arguments, code=0):
        capsys.readouterr()
        assert main([*arguments, *place, "--json"]) == code, capsys.readouterr().err
        printed = capsys.readouterr()
        return json.loads(printed.out) if printed.out else json.loads(printed.err)["error"]

    return run


@pytest.mark.parametrize("command", [["job", "submit"], ["schedule", "create", "s", "--cron", "@daily"]])
def test_each_tenant_can_have_a_script_of_its_own(told, place, tmp_path, command):
    """`{tenant}` in paths of script, config, state, catalog; without a tenant's file nothing is queued."""
    paths = ["scripts/{tenant}/etl.py"]
    for name in ("config", "state", "catalog"):
        paths += [f"--{name}", f"scripts/{{tenant}}/{name}.json"]
    for tenant in TENANTS:
        folder = tmp_path / "scripts" / tenant
        folder.mkdir(parents=True)
        for name in ("etl.py", "config.json", "state.json", "catalog.json"):
            (folder / name).write_text("{}")
    (folder / "state.json").unlink()
    assert "state.json" in told(*command, *paths, "--all-tenants", code=4)["problem"]
    (folder / "state.json").write_text("{}")
    told(*command, *paths, "--all-tenants")
    with control("store", None) as found:
        jobs = [job.request for job in found.queue.list().jobs]
        jobs += [item.definition.request for item in found.schedules.list(environment=found.environment)]
    requests = {item["tenant"]: item for item in map(json.loads, jobs)}
    names = {"script": "etl.py", "config": "config.json", "state": "state.json", "catalog": "catalog.json"}
    assert {
        tenant: {field: str(tmp_path / "scripts" / tenant / name) for field, name in names.items()}
        for tenant in TENANTS
    } == {tenant: {field: item[field] for field in names} for tenant, item in requests.items()}


@pytest.mark.long
def test_all_tenants_get_a_job_and_one_end(told, place, capsys):
    """Each with its own newest input; the failures are listed, and a repeated submission waits for them."""
    submit = ["job", "submit", "etl.py", "--all-tenants", "--input", "data/{tenant}/{newest}"]
    submit += ["--job-id", "night", "--attempts", "1"]
    assert main([*submit, *place]) == 0
    printed = capsys.readouterr()
    assert "1 of 3 tenants have no input yet: initech." in printed.err
    assert "etl.py for 3 tenants: 3 queued" in printed.out
    assert main(["worker", "--drain", *place]) == 0

    ended = told(*submit, "--wait", code=1)
    assert ended["counts"] == {"succeeded": 1, "failed": 2}
    assert [(item["tenant"], item["error"]) for item in ended["failures"]] == [
        ("globex", "KeyError: 'Email'"),
        (
            "initech",
            f"There is no folder {Path.cwd()}/data/initech/{{newest}}, which is named as the sync's output.",
        ),
    ]
    assert told("file", "read", "note.txt", "--tenant", "acme")["content"] == "new"
    listed = told("job", "list", "--group", "night")["jobs"]
    assert [(job["tenant"], job["group"]) for job in listed] == [
        ("initech", "night"),
        ("globex", "night"),
        ("acme", "night"),
    ]
    assert main(["job", "wait", "--group", "night", *place]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("etl.py for 3 tenants: 1 succeeded, 2 failed\n")
    assert "KeyError: 'Email'" in printed


@pytest.mark.long
def test_a_dry_run_of_all_tenants_is_summed_up(told, place, capsys):
    """What would change and why some would fail; nothing is committed."""
    submit = ["job", "submit", "etl.py", "--all-tenants", "--input", "data/{tenant}/{newest}"]
    told(*submit, "--job-id", "dry", "--attempts", "1", "--dry-run")
    assert main(["worker", "--drain", *place]) == 0

    assert main(["job", "wait", "--group", "dry", *place]) == 1
    printed = capsys.readouterr().out
    assert "dry run of etl.py for 3 tenants: 1 succeeded, 2 failed" in printed
    assert (
        "Nothing was committed. 1 of 3 tenants would change: 0 rows inserted, 0 updated, 0 deleted."
        in printed
    )
    effects = told("job", "wait", "--group", "dry", code=1)["effects"]
    assert {item["error"]: item["named"] for item in effects["failures"]}["KeyError: 'Email'"] == ["globex"]
    assert told("tenant", "history", "--tenant", "acme")["versions"] == []


@pytest.mark.parametrize(
    ("options", "tenants"),
    [
        (["--all-tenants"], TENANTS),
        (["--prefix", "g"], ("globex",)),
        (["--all-tenants", "--prefix", "i"], ("initech",)),
        (["--tenant", "acme", "--tenant", "initech", "--tenant", "acme"], ("acme", "initech")),
        (["--tenants-from", "ids.txt"], ("acme", "globex")),
        (["--tenants-from", "-"], ("initech",)),
    ],
)
def test_tenants_are_selected_by_name_prefix_or_file(told, tmp_path, monkeypatch, options, tenants):
    """Each tenant once, in a job of the same id."""
    (tmp_path / "ids.txt").write_text("acme\n\n globex \n")
    monkeypatch.setattr("sys.stdin", io.StringIO("initech\n"))

    made = told("job", "submit", "etl.py", "--job-id", "j", *options)
    assert (made["group"], made["jobs"], made["counts"]) == ("j", len(tenants), {"queued": len(tenants)})
    assert sorted(job["tenant"] for job in told("job", "list", "--group", "j")["jobs"]) == list(tenants)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--prefix", "x"], 2, "No tenant of the environment default is selected."),
        (["--tenant", "acme", "--prefix", "g"], 2, "selected in more than one way"),
        (["--tenant", "acme", "--tenant", "acmee"], 4, "There is no tenant acmee"),
        (["--tenants-from", "gone.txt"], 4, "list of tenants gone.txt cannot be read"),
        (["--all-tenants", "--again"], 2, "--again cannot be used"),
        (["--all-tenants", "--input", "data"], 2, "3 tenants would get the same input"),
        (["--all-tenants", "--input", "data/{tenat}"], 2, "cannot be resolved"),
        (
            ["--all-tenants", "--input", "data/{tenant}/{date}", "--at", "2020-01-01"],
            4,
            "data/acme/2020-01-01",
        ),
    ],
)
def test_what_cannot_be_submitted_queues_nothing(told, options, code, words):
    """A typed error comes before anything is queued."""
    assert words in told("job", "submit", "etl.py", *options, code=code)["problem"]
    assert told("job", "list")["jobs"] == []


def test_waiting_for_a_group_has_a_limit(told):
    """It says how far the group is; what is waited for must be named."""
    told("job", "submit", "etl.py", "--all-tenants", "--job-id", "j")

    assert "3 queued" in told("job", "wait", "--group", "j", "--timeout", "0", code=1)["cause"]
    assert told("job", "wait", code=2)["code"] == "INVALID_OPTION"
    assert told("job", "wait", "--group", "k", code=4)["code"] == "JOB_GROUP_NOT_FOUND"


def test_a_group_is_taken_back_tenant_by_tenant(told, place, capsys):
    """A line and a version for each; one that cannot be done does not stop the others, and is told."""
    store = open_store("store")
    assert main(["job", "submit", "etl.py", "--all-tenants", "--job-id", "night", *place]) == 0
    for number, name in enumerate(TENANTS[:2]):
        tenant = store.tenant(name)
        for step in range(number):
            tenant.files.write("other.txt", str(step).encode())
        with tenant.job("night") as job:
            job.files.write("note.txt", b"bad")
    capsys.readouterr()
    versions = [store.tenant(name).version for name in TENANTS]

    assert main(["job", "revert", "night", "--dry-run", *place]) == 0
    shown = capsys.readouterr().out
    assert versions == [store.tenant(name).version for name in TENANTS]
    done = told("job", "revert", "night", "--yes", "--message", "bad script")

    assert all(text in shown for text in ("would go back", "the job made no version"))
    assert [("acme", 1), ("globex", 2), ("initech", None)] == [
        (item["tenant"], item["reversion"] and item["reversion"]["tenant_version"]) for item in done
    ]
    assert [False, False] == [store.tenant(name).files.exists("note.txt") for name in TENANTS[:2]]
    store.tenant("acme").set_retention(keep_versions=1)
    store.tenant("acme").gc()
    again = told("job", "revert", "night", "--yes", code=1)
    assert ["VERSION_NOT_FOUND", None, "VERSION_NOT_FOUND"] == [
        item["error"] and item["error"]["code"] for item in again
    ]
    assert told("job", "revert", "night", "--tenant", "globex", "--yes")["committed"] is False
    assert told("job", "revert", "never", "--yes", code=4)["problem"] == "The queue has no job never."
