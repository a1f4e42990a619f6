"""A stream goes out to a file and comes back the same, in each of the three kinds."""

import gzip
import json
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import given

from freezeframe.errors import BadInput, InputNotFound, InvalidOption, SchemaDriftError, UnreadableInput
from freezeframe.script.formats import csv_file
from freezeframe.script.formats.input_parts import UnpackLimits
from freezeframe.script.inputs.transfer import export_stream, file_rows, import_stream, schema_file
from freezeframe.storage import LocalStorage
from freezeframe.store.schema import schema_evolution


def stream():
    return given.tenant().stream("Account")


def test_what_does_not_fit_the_schema_is_refused(tmp_path):
    """A value that is not exact in its type, and a column too many, are told; nothing is written."""
    source = stream()
    source.update(pa.table({"Id": ["1"], "N": [1]}), key="Id")
    file = export_stream(source, tmp_path)
    for text in ("Id,N\n1,x\n", "Id,N\n1,1.5\n", "Id,N,More\n1,1,1\n", "Id\n1\n"):
        file.write_text(text)
        goal = stream()
        with pytest.raises(SchemaDriftError):
            import_stream(goal, file, schema_from=schema_file(file))
        assert goal.version == -1


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "long.csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("memory_bytes_max", [0, 2**30], ids=["streamed", "in memory"])
def test_columns_are_counted_before_values_are_read(kind, memory_bytes_max, tmp_path, monkeypatch):
    """A file with more columns than a stream can have is refused by its name; no value is looked at."""
    monkeypatch.setattr(schema_evolution, "COLUMNS_MAX", 3)
    length = 400_000 if kind == "long.csv" else 1  # so long that the first MiB of the header has three names
    names = [letter * length for letter in "ABCD"]
    file = tmp_path / f"Account.{kind}"
    table, sign = pa.table({name: ["x"] for name in names}), "\t" if kind == "tsv" else ","
    text = f"{sign.join(names)}\n1{sign}2\n".encode()  # a row that could not be read
    if kind == "parquet":
        pq.write_table(table, file)
    elif kind == "arrow":
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    elif kind == "jsonl":
        file.write_text(json.dumps(dict.fromkeys(names, 1)) + "\n")
    elif kind == "long.csv":
        file.write_text(",".join(names) + "\n" + ",".join("1234") + "\n")
    else:
        file.write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    goal = stream()

    with pytest.raises(BadInput) as caught:
        import_stream(goal, file, key="A", memory_bytes_max=memory_bytes_max)
    assert f"Account.{kind}' has 4 columns." in caught.value.problem
    assert goal.version == -1


@pytest.mark.parametrize("memory_bytes_max", [0, 2**20], ids=["streamed", "in memory"])
def test_json_lines_are_of_the_stored_types(memory_bytes_max, tmp_path):
    """Exact texts are dates and decimals; columns that no line has keep what is stored, whatever the size."""
    goal = stream()
    columns = {"Id": pa.int64(), "on": pa.date32(), "d": pa.decimal128(20, 2), "kept": pa.string()}
    row = {"Id": 1, "on": date(2026, 1, 1), "d": Decimal("0.50"), "kept": "x"}
    goal.update(pa.Table.from_pylist([row], pa.schema(columns)), "Id")
    file = tmp_path / "a.jsonl"
    file.write_text('{"Id": 1, "on": "2026-02-03", "d": 9007199254740993}\n')
    import_stream(goal, file, memory_bytes_max=memory_bytes_max)
    expected = {**row, "on": date(2026, 2, 3), "d": Decimal("9007199254740993.00")}
    assert goal.read(as_="arrow").to_pylist() == [expected]


@pytest.mark.spark
def test_a_window_of_a_report_is_replaced(spark_engine, tmp_path):
    """Rows without a key: those of the window go, those of the file come, the rest stays."""
    goal = given.tenant(LocalStorage(tmp_path / "store"), spark_engine).stream("Report")
    goal.update(pa.table({"Month": [9, 10, 10], "Total": [1, 2, 3]}), override=True)
    (tmp_path / "report.csv").write_text("Month,Total\n10,7\n")
    done = import_stream(goal, tmp_path / "report.csv", replace_where="Month = 10")
    assert (done.inserted, done.deleted) == (1, 2)
    assert {(9, 1), (10, 7)} == {(row["Month"], row["Total"]) for row in goal.read(as_="arrow").to_pylist()}


def test_what_cannot_be_imported_is_told(tmp_path):
    """A missing file, an unknown kind, a schema file that is none."""
    with pytest.raises(InputNotFound):
        import_stream(stream(), tmp_path / "a.csv", "Id")
    (tmp_path / "a.xlsx").write_bytes(b"")
    with pytest.raises(InvalidOption):
        import_stream(stream(), tmp_path / "a.xlsx", "Id")
    (tmp_path / "a.csv").write_text("Id\n1\n")
    (tmp_path / "s.json").write_text(json.dumps({"key": ["Id"]}))
    with pytest.raises(UnreadableInput):
        import_stream(stream(), tmp_path / "a.csv", schema_from=tmp_path / "s.json")
    with pytest.raises(InvalidOption):
        export_stream(stream(), tmp_path, "xml")
    source = stream()
    source.update(pa.table({"Id": ["1"]}), key="Id")
    for kind in ("csv", "parquet", "jsonl"):
        assert export_stream(source, tmp_path, kind).name == f"Account.snapshot.{kind}"
        with pytest.raises(InvalidOption, match="is there already"):
            export_stream(source, tmp_path, kind)


