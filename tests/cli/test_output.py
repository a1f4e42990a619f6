"""Output of commands: text, tables, JSON, safe characters and exit codes."""

import io
import json
import math
import re
import shlex
import unicodedata
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.test_commands import COMMANDS

import freezeframe
from freezeframe import errors
from freezeframe.cli.main import main
from freezeframe.cli.output import (
    Output,
    cell_changes,
    exit_code,
    near_path,
    visible,
    visible_json,
    visible_lines,
)
from freezeframe.errors import VersionNotFound
from freezeframe.store.diff.row_changes import compare_tables


def test_a_table_is_the_same_rows_as_json(capsys):
    """JSON keeps every field, and values that JSON does not know as text, at any depth."""
    rows = [{"name": "Lead", "sum": Decimal("1.10"), "none": None, "parts": [{"x": math.inf}, math.nan]}]
    Output(as_json=True).table("Streams", rows)
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)

    wanted = {"name": "Lead", "sum": "1.10", "none": None, "parts": [{"x": "Infinity"}, "NaN"]}
    assert [wanted] == told


def test_text_shows_missing_values_and_square_brackets(capsys):
    """Values are never taken for markup, a null is a dash, a newline does not break the table."""
    Output().table("Rows", [{"a": "[bold]x[/bold]", "b": None, "c": "one\ntwo"}])
    printed = capsys.readouterr().out

    assert "[bold]x[/bold]" in printed
    assert "one⏎two" in printed
    assert " - " in printed


@pytest.mark.parametrize("number", [1e-9, 0.1, 1234567.891, -2.5e300, 2**63, Decimal("1.500"), math.inf])
def test_numbers_are_printed_whole(capsys, number):
    """In tables, records and lists no digit is rounded away: what is printed reads back as the value."""
    Output().table("", [{"n": number}])
    Output().record({"n": number, "list": [number]})
    head, cell, record, listed = capsys.readouterr().out.split("\n")[:4]

    assert ("n", number) == (head.strip(), type(number)(cell))
    assert [number, number] == [type(number)(line.split()[1]) for line in (record, listed)]


def test_sentences_are_for_people_only(capsys):
    """A line is not part of JSON output."""
    Output(as_json=True).line("hello")
    Output().line("[hello]")

    assert capsys.readouterr().out == "[hello]\n"


def test_a_record_prints_each_field(capsys):
    """One thing is a line for each of its fields, or one object."""
    Output().record({"stream": "Lead", "rows": 3})
    assert capsys.readouterr().out.split() == ["stream", "Lead", "rows", "3"]
    Output(as_json=True).record({"stream": "Lead", "rows": 3})
    assert json.loads(capsys.readouterr().out) == {"stream": "Lead", "rows": 3}


def test_an_error_has_problem_cause_and_remedy(capsys):
    """The three parts are lines of their own; parts that are empty are left out."""
    Output().error(VersionNotFound("No version 7.", cause="There are 3.", remedy="Read 2."))
    Output().error(VersionNotFound("No version 8."))

    assert capsys.readouterr().err.splitlines() == [
        "No version 7.",
        "Cause: There are 3.",
        "Remedy: Read 2.",
        "No version 8.",
    ]


def test_a_pipe_gets_plain_aligned_lines(capsys):
    """Without a terminal there are no boxes and no cut; wide letters count as two, numbers stand right."""
    Output().table("Rows", [{"name": "東京", "n": 7}, {"name": "x" * 300, "n": 1000}])
    lines = capsys.readouterr().out.splitlines()

    assert lines == ["Rows", "name" + " " * 298 + "   n", "東京" + " " * 298 + "   7", "x" * 300 + "  1000"]


def test_data_cannot_speak_to_the_terminal(capsys):
    """Escape sequences in names, values, titles and errors are shown, never sent."""
    hostile = "\x1b[2J\u009b1m\r\x07"
    Output().table(hostile, [{hostile: hostile}])
    Output().record({hostile: hostile})
    Output().line(hostile)
    Output().error(VersionNotFound(hostile, cause=hostile))
    Output(as_json=True).record({hostile: hostile})
    printed = capsys.readouterr()

    assert not set(printed.out + printed.err) & set("\x1b\u009b\r\x07")


