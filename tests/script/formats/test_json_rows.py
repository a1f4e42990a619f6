"""JSON Lines become columns without a value lost or changed."""

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.given import fails
from tests.script.json_values import KNOWN, MIXED, OWN, UTC

from freezeframe.errors import TooLarge, UnreadableInput
from freezeframe.script.formats.input_parts import UnpackLimits, divide
from freezeframe.script.formats.json_rows import JsonFormat
from freezeframe.script.reading import read_json_folder
from freezeframe.script.types.typed_columns import KnownTypes


def lines_of(values):
    """A line for each value of a column ``a``; one of None lacks the column."""
    return "".join("{}\n" if value is None else f'{{"a": {value}}}\n' for value in values)


def read(tmp_path, content, known=None, **options):
    """The rows of a file with this content."""
    file = tmp_path / "A-1.jsonl"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return JsonFormat(**options).whole([file], known or KnownTypes())


NO_FIELDS_WITHIN = (
    ['{"a": null}', '{"a": {}}'],
    pa.struct([("a", pa.struct([]))]),
    [{"a": None}, {"a": {}}],
)
NO_FIELDS = (["{}", "null"], pa.struct([]), [{}, None])


@pytest.mark.parametrize(("values", "kind", "expected"), [*OWN, NO_FIELDS, NO_FIELDS_WITHIN])
@pytest.mark.parametrize("piece_bytes", [1, 2**20])
def test_a_column_is_of_its_values_own_type(values, kind, expected, piece_bytes, tmp_path):
    """Whatever the pieces in which the lines are read, once or twice."""
    text = lines_of(values) + '{"b": 1}\n'
    table = read(tmp_path, text, piece_bytes=piece_bytes)
    assert kind == table["a"].type
    assert [*expected, None] == table["a"].to_pylist()
    # 1 is True, and -0.0 is 0.0, but for their names; those of decimals have zeros at their ends.
    assert "decimal" in str(kind) or repr([*expected, None]) == repr(table["a"].to_pylist())


@pytest.mark.parametrize(("values", "known", "kind", "expected"), KNOWN)
def test_a_known_type_is_taken_where_every_value_is_exact(values, known, kind, expected, tmp_path):
    """Else the column is of its values' own type."""
    column = read(tmp_path, lines_of(values), KnownTypes(pa.schema([("a", known)])))["a"]
    assert kind == column.type
    assert column.to_pylist() == expected


def test_a_declared_type_has_wider_ones(tmp_path):
    """Times without a zone are UTC's, integers of many digits decimals; the catalog says which is meant."""
    types = KnownTypes(declared={"t": UTC, "i": pa.int64()})
    table = read(tmp_path, '{"t": "2020-01-01T00:00:00", "i": 18446744073709551616}\n', types)
    assert [UTC, pa.decimal128(38, 0)] == table.schema.types


@pytest.mark.parametrize(("before", "odd"), MIXED)
def test_several_kinds_of_values_are_refused_by_line(before, odd, tmp_path):
    """In one file and across two; an integer is never rounded, nor a boolean a number."""
    files = [tmp_path / "A-1.jsonl", tmp_path / "A-2.jsonl"]
    files[0].write_text(f"{before}\n\n{{}}\n{odd}\n")
    with pytest.raises(UnreadableInput, match="JSON Lines") as one:
        JsonFormat().whole(files[:1])
    files[0].write_text(before)
    files[1].write_text(f"\n{odd}\n")
    with pytest.raises(UnreadableInput, match="JSON Lines") as two:
        JsonFormat().whole(files)

    assert [(str(files[0]), 4, "a"), (str(files[1]), 2, "a")] == [
        (error.value.details["file"], error.value.details["line"], error.value.details["column"])
        for error in (one, two)
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[1]",
        b"1",
        b'{"a": NaN}',
        b'{"a": 1e400}',
        b'{"a": 1e-400}',
        b'{"a": 1e99999999999999999999}',
        b'{"a": 1234567890.12345678901234567890123456789}',
        b'{"a": 1, "b": 2, "a": 1}',
        b'{"a": 1},{"a": 2}',
        b'{"a": [1\n2]}',
        b'{"a": [{"b": {"c": 1, "c": 2}}]}',
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b'{"\\udc00": 1}',
    ],
)
def test_a_line_that_cannot_be_kept_is_named(line, tmp_path):
    """No object, a number beyond all types, a member given twice, half a character; also in a later part."""
    with pytest.raises(UnreadableInput) as caught:
        read(tmp_path, b'\xef\xbb\xbf{"a": null}\r\n\n' + line + b"\n")
    assert caught.value.details["line"] == 3
    part = divide(tmp_path / "A-1.jsonl", [0, 17])[1]
    with pytest.raises(UnreadableInput) as caught:
        JsonFormat().survey(part, KnownTypes())
    assert caught.value.details["line"] == 3


