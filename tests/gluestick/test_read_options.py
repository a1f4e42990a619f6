"""The `read_csv` options that `read_snapshots` takes."""

import pandas as pd
import pytest

import freezeframe.gluestick as gs
from freezeframe.errors import InvalidOption, MissingColumn

ROWS = pd.DataFrame({"id": [1, 2], "v": ["a", None], "day": ["2020-01-01", "2020-01-02"]})


@pytest.fixture
def snapshots(tmp_path):
    """A directory with the snapshot `Deals`."""
    gs.snapshot_records(ROWS, "Deals", tmp_path)
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
    assert [str(kind) for kind in one.dtypes[["id", "v"]]] == ["object", "object"]


def test_integers_beside_missing_ones_are_their_digits_as_text(tmp_path):
    """As in a file: the floats that pandas makes of them are not what was kept."""
    gs.snapshot_records(ROWS.assign(n=[7, None]), "Deals", tmp_path)

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
