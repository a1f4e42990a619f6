"""One frame a stream from what a sync left."""

import datetime as dt
import json
import os
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.text_types import TEXT

import freezeframe.gluestick as gs
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import InvalidOption, MissingColumn, UnreadableInput
from freezeframe.script import get_snapshot, update_snapshot
from freezeframe.script.reading import read_csv_folder, read_json_folder, read_parquet_folder

UTC = pa.timestamp("us", tz="UTC")


@pytest.fixture
def folder(tmp_path):
    """A job's root with a sync-output; gives a function that writes a file into it."""
    output = tmp_path / "sync-output"
    output.mkdir()

    def write(name, text):
        (output / name).write_text(text, encoding="utf-8", newline="")
        return output

    return write


def test_the_seed_can_be_followed_word_by_word(folder):
    """gluestick's call gives a frame a stream, and keys keep their zeros."""
    path = folder("Account-20200811T121507.csv", "Id,Name\n007,Ann\n8,NA\n")
    input_data = gs.read_csv_folder(str(path))
    assert list(input_data) == ["Account"]
    assert input_data["Account"].to_dict("list") == {"Id": ["007", "8"], "Name": ["Ann", "NA"]}
    assert input_data.get("Other") is None


def test_files_of_a_stream_are_appended_in_time_order(folder):
    """All of them are read, types are inferred over all, and absent columns are missing."""
    folder("Account-20200812T000000.csv", "Id,New\nx2,2\n")
    path = folder("Account-20200811T000000.csv", "Id\n1\n")
    table = read_csv_folder(path, as_="arrow")["Account"]
    assert table.to_pydict() == {"Id": ["1", "x2"], "New": [None, 2]}


def test_pandas_frames_keep_what_floats_would_lose(folder):
    """Integers beside missing ones that no float holds are ``Int64``; all else has pandas' ordinary types."""
    path = folder("A-1.csv", 'i,b,t,s,n\n9007199254740993,True,2020-01-01T00:00:00Z,"",\n,,,,\n')
    frame = read_csv_folder(path, parse_dates=["t"])["A"]
    assert [str(kind) for kind in frame.dtypes] == [
        "Int64",
        "object",
        "datetime64[us, UTC]",
        TEXT,
        "object",
    ]
    assert [9007199254740993, True, pd.Timestamp("2020", tz="UTC"), ""] == frame.loc[0].tolist()[:4]
    assert frame.loc[1].isna().all()


def test_a_catalog_decides_where_every_value_is_exact(folder, tmp_path):
    """Declared types win over inference; a column with one value that does not fit stays text."""
    properties = {
        "number": {"type": ["null", "number"]},
        "long": {"type": "integer"},
        "odd": {"type": "integer"},
        "code": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
        "items": {"type": "array"},
        "none": {"type": ["null", "integer"]},
    }
    (tmp_path / "catalog.json").write_text(
        json.dumps({"streams": [{"stream": "A", "schema": {"properties": properties}}]})
    )
    path = folder(
        "A-1.csv",
        "number,long,odd,code,at,items,none,free\n"
        '1.50,12345678901234567890,007,12,2020-01-01T00:00:00-0800,"[1, 2]",,5\n',
    )
    table = read_csv_folder(path, as_="arrow")["A"]

    expected = {
        "number": (pa.float64(), 1.5),
        "long": (pa.decimal128(38, 0), Decimal(12345678901234567890)),
        "odd": (pa.string(), "007"),
        "code": (pa.string(), "12"),
        "at": (UTC, dt.datetime(2020, 1, 1, 8, tzinfo=dt.UTC)),
        "items": (pa.string(), "[1, 2]"),
        "none": (pa.int64(), None),
        "free": (pa.int64(), 5),
    }
    assert {
        name: (table.schema.field(name).type, table[name][0].as_py()) for name in table.column_names
    } == expected


