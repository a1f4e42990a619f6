"""Row values follow pandas' own rule, on typed data, whatever the frames."""

import math

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.script import get_snapshot, update_snapshot

TEXT = st.sampled_from(
    ["007", "7", "NA", "", "nan", "None", "a\nb", 'say "hi"', "ü😀", "00000000000000000042"]
)
COLUMNS = {
    "name": st.none() | TEXT,
    "amount": st.none() | st.integers(-(2**63), 2**63 - 1),
    "rate": st.none() | st.floats(allow_nan=False),
    "active": st.none() | st.booleans(),
    "First Name": st.none() | TEXT,
}
DTYPES = {
    "Id": "string",
    "Line": "Int64",
    "name": "string",
    "amount": "Int64",
    "rate": "float64",
    "active": "boolean",
    "First Name": "string",
}


@st.composite
def batches(draw, key):
    """Up to four frames of one stream, each with its own columns, keys repeated within and between them."""
    found = []
    for _ in range(draw(st.integers(2, 4))):
        names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True))
        row = {"Id": TEXT, "Line": st.integers(0, 2), **{name: COLUMNS[name] for name in names}}
        kept = [name for name in row if name in key or name in names]
        rows = draw(
            st.lists(st.fixed_dictionaries({name: row[name] for name in kept}), min_size=1, max_size=12)
        )
        # Column by column in its own type: pandas would take whole numbers beside nulls for floats first.
        found.append(pd.DataFrame({name: pd.array([r[name] for r in rows], DTYPES[name]) for name in kept}))
    return found


def expected_after(frames, key):
    """The rule itself, on Python objects so that pandas converts nothing."""
    old = None
    for frame in frames:
        typed = frame.astype(object).where(frame.notna(), None)
        new = typed.drop_duplicates(key, keep="last").set_index(key)
        old = new if old is None else new.combine_first(old)
    return {_as_key(k): _cells(row) for k, row in old.astype(object).to_dict("index").items()}


def _as_key(key):
    return key if isinstance(key, tuple) else (key,)


def _cells(row):
    return {name: None if _is_missing(value) else value for name, value in row.items()}


def _is_missing(value):
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _found(table, key):
    rows = table.to_pylist()
    return {tuple(r[k] for k in key): {n: v for n, v in r.items() if n not in key} for r in rows}


@pytest.mark.parametrize("key", [["Id"], ["Id", "Line"]], ids=["one column", "two columns"])
@settings(max_examples=examples(24), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_updates_follow_the_rule(tmp_path_factory, key, data):
    """Any sequence of frames leaves what `combine_first` makes of them, every value as it came."""
    frames = data.draw(batches(key))
    directory = tmp_path_factory.mktemp("snapshots")
    for frame in frames:
        update_snapshot(directory, "Account", key, frame)
    assert expected_after(frames, key) == _found(get_snapshot(directory, "Account", as_="arrow"), key)


@pytest.mark.parametrize("nulls", ["keep", "overwrite"])
def test_nulls_keep_or_overwrite(tmp_path, nulls):
    """A null keeps the old cell, or takes it away, as the caller says."""
    update_snapshot(tmp_path, "A", "Id", pd.DataFrame({"Id": ["1", "2"], "v": ["a", "b"], "w": ["c", "d"]}))
    after = update_snapshot(
        tmp_path, "A", "Id", pd.DataFrame({"Id": ["1"], "v": pd.array([None], "string")}), nulls=nulls
    )
    assert ["a" if nulls == "keep" else None, "b"] == [None if pd.isna(v) else v for v in after["v"]]
    assert list(after["w"]) == ["c", "d"]


def test_frames_come_back_in_their_kind(tmp_path):
    """Arrow for Arrow; sorted by key, or as told."""
    table = pa.table({"Id": ["2", "1"], "v": [1, 2]})
    assert update_snapshot(tmp_path, "A", "Id", table)["Id"].to_pylist() == ["1", "2"]
    again = update_snapshot(tmp_path, "A", "Id", table, sort_columns="v")
    assert again["Id"].to_pylist() == ["2", "1"]
