"""Rows of a snapshot: projection, predicates, vectors, mapping, old files, and damage of every kind."""

import hashlib
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.examples import examples
from tests.log.data_files import append, created
from tests.log.tables import inline_vector, with_mapping
from tests.old_calendar import NEW, OLD

from freezeframe.errors import (
    CorruptData,
    CorruptLog,
    FreezeframeError,
    InvalidOption,
    MissingColumn,
    NotFound,
    UnsupportedTable,
)
from freezeframe.log import DeltaLog, LogOptions
from freezeframe.log.format.actions import Add, CommitInfo, Metadata, Protocol, to_json_line
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.scan import held_columns, rows
from freezeframe.log.scan.data_files import SHA256_TAG, vector_file
from freezeframe.log.scan.file_statistics import file_statistics, statistics_text
from freezeframe.log.segments.commit import Committed, write_commit
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.read_ahead import map_concurrently

FEATURES = ("columnMapping", "deletionVectors", "timestampNtz", "typeWidening")
PROTOCOL = Protocol(3, 7, FEATURES, FEATURES)


class Table:
    """A table written by hand: its schema is given, its files may be anything."""

    def __init__(self, storage, schema, partition=(), **configuration):
        self.storage = storage
        self.schema = schema
        text = json.dumps(schema)
        keys = {f"delta.{key}": value for key, value in configuration.items()}
        self.actions = [PROTOCOL, Metadata("id", text, tuple(partition), keys)]

    def file(self, data, name="a.parquet", values=None, vector=None, tags=None, stats=True, **options):
        sink = pa.BufferOutputStream()
        pq.write_table(data, sink, write_page_checksum=True, **options)
        content = sink.getvalue().to_pybytes()
        self.storage.put_if_absent(f"t/{name}", content)
        text = statistics_text(file_statistics(content, self.schema)) if stats is True else stats or None
        add = Add(name, len(content), values or {}, stats=text, tags=tags, deletion_vector=vector)
        self.actions.append(add)
        return content

    def snapshot(self):
        lines = [to_json_line(action) for action in [CommitInfo({"operation": "WRITE"}), *self.actions]]
        assert Committed(0) == write_commit(self.storage, "t", 0, ("\n".join(lines) + "\n").encode())
        return DeltaLog(self.storage, "t").update()


@pytest.fixture(params=["local", "memory"])
def storage(request, tmp_path):
    return LocalStorage(tmp_path) if request.param == "local" else MemoryStorage()


def of(storage, data, **options):
    table = Table(storage, arrow_to_delta(data.schema))
    table.file(data, **options)
    return table.snapshot()


PEOPLE = pa.table({"id": ["007", "NA", ""], "n": [1, 2**53 + 1, None], "city": ["Bern", "Basel", "Bern"]})


def test_a_table_comes_back_as_it_was(storage):
    """Text with leading zeros, large integers and nulls are returned as they were written."""
    assert PEOPLE.equals(rows.read(of(storage, PEOPLE)))


def test_columns_come_in_the_order_asked_for(storage):
    """A projection gives the wanted columns in the wanted order."""
    assert rows.read(of(storage, PEOPLE), ["city", "id"]).column_names == ["city", "id"]


@pytest.mark.parametrize("gone", [[], [0], [1, 2], [0, 1, 2]])
@pytest.mark.parametrize("wide", [1, 100])
def test_rows_are_read_in_an_order_without_deleted_ones(storage, gone, wide, monkeypatch):
    """As a read and a sort: two files of overlapping values, one of them with deleted rows."""
    monkeypatch.setattr(rows, "_WIDE_COLUMNS", wide)
    monkeypatch.setattr(rows, "_COLUMNS_AT_ONCE", 1)
    monkeypatch.setattr(rows, "_WIDE_BYTES", 0)
    table = Table(storage, arrow_to_delta(PEOPLE.schema))
    table.file(PEOPLE, "a.parquet", vector=inline_vector(BitMap64(gone)) if gone else None)
    table.file(PEOPLE.set_column(1, "n", pa.array([0, 3, 4])), "b.parquet")
    snapshot = table.snapshot()
    whole = rows.read(snapshot)
    found = rows.read_sorted(snapshot, ["n"], lambda keys: pc.sort_indices(keys["n"]).to_numpy())
    assert found.equals(whole.sort_by("n"))
    assert rows.read_sorted(snapshot, [], lambda keys: np.arange(len(keys))).equals(whole)