def test_a_narrow_alphabet_gets_escapes(monkeypatch):
    """A stream that cannot say a letter gets its escape, as text and as JSON that still parses."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    Output().line("Zürich")
    Output(as_json=True).record({"city": "Zürich"})
    stream.seek(0)
    text, as_json = stream.read().splitlines()

    assert text == "Z\\xfcrich"
    assert json.loads(as_json) == {"city": "Zürich"}


class Terminal(io.StringIO):
    """Standard output as a terminal would be."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("variables", "has_colour", "has_bold"),
    [({}, True, True), ({"NO_COLOR": "1"}, False, True), ({"TERM": "dumb"}, False, False)],
)
def test_a_terminal_gets_what_it_wants(monkeypatch, variables, has_colour, has_bold):
    """Colours on a terminal, none with NO_COLOR, plain lines with TERM=dumb; always within its width."""
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "40", "NO_COLOR": "", **variables}.items():
        monkeypatch.setenv(name, value)
    out, err = Terminal(), Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    Output().table("Rows", [{"name": "x" * 60, "n": 7}])
    Output().error(VersionNotFound("No version 7."))

    assert has_bold == ("\x1b[1" in out.getvalue())
    assert has_colour == ("31m" in err.getvalue())
    if has_bold:
        plain = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
        assert max(map(len, plain.splitlines())) <= 40
        assert plain.count("x") == 60


