"""Merges that keep the past of rows, or a flag, on the way that large inputs take."""

import datetime as dt

import pyarrow as pa
import pytest

from freezeframe.engine.protocol import Validity
from freezeframe.errors import CorruptData, InvalidOption

pytestmark = pytest.mark.spark

US = pa.timestamp("us", tz="UTC")
PERIODS = Validity("from", "to", moment_us=3_000_000, since_us=1_000_000)
TARGET = pa.schema({"Id": pa.int64(), "v": pa.int64(), "from": US, "to": US})


def _second(moment):
    return None if moment is None else (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).seconds


def _rows(rows):
    return sorted(((row["Id"], row["v"], _second(row["from"]), _second(row["to"])) for row in rows), key=repr)


def _counts(result):
    return (result.inserted, result.updated, result.unchanged, result.deleted, result.live, result.lost)


@pytest.mark.parametrize("size_bytes", [None, 2**28], ids=["one task", "many tasks"])
def test_one_key_can_lead_to_two_rows(bench, size_bytes):
    """Closed rows pass by the join; every row is written once, whatever the number of tasks."""
    stored = pa.table(
        {
            "Id": [1, 1, 2, 3],
            "v": [0, 1, 2, 3],
            "from": pa.array([0, 2, None, None]),
            "to": [2, None, None, None],
        }
    )
    for name in ("from", "to"):
        place = stored.column_names.index(name)
        seconds = pa.array([None if s is None else s * 1_000_000 for s in stored[name].to_pylist()], US)
        stored = stored.set_column(place, name, seconds)
    batch = pa.table({"Id": [1, 2, 4], "v": [10, None, 40]})

    result, rows = bench.merge(
        stored, batch, key=["Id"], mode="full", target=TARGET, validity=PERIODS, size_bytes=size_bytes
    )

    assert _counts(result) == (1, 1, 1, 1, 3, 1)
    assert _rows(rows) == [
        (1, 0, 0, 2),
        (1, 1, 2, 3),
        (1, 10, 3, None),
        (2, 2, 1, None),
        (3, 3, 1, 3),
        (4, 40, 3, None),
    ]
    assert len(rows) == result.rows


def test_a_key_twice_among_the_rows_of_now_is_damage(bench):
    """The past may hold a key as often as it will, the present once."""
    stored = pa.table({"Id": [1, 1], "v": [1, 2], "from": pa.nulls(2, US), "to": pa.nulls(2, US)})
    with pytest.raises(CorruptData, match="more than once"):
        bench.merge(stored, pa.table({"Id": [1], "v": [3]}), key=["Id"], target=TARGET, validity=PERIODS)


def test_flags_are_set_once_and_taken_off(bench):
    """Of absent rows the live ones are flagged; a row that comes back is live again, and updated."""
    stored = pa.table({"Id": [1, 2, 3], "v": [1, 2, 3], "gone": [True, None, True]})
    options = {"key": ["Id"], "mode": "full", "flag": "gone", "target": stored.schema}
    batch = pa.table({"Id": [3], "v": [3]})
    result, rows = bench.merge(stored, batch, flags_absent=True, **options)
    assert _counts(result) == (0, 1, 0, 1, 1, 1)
    assert {row["Id"]: row["gone"] for row in rows} == {1: True, 2: True, 3: False}
    result, rows = bench.merge(stored, batch, **options)
    assert _counts(result) == (0, 1, 0, 2, 1, 1)
    assert rows == [{"Id": 3, "v": 3, "gone": False}]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "full"},
        {"mode": "overwrite", "flag": "v"},
        {"mode": "overwrite", "validity": PERIODS},
        {"mode": "upsert", "key": ["Id"], "flag": "v", "flags_absent": True},
        {"mode": "full", "key": ["Id"], "flags_absent": True},
    ],
)
def test_tasks_that_contradict_themselves_are_refused(bench, options):
    """Without a key nothing is flagged or closed, and only a full extract flags."""
    batch = pa.table({"Id": [1], "v": [True]})
    with pytest.raises(InvalidOption):
        bench.task(batch, batch, **options)