@pytest.fixture
def decoded(monkeypatch):
    """The columns of row groups that were decoded since."""
    decoded, read = [], pq.ParquetFile.read_row_group

    def recorded(file, group, columns):
        decoded.extend((group, column) for column in columns)
        return read(file, group, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", recorded)
    return decoded


def test_cells_are_decoded_once_for_the_reads_of_a_call(storage, decoded):
    """Each read has its own rows and columns, with and without deleted rows, in a block and after it."""
    snapshot = of(storage, PEOPLE, vector=inline_vector(BitMap64([0])), row_group_size=2)
    plain = rows.read(snapshot)
    with held_columns.columns_held() as held:
        for held.releases in (False, True):
            found = rows.read_at(snapshot, {"a.parquet": np.array([0, 2])}, ["id", "n"])
            assert found.equals(PEOPLE.select(["id", "n"]).take([0, 2]))
            rest = [name for name in PEOPLE.column_names if name == "city" or not held.releases]
            assert rows.read(snapshot, rest).equals(plain.select(rest))
    assert held.columns == {}
    assert len(set(decoded)) == len(decoded) == 6
    assert rows.read(snapshot).equals(plain)


def test_what_several_threads_read_is_decoded_once(storage, decoded):
    """What cannot be decoded is told by each of them."""
    data = pa.table({"n": range(1000), "text": [f"{n:04}" for n in range(1000)]})
    snapshot = of(storage, data, row_group_size=100)

    def read(name):
        return rows.read(snapshot, [name])

    names = ["n", "text", "n", "text"]
    with held_columns.columns_held():
        assert [data.select([name]) for name in names] == map_concurrently(read, names, 4)
    assert sorted((group, name) for group in range(10) for name in ("n", "text")) == sorted(decoded)
    storage.delete("t/a.parquet")
    with held_columns.columns_held(), pytest.raises(CorruptData, match="missing"):
        map_concurrently(read, names, 4)


def test_the_last_read_holds_no_columns_of_other_files(storage):
    """An update has read the rows of a file that it wrote anew; they would stay until the frame is made."""
    table = Table(storage, arrow_to_delta(PEOPLE.schema))
    for name in ("a.parquet", "b.parquet"):
        table.file(PEOPLE, name)
    with held_columns.columns_held() as held:
        rows.read(table.snapshot(), ["id", "n"])
        held.release({"t/b.parquet"})
        assert {("t/b.parquet", 0, "id"), ("t/b.parquet", 0, "n")} == held.columns.keys()


class Interrupting(dict):
    """Columns whose reader is interrupted once it has promised them."""

    def __ior__(self, others):
        """Take the others, then be interrupted."""
        self.update(others)
        raise KeyboardInterrupt


def test_an_interrupted_read_promises_no_columns(storage):
    """Whoever needs them next decodes them: it would wait for ever."""
    snapshot = of(storage, PEOPLE)
    with held_columns.columns_held() as held:
        held.columns = Interrupting()
        with pytest.raises(KeyboardInterrupt):
            rows.read(snapshot)
        assert {} == held.columns


def test_a_block_within_a_block_shares_its_columns_and_files(storage, decoded):
    """The files are held from then on, where the inner one asks for it."""
    snapshot = of(storage, PEOPLE)
    with held_columns.columns_held() as outer:
        rows.read(snapshot, ["id"])
        with held_columns.columns_held(with_files=True) as inner:
            rows.read(snapshot, ["id"])
        assert outer is inner is held_columns.held_columns()
        assert {"t/a.parquet"} == outer.files.keys()
    assert [(0, "id")] == decoded
    assert held_columns.held_columns() is None


def test_a_wide_table_is_read_some_columns_at_a_time(storage, monkeypatch):
    """Of several files, with deleted rows and a partition: the same table as in one go."""
    data = pa.table({f"c{number}": pa.array(range(number, number + 6)) for number in range(7)})
    schema = arrow_to_delta(data.append_column("p", pa.array(["x"] * 6)).schema)
    table = Table(storage, schema, partition=["p"])
    table.file(data, "a.parquet", {"p": "x"}, vector=inline_vector(BitMap64([1, 4])))
    table.file(data.slice(2), "b.parquet", {"p": "y"})
    snapshot = table.snapshot()
    whole = rows.read(snapshot)
    some = rows.read(snapshot, ["p", "c6", "c2", "c0"])
    monkeypatch.setattr(rows, "_COLUMNS_AT_ONCE", 3)
    monkeypatch.setattr(rows, "_WIDE_COLUMNS", 3)
    monkeypatch.setattr(rows, "_WIDE_BYTES", 0)

    assert (8, 8) == whole.shape
    assert whole.equals(rows.read(snapshot))
    assert some.equals(rows.read(snapshot, ["p", "c6", "c2", "c0"]))


def test_a_dot_in_a_name_is_no_path(storage):
    """A column named like a path into a struct, and that struct, are told apart."""
    data = pa.table({"a.b": [1, 2], "a": [{"b": 3, "c": 5}, {"b": 4, "c": 6}], "a.b.c": ["x", "y"]})
    snapshot = of(storage, data)
    assert data.equals(rows.read(snapshot))
    for name in data.column_names:
        assert data.select([name]).equals(rows.read(snapshot, [name]))
    assert rows.read(snapshot, ["a.b.c"], pc.field("a.b") > 1)["a.b.c"].to_pylist() == ["y"]


def test_an_unknown_column_is_named(storage):
    """A column that the table lacks is an error that names it, in projection and predicate."""
    snapshot = of(storage, PEOPLE)
    with pytest.raises(MissingColumn, match="'Id'"):
        rows.read(snapshot, ["Id"])
    with pytest.raises(MissingColumn, match="town"):
        rows.read(snapshot, where=pc.field("town") == "Bern")


@pytest.mark.parametrize(
    "where",
    [
        pc.field("city") == "Bern",
        [("city", "=", "Bern")],
        ("city", "=", "Bern"),
        "city = 'Bern'",
        ["city = 'Bern'", "id = '007' or id = ''"],
        [[("city", "=", "Bern"), ("id", "in", ["007", ""])], [("n", ">", 2**60)]],
    ],
)
def test_predicates_of_every_form_filter_rows(storage, where):
    """Expressions, tuples and SQL text filter alike, also by columns that are not handed out."""
    assert rows.read(of(storage, PEOPLE), ["id"], where)["id"].to_pylist() == ["007", ""]


@pytest.mark.parametrize(
    "where", ["city =", [("city",)], ["city = 'Bern'", "id"], ("city", "is", "Bern"), 7, pc.field("city") > 3]
)
def test_what_is_no_predicate_is_refused(storage, where):
    """Half a sentence or a tuple, a number or a senseless comparison is refused before a file is opened."""
    with pytest.raises(InvalidOption):
        rows.read(of(storage, PEOPLE), where=where)


def test_files_that_cannot_match_are_not_opened(storage):
    """Partition values and statistics leave files out: they may even be missing."""
    schema = arrow_to_delta(pa.schema([("n", pa.int64()), ("p", pa.string())]))
    table = Table(storage, schema, partition=["p"])
    for number in range(4):
        data = pa.table({"n": range(number * 10, number * 10 + 10)})
        table.file(data, name=f"{number}.parquet", values={"p": "even" if number % 2 == 0 else "odd"})
    snapshot = table.snapshot()
    for number in (0, 1, 3):
        storage.delete(f"t/{number}.parquet")
    found = rows.read(snapshot, where=(pc.field("p") == "even") & (pc.field("n") > 15))
    assert list(range(20, 30)) == found["n"].to_pylist()


def test_a_partition_column_that_is_none_is_damage(storage):
    """A name in `partitionColumns` that the schema lacks: where rows belong is not known, as in Spark."""
    table = Table(storage, arrow_to_delta(pa.schema([("v", pa.int64())])), partition=["gone"])
    table.file(pa.table({"v": [1, 2]}), values={"gone": "a"})
    with pytest.raises(CorruptLog, match="gone") as caught:
        rows.read(table.snapshot())
    assert caught.value.error_code == "FIELD_NOT_FOUND"


def test_partition_values_are_typed(storage):
    """Partition columns come from the log in the types of the schema; an empty text is null."""
    kinds = {"i": pa.int32(), "d": pa.date32(), "t": pa.timestamp("us", "UTC"), "b": pa.bool_()}
    kinds |= {"m": pa.decimal128(5, 2), "s": pa.string(), "x": pa.binary(), "z": pa.timestamp("us")}
    fields = [("v", pa.int64()), *kinds.items()]
    table = Table(storage, arrow_to_delta(pa.schema(fields)), partition=list(kinds))
    values = {"i": "7", "d": "2020-02-29", "t": "2020-01-01T10:00:00.000001Z", "b": "true", "m": "1.50"}
    values |= {"s": "", "x": "ab", "z": "2020-01-01 10:00:00"}
    table.file(pa.table({"v": [1, 2]}), values=values)
    found = rows.read(table.snapshot()).to_pylist()
    moment = datetime(2020, 1, 1, 10, tzinfo=UTC)
    wanted = {"v": 2, "i": 7, "d": datetime(2020, 2, 29, tzinfo=UTC).date(), "b": True, "m": Decimal("1.50")}
    wanted |= {"s": None, "x": b"ab", "t": moment.replace(microsecond=1), "z": moment.replace(tzinfo=None)}
    assert found[1] == wanted


def test_a_partition_value_of_another_type_is_damage(storage):
    """A text that is not a value of its column is not read as null."""
    schema = arrow_to_delta(pa.schema([("v", pa.int64()), ("p", pa.int32())]))
    table = Table(storage, schema, partition=["p"])
    table.file(pa.table({"v": [1]}), values={"p": "seven"})
    with pytest.raises(CorruptLog, match="seven"):
        rows.read(table.snapshot())


@pytest.mark.parametrize("kind", ["inline", "file", "absolute"])
def test_deleted_rows_are_left_out(tmp_path, kind):
    """Vectors inside the log, in the table's folder and at an absolute path all hide their rows."""
    storage = LocalStorage(tmp_path)
    table = Table(storage, arrow_to_delta(pa.schema([("n", pa.int64())])))
    gone = BitMap64([0, 3, 5])
    vector = inline_vector(gone)
    if kind != "inline":
        made = vector_file(gone, prefix="ab" if kind == "file" else "")
        storage.put_if_absent(f"t/{made.name}", made.content)
        vector = made.vector
        if kind == "absolute":
            path = f"file://{tmp_path}/t/{made.name}"
            vector = type(vector)("p", path, vector.size_in_bytes, vector.cardinality, vector.offset)
    table.file(pa.table({"n": range(7)}), vector=vector)
    snapshot = table.snapshot()
    assert rows.read(snapshot)["n"].to_pylist() == [1, 2, 4, 6]
    assert rows.read(snapshot, where=pc.field("n") > 2)["n"].to_pylist() == [4, 6]
    assert rows.count(snapshot) == 4


def test_odd_names_are_read_through_column_mapping(storage):
    """Names that Parquet cannot hold, at any depth, are found under their physical ones."""
    logical = arrow_to_delta(
        pa.schema(
            [
                ("a b", pa.int64()),
                ("s;", pa.struct([("x=", pa.string())])),
                ("l", pa.list_(pa.struct([("y", pa.int32())]))),
            ]
        )
    )
    schema, id_max = with_mapping(logical)
    table = Table(storage, schema, **{"columnMapping.mode": "name", "columnMapping.maxColumnId": str(id_max)})
    top, nested, listed = (
        field["metadata"]["delta.columnMapping.physicalName"] for field in schema["fields"]
    )
    x = schema["fields"][1]["type"]["fields"][0]["metadata"]["delta.columnMapping.physicalName"]
    y = schema["fields"][2]["type"]["elementType"]["fields"][0]["metadata"][
        "delta.columnMapping.physicalName"
    ]
    table.file(pa.table({listed: [[{y: 5}, None], None], nested: [{x: "q"}, None], top: [1, 2]}))
    snapshot = table.snapshot()
    wanted = [{"a b": 1, "s;": {"x=": "q"}, "l": [{"y": 5}, None]}, {"a b": 2, "s;": None, "l": None}]
    assert rows.read(snapshot).to_pylist() == wanted
    assert rows.read(snapshot, ["a b"], pc.field("a b") > 1)["a b"].to_pylist() == [2]


def test_columns_are_found_by_id(storage):
    """In the mode 'id' a column has its number in the file, whatever its name there."""
    schema, _ = with_mapping(arrow_to_delta(pa.schema([("n", pa.int64()), ("new", pa.string())])))
    table = Table(storage, schema, **{"columnMapping.mode": "id"})
    field = pa.field("whatever", pa.int64(), metadata={"PARQUET:field_id": "1"})
    table.file(pa.table([pa.array([4])], schema=pa.schema([field])))
    assert rows.read(table.snapshot()).to_pylist() == [{"n": 4, "new": None}]


def test_a_file_without_ids_is_refused_where_ids_are_needed(storage):
    """In the mode 'id' a file without ids would read as nothing but nulls: it is damage."""
    schema, _ = with_mapping(arrow_to_delta(pa.schema([("n", pa.int64())])))
    table = Table(storage, schema, **{"columnMapping.mode": "id"})
    table.file(pa.table({"n": [4]}))
    with pytest.raises(CorruptData, match="no ids"):
        rows.read(table.snapshot())


def test_old_files_fit_the_new_schema(storage):
    """Columns that a file lacks are null, types that it had are widened, at any depth; others are ignored."""
    new = pa.schema(
        [
            ("i", pa.int64()),
            ("d", pa.decimal128(12, 4)),
            ("t", pa.timestamp("us")),
            ("s", pa.struct([("x", pa.float64()), ("later", pa.string())])),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("later", pa.list_(pa.int64())),
        ]
    )
    table = Table(storage, arrow_to_delta(new))
    old = {
        "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
        "hidden": pa.array([1, 2]),
        "s": pa.array([{"x": 1.5}, None], pa.struct([("x", pa.float32())])),
        "t": pa.array([0, None], pa.date32()),
        "d": pa.array([Decimal("1.5"), None], pa.decimal128(4, 1)),
        "i": pa.array([1, None], pa.int8()),
    }
    table.file(pa.table(old))
    epoch = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    first = {"i": 1, "d": Decimal("1.5000"), "t": epoch, "s": {"x": 1.5, "later": None}, "m": [("k", 1)]}
    second = dict.fromkeys(new.names)
    found = rows.read(table.snapshot())
    assert [{**first, "later": None}, second] == found.to_pylist()
    assert new.types == found.schema.types


SINGLES = [0.2, -0.2, 0.1, 16777217.0, 3.4028235e38, 1e-45, 0.5]
WIDENED = [
    (pa.array(SINGLES, pa.float32()), "double", [float(str(np.float32(number))) for number in SINGLES]),
    (pa.array([7, -7], pa.int32()), "double", [7, -7]),
    (pa.array([7, -7], pa.int8()), "long", [7, -7]),
    (pa.array([7, -7], pa.int32()), "decimal(12,2)", [7, -7]),
    (pa.array([Decimal("1.5"), Decimal("-1.5")]), "decimal(12,4)", [1.5, -1.5]),
    (pa.array([date(2024, 2, 29), date(1, 1, 1)]), "timestamp_ntz", ["2024-02-29", "0001-01-01"]),
]


@pytest.mark.parametrize(("values", "kind", "texts"), WIDENED, ids=lambda part: str(part)[:12])
def test_no_file_of_before_a_widening_is_left_out(storage, values, kind, texts):
    """Its bounds are texts of the type of then: for a float 0.2 is not the double of that text."""
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": kind}]} if kind == "double" else {}
    field = {"name": "v", "type": kind, "nullable": True, "metadata": changes}
    table = Table(storage, {"type": "struct", "fields": [field]})
    for number, text in enumerate(texts):
        bounds = {"minValues": {"v": text}, "maxValues": {"v": text}, "numRecords": 1, "nullCount": {"v": 0}}
        table.file(
            pa.table({"v": values[number : number + 1]}), f"{number}.parquet", stats=json.dumps(bounds)
        )
    snapshot = table.snapshot()
    whole, v = rows.read(snapshot), pc.field("v")
    stored = whole["v"].to_pylist()
    literals = [*stored, *texts] if kind == "double" else stored
    for literal in (pa.scalar(item, whole["v"].type) for item in literals):
        for where in (v == literal, v < literal, v <= literal, v > literal, v >= literal):
            assert whole.filter(where).equals(rows.read(snapshot, where=where)), where
            assert whole.filter(where).equals(rows.dataset_of(snapshot).to_table(filter=where)), where


def test_members_that_must_not_be_null_are_null_in_a_null_struct(storage):
    """Also at a depth, and in a dataset, whose files may have members that may be null."""
    member = pa.struct([pa.field("a", pa.string(), nullable=False), pa.field("b", pa.int64())])
    table = Table(storage, arrow_to_delta(pa.schema([("s", member), ("l", pa.list_(member))])))
    held = pa.struct([("a", pa.string()), ("b", pa.int64())])
    one = {"a": "x", "b": None}
    table.file(
        pa.table({"s": pa.array([one, None], held), "l": pa.array([[one, None], None], pa.list_(held))})
    )
    expected = [{"s": one, "l": [one, None]}, {"s": None, "l": None}]
    dataset = rows.dataset_of(table.snapshot())
    found = (
        rows.read(table.snapshot()),
        dataset.to_table(),
        dataset.to_table(filter=pc.field("s").is_null()),
    )
    assert [expected, expected, expected[1:]] == [part.to_pylist() for part in found]
    assert pl.scan_pyarrow_dataset(dataset).collect().to_dicts() == expected


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.array([2**40]), pa.int32()),
        (pa.array(["12"]), pa.int64()),
        (pa.array([12]), pa.string()),
        (pa.array([1.5]), pa.int64()),
        (pa.array([[1]]), pa.int64()),
        (pa.array([b"\xff"]), pa.string()),
    ],
)
def test_values_that_would_change_are_damage(storage, stored, kind):
    """A file whose values the table's type cannot hold exactly is refused, never converted."""
    table = Table(storage, arrow_to_delta(pa.schema([("c", kind)])))
    table.file(pa.table({"c": stored}), stats=False)
    with pytest.raises(CorruptData, match=r"a\.parquet"):
        rows.read(table.snapshot())


