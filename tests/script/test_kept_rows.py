"""The row of a key is found in what is kept of a job's input, by file and line."""

import gzip
import io
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freezeframe.errors import CorruptData, TooLarge, UnreadableInput
from freezeframe.identifiers import StreamName
from freezeframe.script import kept_rows
from freezeframe.script.kept_rows import find_input_row
from freezeframe.storage import local
from freezeframe.storage.memory import MemoryStorage
from freezeframe.store.blobs.kept_inputs import KeptInputs
from freezeframe.store.table.keys import key_of_row

TEXTS = pa.schema([("Id", pa.string()), ("Name", pa.string())])


@pytest.fixture
def find(tmp_path):
    """Keep files by name and content; return the row of a key of the stream ``Account`` in them."""

    def find(files, value, schema=TEXTS, key=("Id",)):
        kept, paths = KeptInputs(MemoryStorage(), 0), {}
        for number, (name, content) in enumerate(files.items()):
            paths[name] = tmp_path / str(number)
            paths[name].write_bytes(content if isinstance(content, bytes) else content.encode())
        keys = key_of_row(schema, key, value)
        return find_input_row(kept, "folder", kept.keep("folder", paths), StreamName("Account"), schema, keys)

    return find


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def parquet(**columns):
    """The bytes of a Parquet file."""
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


NAME = "sync-output/Account-20261124T040000.csv"
LINES = "Id,Name\n007,Bond\n008,Bill\n"
FOUND = {
    "a line": ({NAME: LINES}, "008", "Account-20261124T040000.csv, line 3"),
    "no such row": ({NAME: LINES}, "009", None),
    "a key of another spelling": ({NAME: LINES}, "8", None),
    "no input": ({"etl.py": "", "state.json": "{}"}, "008", None),
    "only a header": ({NAME: "Id,Name\n"}, "008", None),
    "a key without values": ({NAME: "Id,Name\n,Bond\n"}, "008", None),
    "no end of the last line": ({NAME: LINES.rstrip()}, "008", "Account-20261124T040000.csv, line 3"),
    "newlines in quotes": (
        {NAME: 'Id,Name\n007,"James\n\nBond"\n\n008,Bill\n'},
        "008",
        "Account-20261124T040000.csv, line 6",
    ),
    "newlines of Windows behind a mark": (
        {NAME: "\ufeff" + LINES.replace("\n", "\r\n")},
        "008",
        "Account-20261124T040000.csv, line 3",
    ),
    "Excel's first line": ({NAME: "sep=;\n" + LINES.replace(",", ";")}, "008", f"{NAME[12:]}, line 4"),
    "tabs": ({"sync-output/Account.tsv": LINES.replace(",", "\t")}, "007", "Account.tsv, line 2"),
    "packed": (
        {"sync-output/Account.csv.gz": gzip.compress(LINES.encode())},
        "008",
        "Account.csv.gz, line 3",
    ),
    "packed beside a plain one": (
        {"sync-output/Account.csv": "Id\n1\n", "sync-output/Account.csv.gz": gzip.compress(LINES.encode())},
        "008",
        "Account.csv.gz, line 3",
    ),
    "packed before a plain one": (
        {"sync-output/Account.csv.gz": gzip.compress(LINES.encode()), "sync-output/Account.csv": "Id\n1\n"},
        "008",
        "Account.csv.gz, line 3",
    ),
    "the last of a file": (
        {NAME: LINES + "008,Bob\n"},
        "008",
        "Account-20261124T040000.csv, line 4, the last of 2 with the key",
    ),
    "the last of several files, in the order of their stamps": (
        {"sync-output/Account-10.csv": LINES, "sync-output/Account-9.csv": LINES + "008,Bob\n"},
        "008",
        "Account-10.csv, line 3, the last of 3 with the key",
    ),
    "a folder below": ({"sync-output/crm/Account.csv": LINES}, "007", "crm/Account.csv, line 2"),
    "lines of JSON": (
        {"sync-output/Account.jsonl": '{"Id": "007"}\n\n{"Id": "008", "Name": "Bill"}\n'},
        "008",
        "Account.jsonl, line 3",
    ),
    "an array of JSON": (
        {"sync-output/Account.json": '[\n {"Id": "007"},\n {"Id":\n "008"}]'},
        "008",
        "Account.json, line 3",
    ),
    "Parquet": ({"sync-output/Account.parquet": parquet(Id=["007", "008"])}, "008", "Account.parquet, row 2"),
    "of another stream, where none has the name": (
        {"sync-output/Lead.csv": "Id\n1\n", "sync-output/accounts.csv": LINES},
        "008",
        "accounts.csv, line 3",
    ),
    "not of another stream beside one of the name": (
        {NAME: "Id,Name\n", "sync-output/Lead.csv": LINES},
        "008",
        None,
    ),
    "no column of the key": ({NAME: "id,Name\n008,Bill\n"}, "008", None),
    "what no reader takes": (
        {"sync-output/Account.xlsx": "", "sync-output/.Account.csv": LINES},
        "008",
        None,
    ),
}


@pytest.mark.parametrize("open_files", ["/proc/self/fd", "/none"])
@pytest.mark.parametrize(("files", "key", "place"), FOUND.values(), ids=FOUND)
def test_the_last_row_of_a_key_is_found_by_file_and_line(
    find, temporary, monkeypatch, files, key, place, open_files
):
    """As the readers of folders read it, whatever the file's format; nothing of it stays on the disk.

    Also on a system that has no folder of a process's open files.
    """
    monkeypatch.setattr(local, "_OPEN_FILES", Path(open_files))
    found = find(files, key)
    assert place == (None if found is None else str(found))
    assert list(temporary.iterdir()) == []


