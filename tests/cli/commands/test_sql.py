"""Spark SQL over a tenant's streams, from the command line."""

import json

import pyarrow as pa
import pytest

import freezeframe
from freezeframe.cli.main import main

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A store with a tenant of two versions: a stream with an awkward name, and one that came later."""
    root = str(tmp_path_factory.mktemp("sql") / "store")
    acme = freezeframe.open(root, engine="auto").tenant("acme", create=True)
    acme.stream("Account@qbo").update(pa.table({"Id": ["007", "8"], "Name": ["Ada", ""]}), key="Id")
    acme.stream("Invoice").update(
        pa.table({"Id": [1, 2], "Account": ["007", None], "Total": [90.5, 9.5]}), key="Id"
    )
    acme.stream("odd`name").update(pa.table({"Id": [1]}), key="Id")
    return root


@pytest.fixture
def asked(root, capsys, spark_session):
    """Ask a query; its exit code, output and errors."""

    def ask(query, *options):
        code = main(["sql", query, "--root", root, "--tenant", "acme", *options])
        return code, *capsys.readouterr()

    return ask


def test_streams_join_and_values_keep_their_types(asked):
    """JSON has an object for each row, text stays text."""
    joined = "`Account@qbo` a JOIN Invoice i ON i.Account = a.Id"
    query = f"SELECT a.Id, sum(i.Total) AS billed FROM {joined} GROUP BY a.Id"
    code, out, _ = asked(query, "--json")
    assert (code, json.loads(out)) == (0, [{"Id": "007", "billed": 90.5}])


def test_csv_tells_the_empty_text_from_the_missing_value(asked):
    """As exports do."""
    assert (
        asked("SELECT * FROM `Account@qbo` ORDER BY Id", "--format", "csv")[1] == 'Id,Name\n007,Ada\n8,""\n'
    )
    assert asked("SELECT Account FROM Invoice ORDER BY Id", "--format", "csv")[1] == "Account\n007\n\n"


def test_all_streams_are_of_the_version_that_is_asked(asked):
    """A stream that came later is not there yet; the remedy says which are."""
    code, _, err = asked("SELECT * FROM Invoice", "--version", "0")
    assert (code, "The streams at version 0 are: `Account@qbo`." in err) == (2, True)
    assert "JVM stacktrace" not in err


def test_a_name_with_a_backquote_is_asked_as_sql_writes_it(asked):
    """Doubled within backquotes, as the list of streams shows it."""
    assert asked("SELECT Id FROM `odd``name`", "--format", "csv")[1] == "Id\n1\n"
    assert "are: `Account@qbo`, Invoice, `odd``name`." in asked("SELECT x FROM `odd``name`")[2]


def test_streams_of_any_tenant_and_version_are_named(asked):
    """Beside the tenant's own views."""
    query = (
        "SELECT new.Id, old.Id AS was, rows FROM Invoice new "
        "LEFT JOIN acme.Invoice VERSION AS OF 1 old ON new.Id = old.Id AND old.Account IS NOT NULL "
        "CROSS JOIN (SELECT _tenant, count(*) AS rows FROM *.Invoice GROUP BY _tenant) ORDER BY 1"
    )

    assert "Id,was,rows\n1,1,2\n2,,2\n" == asked(query, "--format", "csv")[1]
    assert 4 == asked("SELECT * FROM nobody.Invoice")[0]


def test_a_limit_is_told(asked):
    """The title says that there are more rows."""
    assert "the first 1 rows" in asked("SELECT * FROM Invoice", "--limit", "1")[1]


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT nothing FROM Invoice", "SELECT 1 / 0 FROM Invoice"])
def test_a_query_that_cannot_be_answered_is_refused(asked, query):
    """Exit code 2, with what Spark says."""
    code, _, err = asked(query)
    assert (code, "Spark cannot answer the query." in err) == (2, True), err


def test_nothing_can_be_changed(asked):
    """A view takes no rows."""
    code, _, _ = asked("INSERT INTO Invoice VALUES (3, '8', 1.0)")
    assert code == 2
    assert "2 rows" in asked("SELECT * FROM Invoice")[1]