def test_nanoseconds_are_refused_and_nothing_is_called_damaged(storage):
    """No digit is dropped, and no copy is asked for; the other columns can be read."""
    table = Table(storage, arrow_to_delta(pa.schema([("n", pa.int64()), ("c", pa.timestamp("us"))])))
    table.file(pa.table({"n": [1], "c": pa.array([1001], pa.timestamp("ns"))}), stats=False)
    told = []
    for read in (rows.read, lambda snapshot: rows.dataset_of(snapshot).to_table()):
        with pytest.raises(UnsupportedTable, match=r"a\.parquet', column 'c'") as refused:
            read(table.snapshot())
        told.append(("copy" in refused.value.remedy, "whole microseconds" in refused.value.remedy))

    assert [(False, True)] * 2 == told
    assert [{"n": 1}] == rows.read(table.snapshot(), ["n"]).to_pylist()


def test_void_columns_are_shown_only_when_asked_for(storage):
    """A column of type void is left out as in Spark, and is nulls when named."""
    schema = arrow_to_delta(pa.schema([("n", pa.int64()), ("nothing", pa.null())]))
    table = Table(storage, schema)
    table.file(pa.table({"n": [1]}))
    snapshot = table.snapshot()
    assert rows.read(snapshot).column_names == ["n"]
    assert rows.read(snapshot, ["nothing"]).to_pylist() == [{"nothing": None}]


