"""The table of readers in the documentation: who reads a stream with vectors, and one with column mapping."""

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaProtocolError

from freezeframe.script import open_tenant

ODD = "A/R Paid (net)"


def _stream(tmp_path, monkeypatch, column, *, vectors):
    """The path of a stream that was updated once, and its rows."""
    monkeypatch.setenv("FREEZEFRAME_VECTORS_FROM_BYTES", "0" if vectors else str(2**40))
    stream = open_tenant(tmp_path / "snapshots").stream("Account")
    stream.update(pa.table({"Id": ["1", "2", "3"], column: [1.0, 2.0, 3.0]}), "Id")
    stream.update(pa.table({"Id": ["2"], column: [20.0]}), "Id")
    path = tmp_path / "snapshots" / "Account.snapshot"
    assert vectors == any(path.rglob("deletion_vector_*.bin"))
    return str(path), stream.read(as_="arrow").sort_by("Id").to_pylist()


def by_polars(path):
    return pl.scan_delta(path).collect().sort("Id").to_dicts()


def by_query(path):
    found = QueryBuilder().register("t", DeltaTable(path)).execute('SELECT * FROM t ORDER BY "Id"').read_all()
    return pa.table(found).to_pylist()


def by_pyarrow(path):
    return DeltaTable(path).to_pyarrow_table().sort_by("Id").to_pylist()


def by_duckdb(path):
    connection = duckdb.connect()
    try:
        connection.execute("INSTALL delta")
    except duckdb.Error as error:
        pytest.skip(f"DuckDB cannot download its extension delta here: {str(error).splitlines()[0]}")
    return connection.execute(f"SELECT * FROM delta_scan('{path}') ORDER BY Id").to_arrow_table().to_pylist()


@pytest.mark.parametrize(
    ("read", "column", "vectors"),
    [
        *((read, "Total", False) for read in (by_polars, by_query, by_pyarrow)),
        *((read, "Total", True) for read in (by_polars, by_query, by_duckdb)),
        (by_query, ODD, False),
        (by_query, ODD, True),
    ],
)
def test_readers_see_the_rows(tmp_path, monkeypatch, read, column, vectors):
    """Each reader gives the rows that the library gives."""
    path, expected = _stream(tmp_path, monkeypatch, column, vectors=vectors)

    assert read(path) == expected


@pytest.mark.parametrize(
    ("read", "column", "vectors"),
    [(by_polars, ODD, False), (by_pyarrow, ODD, False), (by_pyarrow, "Total", True)],
)
def test_readers_refuse_what_they_do_not_know(tmp_path, monkeypatch, read, column, vectors):
    """A reader without the feature says so; none gives other rows."""
    path, _ = _stream(tmp_path, monkeypatch, column, vectors=vectors)

    with pytest.raises((DeltaProtocolError, pl.exceptions.ComputeError), match="reader feature"):
        read(path)
