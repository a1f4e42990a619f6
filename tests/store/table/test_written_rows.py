"""The text of a CSV file: what pandas writes, and what reads back as it was."""

import datetime as dt
import io
from decimal import Decimal

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.script.formats.csv_file import read_csv_text
from freezeframe.script.types.typed_columns import KnownTypes
from freezeframe.store.table.written_rows import csv_text

WHEN = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def test_values_are_written_as_pandas_writes_them():
    """Whole floats with a point, True and False, times with their offset."""
    table = pa.table(
        {
            "Id": ["007", 'say "hi", ü', "a\nb"],
            "n": [1, None, 3],
            "x": [1.0, 0.5, None],
            "ok": [True, None, False],
            "at": pa.array([WHEN, None, WHEN], pa.timestamp("us", tz="UTC")),
            "day": [dt.date(2026, 1, 1)] * 3,
            "cost": [Decimal("1.50")] * 3,
        }
    )

    frame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
    assert frame.to_csv(index=False) == csv_text(table)


def test_missing_and_empty_are_told_apart():
    """An empty field is missing, two quotes are the empty text; lists are JSON."""
    table = pa.table({"a": ["", None, "x"], "list": [[1, None], None, []]})
    assert csv_text(table) == 'a,list\n"","[1, null]"\n,\nx,[]\n'
    assert csv_text(pa.table({"a b": pa.array([], pa.string())})) == "a b\n"


VALUES = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6),
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "x": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "ok": st.none() | st.booleans(),
        "at": st.none() | st.datetimes().map(lambda when: when.replace(tzinfo=dt.UTC)),
        "local": st.none() | st.datetimes(),
        "day": st.none() | st.dates(),
        "cost": st.none() | st.decimals(-1000, 1000, places=2),
        "last": st.just("."),
    }
)
SCHEMA = pa.schema(
    {
        "text": pa.string(),
        "n": pa.int64(),
        "x": pa.float64(),
        "ok": pa.bool_(),
        "at": pa.timestamp("us", tz="UTC"),
        "local": pa.timestamp("us"),
        "day": pa.date32(),
        "cost": pa.decimal128(10, 2),
        "last": pa.string(),
    }
)


@given(rows=st.lists(VALUES, min_size=1, max_size=5))
def test_values_come_back(tmp_path_factory, rows):
    """Who knows the columns' types reads from the file exactly what was written."""
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_text(csv_text(table), encoding="utf-8", newline="")
    assert table == KnownTypes(SCHEMA).table(read_csv_text(path))
    assert len(table) == len(pd.read_csv(io.StringIO(csv_text(table)), dtype=str))
