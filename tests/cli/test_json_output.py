"""``--json`` of every command is what ``docs/reference/json-output.schema.json`` says."""

import ast
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator
from tests.cli.test_commands import COMMANDS

import freezeframe
from freezeframe.cli.main import main

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "reference" / "json-output.schema.json").read_text(encoding="utf-8")
)
# Tried where Spark runs: test_spark.py and test_sql.py.
ELSEWHERE = {"serve", "spark start", "sql"}
SCRIPT = "import os\nprint('said')\nopen(os.environ['ROOT_DIR'] + '/snapshots/note.txt', 'w').write('kept')\n"


def problems(words, printed):
    """What the schema has against a value that a command printed."""
    one = {"$ref": f"#/$defs/{words.replace(' ', '%20')}", "$defs": SCHEMA["$defs"]}
    return [
        f"{words}: {error.json_path} {error.message}"
        for error in Draft202012Validator(one).iter_errors(printed)
    ]


class Printed:
    """Runs commands with ``--json`` and collects what the schema has against their output."""

    def __init__(self, capsys):
        self.capsys, self.problems = capsys, []

    def __call__(self, words, *arguments, code=0):
        assert code == main([*words.split(), *map(str, arguments), "--json"])
        lines = [json.loads(line) for line in self.capsys.readouterr().out.splitlines()]
        assert lines
        for line in lines:
            self.problems += problems(words, line)
        return lines[-1]


@pytest.fixture
def printed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("FREEZEFRAME_RUNNER_IDLE_SECONDS", "0")
    monkeypatch.setenv("FREEZEFRAME_ENGINE", "auto")
    return Printed(capsys)


@pytest.fixture
def acme(tmp_path):
    """A tenant of a store with two versions of a stream and a file; its options."""
    tenant = freezeframe.open(str(tmp_path / "store"), "dev").tenant("acme", create=True)
    tenant.stream("Account").update(pa.table({"Id": [1, 2], "Name": ["a", "b"]}), key=["Id"])
    with tenant.job("sync-1", message="Nightly", who="ops") as job:
        job.stream("Account").update(pa.table({"Id": [2, 3], "Name": ["c", "d"]}), key=["Id"])
        job.files.write("config.json", b'{"a": 1}')
    return ["--root", tmp_path / "store", "--env", "dev", "--tenant", "acme"]


def test_every_command_has_a_result_in_the_schema():
    """A command that is added is written down, one that is gone is taken out."""
    commands = {words.removeprefix("freezeframe ") for words in COMMANDS}

    assert commands == {name for name in SCHEMA["$defs"] if name[0].islower()}


def test_every_command_is_tried():
    """By a test of this file, by that of the service, or by one that needs Spark."""
    words = {
        path.value
        for path in ast.walk(ast.parse(Path(__file__).read_text()))
        if isinstance(path, ast.Constant)
    }

    assert {name.removeprefix("freezeframe ") for name in COMMANDS} - words - ELSEWHERE == set()


