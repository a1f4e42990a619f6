"""Which version is meant: one number for the tenant and its streams, a tag, a moment; which are listed."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.given import fails, table

from freezeframe.errors import InvalidOption, StreamNotFound, VersionNotFound
from freezeframe.store.model.receipt import Counts
from freezeframe.store.tenant_log.history import History, HistoryEntry


@pytest.fixture
def tenant(open_finding, memory):
    """Account changes at versions 0 and 2, Lead at 1 and 3; version 1 has a tag, which is version 4."""
    tenant = open_finding(memory, streams={"Account": table(1)})
    tenant.stream("Lead").update(table(5), key="Id")
    tenant.stream("Account").update(table(2), key="Id")
    tenant.stream("Lead").update(table(6), key="Id")
    tenant.tag("go-live", 1)
    return tenant


def ids(frame):
    return frame["v"].to_pylist()


def test_a_version_is_the_tenants_and_a_streams_own_has_its_name(tenant):
    """``version`` counts the tenant's commits, ``stream_version`` those that changed the stream."""
    lead = tenant.stream("Lead")

    assert (lead.version, lead.stream_version) == (3, 1)
    assert (tenant.stream("Account").version, tenant.stream("Account").stream_version) == (2, 1)
    assert ids(lead.read(version=2, as_="arrow")) == [5]
    assert ids(lead.read(stream_version=0, as_="arrow")) == [5]
    assert ids(lead.read(tenant_version=1, as_="arrow")) == [5]
    assert (lead.count(1), lead.count(stream_version=0)) == (1, 1)
    assert lead.read_batches(version=1).read_all()["v"].to_pylist() == [5]
    assert lead.snapshot(version=2).version == 0
    assert tenant.streams(version=0) == ("Account",)
    with pytest.raises(VersionNotFound):
        tenant.streams(version=5)
    with pytest.raises(StreamNotFound):
        lead.read(version=0)
    with pytest.raises(VersionNotFound):
        lead.read(stream_version=2)


def test_only_one_version_is_named(tenant):
    """Two ways to name a version at once are refused, even where they agree."""
    for item in ({"as_of": "2026-01-01"}, {"stream_version": 0}, {"tenant_version": 1}):
        with pytest.raises(InvalidOption, match=f"version and {next(iter(item))}"):
            tenant.stream("Lead").read(version=1, **item)


def test_changes_lie_between_versions_of_the_tenant(tenant):
    lead = tenant.stream("Lead")

    assert ids(lead.changes(since=1, as_="arrow")) == [6]
    assert ids(lead.changes(since=0, until="go-live", as_="arrow")) == [5]
    assert ids(lead.changes(as_="arrow")) == [5, 6]


def test_a_receipt_has_both_versions(tenant):
    receipt = tenant.stream("Lead").update(table(7), key="Id")

    assert (receipt.version, receipt.stream_version) == (5, 2)
    assert ids(receipt.changed_rows("arrow")) == [7]
    with tenant.job() as job:
        inner = job.stream("Lead").update(table(8), key="Id")
        assert (inner.version, inner.stream_version) == (6, 3)
        assert (job.stream("Lead").version, job.stream("Account").version) == (6, 2)
        assert ids(job.stream("Lead").read(version=5, as_="arrow")) == [5, 6, 7]
    told = job.receipt.streams["Lead"].to_json()
    assert (told["tenant_version"], told["stream_version"]) == (6, 3)


def test_a_version_may_be_a_tag_or_a_moment(tenant):
    moment = next(iter(tenant.history(1, until=2))).timestamp

    assert (
        tenant.at("go-live").version,
        tenant.at(moment).version,
        tenant.at(moment.isoformat()).version,
    ) == (1, 2, 2)
    assert set(tenant.diff("go-live", 4).streams) == {"Account", "Lead"}
    assert set(tenant.diff(moment).streams) == {"Lead"}
    assert ids(tenant.stream("Lead").read(version="go-live", as_="arrow")) == [5]
    assert tenant.restore("go-live").version == 1
    assert (ids(tenant.stream("Lead").read(as_="arrow")), next(iter(tenant.history(1))).restored) == ([5], 1)


