"""CSV as text: every value as it stands in the file, every fault with its line."""

import csv
import gzip
import re
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.errors import UnreadableInput
from freezeframe.script.formats.csv_file import (
    CsvRow,
    csv_parts,
    csv_text_pieces,
    ragged_row,
    read_csv_text,
    undecodable_line,
)
from freezeframe.script.formats.input_parts import divide
from freezeframe.storage import local


@pytest.fixture
def csv_file(tmp_path):
    def write(content):
        file = tmp_path / "Account-20200811T121507.csv"
        file.write_bytes(content)
        return file

    return write


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b'a,b\n1,""\n2,\n"x\r\ny","q""q"\n', {"a": ["1", "2", "x\r\ny"], "b": ["", None, 'q"q']}),
        (b"\xef\xbb\xbfa,b\r\n007,NA\r\n", {"a": ["007"], "b": ["NA"]}),
        (b"a,b\n1,2\n\n3,null", {"a": ["1", "3"], "b": ["2", "null"]}),
        (b"a,b\n", {"a": [], "b": []}),
        (b"a,b", {"a": [], "b": []}),
        (b',a\n0,""', {"Unnamed: 0": ["0"], "a": [""]}),
        (b'a,b\n1,""""', {"a": ["1"], "b": ['"']}),
        (b"a,b\n1,", {"a": ["1"], "b": [None]}),
        (b'a,b\n"1",', {"a": ["1"], "b": [None]}),
        (b'a,b\n1,"\n"\n', {"a": ["1"], "b": ["\n"]}),
        (b"a,b\n 1,\x00\n", {"a": [" 1"], "b": ["\x00"]}),
        (b'a,b\n5" pipe,"x"\n"y",6"\n', {"a": ['5" pipe', "y"], "b": ["x", '6"']}),
        (b'a,b\n 5,"x"\n"",""""\n', {"a": [" 5", ""], "b": ["x", '"']}),
        (b'\xef\xbb\xbf"a",b\n1,"2"', {"a": ["1"], "b": ["2"]}),
    ],
)
def test_values_are_what_the_file_says(csv_file, content, columns):
    """Only an empty unquoted field is NULL; nothing else is interpreted."""
    assert columns == read_csv_text(csv_file(content)).to_pydict()


@pytest.mark.parametrize("delimiter", [b";", b"\t", b"|"])
@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b'a;"b,c"\n1,5;2\n', {"a": ["1,5"], "b,c": ["2"]}),
        (b'\xef\xbb\xbf"a;b";c\r\n"1;2\n3";', {"a;b": ["1;2\n3"], "c": [None]}),
        (b"a;b\n1;2", {"a": ["1"], "b": ["2"]}),
        (b"\n\r\na;b\n1;2", {"a": ["1"], "b": ["2"]}),
        (b"sep=;\r\na,c;b\r\n1;2\r\n", {"a,c": ["1"], "b": ["2"]}),
        (b'\xef\xbb\xbf"sep=;"\na;b\n1;2\n', {"a": ["1"], "b": ["2"]}),
        (b'"a\n1";b\n1;2', {"a\n1": ["1"], "b": ["2"]}),
        (b'"a,""x"", c";b\n1;2', {'a,"x", c': ["1"], "b": ["2"]}),
    ],
)
def test_a_header_without_commas_tells_the_delimiter(csv_file, content, columns, delimiter):
    """Semicolons, tabs and bars separate fields as commas do, quoted ones do not."""
    other = delimiter.decode()
    expected = {
        name.replace(";", other): [value and value.replace(";", other) for value in values]
        for name, values in columns.items()
    }
    assert read_csv_text(csv_file(content.replace(b";", delimiter))).to_pydict() == expected


def test_a_tab_separates_the_fields_of_a_tsv_file(tmp_path):
    """Also where a name of the header has a comma."""
    file = tmp_path / "A-1.TSV"
    file.write_bytes(b"a, b\tc\n1,5\t2\n")
    assert {"a, b": ["1,5"], "c": ["2"]} == read_csv_text(file).to_pydict()


def test_a_packed_file_is_unpacked(tmp_path):
    """Rows and messages are those of the file that was packed."""
    file = tmp_path / "A-1.csv.gz"
    file.write_bytes(gzip.compress(b"a;b\n1;2\n"))
    assert {"a": ["1"], "b": ["2"]} == read_csv_text(file).to_pydict()
    file.write_bytes(gzip.compress(b"a;b\n1;2;3\n"))
    with pytest.raises(UnreadableInput, match=re.escape(f"{str(file)!r} has 3 fields in line 2")):
        read_csv_text(file)
    for damaged in (b"a;b\n", gzip.compress(b"a;b\n1;2\n")[:-9]):
        file.write_bytes(damaged)
        with pytest.raises(UnreadableInput, match="cannot be unpacked"):
            read_csv_text(file)