def test_names_of_fields_are_snake_case_and_the_same_everywhere():
    """No other spelling, and none of the words that mean the same as another one."""
    objects = {name: one.get("properties", {}) for name, one in SCHEMA["$defs"].items()}
    fields = {(name, field) for name, properties in objects.items() for field in properties}
    versions = {"Table", "TableVersion", "Checkpoint", "File", "FileRevision", "Tag"}

    assert {item for item in fields if not re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", item[1])} == set()
    assert {item for item in fields if item[1] in {"who", "new", "when", "job"}} == set()
    assert versions == {name for name, field in fields if field == "version"}


def test_reads_of_a_tenant_print_what_the_schema_says(printed, acme):
    """Lists, histories, rows and differences."""
    for words in ("tenant show", "tenant history", "tenant verify", "tenant retention"):
        printed(words, *acme)
    printed("tenant list", *acme[:4])
    printed("tenant verify", "--all", *acme[:2])
    printed("tenant diff", "0", "1", "--text", *acme)
    for words in ("stream list", "stream history"):
        printed(words, *acme)
    for words in ("stream show", "stream changes", "stream explain", "stream path"):
        printed(words, "Account", *acme)
    printed("stream row", "Account", "2", *acme)
    printed("stream diff", "Account", "0", "1", *acme)
    printed("file list", *acme)
    printed("file read", "config.json", *acme)
    printed("file read", "config.json", "--to", "read.json", *acme)
    printed("file history", "config.json", *acme)

    assert printed.problems == []


def test_changes_of_a_tenant_print_what_the_schema_says(printed, acme, tmp_path):
    """Imports, restorations, files, tags, and the end of tenants."""
    store = acme[:4]
    Path("Account.csv").write_text("Id,Name\n4,e\n")
    printed("import", "Account.csv", *acme)
    printed("stream import", "Account", "Account.csv", "--dry-run", *acme)
    Path("before").mkdir()
    Path("before/Lead.snapshot.csv").write_text("Id,Name\n4,e\n")
    printed("migrate", "before", "--tenant", "fifth", "--dry-run", *acme[:2])
    printed("migrate", "before", "--tenant", "fifth", *acme[:2])
    printed("stream export", "Account", "--to", tmp_path, *acme)
    printed("stream retype", "Account", "Id", "string", *acme)
    printed("tenant restore", "1", "--yes", *acme)
    printed("stream restore", "Account", "0", "--dry-run", *acme)
    printed("tenant tag", "live", "0", *acme)
    printed("tenant untag", "live", *acme)
    printed("file write", "b.txt", "Account.csv", *acme)
    printed("file patch", "config.json", '{"a": 2}', *acme)
    printed("file move", "b.txt", "c.txt", *acme)
    printed("file delete", "c.txt", *acme)
    printed("tenant gc", "--dry-run", *acme)
    printed("gc", "--yes", *acme)
    printed("gc", "--all", "--dry-run", *acme[:4])
    printed("export", "exported", *acme)
    printed("tenant clone", "acme", "other", *store)
    printed("stream release", "Account", *acme)
    printed("stream adopt", "Account", *acme)
    printed("stream repair", "Account", "--yes", *acme)
    printed("tenant erase", "Account", "--key", "1", "--dry-run", *acme)
    printed("tenant erase", "Account", "--key", "1", "--yes", *acme)
    printed("stream drop", "Account", "--yes", *acme)
    printed("tenant create", "fourth", *store)
    printed("tenant delete", "acme", "--dry-run", *store)
    printed("tenant delete", "acme", "--yes", *store)

    assert printed.problems == []


def test_the_log_of_a_table_prints_what_the_schema_says(printed, tmp_path):
    """With the writer's own words untouched below ``commit_info``."""
    freezeframe.script.open_tenant(tmp_path / "t").stream("Account").update(pa.table({"Id": [1]}), key=["Id"])
    table = tmp_path / "t" / "Account.snapshot"
    for words in ("delta show", "delta history", "delta verify", "delta checkpoint"):
        printed(words, table)

    assert printed.problems == []


@pytest.mark.long
def test_jobs_print_what_the_schema_says(printed, tmp_path):
    """Runs, the queue, its worker, and schedules."""
    root = ["--root", tmp_path / "store"]
    acme = ["--tenant", "acme"]
    Path("etl.py").write_text(SCRIPT)
    printed("run", "etl.py", "--dry-run", "--diff", *acme, *root)
    printed("run", "etl.py", *acme, *root)
    printed("job submit", "etl.py", "--job-id", "a", *acme, *root)
    printed("worker", "--once", *root)
    printed("job wait", "a", *root)
    printed("job show", "a", *root)
    printed("job list", *root)
    printed("job logs", "a", *root)
    printed("job submit", "etl.py", "--job-id", "b", "--at", "2999-01-01", *acme, *root)
    printed("job cancel", "b", *root)
    printed("job retry", "b", *root)
    printed("schedule create", "nightly", "etl.py", "--cron", "@daily", *acme, *root)
    printed("schedule list", *root)
    printed("schedule disable", "nightly", *acme, *root)
    printed("schedule enable", "nightly", *acme, *root)
    printed("schedule delete", "nightly", *acme, *root)

    assert printed.problems == []


def test_set_up_and_service_print_what_the_schema_says(printed, tmp_path, monkeypatch):
    """Projects, settings, keys, people, checks of the machine."""
    root = ["--root", tmp_path / "store"]
    printed("init", "shop")
    printed("config path")
    printed("config show")
    printed("config show", "--origin")
    printed("config get", "root")
    printed("config set", "engine", "auto")
    printed("doctor")
    printed("prove", "--storage", tmp_path / "proved", "--only", "listing")
    key = printed("key create", "--name", "ci", *root)
    printed("key list", *root)
    printed("key rotate", key["id"], *root)
    printed("key revoke", key["id"], *root)
    for name in ("old", "new"):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_bytes(name[:1].encode() * 32)
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(tmp_path / "new"))
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE_OTHER", str(tmp_path / "old"))
    printed("key rotate-master", *root)
    printed("key sign-out", *root)
    printed("audit list", *root)
    printed("audit export", *root)
    printed("audit verify", *root)
    (tmp_path / "secret").write_text("a secret of some length")
    monkeypatch.setenv("FREEZEFRAME_NOTIFY_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("FREEZEFRAME_NOTIFY_URL", "http://127.0.0.1:9/")
    printed("spark status")
    printed("spark stop")
    log = tmp_path / "state" / "spark-1" / "server.log"
    log.parent.mkdir(parents=True)
    log.write_text("started\n")
    printed("spark logs")

    assert printed.problems == []


@pytest.mark.long
def test_errors_and_warnings_go_to_standard_error_as_objects(capsys, tmp_path, monkeypatch):
    """Of every command in the same form; standard output stays empty."""
    monkeypatch.chdir(tmp_path)
    for words in ("tenant show", "stream list", "delta show missing"):
        assert main([*words.split(), "--json"]) == 4
        said = capsys.readouterr()
        answers = [json.loads(line) for line in said.err.splitlines()]
        assert said.out == ""
        assert problems("Error", answers[-1]["error"]) == []
        for answer in answers[:-1]:
            assert problems("Warning", answer["warning"]) == []
