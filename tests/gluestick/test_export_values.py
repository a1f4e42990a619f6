"""Exports hold Python's own values, whatever the frame that they come from."""

import base64
import csv
import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import freezeframe.gluestick as gs
from freezeframe.engine.frames.frames import to_pandas
from freezeframe.engine.plans.python_tasks import spark_ddl
from freezeframe.errors import BadInput

gluestick = pytest.importorskip("gluestick")

NOON = dt.datetime(2026, 1, 1, 12, 0, 0, 500001)  # noqa: DTZ001 - a time without a zone
LONG = [f"t{number}" for number in range(1500)]
ADDRESS = pa.struct({"street": pa.string(), "rooms": pa.list_(pa.int64())})
# Arrow's values, as JSON has them, and their Singer type. The first value of each is the least telling one.
COLUMNS = {
    "floats": (pa.array([1 / 3, 1e-12, 12345678901234567.0]), None, "number"),
    "whole": (pa.array([2**53 + 1, 2, 3]), None, "integer"),
    "infinite": (pa.array([float("-inf"), 0.5, float("inf")]), ["-Infinity", 0.5, "Infinity"], "number"),
    "missing": (pa.array([None, 2, 3]), None, "integer"),
    "truth": (pa.array([None, True, False]), None, "boolean"),
    "text": (pa.array([None, "ü,\n", '"/']), None, "string"),
    "none": (pa.nulls(3), None, None),
    "decimals": (
        pa.array([None, Decimal("1.50"), Decimal("12345678901234567890.25")], pa.decimal128(38, 2)),
        [None, "1.50", "12345678901234567890.25"],
        "string",
    ),
    "days": (pa.array([None, dt.date(2026, 1, 1), None]), [None, "2026-01-01", None], "string"),
    "local": (pa.array([None, NOON, None], pa.timestamp("us")), [None, NOON.isoformat(), None], "string"),
    "at": (
        pa.array([None, NOON, None], pa.timestamp("us", "UTC")),
        [None, f"{NOON.isoformat()}+00:00", None],
        "string",
    ),
    "bytes": (pa.array([None, b"\xff\x00", b""]), [None, "/wA=", ""], "string"),
    "tags": (pa.array([[], ["a", "b"], LONG]), None, {"items": "string"}),
    "numbers": (pa.array([[None, 2**53 + 1], [], None]), None, {"items": "integer"}),
    "lists": (pa.array([[], [[], ["a"]], None]), None, {"items": {"items": "string"}}),
    "who": (
        pa.array([{"street": None, "rooms": []}, {"street": "A", "rooms": [1, 2]}, None], ADDRESS),
        None,
        {"street": "string", "rooms": {"items": "integer"}},
    ),
    "age": (pa.array([{"age": None}, {"age": 7}, None]), None, {"age": "integer"}),
    "lines": (pa.array([[{"n": None}], [{"n": 0.5}], []]), None, {"items": {"n": "number"}}),
    "map": (
        pa.array([[("a", None)], [("a", 1), ("b", 2)], []], pa.map_(pa.string(), pa.int64())),
        [{"a": None}, {"a": 1, "b": 2}, {}],
        {"a": "integer", "b": "integer"},
    ),
    "per_day": (
        pa.array([[(dt.date(2026, 1, 1), 1)], [], None], pa.map_(pa.date32(), pa.int64())),
        [[["2026-01-01", 1]], [], None],
        None,
    ),
    "inner": (
        pa.array([[{"b": b"\xff", "d": Decimal("1.5"), "on": dt.date(2026, 1, 1)}], [], None]),
        [[{"b": "/w==", "d": "1.5", "on": "2026-01-01"}], [], None],
        {"items": {"b": "string", "d": "string", "on": "string"}},
    ),
}
JSON_VALUES = {
    name: array.to_pylist() if written is None else written for name, (array, written, _) in COLUMNS.items()
}
ROWS = pa.table({name: array for name, (array, _, _) in COLUMNS.items()})
KINDS = {
    "objects": lambda rows: pd.DataFrame(
        {name: pd.Series(rows[name].to_pylist(), dtype=object) for name in rows.column_names}
    ),
    "pandas": to_pandas,
    "numpy_nullable": lambda rows: to_pandas(rows, "numpy_nullable"),
    "pyarrow": lambda rows: to_pandas(rows, "pyarrow"),
    "arrow": lambda rows: rows,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
}
SINGER_KINDS = [kind for kind in KINDS if kind not in ("polars", "lazy")]


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOT_DIR", str(tmp_path))


def frame_of(kind, rows):
    """The rows as a frame of a kind; Polars has no maps, and reads them as lists of objects."""
    if kind in ("polars", "lazy"):
        rows = rows.drop_columns(["map", "per_day", "none"])
    return KINDS[kind](rows)


