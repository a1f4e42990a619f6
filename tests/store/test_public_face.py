"""Stores, tenants and streams answer what users of pandas, dictionaries and Arrow try first."""

import itertools

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from freezeframe.errors import StreamNotFound, TenantNotFound
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Store
from freezeframe.store.diff.counts import ArrowEngine

ROWS = pa.table({"Id": ["1", "2", "3"], "v": [1.5, None, 3.0], "empty": pa.nulls(3)})


@pytest.fixture
def store():
    """A store with a tenant that has two versions of a stream, and one with nothing."""
    storage = MemoryStorage()
    store = Store(storage, ArrowEngine(), Settings())
    acme = store.tenant("acme", create=True)
    acme.stream("Account").update(ROWS.slice(0, 2), "Id")
    with acme.job(message="later") as job:
        job.stream("Account").update(ROWS.slice(2), "Id")
    store.tenant("globex", create=True)
    return store


def test_stores_and_tenants_are_like_dictionaries(store):
    """By name, ``in``, in order, with a length; a missing name says what there is."""
    acme = store["acme"]

    assert (list(store), len(store), "acme" in store, "nobody" in store) == (
        ["acme", "globex"],
        2,
        True,
        False,
    )
    assert (list(acme), len(acme), "Account" in acme, "Lead" in acme) == (["Account"], 1, True, False)
    assert (bool(store["globex"]), bool(acme["Account"])) == (True, True)
    assert acme["Account"].count() == acme.at(0)["Account"].count() + 1
    assert (repr(acme), repr(acme["Account"])) == ("Tenant('acme')", "Stream('Account')")
    with pytest.raises(TenantNotFound, match="nobody"):
        store["nobody"]
    with pytest.raises(StreamNotFound, match="Account"):
        acme["Lead"]
    with acme.job() as job:
        assert len(job["Account"]) == 3


def test_a_stream_is_read_as_every_kind(store):
    """By its own verbs, of a version and under a predicate as well; other libraries take it as it is."""
    account = store["acme"]["Account"]
    own = "v > 1"

    assert isinstance(account.to_pandas(), pd.DataFrame)
    assert account.to_arrow(version=0).to_pydict() == ROWS.slice(0, 2).to_pydict()
    assert account.to_polars(columns=["Id"])["Id"].to_list() == ["1", "2", "3"]
    assert account.to_arrow(where=own)["Id"].to_pylist() == ["1", "3"]
    assert account.head(2).equals(account.read().head(2))
    assert (account.count(), account.count(0), account.count(where=own), len(account)) == (3, 2, 2, 3)
    assert (account.schema.names, account.columns, account.key) == (
        ROWS.column_names,
        ["Id", "v", "empty"],
        ("Id",),
    )
    assert sorted(pa.table(account)["Id"].to_pylist()) == ["1", "2", "3"]
    assert pl.DataFrame(account).height == 3
    assert duckdb.sql("select sum(v) from account").fetchall() == [(4.5,)]


def test_the_first_rows_are_those_of_reading(store):
    """A stream that marks what was deleted shows the mark in both."""
    lead = store["acme"].stream("Lead")
    lead.update(ROWS, "Id", mode="full", deletes="flag")

    assert len(lead.read().columns) > ROWS.num_columns
    assert lead.head(3).equals(lead.read().head(3))


def test_a_stream_has_its_history_difference_and_restoration(store):
    """As the command has them: its versions alone, what differs between two, and back to one."""
    acme = store["acme"]
    account = acme["Account"]
    acme.stream("Lead").update(ROWS, "Id")

    assert [entry.version for entry in account.history()] == [1, 0]
    assert (account.history()[0].message, len(account.history(limit=1))) == ("later", 1)
    assert account.diff(0).counts.inserted == 1
    assert account.diff(0, 1).changes("arrow")["Id"].to_pylist() == ["3"]
    assert (account.restore(0, dry_run=True).committed, account.restore(0).committed) == (False, True)
    assert (account.count(), acme["Lead"].count(), account.version) == (2, 3, 3)


def test_a_history_reads_what_is_asked_for(store):
    """The first version of a long history comes without the others."""
    acme = store["acme"]
    for number in range(30):
        acme.files.write("a.txt", str(number).encode())
    history = acme.history()

    assert (history[0].version, [item.version for item in history[1:3]]) == (31, [30, 29])
    assert len(history._read) == 3
    assert [item.version for item in itertools.islice(history, 4)] == [31, 30, 29, 28]
    assert (len(history), history[-1].version, repr(acme.history(2))) == (32, 0, "History([31, 30])")


def test_notebooks_show_what_there_is(store):
    """A store its tenants, a stream its first rows, a history its versions, a difference its rows."""
    acme = store["acme"]
    shown = {
        "store": (store, ["default, 2 tenants", "acme", "Account"]),
        "history": (acme.history(), ["Versions", "later"]),
        "difference": (acme["Account"].diff(0), ["inserted", "3.0"]),
    }

    for name, (value, parts) in shown.items():
        html = value._repr_html_()
        assert [part for part in parts if part not in html] == [], (name, html)