def test_what_is_neither_is_told(tenant):
    """The error names the tags; a moment before the first version is not a version."""
    with fails(InvalidOption, "'yesterday' is not a version, tag", cause="'go-live'", remedy="such as 2026"):
        tenant.restore("yesterday")
    tenant.untag("go-live")
    with fails(InvalidOption, cause="The tenant has no tags."):
        tenant.restore("yesterday")
    first = next(iter(tenant.history(1, until=0))).timestamp
    with pytest.raises(VersionNotFound):
        tenant.at(first - timedelta(seconds=1))
    assert tenant.version == 5


def test_a_clone_has_versions_of_its_own(tmp_path):
    """Its tables are older than its log; the version that made them is its first."""
    from freezeframe.script import tenants

    store = tenants.open(str(tmp_path / "store"))
    store.tenant("acme", create=True).stream("Account").update(table(1), key="Id")
    store.tenant("acme").stream("Account").update(table(1, 2), key="Id")

    clone = store.clone_tenant("acme", "copy")

    assert clone.stream("Account").version == clone.version


@pytest.mark.parametrize(
    ("asked", "found", "read"),
    [
        (0, 9, 1),
        (2, 7, 3),
        (-1, 0, 10),
        (slice(1, 3), [8, 7], 3),
        (slice(2), [9, 8], 2),
        (slice(7, None), [2, 1, 0], 10),
        (slice(-2, None), [1, 0], 10),
        (slice(0, -8), [9, 8], 10),
        (slice(None, None, -4), [0, 4, 8], 10),
    ],
)
def test_versions_are_read_when_they_are_reached(asked, found, read):
    """An index or a slice reads up to its end; what counts from the last version reads all of them."""
    ahead = iter(
        [
            HistoryEntry(version, datetime(2026, 1, 1, tzinfo=UTC), None, "", {})
            for version in range(9, -1, -1)
        ]
    )
    history = History(ahead)
    got = history[asked]

    assert ([entry.version for entry in got] if isinstance(got, list) else got.version) == found
    assert len(list(ahead)) == 10 - read


@pytest.mark.parametrize(
    ("limit", "options", "versions"),
    [
        (None, {}, [7, 6, 5, 4, 3, 2, 1, 0]),
        (2, {}, [7, 6]),
        (0, {}, []),
        (None, {"until": 2}, [2, 1, 0]),
        (None, {"until": 99}, [7, 6, 5, 4, 3, 2, 1, 0]),
        (None, {"stream": "Account"}, [2, 0]),
        (1, {"stream": "Lead", "until": 4}, [3]),
        (None, {"path": "a.txt"}, [7, 5]),
        (None, {"job_id": "j"}, [6]),
    ],
)
def test_versions_are_listed_by_what_they_changed(tenant, limit, options, versions):
    """The newest come first; a limit counts those that are listed."""
    tenant.files.write_text("a.txt", "a")
    with tenant.job("j") as job:
        job.stream("Lead").update(table(9), key="Id")
    tenant.files.delete("a.txt")

    found = list(tenant.history(limit, **options))
    assert versions == [entry.version for entry in found]
    told = {entry.version: entry for entry in tenant.history()}
    assert [(), ("go-live",)] == [told[version].tags for version in (0, 1)]
    assert (("a.txt",), (), ()) == (told[5].files_written, told[5].files_deleted, told[7].files_written)
    assert told[7].files_deleted == ("a.txt",)
    assert ("j", "commit", {"Lead": Counts(inserted=1)}) == (told[6].job_id, told[6].kind, told[6].streams)
    with fails(InvalidOption, "limit cannot be -1", remedy="a whole number"):
        tenant.history(-1)