def test_paths_with_escapes_are_found(storage):
    """A path in the log is a URI: a percent sign in the file's name is escaped there."""
    table = Table(storage, arrow_to_delta(pa.schema([("n", pa.int64())])))
    table.file(pa.table({"n": [1]}), name="p=a%20b/x y.parquet")
    add = table.actions.pop()
    table.actions.append(Add("p=a%2520b/x%20y.parquet", add.size, stats=add.stats))
    assert rows.read(table.snapshot()).num_rows == 1


def test_a_path_out_of_the_table_is_refused(storage):
    """A log that names a parent folder is damaged; nothing outside of the table is read."""
    table = Table(storage, arrow_to_delta(pa.schema([("n", pa.int64())])))
    storage.put_if_absent("secret.parquet", b"x")
    table.actions.append(Add("../secret.parquet", 1))
    with pytest.raises(CorruptLog, match="outside"):
        rows.read(table.snapshot())


def test_batches_are_the_same_rows(storage):
    """Reading in batches gives the rows of a whole read in the same order, over several files."""
    table = Table(storage, arrow_to_delta(pa.schema([("n", pa.int64())])))
    for number in range(3):
        table.file(
            pa.table({"n": range(number * 100_000, number * 100_000 + 100_000)}), name=f"{number}.parquet"
        )
    snapshot = table.snapshot()
    batches = list(rows.read_batches(snapshot))
    assert rows.read(snapshot).equals(pa.Table.from_batches(batches))
    assert rows.count(snapshot) == 300_000