def test_the_stored_schema_wins_over_catalog_and_inference(folder, tmp_path):
    """A sync with fewer rows never changes a column's type."""
    (tmp_path / "catalog.json").write_text(
        json.dumps({"streams": [{"stream": "A", "schema": {"properties": {"Id": {"type": "integer"}}}}]})
    )
    path = folder("A-1.csv", "Id,amount,empty\n12,3,\n")
    stored = pa.schema([("Id", pa.string()), ("amount", pa.float64()), ("empty", pa.date32())])
    table = read_csv_folder(path, as_="arrow", schemas={"A": stored})["A"]
    assert stored == table.schema
    assert table.to_pylist() == [{"Id": "12", "amount": 3.0, "empty": None}]


def test_values_outside_the_stored_schema_are_told_as_they_are(folder):
    """The update then refuses or widens, and can name the rows."""
    path = folder("A-1.csv", "n\n1\nx\n")
    table = read_csv_folder(path, as_="arrow", schemas={"A": pa.schema([("n", pa.int64())])})["A"]
    assert table["n"].to_pylist() == ["1", "x"]


def test_a_stored_column_without_a_type_is_inferred(folder):
    """What has had no value so far is still open."""
    path = folder("A-1.csv", "n\n1\n")
    table = read_csv_folder(path, as_="arrow", schemas={"A": pa.schema([("n", pa.null())])})["A"]
    assert table["n"].to_pylist() == [1]


@pytest.mark.parametrize("as_", ["pandas", "arrow", "polars"])
def test_types_are_what_the_caller_names(folder, as_):
    """For every stream that has the column, or for one; a name of pandas, Arrow or Spark."""
    folder("B-1.csv", "Phone,Qty\n5,7\n")
    path = folder(
        "A-1.csv", "Phone,Qty,Price,Ok,At,Day\n41,1,10.5,true,2020-01-01 00:00:00,2020-01-01\n,,,,,\n"
    )
    types = {"Phone": "string", "None": "int64"}
    types |= {
        "A": {"Qty": pa.float64(), "Price": "decimal(10,2)", "At": "datetime64[ns, UTC]", "Day": "date"}
    }

    frames = read_csv_folder(path, types=types, as_=as_)

    tables = {name: Rows(frame).to_arrow() for name, frame in frames.items()}
    assert tables["A"]["Phone"].to_pylist() == ["41", None]
    assert tables["B"].to_pylist() == [{"Phone": "5", "Qty": 7}]
    assert tables["A"].select(["Qty", "Price", "Ok", "At", "Day"]).to_pylist()[0] == {
        "Qty": 1.0,
        "Price": Decimal("10.50"),
        "Ok": True,
        "At": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        "Day": dt.date(2020, 1, 1),
    }


@pytest.mark.parametrize(
    ("kind", "value", "line"), [("int64", "1.5", 3), ("float64", "x", 3), ("date", "2020-02-30", 3)]
)
def test_a_value_that_is_not_exact_in_the_type_asked_for_is_named(folder, kind, value, line):
    """File, line and column; nothing is read instead."""
    path = folder("A-1.csv", f"n,m\n,1\n{value},2\n")
    with pytest.raises(UnreadableInput, match=f"line {line} of .*A-1.csv' has '{value}'") as caught:
        read_csv_folder(path, types={"n": kind})
    details = caught.value.details
    assert (details["file"], details["line"], details["column"]) == (str(path / "A-1.csv"), line, "n")


@pytest.mark.parametrize(
    "options",
    [
        {"types": {"n": "number"}},
        {"types": {"A": {"n": "decimal(99,2)"}}},
        {"types": {"n": pa.list_(pa.int64())}},
        {"parse_dates": {"A": 5}},
        {"parse_dates": [1]},
        {"escape": "ab"},
        {"escape": '"'},
    ],
    ids=repr,
)
def test_types_and_options_that_are_none_are_refused(folder, options):
    """Before a file is read."""
    with pytest.raises(InvalidOption):
        read_csv_folder(folder("A-1.csv", "n\n1\n"), **options)


