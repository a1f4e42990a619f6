"""Each command of the catalogue leaves its entry in the audit and prints what its route answers."""

import json
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import TypeAdapter
from tests.cli.test_commands import COMMANDS

import freezeframe
from freezeframe.cli.local_caller import LocalCaller, StoreCaller, Unaudited
from freezeframe.cli.main import main
from freezeframe.control.tables import audit
from freezeframe.runs.kept_jobs import KeptJob
from freezeframe.service.operations.catalogue import OPERATIONS
from freezeframe.store.blobs.kept_inputs import open_inputs
from freezeframe.store.model.update_options import system_user
from freezeframe.store.tenant import open_job

ACTIONS = {words: item.action for item in OPERATIONS if item.action for words in item.commands}
STORE, TENANT = "--root {root} --env dev", "--root {root} --env dev --tenant acme"
# The arguments of a call that succeeds, as `store` prepares it.
CALLS = {
    "file write": f"new.txt rows.csv {TENANT}",
    "file patch": f"config.json {{{{}}}} {TENANT}",
    "file delete": f"config.json {TENANT}",
    "file move": f"config.json moved.json {TENANT}",
    "tenant tag": f"live 0 {TENANT}",
    "tenant untag": f"mine {TENANT}",
    "tenant retention": f"--keep-days 9 {TENANT}",
    "tenant restore": f"0 --yes {TENANT}",
    "tenant revert": f"1 --yes {TENANT}",
    "job revert": f"made --yes {TENANT}",
    "job pull": f"made pulled {TENANT}",
    "tenant gc": f"--yes {TENANT}",
    "gc": f"--yes --all {STORE}",
    "tenant create": f"new {STORE}",
    "tenant clone": f"acme copy {STORE}",
    "tenant delete": f"acme --yes {STORE}",
    "tenant erase": f"Account --key 1 --yes {TENANT}",
    "migrate": f"before {TENANT}",
    "import": f"rows.csv --stream Account --key Id {TENANT}",
    "stream import": f"Account rows.csv --key Id {TENANT}",
    "stream restore": f"Account 0 --yes {TENANT}",
    "delivery retry": f"Account shop --key 2 {TENANT}",
    "stream drop": f"Account --yes {TENANT}",
    "stream retype": f"Account Id string {TENANT}",
    "stream release": f"Account {TENANT}",
    "stream adopt": f"Free {TENANT}",
    "stream repair": f"Account --yes {TENANT}",
    "job submit": f"etl.py {TENANT}",
    "job retry": f"ended {STORE}",
    "job replay": f"made {TENANT}",
    "job cancel": f"waiting {STORE}",
    "job publish": f"held {STORE}",
    "job discard": f"held {STORE}",
    "job cancel-group": f"open {STORE}",
    "job publish-group": f"held {STORE}",
    "job discard-group": f"held {STORE}",
    "schedule create": f"daily etl.py --cron @daily {TENANT}",
    "schedule enable": f"nightly {TENANT}",
    "schedule disable": f"nightly {TENANT}",
    "schedule delete": f"nightly {TENANT}",
}
# Of keys and sessions, which `test_access.py` tries.
OF_KEYS = {words for words in ACTIONS if words.startswith("key ")}
# Their changes are a script's, whose run the tenant's log has; or they change no tenant.
OTHERS = {
    *("init", "run", "worker", "serve", "doctor", "prove", "sql", "export"),
    *("job list", "job show", "job logs", "job wait", "schedule list", "key list"),
    *("tenant list", "tenant show", "tenant history", "tenant diff", "tenant verify"),
    *("stream list", "stream show", "stream history", "stream changes", "stream diff", "stream row"),
    *("delivery list", "delivery show"),
    *("stream explain", "stream path", "stream export", "file list", "file read", "file history"),
    *("audit list", "audit export", "audit verify", "config show", "config get", "config set", "config path"),
    *("delta show", "delta history", "delta verify", "delta checkpoint"),
    *("spark status", "spark start", "spark stop", "spark archive", "spark logs"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a store with a control database, and a tenant that each call finds what it needs in."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        in_folder(folder, patch)
        fill(folder)
    return folder


@pytest.fixture
def store(made, tmp_path, monkeypatch):
    """A copy of that store; its root."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    with sqlite3.connect(tmp_path / "store" / "_freezeframe" / "control.db") as database:
        for table in ("jobs", "schedules"):  # what is to run names the root
            moved = f"UPDATE {table} SET request = replace(request, ?, ?)"
            database.execute(moved, (str(made), str(tmp_path)))
    database.close()
    in_folder(tmp_path, monkeypatch)
    return str(tmp_path / "store")


def in_folder(folder, patch):
    """Commands run there, and keep their state there."""
    patch.chdir(folder)
    patch.setenv("FREEZEFRAME_STATE_DIR", str(folder / "state"))
    patch.setenv("FREEZEFRAME_ENGINE", "auto")


def fill(folder):
    """Make the store, and files beside it."""
    root = str(folder / "store")
    (folder / "rows.csv").write_text("Id,Name\n7,z\n")
    (folder / "etl.py").write_text("print('ran')\n")
    (folder / "before").mkdir()
    (folder / "before" / "Lead.snapshot.csv").write_text("Id\n1\n")
    tenant = freezeframe.open(root, "dev").tenant("acme", create=True)
    with tenant.job() as job:
        job.files.write("config.json", b"{}")
        for name in ("Account", "Free"):
            job.stream(name).update(pa.table({"Id": [1, 2], "Name": ["a", "b"]}), key=["Id"])
    with tenant.job("made") as job:
        job.stream("Account").update(pa.table({"Id": [3], "Name": ["c"]}), key=["Id"])
    inputs = open_inputs(tenant.context.storage, tenant.context.settings, 0)
    made = KeptJob("made", "acme", "dev", "etl.py", {}, {}, 0, {}, ())
    inputs.record(inputs.folder(1), "made", made.to_json())
    delivery = tenant.delivery("shop")
    delivery.reject("Account", delivery.pending("Account").assign(_error="too long"))
    tenant.tag("mine")
    tenant.stream("Free").release()
    place = ["--root", root, "--env", "dev"]
    for job_id in ("waiting", "ended"):
        assert main(["job", "submit", "etl.py", "--tenant", "acme", "--job-id", job_id, *place]) == 0
    assert main(["job", "cancel", "ended", *place]) == 0
    held = ["--job-id", "held", "--hold", "--priority", "1"]
    assert main(["job", "submit", "etl.py", "--all-tenants", *held, *place]) == 0
    with StoreCaller(root, "dev") as caller:
        hold_next(caller.control.queue, tenant)
    assert main(["job", "submit", "etl.py", "--all-tenants", "--job-id", "open", *place]) == 0
    assert (
        main(["schedule", "create", "nightly", "etl.py", "--cron", "@daily", "--tenant", "acme", *place]) == 0
    )


def hold_next(queue, tenant):
    """Hold the job that is next, which changes one row, as a worker does."""
    job = queue.claim("worker")
    with open_job(replace(tenant.context, review=lambda effects, _: effects), job.job_id) as held:
        held.stream("Account").update(pa.table({"Id": [4], "Name": ["d"]}), key=["Id"])
    queue.finish(job, "held", json.dumps({"dry_run": held.dry_run.to_json()}))


def entries(root):
    """All entries of the audit, of tenants and of the service, oldest first."""
    with StoreCaller(root, "dev") as caller, caller.control.database.read() as connection:
        return [dict(row) for row in connection.execute(audit.select().order_by(audit.c.number)).mappings()]


def faults(words, root):
    """What is wrong with the audit of a command's call: no, another or a second entry, or no trace of it."""
    tenant = freezeframe.open(root, "dev").tenant("acme")
    before, version = len(entries(root)), tenant.version
    if main([*words.split(), *CALLS[words].format(root=root).split()]):
        return ["it failed"]
    new = entries(root)[before:]
    found = [] if new else ["no entry"]
    found += [entry["action"] for entry in new if not entry["action"].startswith(ACTIONS[words])]
    found += [entry["details"] for entry in new if '"outcome": "failed"' in entry["details"]]
    found += [entry["principal"] for entry in new if entry["principal"] != f"command:{system_user()}"]
    first = Counter((entry["tenant"], entry["subject"]) for entry in new if "outcome" not in entry["details"])
    found += [place for place, count in first.items() if count > 1]
    if words != "tenant delete" and tenant.version > version:
        requests = {entry["request_id"] for entry in new} - {""}
        found += [item.version for item in tenant.history(1) if {item.request_id} != requests]
    return found


def test_each_command_is_in_the_catalogue_or_changes_no_tenant():
    """A command that is added is put into the catalogue with what it changes, or among the others."""
    commands = {words.removeprefix("freezeframe ") for words in COMMANDS}

    assert (ACTIONS.keys() - OF_KEYS, commands - ACTIONS.keys()) == (CALLS.keys(), OTHERS)


@pytest.mark.long
@pytest.mark.parametrize("words", CALLS)
def test_a_command_that_changes_something_leaves_its_entry(words, store):
    """One under the operation's action, before the change; a new version has the entry's request id."""
    assert [] == faults(words, store)


MADE = {item.commands[0]: item for item in OPERATIONS if item.run and item.commands}
# Their operation changes something after a question, or is one of two that the command calls.
ASKS = {
    "stream drop",
    "stream restore",
    "tenant erase",
    "tenant restore",
    "tenant revert",
    "tenant retention",
}


@pytest.mark.long
@pytest.mark.parametrize("words", [words for words, item in MADE.items() if not item.method])
def test_a_command_without_a_route_prints_the_result(words, store, capsys):
    """With ``--json`` one value of the class that its operation returns; those with one: `test_doors`."""
    arguments = CALLS.get(words, "--root {root}").format(root=store)
    assert main([*words.split(), *arguments.split(), "--json"]) == 0
    item, answer = MADE[words], json.loads(capsys.readouterr().out)

    assert _members(item, answer) == answer.keys()


def _members(item, answer):
    TypeAdapter(item.result).validate_python(answer)
    return {one.name for one in fields(item.result)}


def test_each_command_is_made_or_has_a_reason():
    """What the catalogue does not make does more than call and print; it says what."""
    commands = {words.removeprefix("freezeframe ") for words in COMMANDS}

    assert commands - (MADE.keys() - ASKS) == made_by_hand("commands")


def made_by_hand(doors):
    """The routes or commands that the decision on operations names, each with a reason."""
    page = Path(__file__).parents[2] / "docs" / "decisions" / "0060-an-operation-is-said-once.md"
    table = page.read_text().partition(f"| does this | {doors} |")[2].partition("\n\n")[0]
    return set(re.findall("`([^`]+)`", table))


def test_the_sweep_finds_a_command_without_an_entry(store, monkeypatch):
    """The control: what writes no entry is told."""
    monkeypatch.setattr(LocalCaller, "audit_change", lambda *_, **__: nullcontext(Unaudited()))

    assert "no entry" in faults("file delete", store)