def test_a_table_that_is_not_there_is_not_empty(storage):
    """A folder without a log has no rows to give."""
    with pytest.raises(NotFound):
        rows.read(DeltaLog(storage, "t").update())


def test_another_number_of_rows_is_damage(storage):
    """A file with fewer rows than the log says is not returned."""
    table = Table(storage, arrow_to_delta(pa.schema([("n", pa.int64())])))
    table.file(pa.table({"n": [1, 2]}), stats=False)
    add = table.actions.pop()
    table.actions.append(Add(add.path, add.size, stats='{"numRecords":3}'))
    with pytest.raises(CorruptData, match="2 rows and should hold 3"):
        rows.read(table.snapshot())


def test_a_vector_of_other_rows_is_damage(storage):
    """A vector that names rows beyond the file's end, or more rows than it says, is not applied."""
    for rows_gone, cardinality in ((BitMap64([9]), 1), (BitMap64([0, 1]), 1)):
        inner = MemoryStorage()
        vector = inline_vector(rows_gone)
        vector = type(vector)("i", vector.path_or_inline_dv, vector.size_in_bytes, cardinality)
        table = Table(inner, arrow_to_delta(pa.schema([("n", pa.int64())])))
        table.file(pa.table({"n": range(5)}), vector=vector)
        with pytest.raises(CorruptData, match="vector"):
            rows.read(table.snapshot())


