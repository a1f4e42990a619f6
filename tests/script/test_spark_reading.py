"""Folders as Spark frames: the rows and types of the other kinds, read by Spark's workers in parts."""

import contextlib
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.examples import sampled
from tests.script.json_values import KNOWN, OWN
from tests.script.text_columns import EXACT, INEXACT, KEPT, MOMENTS, NOT_WRITTEN, TYPED, WRITTEN

from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import DuplicateKeyError, UnreadableInput
from freezeframe.log.delta_log import DeltaLog
from freezeframe.script.formats.columnar_files import ParquetFormat
from freezeframe.script.formats.csv_file import read_csv_text
from freezeframe.script.formats.csv_rows import CsvFormat
from freezeframe.script.formats.json_rows import JsonFormat
from freezeframe.script.inputs.spark_reading import spark_frames
from freezeframe.script.inputs.stream_files import CSV_EXTENSIONS, stream_files
from freezeframe.script.reading import read_csv_folder, read_json_folder, read_parquet_folder
from freezeframe.script.snapshots import get_snapshot, update_snapshot
from freezeframe.script.types.typed_columns import KnownTypes

pytestmark = pytest.mark.spark

REPOSITORY = Path(__file__).parent.parent.parent
NOTHING = KnownTypes()
CSV = CsvFormat()


def quoted(text):
    return "" if text is None else '"' + text.replace('"', '""') + '"'


def csv_of(columns):
    """A CSV file with these columns of text, missing values at their ends, and a column ``row``."""
    height = max(map(len, columns.values()))
    padded = [[*texts, *[None] * (height - len(texts))] for texts in columns.values()]
    lines = [",".join(["row", *columns])]
    lines += [
        ",".join([str(row), *map(quoted, cells)]) for row, cells in enumerate(zip(*padded, strict=True))
    ]
    return "\n".join([*lines, ""])


def workers_rows(session, files, known=NOTHING, part_bytes=64, form=CSV):
    """The rows as Spark's workers read them, many parts to a file; sorted by ``row``."""
    streams = {"A": (files, known)}
    frame = spark_frames(form, session, streams, in_process_bytes_max=0, part_bytes=part_bytes)["A"]
    return Rows(frame.toArrow()).to_arrow().sort_by("row")


def every_text(folder):
    """A CSV file with all columns of the tests of inference and of known types; and the types."""
    texts = {f"i{number}": list(case[0]) for number, case in enumerate(TYPED)}
    texts |= {f"k{number}": list(case) for number, case in enumerate(KEPT)}
    known = {
        f"s{number}": case for number, case in enumerate((*EXACT, *INEXACT, *WRITTEN, *NOT_WRITTEN[:-1]))
    }
    texts |= {name: list(case[0]) for name, case in known.items()}
    stored = {name: case[1] for name, case in known.items()}
    declared = {f"d{name}": kind for name, kind in stored.items()}
    texts |= {f"d{name}": texts[name] for name in known} | {"dnaive": ["2020-01-01 00:00:00", None]}
    wanted = {f"r{number}": case for number, case in enumerate(EXACT)}
    texts |= {name: list(case[0]) for name, case in wanted.items()}
    texts |= {f"t{number}": list(case) for number, case in enumerate(MOMENTS)}
    types = KnownTypes(
        pa.schema(list(stored.items())),
        {**declared, "dnaive": pa.timestamp("us", "UTC")},
        {name: case[1] for name, case in wanted.items()},
        frozenset(f"t{number}" for number in range(len(MOMENTS))),
    )
    file = folder / "A-1.csv"
    file.write_text(csv_of(texts), newline="")
    return [file], types


def test_every_text_becomes_what_it_becomes_elsewhere(tmp_path, spark_session):
    """All columns in one file of many parts."""
    files, types = every_text(tmp_path)

    expected = types.table(read_csv_text(files[0]))
    found = workers_rows(spark_session, files, types)

    assert expected.schema == found.schema
    assert repr(expected.to_pylist()) == repr(found.to_pylist())


