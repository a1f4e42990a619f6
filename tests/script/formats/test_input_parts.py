"""Files in parts of whole rows, and limits on what a file unpacks to."""

import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.given import tenant as open_tenant
from tests.script.bombs import BOMBS, parquet_text

from freezeframe.errors import StorageNotShared, TooLarge, UnreadableInput
from freezeframe.script.formats.columnar_files import (
    ArrowFormat,
    ParquetFormat,
    require_arrow,
    require_parquet,
)
from freezeframe.script.formats.csv_file import csv_parts, csv_text_pieces, read_csv_text
from freezeframe.script.formats.input_parts import UnpackLimits, decoded_bytes, divide, line_parts
from freezeframe.script.formats.json_rows import JsonFormat
from freezeframe.script.inputs.transfer import UNPACKED_MEMORY_BYTES_MAX, file_rows, import_stream
from freezeframe.script.reading import read_parquet_folder
from freezeframe.script.types.typed_columns import NOTHING_KNOWN
from freezeframe.settings import Settings

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


LIMITS = UnpackLimits.of(Settings(), UNPACKED_MEMORY_BYTES_MAX)
MEGABYTE = 1024 * 1024
ROWS = pa.table(
    {
        "Id": range(1000),
        "City": ["Bern", None, "", "Thun"] * 250,
        "Tags": [["a", None], [], None, ["b"]] * 250,
        "At": pa.array([{"x": "y"}, None] * 500),
        "Raw": pa.array([b"\0", None] * 500),
    }
)


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    """A folder of small files that unpack to a lot."""
    folder = tmp_path_factory.mktemp("bombs")
    for make, suffix in BOMBS.items():
        make(folder / f"{make.__name__}{suffix}")
    return folder


def test_a_bomb_is_refused_by_the_limit_that_it_breaks(bombs):
    """The error names the file, the limit and its value; nothing of the kind is an ordinary file's."""
    for bomb in bombs.iterdir():
        with pytest.raises(TooLarge) as caught:
            file_rows(bomb, limits=LIMITS)
        assert caught.value.error_code == "UNPACKS_TOO_LARGE"
        limit = caught.value.details["limit"]
        assert limit in {"unpacked_rows_max", "unpacked_bytes_max", "unpacked_ratio_max"}
        assert limit in caught.value.cause
        assert bomb.name in caught.value.problem


