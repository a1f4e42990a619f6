"""Names are checked once: what exists is valid."""

import posixpath
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.errors import InvalidName
from freezeframe.identifiers import FilePath, StreamName, TenantId


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

    assert caught.value.error_code == "INVALID_NAME"
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


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/./b", ".env", "a/.git/config",
        "a\\b", "a\0b", "a\nb",
        "_freezeframe/log/0.json", "_FreezeFrame/x", "Account.snapshot/x", "Account.SNAPSHOT",
        "a/_delta_log/x",
        "con", "a/nul.txt", "a /b", "a/b.", "x" * 201, "/".join(["abcdefgh"] * 90), "a\ud800", None, b"a", 7,
    ],
)  # fmt: skip
def test_paths_that_could_leave_the_tenant_are_refused(path):
    """Absolute, climbing, hidden and reserved paths, and what is not text, cannot be a file's path."""
    with pytest.raises(InvalidName):
        FilePath(path)


def test_ordinary_paths_are_taken():
    """Paths in folders, of any script, and hotglue's own leftovers are files' paths."""
    for path in (
        "tenant-config.json",
        "mappings/a.csv",
        "顧客/données.txt",
        "Account.snapshot.csv",
        "a/b.snapshot/c",
    ):
        assert path == str(FilePath(path))


def test_case_twins_have_one_folded_form():
    """Paths that some file systems take for one fold to one."""
    assert FilePath("A/Straße.txt").case_folded == FilePath("a/STRASSE.txt").case_folded
    assert FilePath("a/b/c").folders == ("a", "a/b")


@given(
    st.lists(st.sampled_from(["..", ".", "", "a", "_freezeframe", "b.snapshot", "C:", "\0", "~"]), max_size=6)
)
def test_a_path_stays_below_its_tenant(parts):
    """Whatever the parts, a path that exists resolves below the folder that it is in."""
    try:
        path = str(FilePath("/".join(parts)))
    except InvalidName:
        return

    joined = posixpath.normpath(posixpath.join("/tenant", path))
    assert joined == f"/tenant/{path}"
    assert not path.startswith(("_freezeframe", "b.snapshot"))