COPIED = {
    "packed": ("A.csv.gz", gzip.compress(b"a\n1\n"), ""),
    "escaped": ("A.csv", b'a\n"\\"1"\n', "\\"),
    "with Excel's first line": ("A.csv", b"sep=;\na\n1\n", ""),
}


@pytest.mark.parametrize("open_files", ["/proc/self/fd", "/none"])
@pytest.mark.parametrize(("name", "content", "escape"), COPIED.values(), ids=COPIED)
def test_a_copy_is_of_its_owner_and_has_no_name(tmp_path, monkeypatch, name, content, escape, open_files):
    """A process that is killed leaves nothing of it; only without a folder of open files it is a file."""
    monkeypatch.setattr(local, "_OPEN_FILES", Path(open_files))
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    file = tmp_path / name
    file.write_bytes(content)
    (part,) = csv_parts(file)
    pieces = csv_text_pieces(part, 1000, escape)
    next(pieces)
    (copy,) = folder.glob("*/*")
    assert (open_files != "/none", 0o600) == (copy.is_symlink(), copy.stat().st_mode & 0o777)
    assert sum(map(len, pieces)) == 1
    assert list(folder.iterdir()) == []


ESCAPED = [
    ('say "hi"', rb'"say \"hi\""'),
    ("a\\b", rb"a\b"),
    ("a\\", b"a\\"),
    ('a\\"b', rb'"a\\\"b"'),
    ("a,b\\", rb'"a,b\\"'),
    ('\\"', rb'"\\\""'),
    ("line\nb\\", b'"line\nb\\\\"'),
    ("", b'""'),
    (None, b""),
    ("\\n,", rb'"\\n,"'),
]


@pytest.mark.parametrize("delimiter", [b",", b";"])
def test_quotes_behind_an_escape_character_are_part_of_the_value(csv_file, delimiter):
    """In quoted fields, as Spark writes them; elsewhere the character is a letter."""
    rows = b"".join(b"%d,%s,z\n" % (row, text) for row, (_, text) in enumerate(ESCAPED))
    values = [value and value.replace(",", delimiter.decode()) for value, _ in ESCAPED]
    file = csv_file((b"i,v,w\n" + rows).replace(b",", delimiter))
    assert values == read_csv_text(file, escape="\\")["v"].to_pylist()
    (part,) = divide(file, [0])
    pieces = csv_text_pieces(part, 2**20, escape="\\")
    assert values == [value for piece in pieces for value in piece["v"].to_pylist()]


def test_a_fault_beside_an_escape_character_names_its_line(csv_file):
    """Lines are those of the file, not of a copy."""
    file = csv_file(b'a,b\n1,"x\\"\ny"\n1,"x\\"y"z\n')
    with pytest.raises(UnreadableInput, match="in line 4") as caught:
        read_csv_text(file, escape="\\")
    assert (str(file), 4) == (caught.value.details["file"], caught.value.details["line"])


@pytest.mark.parametrize(
    "content",
    [
        b"a,b",
        b"\n\na;b\n1;2\n",
        b'"a\nb",c\n1,2\n',
        b'a,b\n1,"x"y\n',
        b"sep=|\na|b\n1|2\n",
        b"sep=;\na;b\n1;2;3\n",
    ],
)
def test_pieces_say_what_the_whole_file_says(csv_file, content):
    """A header without a newline, behind blank lines, with one inside it; text behind a quote."""
    (part,) = divide(csv_file(content), [0])

    def outcome(read):
        try:
            return read().to_pydict()
        except UnreadableInput as error:
            return error.to_json()

    assert outcome(lambda: read_csv_text(part.file)) == outcome(
        lambda: pa.concat_tables(csv_text_pieces(part, 2**20))
    )


