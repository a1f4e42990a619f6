"""Export and import are opposites: each kind of column and format, whole or in pieces, with a key or not."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.given import tenant as open_tenant
from tests.typed_columns import KINDS, same_form

from freezeframe.errors import BadInput, InvalidOption, SchemaDriftError
from freezeframe.script.formats import csv_file, json_rows
from freezeframe.script.inputs import transfer
from freezeframe.script.inputs.transfer import export_stream, import_stream, schema_file
from freezeframe.service.exports import export
from freezeframe.service.rows.streams import Moment

FORMATS = ("csv", "jsonl", "parquet")
PATHS = {"whole": transfer.MEMORY_BYTES_MAX, "in pieces": -1}
FAR = pa.array([2**62, -(2**62), 0, None]).cast(pa.timestamp("us"))
DAYS = pa.array([2_932_897, -800_000, 2**31 - 1, None], pa.int32()).cast(pa.date32())
INNER = pa.struct(
    [
        ("d", pa.decimal128(38, 18)),
        ("t", pa.timestamp("us", "UTC")),
        ("b", pa.binary()),
        ("f", pa.float32()),
        ("m", pa.map_(pa.date32(), pa.list_(pa.struct([("x", pa.float64())])))),
    ]
)
FULL = {
    "d": Decimal("0.000000000000000001"),
    "t": dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC),
    "b": b"\x00\xff",
    "f": 0.10000000149011612,
    "m": [(dt.date(2026, 1, 2), [{"x": math.inf}, None, {"x": None}]), (dt.date(1, 1, 1), None)],
}
HARD = {
    "far times": FAR,
    "far instants": FAR.cast(pa.timestamp("us", "UTC")),
    "far dates": DAYS,
    "lists of far dates": pa.ListArray.from_arrays(pa.array([0, 2, 2, None, 4], pa.int32()), DAYS),
    "nested": pa.array([FULL, None, dict.fromkeys(FULL), {**FULL, "m": []}], INNER),
    "lists of lists": pa.array([[[1], [], None], [], None, [[None]]], pa.list_(pa.list_(pa.int64()))),
    "maps": pa.array([[('a,"b\n', None)], [], None, [("", 1)]], pa.map_(pa.string(), pa.int64())),
    "maps by number": pa.array([[(2**53 + 1, "x")], [], None, []], pa.map_(pa.int64(), pa.string())),
    "floats": pa.array([math.nan, None, -math.inf, -0.0]),
    "float32": pa.array([math.nan, None, math.inf, 0.1], pa.float32()),
    "tiny decimals": pa.array([Decimal("1e-18"), None, Decimal(0), Decimal("-1e-7")], pa.decimal128(38, 18)),
    "binary": pa.array([b"", None, b"\xff", b"abc"]),
    "texts": pa.array(["", None, "NaN", "null"]),
    "none yet": pa.nulls(4),
}


def new_stream():
    return open_tenant().stream("Account")


def content(stream):
    """Rows and columns, where NaN is NaN and -0.0 is not 0.0."""
    rows = stream.read(as_="arrow")
    if not stream.key:
        rows = rows.sort_by("Id")
    # Days and microseconds: Python's types end with the year 9999.
    plain = [_plain(rows[name]) for name in rows.column_names]
    return stream.schema, stream.schema.metadata, plain, stream.key


def _plain(column):
    whole = pa.concat_arrays([*column.chunks, pa.nulls(0, column.type)])
    if pa.types.is_list(whole.type) and pa.types.is_date(whole.type.value_type):
        whole = whole.cast(pa.list_(pa.int32()))
    if pa.types.is_temporal(whole.type):
        whole = whole.cast(pa.int32() if pa.types.is_date(whole.type) else pa.int64())
    return [same_form(value, whole.type) for value in whole.to_pylist()]


def assert_comes_back(table, folder, kind, memory_bytes_max, *, has_key=True):
    source, goal = new_stream(), new_stream()
    source.update(table, "Id" if has_key else None, override=not has_key)
    file = export_stream(source, folder, kind)
    import_stream(goal, file, memory_bytes_max=memory_bytes_max)
    assert content(source) == content(goal)


@pytest.mark.parametrize("memory_bytes_max", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("has_key", [True, False], ids=["keyed", "keyless"])
@pytest.mark.parametrize("kind", FORMATS)
def test_what_text_has_no_value_for_comes_back(tmp_path, kind, has_key, memory_bytes_max):
    """Value by value, null by null, with types and key, and nothing told but the file."""
    table = pa.table({"Id": [1, 2, 3, 4], "odd name; x": [1, None, 2, 3], **HARD})
    assert_comes_back(table, tmp_path, kind, memory_bytes_max, has_key=has_key)


@pytest.mark.parametrize("memory_bytes_max", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("kind", FORMATS)
@given(data=st.data())
@settings(max_examples=examples(20))
def test_all_kinds_of_columns_come_back(tmp_path_factory, kind, memory_bytes_max, data):
    """Whatever the values; pieces are smaller than the file."""
    columns = {name: st.none() | one.values for name, one in KINDS.items()}
    rows = data.draw(st.lists(st.fixed_dictionaries(columns), max_size=4))
    arrays = {name: pa.array([row[name] for row in rows], one.arrow) for name, one in KINDS.items()}
    table = pa.table({"Id": pa.array(range(len(rows)), pa.int64()), **arrays})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "_PIECE_BYTES", 512)
        patch.setattr(json_rows, "_PIECE_BYTES", 512)
        assert_comes_back(table, tmp_path_factory.mktemp("out"), kind, memory_bytes_max)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_stream_without_rows_comes_back(tmp_path, kind):
    """With its columns, keyed or not; and a keyless stream that has rows is not replaced unasked."""
    empty = pa.table({"Id": pa.array([], pa.int64()), "l": pa.array([], pa.list_(pa.date32()))})
    assert_comes_back(empty, tmp_path, kind, transfer.MEMORY_BYTES_MAX)
    report = new_stream()
    report.update(pa.table({"Id": [1]}), override=True)
    file = export_stream(report, tmp_path / "report", kind)
    with pytest.raises(InvalidOption, match="override"):
        import_stream(report, file)
    assert import_stream(report, file, override=True).unchanged == 1


def test_what_csv_cannot_hold_is_refused(tmp_path):
    """A missing value in the only column would be a blank line, a column without a name would get one."""
    for table in (pa.table({"a": ["x", None]}), pa.table({"": ["x"], "b": ["y"]})):
        stream = new_stream()
        stream.update(table, override=True)
        with pytest.raises(BadInput, match="CSV cannot hold it"):
            export_stream(stream, tmp_path)
        with pytest.raises(BadInput):
            b"".join(export(stream, "csv", Moment()))
        assert not list(tmp_path.iterdir())
    only = new_stream()
    only.update(pa.table({"a;b": ["x", ""]}), override=True)
    goal = new_stream()
    import_stream(goal, export_stream(only, tmp_path))
    assert goal.read(as_="arrow").to_pydict() == {"a;b": ["x", ""]}


def test_the_key_of_then_goes_out(tmp_path):
    """A version from before the key was changed has the key of then."""
    stream = new_stream()
    stream.update(pa.table({"Id": [1], "N": [2]}), "Id")
    stream.update(pa.table({"Id": [1], "N": [2]}), "N", override=True)
    for kind in FORMATS:
        goal = new_stream()
        import_stream(goal, export_stream(stream, tmp_path, kind, stream_version=0))
        assert goal.key == ("Id",)


def test_a_parquet_file_that_the_service_sends_has_its_key(tmp_path):
    """And one that was changed afterwards is taken with its own columns."""
    stream = new_stream()
    stream.update(pa.table({"Id": [1], "none": pa.nulls(1)}), "Id")
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"".join(export(stream, "parquet", Moment())))
    goal = new_stream()
    import_stream(goal, file)
    assert content(stream) == content(goal)
    pq.write_table(pq.read_table(file).append_column("more", pa.array(["x"])), file)
    assert import_stream(goal, file).updated == 1


@pytest.mark.parametrize("cell", ["[1", "{}", "null", "[1.5]", '["x"]', "[true]", "[1]]", '[{"a":1}]'])
def test_a_cell_that_is_not_of_the_type_is_refused(tmp_path, cell):
    """No JSON, another kind of value, a digit too many: nothing is written."""
    stream = new_stream()
    stream.update(pa.table({"Id": [1], "l": [[1]]}), "Id")
    file = export_stream(stream, tmp_path)
    file.write_text(f"Id,l\n1,'{cell}'\n".replace("'", '"' if '"' not in cell else "'"))
    goal = new_stream()
    with pytest.raises((SchemaDriftError, BadInput)):
        import_stream(goal, file, schema_from=schema_file(file))
    assert goal.version == -1