FLOATS = pa.schema([("Id", pa.float64())])
ODD = pa.schema([("a.b", pa.string()), ('c"`d', pa.int64())])
KEYS = {
    "a whole number": ("Id\n6\n7\n", 7, pa.schema([("Id", pa.int64())]), ("Id",), 3),
    "zeros are one": ("Id\n-0.0\n", 0.0, FLOATS, ("Id",), 2),
    "NaN is NaN": ("Id\n1.5\nNaN\n", math.nan, FLOATS, ("Id",), 3),
    "a null": ("Id,Name\n007,Bond\n,Bill\n", None, TEXTS, ("Id",), 3),
    "an empty text is no null": ('Id,Name\n"",Bond\n,Bill\n', "", TEXTS, ("Id",), 2),
    "names with dots and quotes": ('a.b,"c""`d"\nx,1\nx,2\n', ("x", 2), ODD, ("a.b", 'c"`d'), 3),
    "in another order than the file": ('"c""`d",a.b\n2,x\n', ("x", 2), ODD, ("a.b", 'c"`d'), 2),
    "a number for a text": ("Id,Name\n7,Bond\n", "7", TEXTS, ("Id",), 2),
}


@pytest.mark.parametrize(("text", "value", "schema", "key", "line"), KEYS.values(), ids=KEYS)
def test_keys_are_equal_as_in_an_update(find, text, value, schema, key, line):
    """In the stored types, whatever the names of the columns."""
    assert find({NAME: text}, value, schema, key).line == line


def test_a_large_file_is_read_part_by_part(find, monkeypatch):
    """Lines are counted from the file's beginning, also behind a part's cut; cells are those of the row."""
    monkeypatch.setattr(kept_rows, "_PART_BYTES", 1000)
    rows = [f'{number:05},"Name\n{number}"' for number in range(300)]
    found = find({NAME: "\n".join(["Id,Name", *rows])}, "00250")
    assert (found.line, found.row, found.cells["Name"].to_pylist()) == (502, 251, ["Name\n250"])
    objects = [f'{{"Id": "{number:05}"}}' for number in range(300)]
    assert find({"sync-output/Account.jsonl": "\n".join(objects)}, "00250").line == 251


def test_the_catalog_beside_the_input_says_types(find):
    """As it does to the readers: a column that it calls text is text, whatever the values are."""
    catalog = '{"streams": [{"stream": "Account", "schema": {"properties": {"Name": {"type": "string"}}}}]}'
    schema = pa.schema([("Id", pa.string())])
    found = find({NAME: "Id,Name\n1,5\n", "catalog.json": catalog}, "1", schema)
    assert found.cells.schema.field("Name").type == pa.string()


@pytest.mark.parametrize(
    ("files", "error", "said"),
    [
        ({NAME: 'Id,Name\n1,"a"b\n'}, UnreadableInput, "has text behind a closing quote in line 2"),
        ({"sync-output/Account.csv.gz": b"no gzip"}, UnreadableInput, "cannot be unpacked"),
        ({"sync-output/Account.parquet": b"PAR1"}, UnreadableInput, "Account.parquet"),
    ],
)
def test_what_cannot_be_read_is_said_without_a_place_on_this_machine(find, files, error, said):
    """The file is named as in the job's folder."""
    with pytest.raises(error, match=said) as raised:
        find(files, "1")
    assert "'sync-output/Account" in raised.value.problem


def test_too_many_bytes_are_not_looked_through(find, monkeypatch):
    """They are refused before anything is read."""
    monkeypatch.setattr(kept_rows, "_BYTES_MAX", 20)
    with pytest.raises(TooLarge, match="'Account' are too large"):
        find({NAME: LINES}, "008")


@pytest.mark.parametrize("beside", [{}, {"sync-output/Account.csv": LINES}])
def test_packed_files_count_by_what_they_hold(find, temporary, monkeypatch, beside):
    """Small ones that unpack to many bytes do not fill the disk."""
    monkeypatch.setattr(kept_rows, "_BYTES_MAX", 50_000)
    packed = gzip.compress(LINES.encode() + b"9,Bond\n" * 10_000)
    with pytest.raises(TooLarge, match="'Account' are too large"):
        find({**beside, "sync-output/Account.csv.gz": packed}, "008")
    assert list(temporary.iterdir()) == []


def test_several_packed_files_share_the_limit(find, monkeypatch):
    """Each is smaller, all together are not."""
    monkeypatch.setattr(kept_rows, "_BYTES_MAX", 150_000)
    packed = gzip.compress(LINES.encode() + b"9,Bond\n" * 10_000)
    names = [f"sync-output/Account-{number}.csv.gz" for number in range(3)]
    assert find(dict.fromkeys(names[:2], packed), "008").count == 2
    with pytest.raises(TooLarge, match="'Account' are too large"):
        find(dict.fromkeys(names, packed), "008")


def test_damage_is_told(tmp_path):
    """Of what is kept no row is believed whose file is not the one that was kept."""
    kept, path = KeptInputs(MemoryStorage(), 0), tmp_path / "rows.csv"
    path.write_text(LINES)
    (file,) = kept.keep("folder", {NAME: path}).values()
    files = {NAME: replace(file, sha256="0" * 64)}
    with pytest.raises(CorruptData, match="is damaged"):
        find_input_row(kept, "folder", files, StreamName("Account"), TEXTS, key_of_row(TEXTS, ["Id"], "8"))