def flipped(content, at, bit):
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def test_a_flip_of_any_byte_is_right_rows_or_an_error():
    """Each byte of data file and vector file is flipped: the right rows or a typed error, never others."""
    data = pa.table({"id": ["007", "NA", None, "x"], "n": [1, 2, None, 4]})
    gone = vector_file(BitMap64([1]))
    table = Table(MemoryStorage(), arrow_to_delta(data.schema))
    content = table.file(data, vector=gone.vector, tags=None)
    digest = {SHA256_TAG: hashlib.sha256(content).hexdigest()}
    add = table.actions.pop()
    table.actions.append(Add(add.path, add.size, stats=add.stats, tags=digest, deletion_vector=gone.vector))
    table.storage.put_if_absent(f"t/{gone.name}", gone.content)
    snapshot = table.snapshot()
    wanted = rows.read(snapshot)
    assert wanted["id"].to_pylist() == ["007", None, "x"]
    wrong = []
    for name, whole in (("a.parquet", content), (gone.name, gone.content)):
        for at in range(len(whole)):
            table.storage.replace(f"t/{name}", flipped(whole, at, at % 8))
            try:
                if not rows.read(snapshot).equals(wanted):
                    wrong.append((name, at))
            except FreezeframeError:
                pass
        table.storage.replace(f"t/{name}", whole)
    assert wrong == []


