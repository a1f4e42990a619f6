"""Changing one setting in a file: all else stays."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.configuration.files import write_setting
from freezeframe.errors import InvalidOption, SetupError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 'spark = "local"\n'),
        ("# mine\nroot = 'a'\n", "# mine\nroot = 'a'\nspark = \"local\"\n"),
        ('spark = "auto"  # why\nroot = "a"\n', 'spark = "local"  # why\nroot = "a"\n'),
        ('spark = "a # b"\n', 'spark = "local"\n'),
        ('"spark" = "auto"', '"spark" = "local"'),
        ('root = "a"\n\n[other]\nspark = 1\n', 'root = "a"\nspark = "local"\n\n[other]\nspark = 1\n'),
        ('spark = """\nlong\n"""\n', 'spark = "local"\n'),
        ('root = """\nspark = 1\n"""\n', 'root = """\nspark = 1\n"""\nspark = "local"\n'),
        ("root = 'a'", "root = 'a'\nspark = \"local\"\n"),
    ],
)
def test_the_setting_alone_changes(tmp_path, text, expected):
    """Whatever its value's form; a new one stands before the first table, and comments stay."""
    path = tmp_path / "freezeframe.toml"
    path.write_text(text)
    write_setting(path, "spark", "local")

    assert path.read_text() == expected


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])) | st.integers() | st.booleans())
def test_any_value_is_read_as_it_was_written(tmp_path_factory, value):
    """Quotes, control characters and line ends come back as they were."""
    path = tmp_path_factory.mktemp("settings") / "freezeframe.toml"
    path.write_text('spark = "auto"\nroot = "a"\n')
    write_setting(path, "spark", value)

    assert {"spark": value, "root": "a"} == tomllib.loads(path.read_text(encoding="utf-8"))


def test_a_file_is_changed_in_place_with_its_mode(tmp_path):
    """A new file is its owner's alone; an old one keeps its mode; nothing else is left in the folder."""
    path = tmp_path / "new" / "freezeframe.toml"
    write_setting(path, "spark", "local")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    write_setting(path, "spark", "auto")
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.read_text() == 'spark = "auto"\n'
    assert [path] == list(path.parent.iterdir())


def test_what_cannot_be_written_is_told(tmp_path):
    """A file that is no TOML, and a folder that is none, are typed errors; nothing is changed."""
    path = tmp_path / "freezeframe.toml"
    path.write_text("spark = \n")
    with pytest.raises(InvalidOption, match="is not TOML"):
        write_setting(path, "spark", "auto")
    assert path.read_text() == "spark = \n"
    with pytest.raises(SetupError, match="cannot be written"):
        write_setting(path / "below" / "freezeframe.toml", "spark", "auto")
