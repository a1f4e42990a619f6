"""Printing: the same result as a table for people and as JSON for programs."""

import json
from decimal import Decimal

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
