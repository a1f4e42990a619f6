"""Checks of what a job would commit: conditions on rows, and on the change of a stream."""

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.store.diff import checks
from freezeframe.store.diff.checks import failed_checks, require_checks
from freezeframe.store.tenant import open_job


def content(ids, totals, rates, prices, letters, flags):
    return pa.table(
        {
            "Id": ids,
            "Total": pa.array(totals, pa.int64()),
            "Rate": pa.array(rates, pa.float64()),
            "Price": [None if price is None else Decimal(price) for price in prices],
            "a.b `c`": letters,
            "deleted": flags,
        }
    )


MOST = "99999999999999999999.99"
BEFORE = content(
    ["1", "2", "3", "4"],
    [10, 20, 30, None],
    [0.5, -0.0, float("nan"), None],
    ["0.10", "0.20", MOST, None],
    [None, "y", "x", "z"],
    [False, True, False, False],
)
AFTER = content(
    ["2", "3", "4", "5"],
    [20, 3000, None, 50],
    [-0.0, float("nan"), None, None],
    ["0.20", MOST, None, None],
    ["y", "x", "z", None],
    [True, False, False, False],
)
# Why each condition on the rows of BEFORE, or on the change to AFTER, is not passed; None: it is.
ON_ROWS = {
    "Total IS NOT NULL": "1 of 4 rows",
    "Total > 15": "2 of 4 rows",
    "Total > 15 OR Total IS NULL": "1 of 4 rows",
    "Total > 5 OR Total IS NULL": None,
    "Rate = 0": "3 of 4 rows",
    "Rate >= 0 OR Rate IS NULL": None,
    "`a.b ``c``` IN ('y', 'z')": "2 of 4 rows",
    "`deleted` = false": "1 of 4 rows",
    f"Price < {MOST} OR Price IS NULL": "1 of 4 rows",
}
ON_CHANGE = {
    "deleted <= 0.25 * rows": None,
    "deleted < 0.25 * rows": "deleted = 1, rows = 4",
    "inserted + updated < 0.5 * rows": "inserted = 1, updated = 1, rows = 4",
    "inserted + updated <= 0.5 * before.rows AND NOT rows = 0": None,
    "abs(sum(Total) - before.sum(Total)) <= 0.2 * before.sum(Total)": (
        "sum(Total) = 3,070, before.sum(Total) = 60"
    ),
    "max(Total) BETWEEN 1 AND 3000": None,
    "min(Total) = 20 AND avg(Total) > before.avg(Total)": None,
    "count(*) = 4 AND count(Total) = 3 AND before.count(*) = 4": None,
    "sum(Price) = 100000000000000000000.19": None,
    "sum(Rate) < 1e300": "sum(Rate) = nan",
    "NOT (max(Rate) > 1000000)": "max(Rate) = nan",
    "max(Rate) = max(Rate) AND max(Rate) >= sum(Rate)": None,
    "sum(Rate) BETWEEN 0 AND 1000000": "sum(Rate) = nan",
    "sum(Rate) + 1e400 > 0": "sum(Rate) = nan",
    "min(Rate) = 0": None,
    "deleted / 0 = 1": "deleted = 1",
    "rows > 5 OR deleted = 1": None,
    "-deleted = -1 AND (unchanged) = 2": None,
}


@pytest.fixture
def tenant(open_finding, memory):
    """A tenant with the stream, in memory."""
    return open_finding(memory, streams={"Account": BEFORE})


def failed(tenant, texts, rows=AFTER, stream="Account"):
    """The checks that the change of the stream to these rows does not pass."""
    found = []

    def review(effects, difference):
        for name, item in difference.streams.items():
            found.extend(failed_checks(item, effects.streams[name].counts, texts))
        return effects

    with open_job(replace(tenant.context, review=review, is_dry_run=True), None) as job:
        job.stream(stream).update(rows, key="Id", override=True)
    return {check.check: check.reason for check in found}, [check.failing for check in found]


def test_conditions_on_rows(tenant):
    """Each row must make it true: neither false nor null. The rows that fail have their key."""
    reasons, failing = failed(tenant, ON_ROWS, BEFORE, "New")
    assert reasons == {text: reason for text, reason in ON_ROWS.items() if reason}
    assert failing[0].to_pydict() == {"Id": ["4"], "Total": [None]}