def test_stored_types_and_the_catalog_win_over_those_asked_for(folder):
    """What is stored is certain; what does not fit it is read as asked for."""
    path = folder("A-1.csv", "n,m\n1,1\n,x\n")
    stored = pa.schema([("n", pa.int64()), ("m", pa.int64())])
    table = read_csv_folder(path, types={"n": "string", "m": "string"}, schemas={"A": stored}, as_="arrow")[
        "A"
    ]
    assert table.to_pydict() == {"n": [1, None], "m": ["1", "x"]}


@pytest.mark.parametrize(
    ("parse_dates", "expected"),
    [
        (False, ["string", "string", "string"]),
        (True, ["date32[day]", "timestamp[us]", "string"]),
        (["D", "O", "Absent"], ["date32[day]", "string", "string"]),
        ({"A": ["T"], "B": True}, ["string", "timestamp[us]", "string"]),
        ({"A": True}, ["date32[day]", "timestamp[us]", "string"]),
    ],
)
def test_dates_are_text_unless_they_are_asked_for(folder, parse_dates, expected):
    """As in pandas; a column with a value that is no date stays text."""
    path = folder("A-1.csv", "D,T,O\n2020-01-01,2020-01-01 10:00:00,2020-01-01\n2020-01-02,,soon\n")
    table = read_csv_folder(path, parse_dates=parse_dates, as_="arrow")["A"]
    assert expected == list(map(str, table.schema.types))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["1.10", "1.9"], "1.10 (line 2) and 1.9 (line 3) differ in digits behind the point"),
        (["100", "100", "10.50"], "100 (line 2) and 10.50 (line 4) differ in digits behind the point"),
        (["1.5", "3", "2.0"], "3 (line 3) and 2.0 (line 4) differ in digits behind the point"),
        (["1", "-0"], "-0 (line 3) is a zero with a sign"),
        (["9" * 39], f"{'9' * 39} (line 2) is too long"),
    ],
)
def test_numbers_that_are_kept_as_text_are_named(folder, caplog, values, reason):
    """Once a column, with the reason and the way to have numbers; ids and texts are none."""
    lines = "".join(f"{value},007,a\n" for value in values)
    path = folder("App-1.csv", f"Version,Id,Name\n{lines}")
    table = read_csv_folder(path, as_="arrow")["App"]
    assert table["Version"].to_pylist() == values
    (line,) = caplog.messages
    assert line.startswith(f"Column 'Version' of 'App' looks like numbers and was kept as text: {reason}")
    assert line.endswith('; types={"Version": "double"} reads it as numbers.') == ("too long" not in reason)


def test_stored_types_are_found_wherever_the_snapshots_are(folder, tmp_path, monkeypatch):
    """Beside the folder, however it is named, or where the caller says."""
    for place in ("snapshots", "elsewhere"):
        update_snapshot(tmp_path / place, "A", "Id", pa.table({"Id": ["1"], place: ["8000"]}))
    path = folder("A-1.csv", "Id,snapshots,elsewhere\n1,2,3\n")
    monkeypatch.chdir(path)

    def kinds(*args, **options):
        return list(map(str, read_csv_folder(*args, as_="arrow", **options)["A"].schema.types))

    beside = ["string", "string", "int64"]
    assert [kinds(place) for place in (path, path / "A-1.csv", ".", "A-1.csv")] == [beside] * 4
    assert ["string", "int64", "string"] == kinds(".", snapshot_dir=tmp_path / "elsewhere")
    assert ["int64"] * 3 == kinds(".", snapshot_dir=tmp_path / "none")


def test_files_that_spark_wrote_are_read_with_their_escape_character(folder):
    """A folder's files, with the option; without it they are refused."""
    path = folder("A-1.csv", 'Id,v\n1,"say \\"hi\\""\n2,a\\b\n')
    assert read_csv_folder(path, escape="\\")["A"]["v"].tolist() == ['say "hi"', "a\\b"]
    with pytest.raises(UnreadableInput, match='escape="'):
        read_csv_folder(path)