def test_a_column_that_is_called_text_takes_values_of_several_kinds(tmp_path):
    """As text, in the way in which JSON writes them; the error for mixed kinds names this remedy."""
    lines = '{"a": "007"}\n{"a": 7}\n{"a": [0.5, {"b": null}]}\n{"a": true}\n{}\n'
    with fails(UnreadableInput, "JSON Lines", remedy='types={column: "string"}'):
        read(tmp_path, lines)
    for known in (KnownTypes(declared={"a": pa.string()}), KnownTypes(requested={"a": pa.string()})):
        column = read(tmp_path, lines, known)["a"]
        assert column.to_pylist() == ["007", "7", '[0.5, {"b": null}]', "true", None]


def test_a_type_that_the_caller_names_must_hold_every_value(tmp_path):
    """Else file, line and column are named; dates are looked for where that is asked for."""
    (tmp_path / "A-1.jsonl").write_text('{"n": "1.50", "on": "2020-01-01"}\n{"n": 2, "on": null}\n')
    rows = read_json_folder(tmp_path, as_="arrow", types={"n": "decimal(9,2)"}, parse_dates=True)["A"]
    with pytest.raises(UnreadableInput) as caught:
        read_json_folder(tmp_path, types={"n": "int64"})
    assert [pa.decimal128(9, 2), pa.date32()] == rows.schema.types
    assert (caught.value.details["line"], caught.value.details["column"]) == (1, "n")


ARRAYS = [
    ("[]", []),
    ("\ufeff [ {} ] \n", []),
    ('[{"a": 1},{"a": 2.5}]', [{"a": 1.0}, {"a": 2.5}]),
    (
        '[\n  {\n    "a": "é]},{",\n    "b": [1]\n  }\n  ,\n  {"b": []}\n]\n',
        [{"a": "é]},{", "b": [1]}, {"b": []}],
    ),
    ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
    (" \n", []),
]


@pytest.mark.parametrize(("content", "rows"), ARRAYS)
@pytest.mark.parametrize("piece_bytes", [1, 7, 2**20])
def test_a_json_file_is_an_array_of_objects_or_lines(content, rows, piece_bytes, tmp_path):
    """Whatever the pieces in which it is read; it is one part where it is an array."""
    file = tmp_path / "A-1.json"
    file.write_text(content)
    names = dict.fromkeys(name for row in rows for name in row)
    table = JsonFormat(piece_bytes=piece_bytes).whole([file])
    assert [{name: row.get(name) for name in names} for row in rows] == table.to_pylist()
    assert len(JsonFormat().parts(file, 9)) == (2 if content.startswith("{") else 1)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("[\n{}", 2),
        ("[{}\n,", 2),
        ("[{},\n]", 2),
        ("[{}\n{}]", 2),
        ("[{}]\n[]", 2),
        ("[{},\n7]", 2),
        ('[{},\n{"a": 1e400}]', 2),
        ('[{},\n{"a": 1, "a": 1}]', 2),
        ('[{},\n{"a": "\\ud800"}]', 2),
        ('[{"a": 1},\n{"a": "x"}]', 2),
        ('{"a":\n1}', 1),
    ],
)
def test_the_line_of_a_fault_in_an_array_is_named(content, line, tmp_path):
    """A value begins in it; also where the file ends before the array, or goes on behind it."""
    file = tmp_path / "A-1.json"
    file.write_text(content)
    with pytest.raises(UnreadableInput, match="cannot be read as JSON") as caught:
        JsonFormat(piece_bytes=3).whole([file])
    assert line == caught.value.details["line"]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n\r\n", b"{}\n"])
