"""Printing: the same result as a table for people and as JSON for programs."""

import io
import json
import math
import re
from decimal import Decimal

import pytest

from freezeframe.cli.output import Output
from freezeframe.errors import VersionNotFound


def test_a_table_is_the_same_rows_as_json(capsys):
    """JSON keeps every field, and values that JSON does not know as text."""
    rows = [{"name": "Lead", "sum": Decimal("1.10"), "none": None}]
    Output(as_json=True).table("Streams", rows)

    assert json.loads(capsys.readouterr().out) == [{"name": "Lead", "sum": "1.10", "none": None}]


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