def test_values_of_several_lines_and_files_that_differ_are_one_frame(tmp_path, spark_session):
    """Quotes, newlines, a byte order mark, blank lines, a column that one lacks, a type by all files."""
    first, second = tmp_path / "A-1.csv", tmp_path / "A-2.csv"
    long = "".join(f'{row},"{row}\n""{row}"",\r\n",,"",{row}\r\n\r\n' for row in range(100))
    header = b'\xef\xbb\xbfrow,"te\nxt",none,empty,n\r\n'  # codespell:ignore te
    first.write_bytes(header + long.encode())
    second.write_text("row,n,new\n100,x,7\n101,,\n")
    expected = CsvFormat().whole([first, second])
    found = workers_rows(spark_session, [first, second], part_bytes=1000)
    assert expected.schema == found.schema
    assert expected.to_pylist() == found.to_pylist()


def test_files_that_cannot_be_divided_are_read_alike(tmp_path, spark_session):
    """Packed files, and those with an escape character, are one part each; tabs and semicolons are many."""
    rows = "".join(f'{row};"x;{row}";1.{row % 10}0\n' for row in range(100))
    (tmp_path / "A-1.csv").write_text(f"\nrow;t;n\n{rows}")
    (tmp_path / "A-2.tsv").write_text("row\tt, u\tn\n100\ta,b\t2.00\n")
    (tmp_path / "A-3.csv.gz").write_bytes(gzip.compress(b"row,t,n\n101,,3.00\n"))
    (tmp_path / "A-4.csv").write_text('row,t,n\n102,"say \\"hi\\", ho",4.00\n')
    files = stream_files(tmp_path, CSV_EXTENSIONS)["A"]
    form = CsvFormat("\\")

    expected = form.whole(files)
    found = workers_rows(spark_session, files, part_bytes=300, form=form)

    assert ["int64", "string", "double", "string"] == list(map(str, expected.schema.types))
    assert len(form.parts(files[0], 300)) > 3
    assert expected.equals(found)


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (b"a,b\n" + b"1,2\n" * 100 + b'1,"x"y\n' + b"1,2\n" * 20, "behind a closing quote", 102),
        (b"a,b\n" + b'"1\n1",2\n' * 100 + b"1,2,3\n", "3 fields in line 202", 202),
        (b"a,b\n" + b"1,2\n" * 100 + b"\xff,2\n", "not UTF-8: line 102", 102),
        (b"a,b\n" + b"1,2\n" * 100 + b'1,"x\n', "inside a quoted field", 102),
    ],
)
def test_a_fault_names_the_file_and_its_line(content, message, line, tmp_path, spark_session):
    """The error that a worker met is the one that this process raises, when the folder is read."""
    file = tmp_path / "A-1.csv"
    file.write_bytes(content)
    with pytest.raises(UnreadableInput, match=message) as caught:
        workers_rows(spark_session, [file], part_bytes=200)
    assert (str(file), line) == (caught.value.details["file"], caught.value.details["line"])


@pytest.mark.parametrize("most", [0, 10**6], ids=["parts", "small"])
def test_a_value_outside_the_type_asked_for_is_named(most, tmp_path, spark_session):
    """File, line and column, as in this process."""
    file = tmp_path / "A-1.csv"
    file.write_text("row,n\n" + "1,2\n" * 100 + "1,2.5\n")
    known = KnownTypes(requested={"n": pa.int64()})
    options = {"in_process_bytes_max": most, "part_bytes": 200}
    with pytest.raises(UnreadableInput, match="line 102") as caught:
        spark_frames(CSV, spark_session, {"A": ([file], known)}, **options)
    assert (str(file), "n") == (caught.value.details["file"], caught.value.details["column"])


def json_lines_of(columns):
    """Lines with these columns of JSON values, None where a line lacks the column, and a column ``row``."""
    height = max(map(len, columns.values()))
    for row in range(height):
        cells = {name: values[row] for name, values in columns.items() if row < len(values)}
        found = {"row": row} | {name: value for name, value in cells.items() if value is not None}
        yield "{" + ", ".join(f'"{name}": {value}' for name, value in found.items()) + "}\n"