def test_page_checksums_find_what_no_digest_was_kept_for():
    """Without a digest a flipped data page is still found by its page's checksum."""
    data = pa.table({"n": np.arange(5000)})
    table = Table(MemoryStorage(), arrow_to_delta(data.schema))
    content = table.file(data)
    snapshot = table.snapshot()
    for at in range(200, 8000, 97):
        table.storage.replace("t/a.parquet", flipped(content, at, 3))
        with pytest.raises(CorruptData):
            rows.read(snapshot)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_file_that_was_cut_off_is_damage(storage, cut):
    """A shorter file, an empty one too, is refused."""
    table = Table(storage, arrow_to_delta(pa.schema([("n", pa.int64())])))
    content = table.file(pa.table({"n": range(100)}))
    snapshot = table.snapshot()
    storage.replace("t/a.parquet", content[:cut])
    with pytest.raises(CorruptData, match=r"a\.parquet"):
        rows.read(snapshot)


values = st.one_of(st.none(), st.integers(-5, 5))


@settings(max_examples=examples(60))
@given(
    st.lists(st.lists(values, min_size=1, max_size=4), min_size=1, max_size=5),
    st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
    st.integers(-6, 6),
)
def test_skipping_never_changes_the_answer(files, operator, bound):
    """Whatever files there are, a read with a predicate equals the filtered full read."""
    table = Table(MemoryStorage(), arrow_to_delta(pa.schema([("n", pa.int64())])))
    for number, numbers in enumerate(files):
        table.file(pa.table({"n": pa.array(numbers, pa.int64())}), name=f"{number}.parquet")
    snapshot = table.snapshot()
    where = pq.filters_to_expression([("n", operator, bound)])
    assert rows.read(snapshot).filter(where).equals(rows.read(snapshot, where=where))


FIRST = (
    [("d", "=", NEW["d"][0])],
    [("d", "<", NEW["d"][1])],
    [("t", "<=", NEW["t"][0])],
    [("t", "!=", NEW["t"][1])],
)


@pytest.mark.parametrize("int96", [False, True], ids=["INT64", "INT96"])
@pytest.mark.parametrize("where", FIRST)
def test_predicates_see_dates_and_times_as_they_are_shown(storage, where, int96):
    """Files of the old calendar are rebased first; no row is skipped by their footers' bounds."""
    columns = {**OLD, "t": OLD["t"].cast(pa.timestamp("us", None if int96 else "UTC"))}
    data = pa.table(columns).replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    table = Table(storage, arrow_to_delta(pa.table(OLD).schema))
    table.file(data, stats=False, row_group_size=1, use_deprecated_int96_timestamps=int96)
    snapshot = table.snapshot()

    assert NEW == rows.read(snapshot).to_pydict() == snapshot.to_dataset().to_table().to_pydict()
    assert [1] == rows.read(snapshot, ["id"], where)["id"].to_pylist()
    filtered = snapshot.to_dataset().to_table(filter=pq.filters_to_expression(where))
    assert [1] == filtered["id"].to_pylist()