def test_converters_get_text_and_decide(folder):
    """As in pandas: each value as text, "" for an empty field; unknown columns are ignored."""
    path = folder("A-1.csv", "a,b\n007,1\n,2\n")
    converters = {"A": {"a": lambda text: f"<{text}>", "nope": str}}
    types = {"a": "int64"}  # what a converter gives need not be of it
    frame = read_csv_folder(path, converters, types=types)["A"]
    table = read_csv_folder(path, converters, as_="arrow", types=types)["A"]
    expected = {"a": ["<007>", "<>"], "b": [1, 2]}
    assert frame.to_dict("list") == expected
    assert table.to_pydict() == expected


def test_a_converter_for_every_column_leaves_all_rows(folder):
    """A table whose columns are all converted keeps its length in every kind."""
    path = folder("A-1.csv", "a\n1\n2\n")
    assert read_csv_folder(path, {"A": {"a": int}})["A"].to_numpy().tolist() == [[1], [2]]
    assert read_csv_folder(path, {"A": {"a": int}}, as_="arrow")["A"]["a"].to_pylist() == [1, 2]


def test_converters_may_return_any_object_for_pandas(folder):
    """A dict stays that dict; it is not made to fit its neighbours."""
    path = folder("A-1.csv", 'a\n{}\n"{""x"": 1}"\n')
    assert read_csv_folder(path, {"A": {"a": json.loads}})["A"]["a"].tolist() == [{}, {"x": 1}]


def test_index_columns_by_name_or_position(folder):
    """gluestick's index_cols, in its place: the third parameter."""
    path = folder("A-1.csv", "a,b,c\n1,2,3\n")
    assert read_csv_folder(path, {}, {"A": "a"})["A"].index.names == ["a"]
    assert read_csv_folder(path, {}, {"A": [2, "b"]})["A"].index.names == ["c", "b"]


def test_an_unknown_index_column_is_named(folder):
    """The message lists those that are there."""
    path = folder("A-1.csv", "a,b\n1,2\n")
    with pytest.raises(MissingColumn, match="'x'"):
        read_csv_folder(path, {}, {"A": ["x"]})
    with pytest.raises(MissingColumn, match="2"):
        read_csv_folder(path, {}, {"A": 2})


@pytest.mark.parametrize(
    "options",
    [
        {"as_": "numpy"},
        {"as_": "spark", "converters": {"A": {"a": int}}},
        {"as_": "arrow", "index_cols": {"A": "a"}},
    ],
    ids=repr,
)
def test_options_that_cannot_be_met_are_refused(folder, options):
    """An unknown kind, Python functions of single values in Spark, an index where there is none."""
    with pytest.raises(InvalidOption):
        read_csv_folder(folder("A-1.csv", "a\n1\n"), **options)


def test_parquet_folders_are_read_alike(folder, tmp_path):
    """Stream names, order and kinds are those of CSV; types are the files' own."""
    output = folder("ignored.csv", "a\n1\n")
    pq.write_table(pa.table({"Id": ["007"], "n": [1]}), output / "Account-2.parquet")
    pq.write_table(pa.table({"Id": ["7"], "n": pa.array([None], pa.int32())}), output / "Account-1.parquet")
    pq.write_table(pa.table({"x": [1]}), output / "Other-1.parquet")
    frames = gs.read_parquet_folder(str(output), ["Other"])
    assert list(frames) == ["Account"]
    assert [str(kind) for kind in frames["Account"].dtypes] == [TEXT, "float64"]
    assert read_parquet_folder(output, as_="arrow")["Account"].to_pydict() == {
        "Id": ["7", "007"],
        "n": [None, 1],
    }