def every_json_value(folder):
    """Two files with all columns of the tests of JSON Lines, with blank lines and a mark; and the types."""
    values = {f"own{number}": case[0] for number, case in enumerate(OWN)}
    values |= {f"stored{number}": case[0] for number, case in enumerate(KNOWN)}
    values |= {f"declared{number}": case[0] for number, case in enumerate(KNOWN)}
    kinds = {number: case[1] for number, case in enumerate(KNOWN)}
    stored = pa.schema([(f"stored{number}", kind) for number, kind in kinds.items()])
    known = KnownTypes(stored, {f"declared{number}": kind for number, kind in kinds.items()})
    lines = list(json_lines_of(values))
    files = [folder / f"A-{number}.jsonl" for number in range(4)]
    files[0].write_text("\ufeff" + "\n".join(lines[:2]) + "\r\n\r\n")
    files[1].write_text("")
    files[2].write_text("".join(lines[2:]).rstrip())
    files[3].write_text("\ufeff")
    return files, known


def test_every_json_value_becomes_what_it_becomes_elsewhere(tmp_path, spark_session):
    """All columns, in two files of many parts."""
    files, known = every_json_value(tmp_path)

    expected = JsonFormat().whole(files, known)
    found = workers_rows(spark_session, files, known, form=JsonFormat())

    assert expected.schema == found.schema
    assert repr(expected.to_pylist()) == repr(found.to_pylist())
    small = spark_frames(JsonFormat(), spark_session, {"A": (files, known)})["A"]
    assert found.equals(Rows(small.toArrow()).to_arrow().sort_by("row"))


@pytest.mark.parametrize(
    "odd", ['{"row": 1, "a": "x"}', "{", '{"row": 1, "a": 1e400}', '{"row": 1, "row": 2}']
)
def test_a_fault_in_json_lines_names_the_file_and_its_line(odd, tmp_path, spark_session):
    """In a part that is not the first of its file, as this process names it."""
    file = tmp_path / "A-1.jsonl"
    file.write_text('{"row": 1, "a": 0.5}\n\n' * 20 + odd + "\n")
    with pytest.raises(UnreadableInput) as here:
        JsonFormat().whole([file])
    with pytest.raises(UnreadableInput) as caught:
        workers_rows(spark_session, [file], part_bytes=200, form=JsonFormat())
    assert here.value.to_json() == caught.value.to_json()
    assert caught.value.details["line"] == 41


def test_members_of_nothing_yet_are_read_and_kept(tmp_path, spark_session):
    """Objects in lists, of whose members none has a value: more objects than rows, at two depths."""
    lines = ('{"Id":1,"m":[],"n":[]}', '{"Id":2,"m":[{"a":null},{}],"n":[[{"a":null},{}],[{}]]}')
    (tmp_path / "A-1.jsonl").write_text("\n".join([*lines, '{"Id":3,"m":[{},{},{}],"n":[[]]}']))
    expected = read_json_folder(tmp_path, as_="arrow")["A"].to_pylist()
    frame = read_json_folder(tmp_path, as_="spark", session=spark_session)["A"]
    assert expected == [row.asDict(recursive=True) for row in frame.collect()]
    update_snapshot(tmp_path / "snapshots", "A", "Id", frame)
    assert expected == get_snapshot(tmp_path / "snapshots", "A", as_="arrow").to_pylist()


def test_a_stream_without_lines_is_a_frame_without_columns(tmp_path, spark_session):
    """An empty file, in this process or by the workers."""
    file = tmp_path / "A-1.jsonl"
    file.write_text("\n" * 100)
    frames = [
        spark_frames(JsonFormat(), spark_session, {"A": ([file], NOTHING)}, in_process_bytes_max=most)["A"]
        for most in (0, 1000)
    ]
    assert [(frame.columns, frame.count()) for frame in frames] == [([], 0)] * 2


def read_in_order(session, tmp_path, most):
    """Three files of a stream that share keys: small, or read by many workers' tasks."""
    for number in range(1, 4):
        rows = "".join(f"{key},{number},{'x' * 20}\n" for key in range(number, number + 40))
        (tmp_path / f"A-{number * 5}.csv").write_text(f"Id,v,filler\n{rows}")
    files = stream_files(tmp_path, CSV_EXTENSIONS)["A"]
    return spark_frames(
        CsvFormat(), session, {"A": (files, NOTHING)}, in_process_bytes_max=most, part_bytes=600
    )["A"]


LAST_FILES = {
    key: max(number for number in range(1, 4) if number <= key < number + 40) for key in range(1, 43)
}


