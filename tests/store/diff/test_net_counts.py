"""Every version's counts are what ``diff`` tells between it and the one before, whatever a job did."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store import Tenant
from freezeframe.store.versions.row_restore import RowSelection, restore_rows

_STREAMS = st.sampled_from(["Account", "Lead"])
_ROWS = st.dictionaries(st.integers(0, 5), st.integers(0, 2), max_size=4)
_STEP = st.tuples(
    st.sampled_from(["upsert", "upsert", "override", "wider", "as text", "no key"]), _STREAMS, _ROWS
)
_ACTION = st.one_of(
    st.tuples(st.just("job"), st.lists(_STEP, min_size=1, max_size=4)),
    st.tuples(st.just("restore"), st.integers(0, 20)),
    st.tuples(st.just("rows"), _STREAMS, st.integers(0, 20), st.sets(st.integers(0, 5), min_size=1)),
    st.tuples(st.just("drop"), _STREAMS),
    st.tuples(st.just("retype"), _STREAMS, st.sampled_from(["Id", "v"]), st.sampled_from(["string", "long"])),
)


def frame(rows, kind="upsert"):
    columns = {"Id": pa.array(list(rows), pa.int64()), "v": pa.array(list(rows.values()), pa.int64())}
    if kind == "wider":
        columns["w"] = pa.array([one or None for one in rows.values()], pa.int64())
    if kind == "as text":
        columns["v"] = columns["v"].cast(pa.string())
    return pa.table(columns)


def carry_out(tenant, action):
    """One action on the tenant; what cannot be done on its present state is left out."""
    kind, *given_ = action
    if kind == "job":
        with tenant.job() as job:
            for how, name, rows in given_[0]:
                update(job.stream(name), how, rows)
    elif kind == "restore" and tenant.version >= 0:
        tenant.restore(given_[0] % (tenant.version + 1))
    elif kind == "rows":
        name, version, keys = given_
        if tenant.version >= 0 and has_key(tenant, name, version % (tenant.version + 1)):
            kept = tenant.stream(name).read(columns=["Id"], as_="arrow").schema.field("Id").type
            wanted = pa.table({"Id": pa.array(sorted(keys), pa.int64()).cast(kept)})
            selection = RowSelection(StreamName(name), version % (tenant.version + 1), wanted)
            restore_rows(tenant.place, selection)
    elif kind == "retype" and given_[0] in tenant.streams():
        name, column, wanted = given_
        tenant.stream(name).retype(column, wanted)
    elif kind == "drop" and given_[0] in tenant.streams():
        tenant.drop_stream(given_[0])


def update(stream, how, rows):
    if how in ("override", "as text", "no key") or stream.version() < 0:
        stream.update(frame(rows, how), key=None if how == "no key" else "Id", override=True)
    elif not stream.key():
        return
    else:
        stream.update(frame(rows, how), key="Id", on_drift="string")


def has_key(tenant, name, version):
    then = tenant.at(version)
    return (
        name in tenant.streams()
        and name in then.streams()
        and tenant.stream(name).key() == then.stream(name).key() == ("Id",)
    )


def assert_net(tenant):
    """History and diff tell the same of every version but the first, whose rows are all new."""
    for entry in tenant.history():
        told = {name: (one.inserted, one.updated, one.deleted) for name, one in entry.streams.items()}
        if entry.version == 0:
            found = {name: (tenant.at(0).stream(name).row_count(), 0, 0) for name in tenant.at(0).streams()}
        else:
            streams = tenant.diff(entry.version - 1, entry.version).streams.items()
            counts = {name: one.counts for name, one in streams}
            found = {name: (one.inserted, one.updated, one.deleted) for name, one in counts.items()}
        changed = {name: one for name, one in told.items() if name in found or any(one)}
        assert found == changed, (entry.version, entry.message)


@settings(
    max_examples=examples(40), phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck)
)
@given(actions=st.lists(_ACTION, min_size=2, max_size=7))
def test_history_counts_what_diff_counts(open_finding, actions):
    """For random jobs, restores of all and of rows, and drops: history says what diff says."""
    tenant = open_finding(MemoryStorage())
    for action in actions:
        carry_out(tenant, action)
    assert_net(tenant)


@pytest.mark.spark
def test_merges_count_what_diff_counts(spark_engine, tmp_path):
    """Windows, dropped columns, full extracts, flags and kept pasts count as diff does."""
    tenant = Tenant(LocalStorage(tmp_path / "t"), spark_engine, Settings())
    plain, flagged, past = (tenant.stream(name) for name in ("Plain", "Flagged", "Past"))
    wide = pa.table({"Id": [1, 2, 3], "v": [1, 2, 3], "w": [5, None, 6]})
    with tenant.job() as job:
        job.stream("Plain").update(wide, key="Id")
        job.stream("Flagged").update(wide, key="Id", mode="full", deletes="flag", max_delete_ratio=1)
        job.stream("Past").update(wide, key="Id", history="scd2")
    plain.update(frame({1: 1, 4: 4}), key="Id", drop_column="w")
    plain.update(frame({2: 9, 7: 7}), replace_where="v >= 2")
    plain.update(frame({2: 9}), key="Id", mode="full", max_delete_ratio=1)
    flagged.update(frame({1: 1, 2: 5}), key="Id", mode="full", max_delete_ratio=1)
    flagged.update(frame({3: 3}), key="Id")
    past.update(frame({1: 7, 5: 5}), key="Id", mode="full", max_delete_ratio=1)
    past.update(frame({2: 2}), key="Id")
    with tenant.job() as job:
        job.stream("Flagged").update(frame({1: 1}), key="Id", mode="full", max_delete_ratio=1)
        job.stream("Flagged").update(frame({2: 5, 8: 8}), key="Id")
        job.stream("Past").update(frame({1: 7}), key="Id", mode="full", max_delete_ratio=1)
        job.stream("Past").update(frame({5: 5, 1: 8}), key="Id")
    tenant.restore(3)
    tenant.drop_stream("Flagged")
    tenant.drop_stream("Past")
    tenant.restore(0)
    assert_net(tenant)
