"""Every version's counts are what ``diff`` tells between it and the one before, whatever a job did."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.given import tenant as open_tenant

from freezeframe.identifiers import StreamName
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store.diff.counts import share_no_key
from freezeframe.store.maintenance.restore import RowSelection, restore_rows
from freezeframe.store.model.directory import table_folder
from freezeframe.store.model.receipt import Counts
from freezeframe.store.tenant_log.roll_forward import table_snapshot

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
        columns["w"] = pa.array([row or None for row in rows.values()], pa.int64())
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
            restore_rows(tenant.context, selection)
    elif kind == "retype" and given_[0] in tenant.streams():
        name, column, wanted = given_
        tenant.stream(name).retype(column, wanted)
    elif kind == "drop" and given_[0] in tenant.streams():
        tenant.drop_stream(given_[0])


def update(stream, how, rows):
    if how in ("override", "as text", "no key") or stream.version < 0:
        stream.update(frame(rows, how), key=None if how == "no key" else "Id", override=True)
    elif not stream.key:
        return
    else:
        stream.update(frame(rows, how), key="Id", on_drift="string")


def has_key(tenant, name, version):
    then = tenant.at(version)
    return (
        name in tenant.streams()
        and name in then.streams()
        and tenant.stream(name).key == then.stream(name).key == ("Id",)
    )


def assert_net(tenant):
    """History and diff tell the same of every version but the first, whose rows are all new."""
    for entry in tenant.history():
        told = {name: (one.inserted, one.updated, one.deleted) for name, one in entry.streams.items()}
        if entry.version == 0:
            found = {name: (tenant.at(0).stream(name).count(), 0, 0) for name in tenant.at(0).streams()}
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
    tenant = open_tenant(LocalStorage(tmp_path / "t"), spark_engine)
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
    flagged.update(frame({4: 4}), replace_where="v >= 3")
    past.update(frame({5: 5, 6: 6}), replace_where="v >= 5")
    past.update(frame({1: 7, 5: 5}), key="Id", mode="full", max_delete_ratio=1)
    past.update(frame({2: 2}), key="Id")
    with tenant.job() as job:
        job.stream("Flagged").update(frame({1: 1}), key="Id", mode="full", max_delete_ratio=1)
        job.stream("Flagged").update(frame({2: 5, 8: 8}), key="Id")
        job.stream("Past").update(frame({1: 7}), key="Id", mode="full", max_delete_ratio=1)
        job.stream("Past").update(frame({5: 5, 1: 8}), key="Id")
    flagged.update(frame({1: 1, 9: 9}), key="Id", override=True)
    flagged.update(frame({9: 9}), key="Id", mode="full", deletes="flag", max_delete_ratio=1)
    flagged.update(frame({}), key="Id", override=True)
    past.update(frame({1: 8, 9: 9}), key="Id", override=True, history="none")
    tenant.restore(3)
    tenant.drop_stream("Flagged")
    tenant.drop_stream("Past")
    tenant.restore(0)
    assert_net(tenant)


def test_keys_of_two_updates_are_compared_as_spark_compares_them():
    """A null is a key, zeros of both signs are one, and unknown keys or other types may be shared."""
    one, other = pa.table({"a": [1.5, None, 0.0]}), pa.table({"a": [2.5, float("nan")]})
    assert share_no_key([one, other])
    assert not share_no_key([one, pa.table({"a": [-0.0]})])
    assert not share_no_key([one, pa.table({"a": pa.array([None], pa.float64())})])
    assert not share_no_key([one, None])
    assert not share_no_key([one, pa.table({"a": [7]})])


class Opened(MemoryStorage):
    """Notes which data files are read."""

    def __init__(self):
        super().__init__()
        self.names = []

    def read(self, name, offset=0, length=None):
        self.names += [name] if name.endswith(".parquet") else []
        return super().read(name, offset, length)


def test_updates_of_different_rows_are_counted_without_reading_any(open_finding):
    """Two updates of a stream in one job add up; if they changed the same row, versions are compared."""
    storage = Opened()
    tenant = open_finding(storage, streams={"Lead": frame(dict.fromkeys(range(100), 0))})
    with tenant.job() as job:
        job.stream("Lead").update(frame({1: 1, 2: 2, 100: 0}), key="Id")
        job.stream("Lead").update(frame({3: 3, 4: 0, 101: 0}), key="Id")
        storage.names.clear()
    assert storage.names == []
    with tenant.job() as job:
        job.stream("Lead").update(frame({1: 0, 5: 5}), key="Id")
        job.stream("Lead").update(frame({1: 1, 6: 6}), key="Id")
        storage.names.clear()
    assert storage.names
    told = {entry.version: entry.streams["Lead"] for entry in tenant.history()}
    assert (Counts(2, 3, 1), Counts(0, 2, 0)) == (told[1], told[2])
    assert_net(tenant)


class Noted(LocalStorage):
    """Notes which data files this process opens; Spark and its workers open files by their names."""

    def __init__(self, root):
        super().__init__(root)
        self.names = []

    def local_path(self, name):
        self.names += [name] if name.endswith(".parquet") else []
        return super().local_path(name)

    def read(self, name, offset=0, length=None):
        self.names += [name] if name.endswith(".parquet") else []
        return super().read(name, offset, length)


@pytest.mark.spark
def test_merges_are_counted_without_reading_stored_rows(spark_engine, tmp_path):
    """This process opens no file of the stored rows to count a window, a kept past or a dropped column."""
    storage = Noted(tmp_path / "t")
    tenant = open_tenant(storage, spark_engine, engine="spark")
    stream = tenant.stream("Lead")
    stream.update(frame(dict.fromkeys(range(50), 1), "wider"), key="Id")
    window = {"replace_where": "Id < 2"}
    for options in (window, {"drop_column": "w"}, {"history": "scd2"}):
        files = table_of(tenant, stream.version).files["path"].to_pylist()
        stored = {f"{table_folder(StreamName('Lead'))}/{path}" for path in files}
        storage.names.clear()
        receipt = stream.update(frame({1: 5 + len(options)}), key="Id", **options)
        assert stored.isdisjoint(storage.names), options
        assert receipt.committed or options == {"history": "scd2"}
    assert_net(tenant)


def table_of(tenant, version):
    place = tenant.context
    return table_snapshot(place.log, place.log.current_state(), StreamName("Lead"), version)
