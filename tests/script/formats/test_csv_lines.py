"""The scan that finds the line of a fault."""

import pytest

from freezeframe.script.formats.csv_file import CsvRow, ragged_row, undecodable_line


@pytest.mark.parametrize(
    ("content", "row"),
    [
        (b"a,b\n1,2\n", None),
        (b"a,b\n1\n", (CsvRow(2, 1), 2)),
        (b'a,b\n"1\r\n2",3\r\n4', (CsvRow(4, 1), 2)),
        (b"a,b\r1,2\r3\r", (CsvRow(3, 1), 2)),
        (b'a,b\n1,x"y"\n1,2,', (CsvRow(3, 3), 2)),
        (b"\xef\xbb\xbf\n\na\n1,2", (CsvRow(4, 2), 1)),
        (b'a\n""\n1,2', (CsvRow(3, 2), 1)),
    ],
)
def test_the_first_ragged_row_is_found_by_its_line(tmp_path, content, row):
    """Quoted newlines, every kind of line end and blank lines are counted."""
    file = tmp_path / "x.csv"
    file.write_bytes(content)

    assert row == ragged_row(file)


def test_the_first_line_that_is_not_utf8_is_found(tmp_path):
    """Lines count from one; a clean file has none."""
    file = tmp_path / "x.csv"
    file.write_bytes(b"a\n\xc3\xa9\n\xe9\n")
    clean = tmp_path / "clean.csv"
    clean.write_bytes(b"a\n")

    assert undecodable_line(file) == 3
    assert undecodable_line(clean) is None