def written_rows(frame, folder, export_format, **options):
    """The rows of the exported file, as its format has them."""
    gs.to_export(frame, "Leads", str(folder), export_format=export_format, **options)
    if export_format == "singer":
        messages = [json.loads(line) for line in (folder / "data.singer").read_text().splitlines()]
        return [message["record"] for message in messages if message["type"] == "RECORD"]
    path = folder / f"Leads.{export_format}"
    if export_format == "parquet":
        return pq.read_table(path).to_pylist()
    if export_format == "csv":
        csv.field_size_limit(10**7)
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    text = path.read_text()
    strict = {"parse_constant": lambda name: pytest.fail(f"{name} is no JSON")}
    if export_format == "json":
        return json.loads(text, **strict)
    return [json.loads(line, **strict) for line in text.splitlines()]


def rows_of(columns, names):
    """Rows of the named columns, as dictionaries."""
    return [
        dict(zip(names, row, strict=True)) for row in zip(*(columns[name] for name in names), strict=True)
    ]


@pytest.mark.parametrize("export_format", ["json", "jsonl"])
@pytest.mark.parametrize("kind", KINDS)
def test_json_has_every_digit_of_every_value(kind, export_format, tmp_path):
    """Numbers are Python's own; what JSON has no value for is text, as in the product's other exports."""
    found = written_rows(frame_of(kind, ROWS), tmp_path, export_format)
    assert rows_of(JSON_VALUES, list(found[0])) == found
    assert len(found[0]) >= len(COLUMNS) - 3


@pytest.mark.parametrize("kind", KINDS)
def test_csv_has_json_in_place_of_lists_objects_and_bytes(kind, tmp_path):
    """Each with all of its values, and numbers with every digit."""
    found = written_rows(frame_of(kind, ROWS), tmp_path, "csv")
    nested = [name for name in found[0] if pa.types.is_nested(ROWS.schema.field(name).type)]
    values = [{name: json.loads(row[name]) if row[name] else None for name in nested} for row in found]
    assert rows_of(JSON_VALUES, nested) == values
    assert ["", "/wA=", ""] == [row["bytes"] for row in found]
    assert ROWS["floats"].to_pylist() == [float(row["floats"]) for row in found]


@pytest.mark.parametrize("kind", KINDS)
def test_parquet_has_the_values(kind, tmp_path):
    """Nested ones, maps of days and all digits included."""
    found = written_rows(frame_of(kind, ROWS), tmp_path, "parquet")
    assert rows_of(ROWS.to_pydict(), list(found[0])) == found


def singer_value(name, value):
    """A value in a Singer record: gluestick writes times with Z, and decimals and days as text."""
    if name in ("at", "local") and value is not None:
        return f"{NOON.isoformat()}Z"
    return (
        {"-Infinity": float("-inf"), "Infinity": float("inf")}.get(value, value)
        if name == "infinite"
        else value
    )


def singer_type(described):
    """The type of a Singer property in short; objects and lists by their parts."""
    if "items" in described:
        return {"items": singer_type(described["items"])}
    if described.get("properties"):
        return {name: singer_type(item) for name, item in described["properties"].items()}
    (kind,) = set(described["type"]) - {"null"}
    return kind


@pytest.mark.parametrize("kind", SINGER_KINDS)
def test_singer_records_and_their_schema_are_those_of_all_rows(kind, tmp_path):
    """Lists are lists with all their values; the first value of a column does not decide its type."""
    found = written_rows(frame_of(kind, ROWS), tmp_path, "singer", keys=["whole"])
    expected = [
        {name: singer_value(name, value) for name, value in row.items() if value is not None}
        for row in rows_of(JSON_VALUES, list(JSON_VALUES))
    ]
    assert expected == found
    (schema, *_) = (tmp_path / "data.singer").read_text().splitlines()
    properties = json.loads(schema)["schema"]["properties"]
    types = {name: described for name, (_, _, described) in COLUMNS.items() if described is not None}
    if kind == "pandas":
        types["missing"] = "number"  # pandas' ordinary type beside a missing value
    assert types == {name: singer_type(properties[name]) for name in types}
    assert "none" not in properties