@pytest.mark.parametrize(
    ("most", "transform"),
    [
        (0, lambda frame: frame.drop("filler").filter("Id > 0").withColumn("w", frame.v * 2)),
        (10**6, lambda frame: frame),
    ],
    ids=["parts, changed", "small, as read"],
)
def test_the_last_file_wins_where_two_share_a_key(spark_session, tmp_path, most, transform):
    """As in pandas: the order of files is known, also behind steps that keep it; nothing else is stored."""
    frame = transform(read_in_order(spark_session, tmp_path, most))
    update_snapshot(tmp_path / "snapshots", "A", "Id", frame)
    table = get_snapshot(tmp_path / "snapshots", "A", as_="arrow")
    assert LAST_FILES == dict(zip(table["Id"].to_pylist(), table["v"].to_pylist(), strict=True))
    assert set(frame.columns) == set(table.column_names)


@pytest.mark.parametrize(
    ("transform", "options"),
    [
        (lambda frame: frame.selectExpr("*", "row_number() over (partition by v order by Id) as n"), {}),
        (lambda frame: frame, {"drop_duplicates": False}),
    ],
    ids=["a window moved them", "refused on purpose"],
)
def test_rows_without_a_known_order_are_refused_as_before(spark_session, tmp_path, transform, options):
    """Once rows were moved between partitions, nobody knows which is the last."""
    frame = transform(read_in_order(spark_session, tmp_path, 0))
    with pytest.raises(DuplicateKeyError, match="order_by"):
        update_snapshot(tmp_path / "snapshots", "A", "Id", frame, **options)


def test_a_few_rows_are_the_same_frame(tmp_path, spark_session):
    """What is read in this process becomes the very same rows, in the session that was passed."""
    file = tmp_path / "A-1.csv"
    file.write_text('row,t,n,void\n1,2020-01-01 00:00:00,2020-01-01T00:00:00Z,\n2,,"",\n')
    frame = read_csv_folder(tmp_path, as_="spark", session=spark_session)["A"]
    assert frame.sparkSession is spark_session
    assert Rows(frame.toArrow()).to_arrow().equals(workers_rows(spark_session, [file], part_bytes=16))


def test_a_sessions_time_zone_changes_no_moment(tmp_path, spark_session):
    """Times with and without a zone are the same in a session that is not in UTC."""
    file = tmp_path / "A-1.csv"
    file.write_text("row,t,n\n1,2020-07-01 00:00:00,2020-07-01T00:00:00Z\n")
    expected = KnownTypes().table(read_csv_text(file)).to_pylist()
    spark_session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = workers_rows(spark_session, [file]).to_pylist()
    finally:
        spark_session.conf.set("spark.sql.session.timeZone", "UTC")
    assert found == expected


def differing_parquet(folder):
    """Two files whose types differ, a row group a row."""
    files = [folder / "A-1.parquet", folder / "A-2.parquet"]
    tables = (
        pa.table({"row": [1, 2], "n": pa.array([1, None], pa.int32()), "u": pa.array([1, 2], pa.uint64())}),
        pa.table({"row": [3], "n": [0.5], "x": pa.array(["a"]).dictionary_encode(), "l": [[{"k": 1}]]}),
    )
    for file, table in zip(files, tables, strict=True):
        pq.write_table(table, file, row_group_size=1)
    return files


def test_parquet_files_whose_types_differ_are_one_frame(tmp_path, spark_session):
    """Types are joined as elsewhere, by values where types alone do not decide; row groups are parts."""
    files = differing_parquet(tmp_path)

    expected = ParquetFormat().whole(files)
    found = workers_rows(spark_session, files, part_bytes=1, form=ParquetFormat())

    assert expected.schema == found.schema
    assert expected.to_pylist() == found.to_pylist()
    small = read_parquet_folder(tmp_path, as_="spark", session=spark_session)["A"]
    assert expected.to_pylist() == Rows(small.toArrow()).to_arrow().sort_by("row").to_pylist()


@contextlib.contextmanager
def legacy(session):
    """The session, writing dates and times as Spark 2 did, in a zone of its own."""
    options = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.session.timeZone": "America/Los_Angeles",
    }
    before = {name: session.conf.get(name) for name in (*options, TIMES)}
    for name, value in options.items():
        session.conf.set(name, value)
    yield session
    for name, value in before.items():
        session.conf.set(name, value)


@pytest.fixture
def legacy_session(spark_session):
    """The product's session as such one."""
    with legacy(spark_session) as session:
        yield session


