"""Names are checked once: what exists is valid."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.errors import InvalidName
from freezeframe.identifiers import StreamName, TenantId


@pytest.mark.parametrize(
    "name",
    [
        "", " ", ".", "..", "../t2/x", "a/b", "a\\b", "/etc/passwd", "a\0b", "a\nb", ".hidden", "a.", " a",
        "a ", "x" * 201, "CON", "nul.txt", "_freezeframe", "_FREEZEFRAME", "_delta_log", "a:b", "a|b", "a?b",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [StreamName, TenantId])
def test_names_that_could_leave_their_folder_are_refused(kind, name):
    """A bad name raises before any path is made of it, and the message says what to use."""
    with pytest.raises(InvalidName) as caught:
        kind(name)

    assert "INVALID_NAME" == caught.value.error_code
    assert caught.value.remedy


@pytest.mark.parametrize("value", [None, 7, b"Account", ["Account"]])
def test_names_must_be_text(value):
    """Anything but text is refused as a name."""
    with pytest.raises(InvalidName):
        StreamName(value)


@pytest.mark.parametrize(
    "name", ["Account", "Account@qbo", "Ledger Report (cash)", "données", "顧客", "a.b-c_d", "😀"]
)
def test_ordinary_names_are_taken(name):
    """Names as connectors send them are streams' names."""
    assert name == str(StreamName(name))


def test_two_spellings_are_one_name():
    """Composed and decomposed letters name the same stream."""
    assert StreamName(unicodedata.normalize("NFD", "données")) == StreamName("données")


@given(st.text(max_size=40))
def test_a_name_never_holds_a_path_step(text):
    """Whatever the text, a name that exists is one plain path component."""
    try:
        name = str(StreamName(text))
    except InvalidName:
        return

    assert not set("/\\\0") & set(name)
    assert name not in {"", ".", ".."}
