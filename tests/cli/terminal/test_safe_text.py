"""Data on a terminal: whatever it holds, the terminal shows it and obeys nothing in it."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.cli.output import visible, visible_json, visible_lines

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
