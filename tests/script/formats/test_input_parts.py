"""Files in parts: whole rows each, which together are the file."""

import csv
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.errors import StorageNotShared, UnreadableInput
from freezeframe.script.formats.csv_file import csv_parts, csv_text_pieces, read_csv_text
from freezeframe.script.formats.input_parts import divide, line_parts

QUOTED_TEXTS = st.text('a",\n\r', max_size=4)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(QUOTED_TEXTS, QUOTED_TEXTS), min_size=1), st.integers(1, 40), st.booleans())
def test_parts_have_the_rows_of_the_file(rows, part_bytes, quotes_all):
    """Wherever quotes and newlines stand, each row is in one part, and none is lost or cut."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "A-1.csv"
        with file.open("w", newline="") as opened:
            writer = csv.writer(opened, quoting=csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL)
            writer.writerows([("x", "y"), *rows])
        parts = csv_parts(file, part_bytes)
        pieces = [piece for part in parts for piece in csv_text_pieces(part, 2**20)]

        assert read_csv_text(file).to_pylist() == pa.concat_tables(pieces).to_pylist()


def test_a_file_is_divided_at_its_rows(tmp_path):
    """Also where a block of the scan ends within a quoted field; a blank end is not a part of its own."""
    file = tmp_path / "A-1.csv"
    file.write_bytes(b'a,b\n1,"\n\n\n\n\n\n\n\n"\n3,4\n5,6\n')

    assert [(part.start, part.stop) for part in csv_parts(file, 5, block_bytes=7)] == [(0, 17), (17, 25)]


def test_a_file_of_lines_is_divided_behind_newlines(tmp_path):
    """A line longer than a part is one; each part knows how many lines are before it."""
    file = tmp_path / "A-1.jsonl"
    file.write_bytes(b"1\n\n" + b"2" * 20 + b"\n3\n4\n5")

    found = [(part.start, part.stop, part.lines_before(block_bytes=7)) for part in line_parts(file, 3)]

    assert found == [(0, 3, 0), (3, 24, 2), (24, 28, 3), (28, 29, 5)]
    file.write_bytes(b"")
    assert [part.is_whole for part in line_parts(file, 3)] == [True]


@pytest.mark.parametrize("row", [b'5" pipe,1\n', b'"a"b"c,1\n'])
def test_a_quote_within_a_plain_field_leaves_the_file_whole(row, tmp_path):
    """Such a quote is a letter, so counting quotes does not tell which newlines end a row."""
    file = tmp_path / "A-1.csv"
    file.write_bytes(b"a,b\n" + row * 20)

    assert [part.is_whole for part in csv_parts(file, 16)] == [True]


def test_a_file_that_changed_or_is_not_there_is_told(tmp_path):
    """Types that were settled before hold no more, and a worker may see another disk."""
    file = tmp_path / "A-1.csv"
    file.write_text("a\n1\n")
    (part,) = divide(file, [0])
    file.write_text("a\n007\n")

    with pytest.raises(UnreadableInput, match="was changed"):
        part.require_unchanged()
    file.unlink()
    with pytest.raises(StorageNotShared, match="no file"):
        part.require_unchanged()
