"""Which version is meant: one number for the tenant and its streams, a tag, or a moment."""

from datetime import timedelta

import pytest
from tests.given import table

from freezeframe.errors import InvalidOption, StreamNotFound, VersionNotFound


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
    with pytest.raises(InvalidOption, match=r"'yesterday' is not a version, tag or moment.*go-live"):
        tenant.restore("yesterday")
    first = next(iter(tenant.history(1, until=0))).timestamp
    with pytest.raises(VersionNotFound):
        tenant.at(first - timedelta(seconds=1))
    assert tenant.version == 4


def test_a_clone_has_versions_of_its_own(tmp_path):
    """Its tables are older than its log; the version that made them is its first."""
    from freezeframe.script import tenants

    store = tenants.open(str(tmp_path / "store"))
    store.tenant("acme", create=True).stream("Account").update(table(1), key="Id")
    store.tenant("acme").stream("Account").update(table(1, 2), key="Id")

    clone = store.clone_tenant("acme", "copy")

    assert clone.stream("Account").version == clone.version
