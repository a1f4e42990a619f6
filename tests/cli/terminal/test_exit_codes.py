"""Exit codes: every error class has one, and each command ends with the one that the reference names."""

import shlex

import pyarrow as pa
import pytest
import typer

import freezeframe
from freezeframe import errors
from freezeframe.cli.application import app
from freezeframe.cli.main import main
from freezeframe.cli.output import exit_code


def _classes(root):
    yield root
    for child in root.__subclasses__():
        yield from _classes(child)


@pytest.mark.parametrize("kind", list(_classes(errors.FreezeframeError)), ids=lambda kind: kind.__name__)
def test_every_error_has_a_code(kind):
    """0 is never an error's; what is not there is 4, a conflict 3, a wrong call 2, all else 1."""
    expected = 1
    if issubclass(kind, errors.NotFound):
        expected = 4
    elif issubclass(kind, errors.ConflictError | errors.IdempotencyConflict):
        expected = 3
    elif issubclass(kind, errors.FixTheRequest):
        expected = 2

    assert exit_code(kind("what happened")) == expected


# What each command is asked for, and how it ends: 2 a call that must change, 4 a thing that is not there.
# STORE has the tenant acme with the stream A and the file f.json; ABSENT is no folder.
ENDS = """
init: 2 --nope
run: 4 absent.py IN | 4 etl.py IN --input ABSENT | 2 etl.txt IN | 2 etl.py IN --param x
worker: 2 --root STORE --parallel 0
job submit: 4 absent.py IN | 2 etl.txt IN | 4 etl.py IN --input ABSENT
job list: 2 --root STORE --limit x
job show: 4 absent --root STORE
job logs: 4 absent --root STORE
job cancel: 4 absent --root STORE
job retry: 4 absent --root STORE
job wait: 4 absent --root STORE
schedule create: 4 n absent.py IN --cron '0 * * * *' | 2 n etl.py IN --cron x
schedule list: 2 --nope
schedule enable: 4 absent IN
schedule disable: 4 absent IN
schedule delete: 4 absent IN
tenant list: 2 --root STORE --limit 0
tenant create: 2 ../x --root STORE
tenant show: 4 NOBODY | 4 IN --version 9 | 2 IN --version x
tenant history: 4 NOBODY | 2 IN --limit 0
tenant diff: 4 9 IN | 2 x IN
tenant restore: 4 9 IN --yes
tenant tag: 4 t 9 IN | 2 '' IN
tenant untag: 4 absent IN
tenant delete: 4 nobody --root STORE --yes | 2 acme --root STORE
tenant clone: 4 nobody other --root STORE
tenant gc: 4 NOBODY --yes
tenant verify: 4 NOBODY
tenant erase: 4 Absent --key 1 --yes IN | 2 A --yes IN
tenant retention: 4 NOBODY
stream list: 4 NOBODY
stream show: 4 Absent IN | 4 A --version 9 IN | 2 A --where x IN | 2 A --limit x IN
stream history: 4 Absent IN
stream changes: 4 Absent IN | 4 A --since 9 IN
stream row: 4 A 7 IN | 4 Absent 7 IN | 2 A x IN
stream diff: 4 A 9 IN | 4 Absent 0 IN
stream restore: 4 A 9 --yes IN | 4 Absent 0 --yes IN
stream path: 4 Absent IN
stream explain: 4 NOBODY A
stream import: 4 B absent.csv --key Id IN | 2 B a.csv --key Absent IN | 2 B a.csv --key Id --mode x IN
stream export: 4 Absent --to new.csv IN
stream retype: 4 Absent v string IN | 2 A absent string IN | 2 A v absent IN
stream drop: 4 Absent --yes IN
stream release: 4 Absent IN
stream adopt: 4 Absent IN
stream repair: 4 Absent --yes IN
sql: 4 'select 1' NOBODY
file list: 4 NOBODY | 2 ../x IN
file read: 4 absent IN | 2 ../x IN
file write: 4 x absent IN | 2 ../x etl.txt IN
file patch: 2 f.json x IN | 4 f.json '{}' NOBODY
file delete: 4 absent IN
file move: 4 absent x IN
file history: 4 absent IN
import: 4 absent.csv --key Id IN | 2 a.csv --key Absent IN
migrate: 4 absent IN
export: 4 new NOBODY
gc: 4 NOBODY --yes
delta show: 4 ABSENT
delta history: 4 ABSENT
delta verify: 4 ABSENT
delta checkpoint: 4 ABSENT
serve: 2 --root STORE --port 70000
key create: 2 --root STORE --name x --scope x
key list: 2 --nope
key revoke: 4 absent --root STORE
key rotate: 4 absent --root STORE
key sign-out: 2 --nope
key rotate-master: 2 --root STORE
audit list: 2 --root STORE --limit x
audit export: 2 --root STORE --since x
audit verify: 2 --nope
spark status: 2 --nope
spark start: 2 --nope
spark stop: 2 --nope
spark logs: 2 --nope
doctor: 2 --nope
prove: 2 --storage ftp://x | 2 --storage STORE --only x
upgrade: 2 --nope
config show: 2 --nope
config get: 2 absent
config set: 2 absent 1
config path: 2 --nope
"""
PLACES = {
    "IN": ["--root", "store", "--tenant", "acme"],
    "NOBODY": ["--root", "store", "--tenant", "nobody"],
    "STORE": ["store"],
    "ABSENT": ["absent"],
}


def commands():
    """The words of every command that does something."""

    def walk(words, command):
        if not hasattr(command, "list_commands"):
            yield " ".join(words)
            return
        for name in command.list_commands(None):
            yield from walk([*words, name], command.get_command(None, name))

    return list(walk([], typer.main.get_command(app)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a store, scripts and a file of rows."""
    folder = tmp_path_factory.mktemp("ends")
    tenant = freezeframe.open(folder / "store", engine="auto").tenant("acme", create=True)
    tenant.stream("A").update(pa.table({"Id": [1], "v": [2]}), key=["Id"])
    tenant.files.write("f.json", b"{}")
    for name, text in {"etl.py": "", "etl.txt": "", "a.csv": "Id\n1\n"}.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.long
def test_every_command_ends_as_documented(folder, tmp_path, monkeypatch):
    """A bad option, input that is refused, a thing that is not there."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path))
    table = dict(line.split(": ", 1) for line in ENDS.strip().splitlines())
    assert sorted(commands()) == sorted(table)
    wrong = []
    for words, cases in table.items():
        for case in ["2 --nope", *cases.split(" | ")]:
            code, *rest = shlex.split(case)
            options = [part for item in rest for part in PLACES.get(item, [item])]
            found = main([*words.split(), *options])
            if found != int(code):
                wrong.append((words, options, code, found))
    assert wrong == []
