"""``read_snapshots`` and ``snapshot_records``: gluestick's results, without what loses data."""

import threading

import pandas as pd
import pyarrow as pa
import pytest
from tests.text_types import TEXT

import freezeframe as ff
import freezeframe.gluestick as gs
from freezeframe.errors import BadInput, InvalidOption, MissingColumn, SchemaDriftError
from freezeframe.script import open_tenant

ROWS = pd.DataFrame({"id": [1, 2], "v": ["a", "b"], "w": [10, 20]})


def _rows(frame):
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


def test_a_missing_snapshot_is_none(tmp_path):
    """As in gluestick; nothing is made."""
    assert gs.read_snapshots("Deals", tmp_path) is None
    assert gs.snapshot_records(None, "Deals", tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_the_first_write_keeps_the_last_of_equal_keys(tmp_path):
    """Bug 3: one row for each key is kept from the first write on; the input itself comes back."""
    twice = pd.DataFrame({"id": [1, 1], "v": ["old", "new"]})
    assert twice is gs.snapshot_records(twice, "Deals", tmp_path)
    assert _rows(gs.read_snapshots("Deals", tmp_path)) == [[1, "new"]]
    assert twice is gs.snapshot_records(twice, "Other", tmp_path, just_new=True)


def test_without_rows_the_snapshot_is_read(tmp_path):
    """None as rows changes nothing; with just_new or overwrite None comes back."""
    gs.snapshot_records(ROWS, "Deals", tmp_path)
    assert _rows(ROWS) == _rows(gs.snapshot_records(None, "Deals", tmp_path))
    assert gs.snapshot_records(None, "Deals", tmp_path, just_new=True) is None
    assert gs.snapshot_records(None, "Deals", tmp_path, overwrite=True) is None


def test_a_row_is_replaced_wholly(tmp_path):
    """Nulls and columns that the rows lack clear what was there; other rows stay."""
    gs.snapshot_records(ROWS, "Deals", tmp_path)
    batch = pd.DataFrame({"id": [2, 3], "v": [None, "c"]})
    merged = gs.snapshot_records(batch, "Deals", tmp_path)
    assert _rows(merged) == [[1, "a", 10], [2, None, None], [3, "c", None]]
    assert [str(kind) for kind in merged.dtypes] == ["int64", TEXT, "float64"]


def test_a_failed_write_loses_nothing(tmp_path):
    """Bug 1: rows that cannot be taken leave the snapshot as it was."""
    gs.snapshot_records(ROWS, "Deals", tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(BadInput):
        gs.snapshot_records(pd.DataFrame({"id": [3], "v": [object()]}), "Deals", tmp_path)
    with pytest.raises(SchemaDriftError):
        gs.snapshot_records(pd.DataFrame({"id": [3], "w": ["text"]}), "Deals", tmp_path)
    assert _rows(ROWS) == _rows(gs.read_snapshots("Deals", tmp_path))
    assert before == sorted(path.name for path in tmp_path.rglob("*"))


def test_two_jobs_at_once_lose_nothing(tmp_path):
    """Bug 2: both jobs' rows are there."""
    gs.snapshot_records(ROWS, "Deals", tmp_path)
    frames = [pd.DataFrame({"id": [number], "v": ["x"], "w": [0]}) for number in (3, 4)]
    jobs = [threading.Thread(target=gs.snapshot_records, args=(frame, "Deals", tmp_path)) for frame in frames]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert sorted(gs.read_snapshots("Deals", tmp_path)["id"]) == [1, 2, 3, 4]


def test_integers_stay_integers(tmp_path):
    """Bug 11: beside missing values, as a key of floats, and beyond 2^53."""
    gs.snapshot_records(pd.DataFrame({"id": [1, 2], "n": [2**53 + 1, 5]}), "Deals", tmp_path)
    batch = pd.DataFrame({"id": [2.0, None], "n": [None, 7.0], "on": [True, None]})
    merged = gs.snapshot_records(batch, "Deals", tmp_path)
    assert _rows(merged) == [[1, 2**53 + 1, None], [2, None, True], [None, 7, None]]
    assert [str(kind) for kind in merged.dtypes] == ["float64", "Int64", "object"]


def test_missing_keys_are_one_key(tmp_path):
    """As in pandas, a missing key equals a missing one: rows do not pile up."""
    frame = pd.DataFrame({"id": ["a", None], "v": ["1", "2"]})
    gs.snapshot_records(frame, "Deals", tmp_path)
    frame["v"] = ["1", "3"]
    assert _rows(gs.snapshot_records(frame, "Deals", tmp_path)) == [["a", "1"], [None, "3"]]


def test_overwrite_needs_no_key_and_a_key_may_come_later(tmp_path):
    """A report with equal rows keeps them all; the first update by a key makes it keyed."""
    report = pd.DataFrame({"Date": ["2026-10-01"] * 2, "Amount": [5, 5]})
    assert report is gs.snapshot_records(report, "Report", tmp_path, overwrite=True)
    assert len(gs.read_snapshots("Report", tmp_path)) == 2
    merged = gs.snapshot_records(report.assign(Amount=[6, 7]), "Report", tmp_path, pk="Date")
    assert _rows(merged) == [["2026-10-01", 7]]
    gs.snapshot_records(report, "Report", tmp_path, overwrite=True)
    assert len(gs.read_snapshots("Report", tmp_path)) == 2


def test_an_overwrite_with_a_key_keeps_it(tmp_path):
    """Where the key column is there and tells rows apart, later updates need no second look."""
    gs.snapshot_records(ROWS, "Deals", tmp_path, overwrite=True)
    assert open_tenant(tmp_path).stream("Deals").key == ("id",)


def test_types_are_coerced_only_if_no_value_changes(tmp_path):
    """With coerce_types stored values take the type of the rows, or nothing happens."""
    gs.snapshot_records(pd.DataFrame({"id": [1, 2], "v": ["5", "6"]}), "Deals", tmp_path)
    numbers = pd.DataFrame({"id": [2], "v": [60]})
    with pytest.raises(SchemaDriftError):
        gs.snapshot_records(numbers, "Deals", tmp_path)
    assert _rows(gs.snapshot_records(numbers, "Deals", tmp_path, coerce_types=True)) == [[1, 5], [2, 60]]
    gs.snapshot_records(pd.DataFrame({"id": [1], "v": ["007"]}), "Codes", tmp_path)
    with pytest.raises(SchemaDriftError, match="coerced"):
        gs.snapshot_records(numbers, "Codes", tmp_path, coerce_types=True)
    assert list(gs.read_snapshots("Codes", tmp_path)["v"]) == ["007"]


def test_local_times_become_utc_where_asked(tmp_path):
    """localize_datetime_types takes stored times without a zone as UTC."""
    gs.snapshot_records(pd.DataFrame({"id": [1], "at": pd.to_datetime(["2020-01-01"])}), "A", tmp_path)
    batch = pd.DataFrame({"id": [2], "at": pd.to_datetime(["2020-01-02"], utc=True)})
    with pytest.raises(SchemaDriftError):
        gs.snapshot_records(batch, "A", tmp_path, coerce_types=True)
    merged = gs.snapshot_records(batch, "A", tmp_path, localize_datetime_types=True)
    assert [pd.Timestamp("2020-01-01", tz="UTC"), pd.Timestamp("2020-01-02", tz="UTC")] == list(merged["at"])


def test_a_key_that_is_not_there_is_named(tmp_path):
    """Also at the first write, where gluestick would write rows that can never be updated."""
    with pytest.raises(MissingColumn, match="'Id'"):
        gs.snapshot_records(ROWS, "Deals", tmp_path, pk=["Id"])
    assert gs.read_snapshots("Deals", tmp_path) is None


def test_only_pandas_frames_are_taken(tmp_path):
    """Others have update_snapshot."""
    with pytest.raises(BadInput, match="pandas"):
        gs.snapshot_records(pa.table({"id": [1]}), "Deals", tmp_path)


DAYS = pd.DataFrame({"id": [1, 2], "v": ["a", None], "day": ["2020-01-01", "2020-01-02"]})


@pytest.fixture
def snapshots(tmp_path):
    """A directory with the snapshot `Deals`."""
    gs.snapshot_records(DAYS, "Deals", tmp_path)
    return tmp_path


def test_columns_are_chosen_in_their_own_order(snapshots):
    """As `read_csv` does; by name, position or a function."""
    assert list(gs.read_snapshots("Deals", snapshots, usecols=["day", "id"]).columns) == ["id", "day"]
    assert list(gs.read_snapshots("Deals", snapshots, usecols=[1]).columns) == ["v"]
    assert list(gs.read_snapshots("Deals", snapshots, usecols=lambda name: name == "id").columns) == ["id"]


def test_types_are_converted_and_missing_values_stay_missing(snapshots):
    """`dtype` for all columns or for some; unknown names are left out, as pandas does."""
    text = gs.read_snapshots("Deals", snapshots, dtype=str)
    one = gs.read_snapshots("Deals", snapshots, dtype={"id": "str", "gone": "str"})
    assert list(text["id"]) == ["1", "2"]
    assert text["v"].isna().tolist() == [False, True]
    assert [str(kind) for kind in one.dtypes[["id", "v"]]] == [TEXT, TEXT]


def test_integers_beside_missing_ones_are_their_digits_as_text(tmp_path):
    """As in a file: the floats that pandas makes of them are not what was kept."""
    gs.snapshot_records(DAYS.assign(n=[7, None]), "Deals", tmp_path)
    assert gs.read_snapshots("Deals", tmp_path, dtype=str)["n"].fillna("").tolist() == ["7", ""]
    assert gs.read_snapshots("Deals", tmp_path)["n"].dtype == "float64"
    assert str(gs.read_snapshots("Deals", tmp_path, dtype_backend="pyarrow")["n"].dtype) == "int64[pyarrow]"


def test_dates_are_parsed_and_an_index_is_set(snapshots):
    """`parse_dates` by name, `index_col` by position."""
    frame = gs.read_snapshots("Deals", snapshots, parse_dates=["day"], index_col=0)
    assert pd.Timestamp("2020-01-02") == frame.loc[2, "day"]
    assert frame.index.name == "id"


def test_options_of_a_files_text_have_nothing_to_do(snapshots):
    """A separator or an encoding is ignored, as gluestick does with Parquet."""
    pd.testing.assert_frame_equal(
        gs.read_snapshots("Deals", snapshots),
        gs.read_snapshots("Deals", snapshots, sep=";", encoding="utf-8"),
    )


@pytest.mark.parametrize("option", [{"usecols": ["x"]}, {"parse_dates": ["x"]}, {"index_col": "x"}])
def test_a_column_that_is_not_there_is_named(snapshots, option):
    """With the option that asked for it."""
    with pytest.raises(MissingColumn, match=next(iter(option))):
        gs.read_snapshots("Deals", snapshots, **option)


def test_a_type_that_values_do_not_have_is_refused(snapshots):
    """Nothing is guessed."""
    with pytest.raises(InvalidOption):
        gs.read_snapshots("Deals", snapshots, dtype={"day": "int64"})


NULLABLE = {"qty": "Int64", "paid": "boolean", "name": "string", "rate": "Float64", "few": "Int8"}


def nullable_rows(ids):
    """Rows in the types of gluestick's ``Reader(catalog_types=True)``."""
    values = {"qty": 2, "paid": True, "name": "a", "rate": 0.5, "few": 7}
    columns = {
        name: pd.array([values[name], None][: len(ids)], dtype=kind) for name, kind in NULLABLE.items()
    }
    return pd.DataFrame({"id": ids, **columns})


def types_of(frame):
    """The names of the nullable columns' types."""
    return {name: frame[name].dtype.name for name in NULLABLE}


def test_nullable_types_come_back_from_every_job(tmp_path):
    """From both functions and by reading, also where a batch lacks the types or gives what was read back."""
    rows = nullable_rows(["007", "8"])
    for records in (
        lambda frame: gs.snapshot_records(frame, "Orders", tmp_path),
        lambda frame: ff.update_snapshot(tmp_path, "Leads", "id", frame),
    ):
        records(rows)
        assert types_of(records(rows)) == NULLABLE
        assert types_of(records(records(rows))) == NULLABLE
    for stream in ("Orders", "Leads"):
        versions = open_tenant(tmp_path).stream(stream).stream_version
        assert types_of(ff.get_snapshot(tmp_path, stream)) == NULLABLE
        plain = ff.get_snapshot(tmp_path, stream, dtype_backend="numpy")
        assert plain["qty"].dtype == "float64"
        again = ff.update_snapshot(tmp_path, stream, "id", ff.get_snapshot(tmp_path, stream), override=True)
        assert (types_of(again), versions) == (NULLABLE, open_tenant(tmp_path).stream(stream).stream_version)
        ff.update_snapshot(tmp_path, stream, "id", plain.assign(qty=[5, 6]))
        assert types_of(ff.get_snapshot(tmp_path, stream)) == NULLABLE


@pytest.mark.parametrize(
    "records",
    [
        gs.snapshot_records,
        lambda frame, stream, root: ff.update_snapshot(root, stream, "id", frame),
        lambda frame, stream, root: ff.update_snapshot(root, stream, "id", frame, persist=False),
    ],
)
def test_rows_come_back_in_the_nullable_types_in_which_a_call_gets_them(tmp_path, records):
    """Also from a stream whose columns came in ordinary types, which it keeps."""
    plain = pd.DataFrame({"id": ["1", "2"], "qty": [1, 2], "paid": [True, False]})
    ff.update_snapshot(tmp_path, "Orders", "id", plain)
    found = records(plain.astype({"qty": "Int64", "paid": "boolean"}), "Orders", tmp_path)
    assert [kind.name for kind in found.dtypes[1:]] == ["Int64", "boolean"]
    assert [kind.name for kind in ff.get_snapshot(tmp_path, "Orders").dtypes[1:]] == ["int64", "bool"]


def test_other_types_are_pandas_ordinary_ones_as_before(tmp_path):
    """Next to a nullable column, and for a key of floats that is stored as integers."""
    rows = pd.DataFrame({"id": [1.0, None], "qty": pd.array([1, None], dtype="Int64"), "n": [1.0, None]})
    gs.snapshot_records(rows, "Orders", tmp_path)
    found = gs.snapshot_records(rows, "Orders", tmp_path)
    assert [kind.name for kind in found.dtypes] == ["float64", "Int64", "float64"]


def test_a_column_that_gets_its_first_value_keeps_its_type(tmp_path):
    """A nullable column that is empty so far is undecided."""
    empty = pd.DataFrame({"id": [1], "qty": pd.array([None], dtype="Int64")})
    gs.snapshot_records(empty, "Orders", tmp_path)
    filled = gs.snapshot_records(empty.assign(id=[2], qty=pd.array([7], dtype="Int64")), "Orders", tmp_path)
    assert filled["qty"].dtype == "Int64"
    assert ff.get_snapshot(tmp_path, "Orders")["qty"].tolist() == [pd.NA, 7]


def test_files_of_nullable_frames_are_adopted_and_left_with_their_types(tmp_path):
    """As pandas reads the file that gluestick wrote, and the one that is beside the stream."""
    nullable_rows(["007", "8"]).to_parquet(tmp_path / "Orders.snapshot.parquet", index=False)
    assert types_of(gs.read_snapshots("Orders", tmp_path)) == NULLABLE
    plain = pd.DataFrame({"id": ["9"], "qty": [3]})
    assert types_of(gs.snapshot_records(plain, "Orders", tmp_path)) == NULLABLE
    assert types_of(pd.read_parquet(tmp_path / "Orders.snapshot.parquet")) == NULLABLE


def test_coerced_integers_and_booleans_are_nullable(tmp_path):
    """As in gluestick; without coerce_types they are numpy's."""
    rows = pd.DataFrame({"id": [1], "flag": [True], "n": [1], "f": [0.5]})
    gs.snapshot_records(rows, "Orders", tmp_path)
    for coerce, expected in (
        (True, ["Int64", "boolean", "Int64", "float64"]),
        (False, ["int64", "bool", "int64", "float64"]),
    ):
        found = gs.snapshot_records(rows.assign(id=[2]), "Orders", tmp_path, coerce_types=coerce)
        assert [kind.name for kind in found.dtypes] == expected