@pytest.mark.long
def test_bombs_take_little_memory(bombs):
    """A process that is given all of them needs at most 300 MiB more than before."""
    code = f"""
import pathlib, resource
import pyarrow.parquet
from freezeframe.errors import TooLarge
from freezeframe.script.inputs.transfer import file_rows, UNPACKED_MEMORY_BYTES_MAX
from freezeframe.script.formats.input_parts import UnpackLimits
from freezeframe.settings import Settings
limits = UnpackLimits.of(Settings(), UNPACKED_MEMORY_BYTES_MAX)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
refused = 0
for file in pathlib.Path({str(bombs)!r}).iterdir():
    try:
        file_rows(file, limits=limits)
    except TooLarge:
        refused += 1
print(refused, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    refused, mebibytes = map(int, done.stdout.split())
    assert len(BOMBS) == refused
    assert 300 > mebibytes


@pytest.mark.parametrize("limit", ["rows_max", "bytes_max", "ratio_max"])
def test_each_limit_holds_by_itself(tmp_path, limit):
    """Rows, bytes and the ratio, each of a plain file."""
    pq.write_table(ROWS, tmp_path / "a.parquet")
    with pytest.raises(TooLarge) as caught:
        ParquetFormat(UnpackLimits(**{limit: 1}, ratio_free_bytes=0)).whole([tmp_path / "a.parquet"])
    assert (f"unpacked_{limit}", 1) == (caught.value.details["limit"], caught.value.details["limit_value"])


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrow file"])
@pytest.mark.parametrize("encode", [False, True])
def test_rows_within_the_limits_are_the_same(tmp_path, kind, encode):
    """Counting changes neither values nor types."""
    rows = ROWS.set_column(1, "City", ROWS["City"].dictionary_encode()) if encode else ROWS
    file = tmp_path / "a"
    if kind == "parquet":
        pq.write_table(rows, file, row_group_size=300)
        plain, bounded = (ParquetFormat(*limits).whole([file]) for limits in ((), (LIMITS,)))
    else:
        new = pa.ipc.new_file if kind == "arrow file" else pa.ipc.new_stream
        with new(str(file), rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(rows, max_chunksize=300)
        plain, bounded = (ArrowFormat(*limits).whole([file]) for limits in ((), (LIMITS,)))

    assert plain.schema == bounded.schema
    assert ROWS.to_pylist() == plain.to_pylist() == bounded.to_pylist()


@pytest.mark.parametrize("form", [ParquetFormat, ArrowFormat, JsonFormat])
def test_the_parts_of_a_limited_file_have_its_rows_and_its_limits(tmp_path, form):
    """Each row is in one part, and a limit counts all of them."""
    file, rows = tmp_path / "a", ROWS.select(["Id", "City"])
    if form is ParquetFormat:
        pq.write_table(rows, file, row_group_size=300)
    elif form is ArrowFormat:
        with pa.ipc.new_file(str(file), rows.schema) as writer:
            writer.write_table(rows, max_chunksize=300)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))

    def read(limits):
        reader = form(limits=limits)
        parts = reader.parts(file, 100)
        surveys = [reader.survey(part, NOTHING_KNOWN) for part in parts]
        joined = reader.joined(parts, surveys, NOTHING_KNOWN)
        found = zip(parts, surveys, strict=True)
        return pa.concat_tables(
            table for part, survey in found for table in reader.tables(part, survey, joined, NOTHING_KNOWN)
        )

    assert rows.to_pylist() == read(LIMITS).to_pylist()
    with pytest.raises(TooLarge):
        read(UnpackLimits(rows_max=len(rows) - 1))


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["ab", None, "c"]).dictionary_encode(),
        pa.array(["ab", "a long value that is not kept inline"], pa.string_view()),
        pa.array([[1, 2], None]),
        pa.array([{"a": "x"}]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.ListViewArray.from_arrays([0, 0], [2, 2], pa.array([1, 2])),
        pa.array([1, 2]).dictionary_encode(),
        pa.array([], pa.string()),
    ],
)
def test_decoded_bytes_are_about_those_of_the_values(array):
    """At least the values' own bytes, whatever the encoding."""
    flat = str(array.to_pylist())
    assert 0 <= decoded_bytes(array) <= 64 + 16 * len(flat)


def test_an_import_that_unpacks_to_much_is_streamed(tmp_path, monkeypatch):
    """What is within the limits, but too much for memory, is imported a part at a time."""
    monkeypatch.setattr("freezeframe.script.inputs.transfer.UNPACKED_MEMORY_BYTES_MAX", 10_000)
    pq.write_table(ROWS, tmp_path / "a.parquet")
    stream = open_tenant().stream("Account")
    with pytest.raises(TooLarge):
        import_stream(stream, tmp_path / "a.parquet", "Id", limits=UnpackLimits(bytes_max=20_000))
    assert stream.version == -1
    import_stream(stream, tmp_path / "a.parquet", "Id", limits=UnpackLimits(bytes_max=1_000_000))
    assert ROWS["Tags"].to_pylist() == stream.read(as_="arrow").sort_by("Id")["Tags"].to_pylist()


def test_what_is_checked_before_an_import_is_queued(tmp_path):
    """Arrow is gone through, of Parquet the footer is read; a sync's folder has limits as an option."""
    parquet_text(tmp_path / "a.parquet")
    small = UnpackLimits(rows_max=1999)
    with pytest.raises(TooLarge):
        require_parquet(io.BytesIO((tmp_path / "a.parquet").read_bytes()), "a", small)
    with pytest.raises(TooLarge):
        read_parquet_folder(tmp_path, limits=LIMITS)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    sink.seek(0)
    with pytest.raises(TooLarge):
        require_arrow(sink, "a", UnpackLimits(rows_max=999))