TIMES = "spark.sql.parquet.outputTimestampType"
LEGACY = """
    SELECT id, d, t, struct(d, array(t, NULL) AS l) AS s, map(d, t) AS m FROM (
        SELECT id, CAST(x AS DATE) AS d, CAST(x AS TIMESTAMP) AS t FROM (
            SELECT id, element_at(array('0001-01-01 00:00:00', '1582-10-04 23:59:59.123456',
                '1582-10-15 00:00:00', '1883-11-18 12:00:00', '2026-11-26 01:02:03', '-0044-03-15 12:00:00'),
                CAST(id AS INT) + 1) AS x FROM range(0, 6, 1, 2)))
"""


@pytest.mark.sampled
@pytest.mark.parametrize("times", sampled(["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"]))
def test_what_spark_wrote_in_the_old_calendar_is_read_as_by_spark(
    tmp_path, legacy_session, delta_session, times
):
    """A folder, whole and in parts, and a Delta table by a read and as a dataset."""
    with legacy(delta_session) as writer:
        writer.conf.set(TIMES, times)
        writer.sql(LEGACY).write.format("delta").save(str(tmp_path / "t"))
    files = sorted((tmp_path / "t").glob("*.parquet"))
    read = legacy_session.read.parquet(*[file.as_uri() for file in files])
    streams = {"A": (files, NOTHING)}
    parts = spark_frames(ParquetFormat(), legacy_session, streams, in_process_bytes_max=0, part_bytes=1)["A"]
    snapshot = DeltaLog.open(tmp_path / "t").update()

    def texts(table):
        """As text: Python's dates begin with the year 1."""
        return sorted(
            legacy_session.createDataFrame(table).selectExpr("to_json(struct(*)) r").toPandas()["r"]
        )

    expected = sorted(read.selectExpr("to_json(struct(*)) r").toPandas()["r"])
    assert len(expected) == 6
    assert expected == texts(ParquetFormat().whole(files))
    assert expected == sorted(parts.selectExpr("to_json(struct(*)) r").toPandas()["r"])
    assert expected == texts(snapshot.to_arrow())
    assert expected == texts(snapshot.to_dataset().to_table())


MORE = "".join(f"{number},{'x' * 40},1.5\n" for number in range(3, 110_000))


def test_the_job_of_the_readme_runs_with_five_megabytes(tmp_path, monkeypatch, capsys, spark_engine):
    """Its folder is relative, and files of that size are read by Spark's workers, which are elsewhere."""
    job = (REPOSITORY / "README.md").read_text(encoding="utf-8").partition("## A PySpark job")[2]
    code = job.partition("```python\n")[2].partition("```")[0]
    longer = code.replace('2,007,9.5\\n"', '2,007,9.5\\n" + MORE')
    assert len(MORE) > 5_000_000
    assert longer != code
    monkeypatch.chdir(tmp_path)
    exec(longer, {"MORE": MORE})
    assert capsys.readouterr().out == "[('007', 'Ada', 100.0), ('008', 'NA', None)]\n"
    assert (tmp_path / "etl-output/Billed.csv").read_text().splitlines()[1].startswith("007,Ada,100")


@pytest.mark.parametrize(
    ("kind", "path"), [("csv", "sync"), ("jsonl", "./sync/A-1.jsonl"), ("parquet", "../{}/sync")]
)
def test_a_relative_folder_is_that_of_the_call(tmp_path, monkeypatch, spark_session, kind, path):
    """Frames are lazy: the script may have left its folder when they are read."""
    (tmp_path / "sync").mkdir()
    rows = pa.table({"Id": range(150_000), "v": ["x" * 30] * 150_000})
    file = tmp_path / f"sync/A-1.{kind}"
    if kind == "parquet":
        pq.write_table(rows, file, compression="none", use_dictionary=False)
    elif kind == "csv":
        pacsv.write_csv(rows, file)
    else:
        rows.to_pandas().to_json(file, orient="records", lines=True)
    read = {"csv": read_csv_folder, "jsonl": read_json_folder, "parquet": read_parquet_folder}[kind]
    monkeypatch.chdir(tmp_path)
    frame = read(path.format(tmp_path.name), as_="spark", session=spark_session)["A"]
    monkeypatch.chdir("/")
    assert (frame.count(), frame.agg({"Id": "max"}).first()[0]) == (150_000, 149_999)