def test_an_error_on_a_terminal_is_broken_between_words(monkeypatch):
    """No line is wider than the terminal, but for a path, which stays whole."""
    for name, value in {"TERM": "xterm", "COLUMNS": "40", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", err := Terminal())
    path = "/a" * 30
    Output().error(VersionNotFound("No version 7.", cause="There are three words " * 4, remedy=f"See {path}"))
    text = re.sub(r"\x1b\[[\d;]*m", "", err.getvalue())

    assert "Cause: " + "There are three words " * 4 + f"Remedy: See {path} " == text.replace("\n", " ")[14:]
    assert path in text.splitlines()
    assert all(len(line) <= 40 for line in text.splitlines() if line != path)


def test_a_table_without_a_title_begins_with_its_head(monkeypatch, capsys):
    """No empty line stands in its stead, in a pipe and on a terminal."""
    Output().table("", [{"a": 1}])
    assert capsys.readouterr().out.split("\n")[:2] == ["a", "1"]
    assert printed_on_terminal(monkeypatch, [{"a": 1}], title="")[0].split() == ["a"]


def printed_on_terminal(monkeypatch, rows, title="Rows"):
    """What a table looks like on a terminal of 60 columns without colours, line by line."""
    for name, value in {"TERM": "xterm", "COLUMNS": "60", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", out := Terminal())
    Output().table(title, rows)
    text = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    return [line.rstrip() for line in text.splitlines()]


def test_what_is_empty_goes_first_where_there_is_no_room(monkeypatch):
    """A table too wide for the terminal leaves out columns without a value, and names them."""
    row = {"a": "x" * 20, "empty": None, "b": "y" * 20, "c": "z" * 8}
    lines = printed_on_terminal(monkeypatch, [row])

    assert lines[-1] == "Nothing is in: empty"
    assert lines[1].split() == ["a", "b", "c"]


def test_a_table_that_cannot_be_read_is_told_row_by_row(monkeypatch):
    """Many columns would be folded to letters; instead each row is a list of its values."""
    rows = [{f"column{number}": f"value {number}" for number in range(20)}, {"column3": "last"}]
    lines = printed_on_terminal(monkeypatch, rows)

    assert lines[0] == "Rows"
    assert lines[1].startswith("1 ──")
    assert "column3   value 3" in lines
    assert lines[-2].startswith("2 ──")
    assert lines[-1] == "column3  last"
    assert max(map(len, lines)) <= 60


def test_the_bare_table_stays_where_there_is_room(monkeypatch):
    """Columns without a value are shown as long as they fit."""
    assert printed_on_terminal(monkeypatch, [{"a": 1, "empty": None}])[1].split() == ["a", "empty"]


@pytest.mark.parametrize("as_json", [True, False])
def test_what_is_printed_reaches_a_pipe_at_once(monkeypatch, as_json):
    """A program that reads the address of a service, which then runs for days, gets it now."""
    pipe = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(pipe, encoding="utf-8"))
    Output(as_json=as_json).record({"url": "http://127.0.0.1:1"})

    assert b"http://127.0.0.1:1" in pipe.getvalue()


ANY_TEXT = st.text(alphabet=st.characters())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("one\r\ntwo\nthree", "one⏎two⏎three"),
        ("a\u202eb", "a\\u202eb"),
        ("\udcff", "\\udcff"),
        ("Zürich 東京 👩‍🔬", "Zürich 東京 👩‍🔬"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_as_its_escape(text, expected):
    """Escape sequences, line ends, changes of direction and halves of letters; letters stay letters."""
    assert visible(text) == expected


@given(ANY_TEXT)
def test_no_control_character_passes(text):
    """In one line none at all; in several the line end and the tab alone."""
    assert not {unicodedata.category(letter) for letter in visible(text)} & {"Cc", "Cs", "Zl", "Zp"}
    assert {letter for letter in visible_lines(text) if unicodedata.category(letter) == "Cc"} <= {"\n", "\t"}


@given(ANY_TEXT)
def test_json_keeps_its_meaning(text):
    """The escapes are JSON's own, so that a program reads what was there."""
    printed = visible_json(json.dumps({"a": text}, ensure_ascii=False))

    assert {"a": text} == json.loads(printed)
    assert not {unicodedata.category(letter) for letter in printed} & {"Cc", "Cs"}


def test_the_shorter_form_is_taken(tmp_path, monkeypatch):
    """Below the working directory and near it a path is relative; far away it stays whole."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert near_path(folder / "store" / "log") == "store/log"
    assert near_path(tmp_path / "beside") == "../beside"
    assert near_path(Path("/x")) == "/x"


def test_without_a_working_directory_it_stays_whole(tmp_path, monkeypatch):
    """Another program may have removed the folder meanwhile."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert near_path(Path("/a/b")) == "/a/b"


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
job replay: 4 absent IN | 4 absent --tenant nobody --root STORE | 2 absent --root STORE | 2 --root STORE
job publish: 4 absent --root STORE
job discard: 4 absent --root STORE
job publish-group: 4 absent --root STORE
job cancel-group: 4 absent --root STORE
job discard-group: 4 absent --root STORE
job revert: 4 absent --yes IN
job pull: 4 absent new IN
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
tenant revert: 4 9 IN --yes
tenant tag: 4 t 9 IN | 2 '' IN
tenant untag: 4 absent IN
tenant delete: 4 nobody --root STORE --yes | 2 acme --root STORE
tenant clone: 4 nobody other --root STORE
tenant gc: 4 NOBODY --yes
tenant verify: 4 NOBODY
tenant erase: 4 Absent --key 1 --yes IN | 2 A --yes IN
tenant retention: 4 NOBODY
stream list: 4 NOBODY
stream show: 4 Absent IN | 4 A --as-of 2001-01-01 IN | 2 A --where x IN | 2 A --limit x IN
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
delivery list: 4 NOBODY
delivery show: 4 Absent crm IN
delivery retry: 4 Absent crm IN
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
spark archive: 2 --nope
spark logs: 2 --nope
doctor: 2 --nope
prove: 2 --storage ftp://x | 2 --storage STORE --only x
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
    assert {f"freezeframe {words}" for words in table} == set(COMMANDS)
    wrong = []
    for words, cases in table.items():
        for case in ["2 --nope", *cases.split(" | ")]:
            code, *rest = shlex.split(case)
            options = [part for item in rest for part in PLACES.get(item, [item])]
            found = main([*words.split(), *options])
            if found != int(code):
                wrong.append((words, options, code, found))
    assert wrong == []


def test_a_long_cell_is_cut_with_a_count(capsys):
    """A table shows how a value of megabytes begins; JSON has all of it."""
    text = "x" * 4_000_000
    Output().table("", [{"Id": 1, "Note": text}])
    assert capsys.readouterr().out.splitlines()[1].endswith("x… (4,000,000 letters; --json has all)")
    new = pa.table({"Id": [1], "Note": [text]})
    (row,) = cell_changes(compare_tables(new.slice(0, 0), new, ["Id"]))
    assert len(row["cells"][0]) < 1_100
    Output(as_json=True).table("", [{"Note": text}])
    assert json.loads(capsys.readouterr().out) == [{"Note": text}]
