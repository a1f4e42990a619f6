"""What a tenant's logs say that somebody should look at: stale tenants, unusual changes, schema drift."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from tests import given

from freezeframe.service.overview import (
    Overview,
    Overviews,
    StaleTenant,
    StreamOverview,
    TenantFindings,
    rows_by_day,
    stale_tenant,
    unusual_changes,
)
from freezeframe.storage import LocalStorage
from freezeframe.store.model.receipt import Counts
from freezeframe.store.tenant_log.history import HistoryEntry

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def tenant(tmp_path):
    """A tenant that reads and writes without Spark."""
    return given.tenant(LocalStorage(tmp_path))


def synced(*hours_ago, kind="commit", job_id="job"):
    """Entries of syncs so many hours before NOW, the newest first."""
    return tuple(
        HistoryEntry(9 - place, NOW - timedelta(hours=hours), job_id, "", {"Account": Counts()}, kind=kind)
        for place, hours in enumerate(hours_ago)
    )


@pytest.mark.parametrize(
    ("entries", "success", "expected"),
    [
        (synced(49, 73, 97, 121), None, StaleTenant(NOW - timedelta(hours=49), 86_400)),
        (synced(47, 71, 95, 119), None, None),
        (synced(49, 73, 150, 174), None, None),  # of few gaps each counts
        # A pause as long, once in ten gaps, hides no other; weekends are more than that.
        (synced(49, *range(73, 265, 24), 400, 424), None, StaleTenant(NOW - timedelta(hours=49), 86_400)),
        (synced(60, 84, 108, 132, 156, 228, 252, 276, 300, 324, 396), None, None),
        (synced(49, 73, 97), None, None),  # two gaps make nothing usual
        (synced(49, 73, 97, 97.1, 97.15), None, None),  # one sync of three versions
        (synced(49, 73, 97, 121), NOW - timedelta(hours=1), None),  # a job that changed nothing
        (synced(49, 73, 97, 121, kind="restore"), None, None),
        (synced(49, 73, 97, 121, job_id=None), None, None),
        ((), None, None),
    ],
)
def test_a_tenant_is_stale_where_its_last_sync_is_longer_ago_than_usual(entries, success, expected):
    """Longer than twice the median gap and than nine of ten; jobs count, and a success without changes."""
    assert stale_tenant(entries, NOW, success) == expected


def rows(numbers, **columns):
    return pa.table(
        {"Id": list(numbers), **{name: [value] * len(numbers) for name, value in columns.items()}}
    )


def found(tenant, findings=None):
    findings = findings or TenantFindings(Overviews())
    now = datetime.now(UTC)
    return findings.of(tenant, now - timedelta(days=1), now)


def unusual(*changes, rows):
    """What is told of a stream with so many rows now, and versions of kind, inserted and deleted rows."""
    stream = StreamOverview("Account", 0, ("Id",), rows, 0, None)
    entries = tuple(
        HistoryEntry(
            8 - place, NOW, "job", "", {"Account": Counts(inserted=inserted, deleted=deleted)}, kind=kind
        )
        for place, (kind, inserted, deleted) in enumerate(changes)
    )
    found = unusual_changes(Overview(8, NOW, (stream,), 0, 0, None, ()), entries)
    return [(item.kind, item.version, item.rows, item.rows_before) for item in found]


def test_unusual_deletions_and_growth_are_told():
    """A quarter of the rows gone at once, and rows doubled; not the first load or a restoration."""
    load, usual = ("commit", 200, 0), ("commit", 10, 5)
    assert unusual(("commit", 0, 110), ("commit", 10, 0), load, rows=100) == [("deletion", 8, 110, 210)]
    assert unusual(("commit", 200, 0), ("commit", 100, 0), rows=300) == [("growth", 8, 200, 100)]
    assert unusual(("restore", 0, 110), ("commit", 10, 0), load, rows=100) == []
    assert unusual(("commit", 0, 40), usual, load, rows=165) == []  # a fifth
    assert unusual(("commit", 60, 60), ("commit", 0, 25), load, rows=175) == []  # not three times as many
    assert unusual(("commit", 5, 0), ("commit", 0, 8), ("commit", 9, 0), rows=6) == [("deletion", 7, 8, 9)]
    assert unusual(load, rows=200) == []


def test_rows_by_day_follow_from_the_counts_of_versions():
    """Yesterday's rows are today's without what today's versions inserted; none were before the first."""
    overview = Overview(9, NOW, (StreamOverview("Account", 0, ("Id",), 120, 0, None),), 0, 0, None, ())
    counts = ((1, Counts(inserted=30)), (2, Counts(deleted=10)), (13, Counts(updated=5)), (37, Counts(100)))

    def entries(*found):
        return tuple(
            HistoryEntry(9, NOW - timedelta(hours=hours), "job", "", {"Account": item})
            for hours, item in found
        )

    whole = rows_by_day(overview, entries(*counts), NOW)
    cut = rows_by_day(overview, entries(*counts[:2], *[(37, Counts())] * 98), NOW)

    assert (len(whole), whole[-4:], set(whole[:-4])) == (31, (0, 100, 100, 120), {0})
    assert cut == (100, 100, 120)


def test_columns_that_came_went_and_changed_type_are_drift(tenant):
    """Each version that changed columns is told once, also those that come after the first look."""
    account = tenant.stream("Account")
    findings = TenantFindings(Overviews())
    account.update(rows([1], City="Bern", Size=1), "Id")
    account.update(rows([2], City="Basel", Size=2), "Id")
    first = found(tenant, findings).drift
    account.update(rows([3], City="Chur", Size=2, Mail="a"), "Id")
    second = found(tenant, findings).drift
    account.update(rows([4], Size=0.5), "Id", override=True)
    told = found(tenant, findings).drift

    assert first == ()
    assert [(item.version, item.columns.added) for item in second] == [(2, {"Mail": "string"})]
    assert told == found(tenant).drift
    assert [item.version for item in told] == [3, 2]
    assert told[0].columns.dropped == {"City": "string", "Mail": "string"}
    assert told[0].columns.retyped == {"Size": ("long", "double")}


def test_configurations_in_the_clear_are_told(tenant):
    """By their paths; other files are not."""
    tenant.files.write("flow/tenant-config.json", b"{}")
    tenant.files.write("notes.json", b"{}")

    assert found(tenant).unsealed == ("flow/tenant-config.json",)
