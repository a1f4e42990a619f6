"""The Parquet files of a stream as one table."""

import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.old_calendar import NEW, OLD, write_old

from freezeframe.errors import SchemaDriftError, UnreadableInput
from freezeframe.script.formats.columnar_files import read_parquet_files
from freezeframe.script.formats.input_parts import UNLIMITED, UnpackLimits
from freezeframe.script.inputs import streamed_parquet


@pytest.fixture
def written(tmp_path):
    def write(*tables):
        files = [tmp_path / f"Account-{number}.parquet" for number in range(len(tables))]
        for file, table in zip(files, tables, strict=True):
            pq.write_table(table, file)
        return files

    return write


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (pa.array([1], pa.int32()), pa.array([2**40]), pa.int64()),
        (pa.array([2**40]), pa.array([1], pa.int32()), pa.int64()),
        (pa.array([1], pa.int32()), pa.array([1]), pa.int64()),
        (pa.array([1.5]), pa.array([1]), pa.float64()),
        (pa.nulls(1), pa.array(["x"]), pa.string()),
        (pa.array(["x"]), pa.nulls(1), pa.string()),
        (pa.nulls(1), pa.nulls(1), pa.null()),
        (pa.array([1.5], pa.float32()), pa.array([0.1]), pa.float64()),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("100.25")]), pa.decimal128(5, 2)),
        (pa.array(["x"]).dictionary_encode(), pa.array(["y"], pa.large_string()), pa.string()),
    ],
)
def test_types_are_joined_without_loss(written, first, second, kind):
    """The wider type wins where every value stays the same."""
    table = read_parquet_files(written(pa.table({"a": first}), pa.table({"a": second})))

    assert kind == table.schema.field("a").type
    assert first.to_pylist() + second.to_pylist() == table["a"].to_pylist()


def test_a_column_that_a_file_lacks_is_null_there(written):
    """Columns are matched by name, in order of first appearance."""
    files = written(pa.table({"a": [1], "b": ["x"]}), pa.table({"c": [True], "a": [2]}))

    assert read_parquet_files(files).to_pydict() == {"a": [1, 2], "b": ["x", None], "c": [None, True]}


def test_types_that_cannot_be_joined_name_the_files(written):
    """Text and numbers do not become each other."""
    files = written(pa.table({"a": [1]}), pa.table({"a": ["x"]}))

    with pytest.raises(SchemaDriftError, match="Account-1") as caught:
        read_parquet_files(files)

    assert [str(file) for file in files] == caught.value.details["files"]


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"not parquet at all, but long enough to be looked at"])
def test_a_damaged_file_is_named(tmp_path, damage):
    """Whatever is wrong with it, the message says which file."""
    file = tmp_path / "Account-1.parquet"
    file.write_bytes(damage)

    with pytest.raises(UnreadableInput, match="Account-1"):
        read_parquet_files([file])


def test_a_truncated_file_is_damage(written):
    """A Parquet file without its footer yields no rows."""
    (file,) = written(pa.table({"a": list(range(1000))}))
    file.write_bytes(file.read_bytes()[:-20])

    with pytest.raises(UnreadableInput):
        read_parquet_files([file])


def test_pandas_unnamed_index_is_left_out(tmp_path):
    """A position that pandas wrote as a column is not data; a named index is."""
    frame = pd.DataFrame({"a": [1, 2]}, index=[5, 7])
    frame.to_parquet(tmp_path / "A-1.parquet")
    frame.rename_axis("Id").to_parquet(tmp_path / "B-1.parquet")

    assert read_parquet_files([tmp_path / "A-1.parquet"]).column_names == ["a"]
    assert read_parquet_files([tmp_path / "B-1.parquet"]).column_names == ["a", "Id"]


def test_times_of_the_type_int96_are_instants(tmp_path):
    """Held and streamed, as Spark reads them; the year 9999 does not fit the usual reading in nanoseconds."""
    moments = [dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC), dt.datetime(1999, 1, 1, tzinfo=dt.UTC)]
    file = tmp_path / "A-1.parquet"
    naive = pa.array([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us"))
    pq.write_table(pa.table({"t": naive}), file, use_deprecated_int96_timestamps=True)

    for rows in (read_parquet_files([file]), streamed_parquet(file, UnpackLimits(10**6, 10**6)).read_all()):
        assert pa.timestamp("us", "UTC") == rows.schema.field("t").type
        assert moments == rows["t"].to_pylist()


def test_nanoseconds_are_refused_with_the_file(tmp_path):
    """What a stream could not keep is not read either, and the file is in the details."""
    file = tmp_path / "A-1.parquet"
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), file)

    with pytest.raises(SchemaDriftError) as caught:
        read_parquet_files([file])

    assert str(file) == caught.value.details["file"]


@pytest.mark.parametrize("limits", [UNLIMITED, UnpackLimits(rows_max=10)])
@pytest.mark.parametrize(
    "index", [[7, 8], pd.Index([7, 8], name="Id"), pd.RangeIndex(2), [["a", "b"], [1, 2]]]
)
def test_a_streamed_file_is_read_alike(index, limits, tmp_path):
    """An index without a name is left out, unsigned numbers are int64 unless a value needs more."""
    file = tmp_path / "A-1.parquet"
    columns = {"u": [1, 2**63 - 1], "w": [0, 2**63], "text": ["a", "b"]}
    frame = pd.DataFrame(columns, index=index).astype({"u": "uint64", "w": "uint64", "text": "category"})
    frame.to_parquet(file, row_group_size=1)

    whole = read_parquet_files([file])
    streamed = streamed_parquet(file, limits).read_all()

    assert whole.schema == streamed.schema
    assert whole.to_pylist() == streamed.to_pylist()
    assert whole.column_names[:3] == ["u", "w", "text"]
    assert not any("index_level" in name for name in whole.column_names)


@pytest.mark.parametrize("limits", [UNLIMITED, UnpackLimits(10**6, 10**6)], ids=["unlimited", "limited"])
def test_dates_and_times_of_the_old_calendar_show_what_they_showed(tmp_path, limits):
    """Held and streamed, with limits and without."""
    file = write_old(tmp_path / "Account-1.parquet", OLD)

    assert NEW == read_parquet_files([file], limits).to_pydict()
    assert NEW == streamed_parquet(file, limits).read_all().to_pydict()