def test_times_of_the_type_int96_are_scanned_as_instants(storage):
    """By a read and by a dataset, with and without a predicate."""
    moments = pa.table({"t": pa.array([1, 2, None], pa.timestamp("us"))})
    table = Table(storage, arrow_to_delta(pa.schema([("t", pa.timestamp("us", "UTC"))])))
    table.file(moments, row_group_size=1, use_deprecated_int96_timestamps=True)
    snapshot = table.snapshot()
    where = pc.field("t") > pa.scalar(1, pa.timestamp("us", "UTC"))

    for dataset in (rows.read(snapshot), snapshot.to_dataset().to_table()):
        assert [1, 2, None] == dataset["t"].cast(pa.int64()).to_pylist()
    for found in (rows.read(snapshot, where=where), snapshot.to_dataset().to_table(filter=where)):
        assert [2] == found["t"].cast(pa.int64()).to_pylist()


@pytest.mark.parametrize("name", ["f", "s"])
@pytest.mark.parametrize("bounded", [True, False])
def test_a_dataset_keeps_the_rows_with_nan(storage, name, bounded):
    """As a read does, whoever wrote the file, in row groups with and without NaN, nested columns as well."""
    numbers = [1.0, math.nan, 1.0, 1.0, 2.0, None]
    data = pa.table({"id": range(6), "f": numbers, "s": [{"f": number} for number in numbers]})
    table = Table(storage, arrow_to_delta(data.schema))
    table.file(data, row_group_size=2, write_statistics=bounded)
    snapshot = table.snapshot()
    field = pc.field("s", "f") if name == "s" else pc.field("f")

    for where in (field != 1.0, ~(field == 1.0), ~(field <= 1.0), ~(field < 2.0), field > 1.0):
        found = snapshot.to_dataset().to_table(filter=where)["id"].to_pylist()
        assert rows.read(snapshot, where=where)["id"].to_pylist() == found
    assert [1, 4] == snapshot.to_dataset().to_table(filter=field != 1.0)["id"].to_pylist()


# Partition values that are instants and name no zone: times of the zone that the options name.


SCHEMA = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
MOMENT = datetime(2020, 7, 1, 0, 30, tzinfo=UTC)
THERE = LogOptions(time_zone=ZoneInfo("Europe/Berlin"))


@pytest.fixture
def table(tmp_path):
    """A table whose one file is of half past two by the clocks of Berlin, without naming a zone."""
    structs = {"delta.checkpoint.writeStatsAsStruct": "true"}
    log = created(tmp_path, SCHEMA, ["at"], structs)
    append(log, pa.table({"n": [1], "at": [MOMENT]}, SCHEMA))
    commit = tmp_path / "_delta_log" / f"{1:020}.json"
    _, text = commit.read_text().split("\n", 1)  # without the commit info and its digest of the rest
    assert "2020-07-01T00:30:00.000000Z" in text
    commit.write_text(text.replace("2020-07-01T00:30:00.000000Z", "2020-07-01 02:30:00"))
    DeltaLog.clear_cache()
    yield str(tmp_path)
    DeltaLog.clear_cache()


def test_rows_partitions_and_predicates_take_the_zone(table):
    """Read in the zone of the writer the moment is the one that it meant."""
    there = DeltaLog.open(table, options=THERE).snapshot
    assert there.to_arrow()["at"].to_pylist() == [MOMENT]
    assert there.partitions() == [{"at": MOMENT}]
    assert there.to_dataset().to_table()["at"].to_pylist() == [MOMENT]
    assert len(there.file_uris(pc.field("at") <= MOMENT)) == 1


def test_without_the_zone_it_is_utc(table):
    """Two hours later here."""
    here = DeltaLog.open(table).snapshot
    assert here.partitions() == [{"at": MOMENT.replace(hour=2)}]
    assert here.file_uris(pc.field("at") <= MOMENT) == []


def test_a_checkpoint_has_the_moment_that_was_meant(table, tmp_path):
    """Its typed partition values are instants in UTC."""
    DeltaLog.open(table, options=THERE).maintenance.checkpoint()
    [path] = tmp_path.glob("_delta_log/*.checkpoint.parquet")
    adds = [row for row in pq.read_table(path)["add"].to_pylist() if row]
    assert [add["partitionValues_parsed"]["at"] for add in adds] == [MOMENT]
