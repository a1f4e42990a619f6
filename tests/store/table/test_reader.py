"""Rows in the order of a key."""

import datetime as dt

import pyarrow as pa
import pytest

from freezeframe.store.table.reader import sort_rows

RUNS = {
    "whole numbers": [[-(2**63), -1, 0, 7], [], [3, 2**63 - 1], [0, 1]],
    "texts of one length": [["k-0001", "k-0900"], [], ["k-0002", "k-0900"]],
    "texts of more letters than a number has": [["00Q000000001", "00Q000000900"], ["00Q000000002"]],
    "texts that differ at their beginning": [["a0000000000", "b0000000000"], ["a0000000001"]],
    "letters of several bytes": [["ä1", "ü0"], ["ß9", "ä0"]],
    "zero bytes": [["a\0", "b\0"], ["a\1", "\0\0"]],
    "texts of several lengths": [["a", "bb", "b"], ["ab", ""]],
    "no letters": [["", ""], [""]],
    "nulls": [[None, "b"], ["a", None]],
    "one text": [["same"], ["same"]],
    "floats": [[0.5, -1.0], [float("inf")]],
    "dates": [[dt.date(2020, 1, 1)], [dt.date(1969, 1, 1)]],
    "nothing": [[]],
}


@pytest.mark.parametrize("name", RUNS)
def test_rows_are_sorted_by_a_key_of_any_type(name):
    """In the order of the values, nulls last, equal ones as they came, also where a column begins later."""
    kind = pa.array([item for run in RUNS[name] for item in run]).type
    kind = pa.string() if pa.types.is_null(kind) else kind
    chunks = [pa.array([*run[:1], *run], kind)[min(1, len(run)) :] for run in RUNS[name]]
    table = pa.table({"k": pa.chunked_array(chunks, kind)})
    table = table.append_column("n", pa.array(range(len(table)), pa.int64()))
    rows = table.to_pylist()
    expected = sorted((row for row in rows if row["k"] is not None), key=lambda row: row["k"])
    expected += [row for row in rows if row["k"] is None]
    assert expected == sort_rows(table, ["k"]).to_pylist()