SYNCS = [
    ['{"Id": 1, "l": [], "m": {}, "o": {"a": null, "b": 1}, "n": null}', '{"Id": 2}'],
    ['{"Id": 3, "l": [{"sku": "a"}], "m": {"k": []}, "o": {"a": {"c": 5}, "b": 2}, "n": 7}'],
    ['{"Id": 4, "l": [], "m": {"k": [true]}, "o": {}, "n": null}'],
]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    "kind", ["pandas", "arrow", "polars", pytest.param("spark", marks=pytest.mark.spark)]
)
def test_what_is_empty_in_one_sync_is_decided_by_another(request, tmp_path, form, kind):
    """Lists, objects and members, by each kind of frame: one sync after the other, and files of one sync."""
    if kind == "spark":
        request.getfixturevalue("spark_engine")
    read = read_json_folder if form == "jsonl" else read_parquet_folder
    found = []
    for step in ([[0], [1], [2]], [[0, 1, 2]], [[2, 1], [0]]):
        root = tmp_path / str(len(found))
        for numbers in step:
            sync = root / f"sync{numbers}"
            sync.mkdir(parents=True)
            for number in numbers:
                if form == "jsonl":
                    (sync / f"S-2026010{number + 1}T000000.jsonl").write_text("\n".join(SYNCS[number]))
                else:
                    rows = pa.Table.from_pylist([json.loads(line) for line in SYNCS[number]])
                    # Parquet has no struct without members.
                    rows = rows.drop_columns({0: ["m"], 2: ["o"]}.get(number, []))
                    pq.write_table(rows, sync / f"S-2026010{number + 1}T000000.parquet")
            update_snapshot(root / "snapshots", "S", "Id", read(sync, as_=kind)["S"])
        found.append(get_snapshot(root / "snapshots", "S", as_="arrow"))

    rows = found[0].to_pylist()
    assert [row["l"] for row in rows] == [[], None, [{"sku": "a"}], []]
    assert [row["n"] for row in rows] == [None, None, 7, None]
    assert [row["o"]["a"] if row["o"] else None for row in rows] == [None, None, {"c": 5}, None]
    assert [row["m"] for row in rows][2:] == [{"k": []}, {"k": [True]}]
    assert (rows[0]["m"] is None) == (form == "parquet")
    assert all(sorted(item.to_pylist(), key=lambda row: row["Id"]) == rows for item in found)


def test_a_session_makes_the_frames_of_its_own(folder):
    """as_="spark" hands the same Arrow rows to the session that was passed."""

    class Session:
        def createDataFrame(self, rows, schema):  # noqa: N802 - Spark's own name
            return (schema, rows)

    path = folder("A-1.csv", "Id\n007\n")

    schema, rows = read_csv_folder(path, as_="spark", session=Session())["A"]

    assert schema == "`Id` string"
    assert read_csv_folder(path, as_="arrow")["A"].equals(rows)


SAMPLES = os.environ.get("FREEZEFRAME_SAMPLES", "")


@pytest.mark.skipif(not SAMPLES, reason="FREEZEFRAME_SAMPLES names no folder of sample syncs")
def test_sample_syncs_are_read_cell_by_cell():
    """Every value of real sync folders can be found again in the file's own text."""
    files = sorted(Path(SAMPLES).rglob("*.csv"))
    assert files, "the folder of samples holds no CSV"
    for file in files:
        (table,) = read_csv_folder(file, as_="arrow").values()
        text = pyarrow.csv.read_csv(
            file,
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(default_column_type=pa.string()),
        )
        assert text.column_names == table.column_names
        for name in table.column_names:
            for cell, value in zip(text[name].to_pylist(), table[name].to_pylist(), strict=True):
                assert _is_written_as(value, cell), (file, name, cell, value)


def _is_written_as(value, cell):
    if value is None:
        return cell == ""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat() == cell.replace(" ", "T").rstrip("Z").removesuffix(
            ".000000"
        )
    if isinstance(value, float | Decimal):
        return Decimal(cell) == Decimal(repr(value) if isinstance(value, float) else value)
    return cell == str(value)
