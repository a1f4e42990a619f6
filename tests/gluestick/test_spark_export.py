"""Exports of Spark frames: one file a stream, with what gluestick writes for the same rows from pandas."""

import datetime as dt
import json
import uuid
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import freezeframe.gluestick as gs
from freezeframe.engine.frames.frames import to_pandas
from freezeframe.engine.plans.python_tasks import spark_ddl
from freezeframe.errors import InvalidOption, StorageUnavailable
from freezeframe.gluestick import spark_export

gluestick = pytest.importorskip("gluestick")
pytestmark = pytest.mark.spark

NOON = dt.datetime.fromisoformat("2026-01-01T12:00:00.500001")
ROWS = pa.table(
    {
        "Id": ["007", "8", "ü,\n", None, "x"],
        "none": pa.nulls(5),
        "no_text": pa.nulls(5, pa.string()),
        "count": pa.array([1, None, 9007199254740993, 2, 3]),
        "small": pa.array([None, None, None, None, 1], pa.int8()),
        "amount": [1.5, None, 0.1, 2.0, -3.25],
        "money": pa.array([None, Decimal("1.50"), None, None, Decimal("2.00")], pa.decimal128(9, 2)),
        "is_it": [True, None, False, None, True],
        "day": pa.array([None, dt.date(2026, 1, 1), None, None, None]),
        "at": pa.array([NOON, None, NOON, NOON, NOON], pa.timestamp("us", "UTC")),
        "local": pa.array([NOON, None, None, NOON, NOON], pa.timestamp("us")),
    }
)
NESTED = pa.table(
    {
        "Id": [1, 2, 3],
        "tags": [["a", "b"], None, []],
        "who": [{"name": "Ann", "age": 1}, None, {"name": None, "age": 2}],
        "lines": [[{"n": 1, "x": 0.5}], [], None],
    }
)

NO_ROWS = ROWS.slice(0, 0)


@pytest.fixture(autouse=True)
def _pieces_of_two_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(spark_export, "_PIECE_ROWS", 2)
    monkeypatch.setenv("ROOT_DIR", str(tmp_path))


def pandas_of(rows):
    """The rows in pandas' nullable types and Python's own lists and objects, which gluestick knows."""
    nested = [field.name for field in rows.schema if pa.types.is_nested(field.type)]
    objects = {name: pd.Series(rows[name].to_pylist(), dtype=object) for name in nested}
    return to_pandas(rows, "numpy_nullable").assign(**objects)


def exported(session, rows, folder, pandas_writes=None, **options):
    """The files of the rows from pandas, and those of the same rows in Spark, by name.

    From pandas they are gluestick's own, but for JSON, in which it rounds.
    """
    rounds = options.get("export_format") in ("json", "jsonl")
    pandas_writes = pandas_writes or (gs.to_export if rounds else gluestick.to_export)
    for kind in ("pandas", "spark"):
        place = folder / kind
        place.mkdir(exist_ok=True)
        frame = (
            pandas_of(rows)
            if kind == "pandas"
            else session.createDataFrame(rows, spark_ddl(rows.schema)).coalesce(1)
        )
        write = pandas_writes if kind == "pandas" else gs.to_export
        write(frame, "Leads", str(place), **options)
    return (
        {path.name: path.read_bytes() for path in (folder / kind).iterdir()} for kind in ("pandas", "spark")
    )


@pytest.mark.parametrize(
    "options",
    [
        {"keys": ["Id"]},
        {"keys": ["Id"], "keep_null_fields": True, "output_file_prefix": "x_"},
        {
            "schema": {"type": "object", "properties": {"is_it": {"type": ["boolean"]}}},
            "coerce_boolean_nulls": True,
        },
        {"export_format": "jsonl"},
        {"export_format": "json", "output_file_prefix": "{tenant}x_"},
        {"export_format": "csv"},
    ],
    ids=repr,
)
def test_a_spark_frame_is_written_as_the_same_rows_from_pandas(options, tmp_path, spark_session):
    """To the byte, in pieces, whatever the options; no other file is left in the folder."""
    expected, found = exported(spark_session, ROWS, tmp_path, **options)
    assert found == expected


@pytest.mark.parametrize(
    ("rows", "kind"),
    [(NESTED, "singer"), (NESTED, "jsonl"), (NESTED, "json"), (NO_ROWS, "singer"), (NO_ROWS, "json")],
    ids=["nested-singer", "nested-jsonl", "nested-json", "none-singer", "none-json"],
)
def test_nested_values_and_no_rows_are_written_alike(rows, kind, tmp_path, spark_session):
    """Structs and lists are objects and lists; a frame without rows is a file without records."""
    expected, found = exported(spark_session, rows, tmp_path, export_format=kind)
    assert found == expected