def test_conditions_on_a_change(tenant):
    """Exact numbers of what would be committed, and of what was there before."""
    assert failed(tenant, ON_CHANGE)[0] == {text: reason for text, reason in ON_CHANGE.items() if reason}


def test_a_new_stream_has_no_change(tenant):
    """Conditions that need a version of before are passed; those on aggregates are not left out."""
    reasons, _ = failed(tenant, [*ON_CHANGE, "sum(Total) < 5", "rows = 0"], AFTER, "New")
    assert reasons.keys() == {
        *(text for text, reason in ON_CHANGE.items() if "Rate" in text and reason),
        *("sum(Total) < 5", "rows = 0"),
    }


def test_the_first_failing_rows_are_kept(tenant, monkeypatch):
    """All are counted; of many only some are kept."""
    monkeypatch.setattr(checks, "FAILING_MAX", 2)
    reasons, failing = failed(tenant, ["Total < 0"])
    assert (reasons, len(failing[0])) == ({"Total < 0": "4 of 4 rows"}, 2)


def test_current_rows_of_a_history_count(open_finding, memory):
    """Past rows of a stream with a history take no part."""
    tenant = open_finding(memory)
    rows = pa.table({"Id": ["1"], "v": [-1]})
    tenant.stream("Price").update(rows, key="Id", history="scd2")
    found = []

    def review(effects, difference):
        item = difference.streams["Price"]
        found.extend(
            failed_checks(item, effects.streams["Price"].counts, ["v > 0", "sum(v) = 5", "rows = 1"])
        )
        return effects

    with open_job(replace(tenant.context, review=review, is_dry_run=True), None) as job:
        job.stream("Price").update(pa.table({"Id": ["1"], "v": [5]}), key="Id", history="scd2")
    assert found == []


def test_rows_that_are_flagged_as_deleted_take_no_part(open_finding, memory):
    """Before and after: they are no rows of the stream to its readers."""
    tenant = open_finding(memory)
    tenant.stream("Price").update(
        pa.table({"Id": [1, 2, 3], "v": [-1, 2, 3]}), key="Id", mode="full", deletes="flag"
    )
    found = []

    def review(effects, difference):
        texts = ["v > 0", "sum(v) = 3", "rows = 1", "before.rows = 3", "deleted = 2", "v > 5"]
        found.extend(failed_checks(difference.streams["Price"], effects.streams["Price"].counts, texts))
        return effects

    with open_job(replace(tenant.context, review=review, is_dry_run=True), None) as job:
        job.stream("Price").update(pa.table({"Id": [3], "v": [3]}), mode="full", max_delete_ratio=1.0)
    assert [(one.check, one.reason, one.failing.to_pydict()) for one in found] == [
        ("v > 5", "1 of 1 rows", {"Id": [3], "v": [3]})
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("", "Total >", "sum(Total)", "Total + 1", "deleted", "sum(Total) > 'a'", "sum(Total + 1) > 0"),
        *("rows < 1e999999999", "rows < 1e-999999999", "rows < 1e99999999999999999999"),
        *("rows > Total", "first(Total) > 1", "sum(Total) > 1 AND Total IS NULL", "length(Id) = 2"),
    ],
)
def test_what_is_no_check_is_refused(tenant, text):
    """Before the script is run, and at the check."""
    with pytest.raises(InvalidOption):
        require_checks([text])
    with pytest.raises(InvalidOption):
        failed(tenant, [text])


@pytest.mark.parametrize("text", ["Totals IS NULL", "sum(Totals) > 0", "total > 0"])
def test_an_unknown_column_is_told(tenant, text):
    """The script may have made it, so that only the check knows; what is new has no sum of before."""
    require_checks([text])
    with pytest.raises(MissingColumn):
        failed(tenant, [text])
    wider = AFTER.append_column("New", pa.array([1, 2, 3, 4]))
    assert failed(tenant, ["sum(New) > before.sum(New)"], wider)[0] == {
        "sum(New) > before.sum(New)": "sum(New) = 10, before.sum(New) = null"
    }