def test_a_convention_holds_for_all_pieces(tmp_path, monkeypatch):
    """A number that is written otherwise in a later piece leaves the column as text, as in one piece."""
    monkeypatch.setattr(csv_file, "_PIECE_BYTES", 16)
    tenant = given.tenant()
    file = tmp_path / "numbers.csv"
    file.write_text(
        "Id,a,b,c\n" + "".join(f"{n},{n}.5,{n},2026-01-0{n}\n" for n in range(1, 8)) + "8,3.0,07,\n"
    )
    for name, bytes_max in (("Whole", 10**6), ("Pieces", 0)):
        import_stream(tenant.stream(name), file, "Id", memory_bytes_max=bytes_max)
    whole, pieces = (tenant.stream(name).read(as_="arrow") for name in ("Whole", "Pieces"))
    assert whole == pieces
    assert [str(kind) for kind in pieces.schema.types] == ["int64", "double", "string", "string"]


@pytest.mark.parametrize("content", ["Id,v\n1,2\n3\n", 'Id,v\n1,"2\n', "", "Id,Id\n1,2\n", "Id,v\n1,\xff\n"])
def test_a_damaged_file_is_told_the_same_way(content, tmp_path):
    """A ragged row, an open quote, no header, a name twice, no UTF-8: one error, however it is read."""
    tenant = given.tenant()
    file = tmp_path / "x.csv"
    file.write_bytes(content.encode("latin-1"))
    told = []
    for bytes_max in (10**6, -1):
        with pytest.raises(UnreadableInput) as error:
            import_stream(tenant.stream("X"), file, "Id", memory_bytes_max=bytes_max)
        told.append(str(error.value))
    assert told[0] == told[1]
    assert tenant.streams() == ()


def test_text_is_taken_in_the_types_of_the_stream(tmp_path):
    """A CSV file of ids that look like numbers fits a stream whose ids are text, whatever its length."""
    file = tmp_path / "a.csv"
    for memory_bytes_max in (0, 1000):
        goal = given.tenant(streams={"Account": {"Id": ["1", "007"], "N": [1, 2]}}).stream("Account")
        file.write_text("Id,N\n1,5\n2,6\n")
        done = import_stream(goal, file, memory_bytes_max=memory_bytes_max)
        assert (done.inserted, done.updated) == (1, 1)
        assert {row["Id"]: row["N"] for row in goal.read(as_="arrow").to_pylist()} == {
            "1": 5,
            "2": 6,
            "007": 2,
        }


@pytest.mark.parametrize("bytes_max", [10**6, 0], ids=["whole", "streamed"])
def test_an_import_takes_the_options_of_reading_csv(tmp_path, bytes_max):
    """Types, dates and the escape character, however large the file is."""
    tenant = given.tenant()
    file = tmp_path / "Calls-1.CSV"
    file.write_text('Id,Phone,Day,Note\n1,41,2026-10-01,"say \\"hi\\""\n2,44,,b\n')
    options = {"types": {"Calls": {"Phone": "string"}}, "parse_dates": ["Day"], "escape": "\\"}
    import_stream(tenant.stream("Calls"), file, "Id", memory_bytes_max=bytes_max, **options)
    rows = tenant.stream("Calls").read(as_="arrow").to_pylist()
    assert rows[0] == {"Id": 1, "Phone": "41", "Day": date(2026, 10, 1), "Note": 'say "hi"'}
    assert rows[1] == {"Id": 2, "Phone": "44", "Day": None, "Note": "b"}


@pytest.mark.parametrize("bytes_max", [10**6, 0], ids=["whole", "streamed"])
def test_a_value_outside_the_type_asked_for_ends_an_import(tmp_path, bytes_max):
    """File, line and column are named, and nothing is written."""
    tenant = given.tenant()
    file = tmp_path / "A-1.csv"
    file.write_text("Id,n\n1,2\n2,2.5\n")
    with pytest.raises(UnreadableInput, match="line 3") as caught:
        import_stream(tenant.stream("A"), file, "Id", types={"n": "int64"}, memory_bytes_max=bytes_max)
    assert (caught.value.details["line"], caught.value.details["column"]) == (3, "n")
    assert tenant.stream("A").stream_version < 0


def test_the_options_of_reading_text_are_for_text(tmp_path):
    """JSON Lines take types and dates, but no escape; Parquet has types of its own."""
    tenant = given.tenant()
    lines, table = tmp_path / "A-1.jsonl", tmp_path / "B-1.parquet"
    lines.write_text('{"Id": 1, "on": "2026-10-01", "mixed": 1}\n{"Id": 2, "mixed": "a"}\n')
    pq.write_table(pa.table({"Id": [1]}), table)
    import_stream(tenant.stream("A"), lines, "Id", types={"mixed": "string"}, parse_dates=["on"])
    rows = tenant.stream("A").read(as_="arrow").to_pylist()
    assert rows[0] == {"Id": 1, "on": date(2026, 10, 1), "mixed": "1"}
    for file, options in ((table, {"types": {"Id": "string"}}), (lines, {"escape": "\\"})):
        with pytest.raises(InvalidOption, match="not a CSV"):
            import_stream(tenant.stream("B"), file, "Id", **options)


def test_packed_files_and_those_of_tabs_are_imported(tmp_path):
    """As a folder reads them; not where what is packed has a limit."""
    tenant = given.tenant()
    packed, tabs = tmp_path / "A-1.csv.gz", tmp_path / "A-2.TSV"
    packed.write_bytes(gzip.compress(b"Id,v\n1,a\n"))
    tabs.write_text("Id\tv\n2\tb\n")
    for file in (packed, tabs):
        import_stream(tenant.stream("A"), file, "Id")
    assert tenant.stream("A").read(as_="arrow")["v"].to_pylist() == ["a", "b"]
    with pytest.raises(InvalidOption, match="no kind"):
        file_rows(packed, limits=UnpackLimits())