@pytest.mark.spark
@pytest.mark.parametrize("export_format", ["json", "jsonl", "csv", "parquet", "singer"])
def test_a_spark_frame_gives_the_file_of_the_same_arrow_table(export_format, tmp_path, spark_session):
    """To the byte, but for Parquet's own; so that what holds of the others holds of Spark."""
    rows = ROWS.drop_columns(["none"])
    frame = spark_session.createDataFrame(rows, spark_ddl(rows.schema)).coalesce(1)
    files = []
    for name, given in (("arrow", rows), ("spark", frame)):
        found = written_rows(given, tmp_path / name, export_format, keys=["whole"])
        (file,) = (tmp_path / name).iterdir()
        files.append(found if export_format == "parquet" else file.read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("kind", ["polars", "lazy"])
def test_binary_of_polars_is_base64_in_singer_records(kind, tmp_path):
    """Gluestick itself writes b'..'."""
    frame = frame_of(kind, ROWS).select("bytes", "tags")
    found = written_rows(frame, tmp_path, "singer", keys=["bytes"])
    assert base64.b64encode(b"\xff\x00").decode() == found[1]["bytes"]
    assert LONG == found[2]["tags"]


def test_objects_of_numpy_and_python_are_pythons_own(tmp_path):
    """Numpy's numbers and arrays of any depth, tuples, objects of other keys, times of every zone."""
    zoned = NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))
    cells = [
        ({"n": np.int64(2), "t": np.bool_(True), "f": np.float32(0.5)}, {"n": 2, "t": True, "f": 0.5}),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ((1, "a"), [1, "a"]),
        ({7: [np.array(["x"])], "nan": float("nan")}, {"7": [["x"]], "nan": None}),
        ([zoned], ["2026-01-01T10:00:00.500001Z"]),
        (np.array(["2026-01-01", "NaT"], "datetime64[ns]"), ["2026-01-01T00:00:00.000000Z", None]),
    ]
    for number, (given, expected) in enumerate(cells):
        frame = pd.DataFrame({"v": pd.Series([given], dtype=object)})
        (found,) = written_rows(frame, tmp_path / str(number), "singer", keys=["v"])
        assert expected == found["v"]
    times = pd.DataFrame({"at": pd.Series([zoned]).dt.tz_convert("Europe/Berlin")})
    assert written_rows(times, tmp_path / "at", "singer", keys=["at"]) == [
        {"at": "2026-01-01T10:00:00.500001Z"}
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None, 1, 2.5], "number"),
        ([float("nan"), True], "boolean"),
        ([None, 2**70], "string"),
        ([1, "a"], "string"),
        ([None, Decimal("1.5")], "string"),
    ],
    ids=repr,
)
def test_objects_of_one_type_have_it_in_the_singer_schema(values, expected, tmp_path):
    """Beside missing ones too; mixtures are text to gluestick."""
    written_rows(pd.DataFrame({"v": pd.Series(values, dtype=object)}), tmp_path, "singer", keys=["v"])
    schema = json.loads((tmp_path / "data.singer").read_text().splitlines()[0])["schema"]
    assert expected == singer_type(schema["properties"]["v"])


def test_a_plugin_of_the_stream_runs_once_and_its_rows_are_exported_alike(tmp_path):
    """With the lists that it makes, in every format; its keys and model count."""
    plugin = tmp_path / "plugins" / "Leads_post_process.py"
    plugin.parent.mkdir()
    plugin.write_text(
        "import numpy as np, pathlib\n"
        "def main(context, df, model, keys, tenant_config):\n"
        "    calls = pathlib.Path(context['ROOT_DIR'], 'calls')\n"
        "    calls.write_text((calls.read_text() if calls.exists() else '') + 'x')\n"
        "    return df.assign(tags=[np.array(['a', 'b'])] * len(df)), model, ['id']\n"
    )
    for export_format in ("singer", "jsonl", "parquet"):
        found = written_rows(pd.DataFrame({"id": [1, 2]}), tmp_path / export_format, export_format)
        assert [{"id": number, "tags": ["a", "b"]} for number in (1, 2)] == found
    assert (tmp_path / "calls").read_text() == "xxx"
    head = json.loads((tmp_path / "singer" / "data.singer").read_text().splitlines()[0])
    assert head["key_properties"] == ["id"]


def test_names_are_those_of_gluestick(tmp_path, monkeypatch):
    """A prefix with variables, and the name that the platform gives the stream."""
    monkeypatch.setenv("HG_UNIFIED_OUTPUT_LEADS", "People")
    monkeypatch.setenv("TENANT", "acme")
    for frame in (pd.DataFrame({"id": [1]}), pa.table({"id": [1]})):
        for writer, kind in ((gluestick, "theirs"), (gs, "ours")):
            folder = tmp_path / type(frame).__name__ / kind
            folder.mkdir(parents=True)
            if kind == "ours" or isinstance(frame, pd.DataFrame):
                writer.to_export(
                    frame, "Leads", str(folder), export_format="csv", output_file_prefix="{tenant}-{x}-",
                    reserved_variables={"x": "7"},
                )  # fmt: skip
                assert [path.name for path in folder.iterdir()] == ["acme-7-People.csv"]


def test_what_json_cannot_hold_is_refused_by_name(tmp_path):
    """Two columns of one name, and half of a letter; nothing is written."""
    half = pd.DataFrame({"a": pd.Series(["\ud800"], dtype=object)})
    for frame in (pd.DataFrame([[1, 2]], columns=["a", "a"]), half):
        with pytest.raises(BadInput):
            gs.to_export(frame, "Leads", str(tmp_path), export_format="jsonl")
    assert list(tmp_path.iterdir()) == []