def test_nested_values_of_a_csv_file_are_json_from_both(tmp_path, spark_session):
    """Objects, lists, maps, and dates, decimals and bytes in them: the same bytes, which JSON reads."""
    deep = pa.table(
        {
            "who": pa.array(
                [{"on": dt.date(2026, 1, 1), "sum": Decimal("1.50"), "at": NOON, "b": b"a"}, None],
                pa.struct(
                    {
                        "on": pa.date32(),
                        "sum": pa.decimal128(9, 2),
                        "at": pa.timestamp("us"),
                        "b": pa.binary(),
                    }
                ),
            ),
            "map": pa.array([[("a", 1), ("é", None)], None], pa.map_(pa.string(), pa.int64())),
            "bytes": [b"\x00", None],
            "lists": [[["x", None], []], None],
        }
    )
    for number, rows in enumerate((NESTED, deep)):
        (tmp_path / str(number)).mkdir()
        expected, found = exported(
            spark_session, rows, tmp_path / str(number), gs.to_export, export_format="csv"
        )
        assert found == expected
    frame = pd.read_csv(tmp_path / "0" / "pandas" / "Leads.csv")
    assert json.loads(frame["who"][0]) == {"name": "Ann", "age": 1}
    assert json.loads(frame["lines"][0]) == [{"n": 1, "x": 0.5}]


def test_parquet_holds_the_rows(tmp_path, spark_session):
    """One file, with the frame's own types, ZSTD, and values nested as they are."""
    for rows in (ROWS, NESTED):
        exported(spark_session, rows, tmp_path, export_format="parquet")
        written = pq.ParquetFile(tmp_path / "spark" / "Leads.parquet")
        assert written.metadata.row_group(0).column(0).compression == "ZSTD"
        assert rows.to_pylist() == written.read().to_pylist()


def test_csv_tells_the_empty_text_from_a_missing_value(tmp_path, spark_session):
    """Where pandas writes nothing for both; and midnight is a time of day where it leaves it out."""
    midnight = pa.array([dt.datetime.fromisoformat("2026-01-01")] * 2, pa.timestamp("us"))
    _, found = exported(
        spark_session, pa.table({"a": ["", None], "t": midnight}), tmp_path, export_format="csv"
    )
    assert found["Leads.csv"] == b'a,t\n"",2026-01-01 00:00:00\n,2026-01-01 00:00:00\n'


def test_streams_follow_each_other_in_a_singer_file(tmp_path, spark_session):
    """to_singer and to_export append to what is there, as gluestick does; another frame goes to gluestick."""
    frame = spark_session.createDataFrame(ROWS.select(["Id"]), "Id string").coalesce(1)
    gs.to_singer(frame, "A", str(tmp_path), keys=["Id"], filename="all.singer")
    gs.to_singer(to_pandas(NESTED.select(["Id"])), "B", str(tmp_path), filename="all.singer")
    messages = [json.loads(line) for line in (tmp_path / "all.singer").read_text().splitlines()]
    kinds = ["SCHEMA", *["RECORD"] * 5, "STATE", "SCHEMA", *["RECORD"] * 3, "STATE"]
    assert kinds == [message["type"] for message in messages]
    assert [path.name for path in tmp_path.iterdir()] == ["all.singer"]


def test_what_needs_all_rows_at_once_is_refused(tmp_path, spark_session):
    """A plugin of the stream, text for nested values, an unknown format; nothing is written."""
    frame = spark_session.createDataFrame(ROWS.select(["Id"]), "Id string")
    output = tmp_path / "etl-output"
    for options in ({"stringify_objects": True}, {"export_format": "xml"}):
        with pytest.raises(InvalidOption):
            gs.to_export(frame, "Leads", output, **{"export_format": "parquet", **options})
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "Leads_post_process.py").touch()
    with pytest.raises(InvalidOption, match="Leads_post_process"):
        gs.to_export(frame, "Leads", output, export_format="csv")
    assert not output.exists()


def test_an_export_that_fails_leaves_the_folder_as_it_was(tmp_path, spark_session):
    """A frame that Spark cannot compute, a file where the folder should be."""
    output = tmp_path / "etl-output"
    output.mkdir()
    (output / "data.singer").write_bytes(b"{}\n")
    frame = spark_session.sql("SELECT CAST('x' AS int) AS n")
    with pytest.raises(Exception, match="x"):
        gs.to_export(frame, "Leads", output)
    assert {path.name: path.read_bytes() for path in output.iterdir()} == {"data.singer": b"{}\n"}
    with pytest.raises(StorageUnavailable):
        gs.to_export(frame, "Leads", output / "data.singer", export_format="csv")


def test_a_piece_of_a_file_is_in_memory_and_never_all_of_it(tmp_path):
    """Spark writes a sorted frame into few, large files: memory follows a row group, not the file."""
    file = tmp_path / "rows.parquet"
    rows = pa.table({"Id": [uuid.uuid4().hex for _ in range(200_000)]})
    pq.write_table(rows, file, row_group_size=10_000, use_dictionary=False, compression="none")
    before, most, read = pa.total_allocated_bytes(), 0, 0
    for table in spark_export._tables([file], rows.schema):
        most = max(most, pa.total_allocated_bytes() - before)
        read += len(table)
    assert len(rows) == read
    assert most < file.stat().st_size / 2