def test_a_file_without_values_has_no_columns(content, tmp_path):
    """But those that the caller wants in any case."""
    assert read(tmp_path, content).column_names == []
    columns = pa.schema([("a", pa.int64())])
    assert columns == read(tmp_path, content, KnownTypes(columns), columns=columns).schema


def test_cells_are_counted_before_they_are_made(tmp_path):
    """A column that only one line has takes room in all lines."""
    lines = "".join(f'{{"c{number}": 1}}\n' for number in range(100))
    with pytest.raises(TooLarge):
        read(tmp_path, lines, limits=UnpackLimits(bytes_max=50_000, ratio_free_bytes=0))


OPEN = pa.struct([("a", pa.null()), ("b", pa.decimal128(5, 2)), ("l", pa.list_(pa.struct([])))])


@pytest.mark.parametrize("piece_bytes", [1, 2**20])
def test_what_is_open_in_a_known_type_is_decided_and_the_rest_kept(piece_bytes, tmp_path):
    """A first value has its own type, and numbers beside it stay the decimals that they were."""
    values = ['{"a": null, "b": 1, "l": []}', '{"a": 1, "b": 1.5, "l": [{"c": true}]}', '{"a": 0.5}', None]

    column = read(tmp_path, lines_of(values), KnownTypes(pa.schema([("a", OPEN)])), piece_bytes=piece_bytes)[
        "a"
    ]
    members = [
        ("a", pa.float64()),
        ("b", pa.decimal128(5, 2)),
        ("l", pa.list_(pa.struct([("c", pa.bool_())]))),
    ]
    assert column.type == pa.struct(members)
    assert column.to_pylist() == [
        {"a": None, "b": Decimal("1.00"), "l": []},
        {"a": 1.0, "b": Decimal("1.50"), "l": [{"c": True}]},
        {"a": 0.5, "b": None, "l": None},
        None,
    ]


def test_a_folder_is_read_with_stored_and_declared_types(tmp_path):
    """All endings, in the order of their stamps; schemas win over the catalog; pandas' own types."""
    folder = tmp_path / "sync-output"
    folder.mkdir()
    (folder / "A-2.ndjson").write_text('{"Id": 2, "on": "2020-01-02", "n": 2}')
    (folder / "A-1.jsonl").write_text(
        '{"Id": 1, "on": "2020-01-01", "n": null, "at": "2020-01-01T00:00:00"}\n'
    )
    (folder / "A-3.json").write_text('[{"Id": 3, "on": "2020-01-03"}]')
    (folder / "C.snapshot.schema.json").write_text("{")
    (folder / "B-1.jsonl").write_text("{")
    properties = {"at": {"type": "string", "format": "date-time"}, "on": {"type": "string"}}
    catalog = {"streams": [{"stream": "A", "schema": {"properties": properties}}]}
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    schemas = {"A": pa.schema([("on", pa.date32())])}

    table = read_json_folder(folder, ["B"], "arrow", schemas=schemas)["A"]
    frame = read_json_folder(folder, ["B"], schemas=schemas)["A"]

    assert [pa.int64(), pa.date32(), pa.int64(), UTC] == table.schema.types
    assert table["Id"].to_pylist() == [1, 2, 3]
    assert [str(kind) for kind in frame.dtypes] == ["int64", "object", "float64", "datetime64[us, UTC]"]
