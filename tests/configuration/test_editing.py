"""Changing one setting in a file: all else stays, and what cannot be done line by line is refused."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.configuration.files import with_setting, write_setting
from freezeframe.errors import InvalidOption, SetupError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 'spark = "local"\n'),
        ("# mine\nroot = 'a'\n", "# mine\nroot = 'a'\nspark = \"local\"\n"),
        ('spark = "auto"  # why\nroot = "a"\n', 'spark = "local"  # why\nroot = "a"\n'),
        ('spark = "a # b"\n', 'spark = "local"\n'),
        ('"spark" = "auto"', 'spark = "local"'),
        ('root = "a"\n\n[other]\nspark = 1\n', 'root = "a"\nspark = "local"\n\n[other]\nspark = 1\n'),
        ('spark = """\nlong\n"""\n', None),
        ('root = """\nspark = 1\n"""\n', None),
    ],
)
def test_one_line_changes(text, expected):
    """The setting's own line alone, before the first table; None where its value is not a plain line."""
    assert with_setting(text, "spark", "local") == expected


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])) | st.integers() | st.booleans())
def test_any_value_is_read_as_it_was_written(value):
    """Quotes, control characters and line ends come back as they were."""
    changed = with_setting('spark = "auto"\nroot = "a"\n', "spark", value)

    assert changed is not None
    assert {"spark": value, "root": "a"} == tomllib.loads(changed)


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
    """A value that only its author can change, and a folder that is none, are typed errors."""
    path = tmp_path / "freezeframe.toml"
    path.write_text('spark = """\nlong\n"""\n')
    with pytest.raises(InvalidOption, match="Change it there: spark = "):
        write_setting(path, "spark", "auto")
    assert path.read_text() == 'spark = """\nlong\n"""\n'
    with pytest.raises(SetupError, match="cannot be written"):
        write_setting(path / "below" / "freezeframe.toml", "spark", "auto")
