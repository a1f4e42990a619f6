"""What a script declares in its header, and what is refused of it."""

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.runs.script_header import ScriptHeader, parse_script_header

HEAD, END = "# /// script\n", "# ///\n"


def header(*lines):
    """A script with the lines as its header."""
    return HEAD + "".join(f"# {line}\n" for line in lines) + END + "print(1)\n"


@pytest.mark.parametrize(
    "text", ["", "print(1)\n", HEAD + "# open = 1\n", header('dependencies = ["pandas"]')]
)
def test_without_our_table_nothing_is_declared(text):
    """No header, one without an end, or one of other tools; any parameter is taken then."""
    found = parse_script_header(text)
    assert found == ScriptHeader()
    assert found.filled({"limit": 5}) == {"limit": 5}


def test_a_type_follows_from_the_default_or_the_choices():
    """Whole and other numbers, truth and text; line ends of Windows are none of the text."""
    text = header(
        "[tool.freezeframe.parameters]",
        "a = 1",
        "b = 1.5",
        "c = true",
        'd = "x"',
        "e = { choices = [1, 2] }",
        "f = {}",
    ).replace("\n", "\r\n")
    types = {parameter.name: parameter.type for parameter in parse_script_header(text).parameters}
    assert types == {"a": "integer", "b": "number", "c": "boolean", "d": "text", "e": "integer", "f": "text"}


@pytest.mark.parametrize(
    "lines",
    [
        ["= 5"],
        ["tool = 5"],
        ["[tool.freezeframe]", "description = 5"],
        ["[tool.freezeframe]", "parameters = 5"],
        ["[tool.freezeframe.parameters]", '"not a name" = 5'],
        ["[tool.freezeframe.parameters]", "a = [1]"],
        ["[tool.freezeframe.parameters]", "a = 2026-01-01"],
        ["[tool.freezeframe.parameters]", "a = { type = 'date' }"],
        ["[tool.freezeframe.parameters]", "a = { type = 5 }"],
        ["[tool.freezeframe.parameters]", "a = { type = ['text'] }"],
        ["[tool.freezeframe.parameters]", "a = { defalt = 5 }"],
        ["[tool.freezeframe.parameters]", "a = { choices = 5 }"],
        ["[tool.freezeframe.parameters]", "a = { choices = [1, 'x'] }"],
        ["[tool.freezeframe.parameters]", "a = { default = 3, choices = [1, 2] }"],
        ["[tool.freezeframe.parameters]", "a = { default = 3, required = true }"],
    ],
)
def test_a_header_that_cannot_be_is_refused(lines):
    """With what is wrong, and where it is to be corrected."""
    with pytest.raises(InvalidOption) as refused:
        parse_script_header(header(*lines))
    assert (refused.value.error_code, bool(refused.value.cause)) == ("SCRIPT_HEADER", True)