@pytest.mark.parametrize("content", [b"a;b,c\n1;2,3\n", b'"a;b\nc",d\n1,2\n', b'"a;b"\n1;2\n'])
def test_a_comma_or_a_quote_in_the_header_keeps_the_comma(csv_file, content):
    """What is certain stays as it was."""
    assert 2 - (b"," not in content) == read_csv_text(csv_file(content)).num_columns


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (b"", "is empty", None),
        (b"\xef\xbb\xbf\n", "is empty", None),
        (b"a,b\n1,2,3\n", "3 fields in line 2, and 2 in its header", 2),
        (b'a,b\n"x\r\n\r\ny",1\r\n1\n', "1 fields in line 5", 5),
        (b'"a\nb",c\n\n1,2\n\n1,2,', "3 fields in line 6", 6),
        (b'a,b\n1,2\n"x,2\n3,4', "1 fields in line 3", 3),
        (b"a,b\n1,2\n\xff,2\n", "not UTF-8: line 3", 3),
        (b"a\xff,b\n1,2\n", "not UTF-8: line 1", 1),
        ("a,b\n1,2\n".encode("utf-16"), "not UTF-8: line 1", 1),
        (b'a,b\n1,"x\n', "ends inside a quoted field", 2),
        (b'a;b\n1;"x\n', "ends inside a quoted field", 2),
        (b"a;b\n1;2;3\n", "3 fields in line 2, and 2 in its header", 2),
        (b'a,b\n"1\n1",2\n1,"', "at line 4", 4),
        (b"a,b,a\n1,2,3\n", "several columns named 'a'", None),
        (b'"a,b\n1,2\n', "cannot be read as CSV", None),
        (b'a,b\n1,"say \\"hi\\""\n', "text behind a closing quote in line 2", 2),
        (b'a,b\n1,"a\n2,b\n3,"c"\n4,d\n', "text behind a closing quote in line 4", 4),
        (b'a,b\r\n1,2\r\n"1" ,2\r\n', "text behind a closing quote in line 3", 3),
        (b'a,b\n5" pipe,"x"\n1,"y"z\n', "text behind a closing quote in line 3", 3),
        (b'a;b\n1;"x",\n', "text behind a closing quote in line 2", 2),
        (b'"a"x,b\n1,2\n', "text behind a closing quote in line 1", 1),
        (b'a,b\n1,""x\n', "text behind a closing quote in line 2", 2),
        (b"a,b\n" + b'1,"2"\n' * 100 + b'1,"x"y', "text behind a closing quote in line 102", 102),
    ],
)
def test_a_fault_names_the_file_and_its_line(csv_file, content, message, line):
    """Nothing is repaired or skipped: the sync's file is wrong and the message says where."""
    file = csv_file(content)
    with pytest.raises(UnreadableInput, match=message) as caught:
        read_csv_text(file)
    assert (str(file), line) == (caught.value.details["file"], caught.value.details.get("line"))


def test_a_value_may_be_longer_than_the_readers_blocks(csv_file):
    """A note of nine megabytes is a value like any other."""
    content = b'a,b\n1,2\n"' + b"z" * (9 << 20) + b'",4\n'
    assert [len(value) for value in read_csv_text(csv_file(content))["a"].to_pylist()] == [1, 9 << 20]


@settings(max_examples=examples(150))
@given(st.data())
def test_what_the_csv_module_writes_is_read_back(data):
    """Any table of texts survives: quotes, commas, newlines, blanks, any script."""
    letters = st.characters(exclude_categories=["Cs"])
    texts = st.one_of(st.sampled_from(["", '"', ",", "\n", "\r\n", "NA", " "]), st.text(letters, max_size=5))
    width = data.draw(st.integers(1, 4))
    row = st.lists(texts, min_size=width, max_size=width)
    rows = data.draw(st.lists(row, max_size=5))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "Account-1.csv"
        with file.open("w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened, quoting=csv.QUOTE_ALL)
            writer.writerow([f"c{number}" for number in range(width)])
            writer.writerows(rows)
        table = read_csv_text(file)

    assert rows == [list(found.values()) for found in table.to_pylist()]


@settings(max_examples=examples(300))
@given(st.data())
def test_a_file_cut_anywhere_is_a_prefix_or_an_error(data):
    """A truncated file is refused, but where what is left is a whole file by itself.

    That is so in two places of the last field only: before it, and amid a doubled quote.
    """
    rows = data.draw(
        st.lists(st.tuples(st.text('a",\n', max_size=3), st.text('b"\n', max_size=3)), min_size=1, max_size=4)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "Account-1.csv"
        with file.open("w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened, quoting=csv.QUOTE_ALL)
            writer.writerows([("x", "y"), *rows])
        content = file.read_bytes()
        file.write_bytes(content[: data.draw(st.integers(len(b'"x","y"\r\n'), len(content)))])
        try:
            found = [tuple(row.values()) for row in read_csv_text(file).to_pylist()]
        except UnreadableInput:
            return

    whole = found[:-1]
    assert rows[: len(whole)] == whole
    for (first, last), (found_first, found_last) in zip(rows[len(whole) :], found[-1:], strict=False):
        assert first == found_first
        assert found_last is None or found_last == last or last.startswith(found_last + '"')


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
