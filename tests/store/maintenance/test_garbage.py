"""What gc deletes and what it leaves: listed is restorable, and what may be needed stays."""

import json
import shutil
import time
from functools import cache

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests import given
from tests.given import content, table

from freezeframe.clock import another_clock, now_ms
from freezeframe.errors import CorruptLog, InvalidOption, JobRevoked, VersionNotFound
from freezeframe.log import DeltaLog
from freezeframe.log.primitives.listing import complete_checkpoints, list_log, sort_listing
from freezeframe.log.segments.hint import read_hint
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import WRITES, Crash, Fault, FaultyStorage, Way
from freezeframe.store.job import find_committed_job
from freezeframe.store.maintenance import garbage
from freezeframe.store.maintenance.verification import verify_tenant
from freezeframe.store.model.directory import INPUTS_FOLDER, STAGING_FOLDER
from freezeframe.store.model.directory import TENANT_LOG_FOLDER as ENTRIES
from freezeframe.store.model.update_options import RequestContext
from freezeframe.store.tenant import with_request
from freezeframe.store.tenant_log import roll_forward

NOW = {"gc_grace_seconds": 0, "lease_dead_seconds": 0}


def data(storage):
    names = [status.name for status in storage.list_below("")]
    return sorted(name for name in names if "_delta_log/" not in name and "/log/" not in name)


def with_versions(tenant, count=6):
    for number in range(count):
        with tenant.job() as job:
            job.stream("A").update(table(number), override=True, key="Id")
            job.files.write("f", str(number).encode())
    return [content(tenant.at(version)) for version in range(count)]


def test_a_new_tenant_keeps_so_many_versions(open_finding, memory):
    """As the setting says, written down with its first version: another setting later changes nothing."""
    tenant = open_finding(memory, keep_versions=3, **NOW)
    past = with_versions(tenant)
    later = open_finding(memory, keep_versions=1, **NOW)

    assert (3, None) == (later.retention().keep_versions, later.retention().keep_days)
    assert 3 == later.gc().versions_expired
    assert past[3:] == [content(later.at(version)) for version in (3, 4, 5)]


def test_a_tenants_own_retention_is_left_alone(open_finding):
    """Whether it was its first change, or took the limit off; nor does an older tenant get one."""
    first, freed, older = MemoryStorage(), MemoryStorage(), MemoryStorage()
    open_finding(first).set_retention(keep_days=2)
    with_versions(open_finding(freed), 1)
    open_finding(freed).set_retention()
    with_versions(open_finding(older, keep_versions=0), 1)
    with_versions(open_finding(older), 1)
    found = [open_finding(item).retention() for item in (first, freed, older)]

    assert [(None, 2), (None, None), (None, None)] == [(item.keep_versions, item.keep_days) for item in found]
    assert 1000 == Settings().keep_versions


def test_without_a_policy_everything_is_kept(open_finding, memory):
    tenant = open_finding(memory, keep_versions=0, **NOW)
    past, before = with_versions(tenant, 2), data(memory)

    assert (tenant.gc().files, tenant.gc(dry_run=True).files) == (0, 0)
    assert (before, past) == (data(memory), [content(tenant.at(item)) for item in range(2)])


def test_the_policy_decides_what_goes(open_finding, memory):
    """Versions beyond it are not listed, their files go; tagged ones and the rest stay restorable."""
    tenant = open_finding(memory, **NOW)
    past = with_versions(tenant)
    tenant.tag("year end", 1)
    tenant.set_retention(keep_versions=3)
    assert tenant.retention().keep_versions == 3

    told = tenant.gc(dry_run=True)
    assert tenant.version == 7
    done = tenant.gc()

    plain = {"dry_run": False, "files": 4, "versions_expired": 3, "floor": 3, "revoked": []}
    assert json.loads(json.dumps(done.to_json())) == {**plain, "bytes": done.bytes}
    assert (told.names, told.bytes, told.floor) == (done.names, done.bytes, done.floor)
    assert (done.files, done.floor) == (4, 3)  # a data file and a blob each of versions 0 and 2
    listed = [entry.version for entry in tenant.history()]
    assert listed == [8, 7, 6, 5, 4, 3, 1]
    for version in (1, 3, 4, 5):
        assert past[version] == content(tenant.at(version))
    for version in (0, 2):
        with pytest.raises(VersionNotFound):
            tenant.at(version)
        with pytest.raises(VersionNotFound):
            tenant.restore(version)
    tenant.restore(1)
    assert past[1] == content(tenant)
    assert (tenant.gc().files, tenant.gc().files) == (2, 0)  # version 3 is beyond the three newest now


def test_days_count_as_well(open_finding, memory):
    """What is younger is kept; a limit of no days keeps the newest version."""
    tenant = open_finding(memory, **NOW)
    past = with_versions(tenant, 3)
    tenant.set_retention(keep_days=1)
    assert tenant.gc().files == 0
    tenant.set_retention(keep_days=0, keep_versions=2)
    assert tenant.gc(dry_run=True).floor == 1
    tenant.set_retention(keep_days=0)
    assert tenant.gc().files == 4

    assert past[2] == content(tenant)
    floor = tenant.gc().floor
    tenant.set_retention(keep_days=1)  # what is gone does not come back
    assert (floor, ()) == (tenant.gc(dry_run=True).floor, tenant.gc(dry_run=True).names)
    for wrong in ({"keep_versions": 0}, {"keep_days": -1}, {"keep_versions": "x"}):
        with pytest.raises(InvalidOption):
            tenant.set_retention(**wrong)


def test_a_grace_period_lies_between(open_finding, memory):
    """First off the history, then, by a later call, off the disk: who reads meanwhile is not cut off."""
    tenant = open_finding(memory, gc_grace_seconds=3600)
    past = with_versions(tenant, 3)
    reader = tenant.at(0)
    tenant.set_retention(keep_versions=1)

    assert tenant.gc().files == 0
    assert past[0] == content(reader)
    with pytest.raises(VersionNotFound):
        tenant.at(0)
    assert 4 <= open_finding(memory, **NOW).gc().files


def test_gc_after_each_commit_deletes_as_well(open_finding, memory):
    """Called more often than the grace period is long, it still deletes what is older than that."""
    tenant = open_finding(memory, gc_grace_seconds=3600)
    tenant.set_retention(keep_versions=1)
    started = now_ms()
    for number in range(24):
        with another_clock(lambda minutes=10 * number: started + minutes * 60_000):
            tenant.stream("A").update(table(number), override=True, key="Id")
            tenant.gc()
    assert len(data(memory)) <= 16


@pytest.fixture
def looks_often(monkeypatch):
    """After every fourth version a tenant is looked through for what the retention lets go."""
    monkeypatch.setattr(garbage, "_COMMITS", 4)


def _updated(tenant, count):
    for number in range(count):
        tenant.stream("A").update(table(number), override=True, key="Id")


def test_a_policy_is_carried_out_without_gc(open_finding, memory, looks_often):
    """Small syncs leave as many files as the policy and a bounded number of commits explain."""
    tenant = open_finding(memory, gc_grace_seconds=0)
    tenant.set_retention(keep_versions=2)
    _updated(tenant, 14)

    assert len(data(memory)) <= 2 * 4 + 3
    listed = [entry.version for entry in tenant.history()]
    assert tenant.version - min(listed) <= 4 + 2
    assert content(tenant.at(min(listed)))


def test_requests_of_the_service_carry_out_a_policy_without_waiting(open_finding, memory, looks_often):
    """A thread does it behind them, as no request and no job, in tenants that nothing else changes."""
    tenant = open_finding(memory, gc_grace_seconds=0)
    tenant.set_retention(keep_versions=2)
    for number in range(14):
        request = RequestContext(f"request-{number}", f"job-{number}")
        with_request(tenant, request).files.write("f", str(number).encode())
        garbage._behind.submit(int).result()

    assert len(data(memory)) <= 2 * 4 + 3
    changed = [entry for entry in tenant.history() if entry.message == "gc"]
    assert [(entry.job_id, entry.request_id) for entry in changed[:1]] == [(None, "")]
    assert tenant.files.read("f") == b"13"


def test_a_policy_without_a_grace_period_asks_no_clock(open_finding, memory, looks_often):
    """Entries are a millisecond apart, so the log's times run ahead of a clock that was put back."""
    started = now_ms()
    with another_clock(lambda: started):
        tenant = open_finding(memory, gc_grace_seconds=0)
        tenant.set_retention(keep_versions=2)
        _updated(tenant, 14)
        assert len(data(memory)) <= 2 * 4 + 3

    with another_clock(lambda: started - 60_000):
        assert 2 <= tenant.gc().files
        assert 0 == tenant.gc().files


@pytest.mark.parametrize("why", ["a setting", "no policy", "a young floor", "many files"])
def test_what_keeps_a_policy_from_being_carried_out(open_finding, memory, monkeypatch, looks_often, why):
    """Nothing goes that nobody asked to let go, nor where to look for it is no bounded work."""
    if why == "many files":
        monkeypatch.setattr(garbage, "_FILES_MAX", 5)
    grace = 3600 if why == "a young floor" else 0
    tenant = open_finding(memory, gc_grace_seconds=grace, gc_automatic=why != "a setting")
    if why != "no policy":
        _updated(tenant, 2)
        tenant.set_retention(keep_versions=1)
    if why == "a young floor":
        tenant.gc()
    _updated(tenant, 12)

    assert len(data(memory)) >= 12


def test_kept_inputs_of_jobs_do_not_count_as_files(open_finding, memory, monkeypatch, looks_often):
    """There may be more of them than of all other files, and the policy is carried out."""
    monkeypatch.setattr(garbage, "_FILES_MAX", 60)
    for number in range(60):
        memory.put_if_absent(f"{INPUTS_FOLDER}/{0:020d}-99990101/{number}", b"")
    tenant = open_finding(memory, gc_grace_seconds=0)
    tenant.set_retention(keep_versions=1)
    _updated(tenant, 12)

    assert len(data(memory)) < 60 + 12


def test_a_commit_outlives_what_fails_after_it(open_finding, caplog, looks_often):
    """A file that cannot be deleted is a warning; the version is there, and the next look deletes it."""

    def updated(plan):
        storage = FaultyStorage(MemoryStorage(), plan)
        tenant = open_finding(storage, gc_grace_seconds=0)
        tenant.set_retention(keep_versions=1)
        _updated(tenant, 10)
        return tenant, storage

    _, without = updated([])
    deletes = [call.name for call in without.calls if call.verb == "delete"]
    first = next(number for number, name in enumerate(deletes) if name.endswith(".parquet"))
    tenant, storage = updated([Fault(first, Way.FAIL_BEFORE, "delete")])

    assert [record.message for record in caplog.records if record.name == garbage.__name__] == [
        "Versions that the retention lets go could not be deleted."
    ]
    assert tenant.stream("A").read(as_="arrow")["v"].to_pylist() == [9]
    _updated(tenant, 8)
    assert len(data(storage)) <= 2 * 4 + 3


OFTEN = {**NOW, "checkpoint_interval": 4}
"""Logs are made shorter at checkpoints, which come often here."""


@cache
def _of_18_updates():
    tenant = given.tenant(**OFTEN)
    _updated(tenant, 18)
    return tenant.context.storage


@pytest.fixture
def updated_often():
    """The storage of a tenant with 18 updates."""
    return _of_18_updates().copy()


def shortened(open_finding, storage, keep):
    """A tenant of 18 updates of which so many are kept, and its logs begin later."""
    tenant = open_finding(storage, **OFTEN)
    tenant.set_retention(keep_versions=keep)
    tenant.gc()
    return tenant


def test_logs_begin_at_the_checkpoint_below_the_oldest_listed_version(open_finding, updated_often):
    """Commits, checkpoints and entries below it go; what is listed is read and verified, by others too."""
    tenant = open_finding(updated_often, **OFTEN)
    other = open_finding(updated_often)
    stale = other.at(15)
    past = [content(tenant.at(version)) for version in range(15, 18)]
    tenant.set_retention(keep_versions=4)
    told = tenant.gc(dry_run=True)
    done = tenant.gc()

    assert (told.names, done.floor) == (done.names, 14)
    assert _numbers(updated_often, ".checkpoint.parquet") == [12, 16]
    assert list(range(12, 18)) == _numbers(updated_often, ".json")
    assert list(range(12, 20)) == _numbers(updated_often, ".json", ENTRIES)
    for reader in (tenant, other, open_finding(updated_often)):
        assert past == [content(reader.at(version)) for version in range(15, 18)]
    assert (past[0], len(list(other.history()))) == (content(stale), 6)
    assert verify_tenant(updated_often, Settings()).findings == ()
    tenant.stream("A").update(table(99))
    other.stream("A").update(table(98))
    assert {98, 99} <= set(content(open_finding(updated_often))[0]["A"])
    assert tenant.gc().files > 0
    assert verify_tenant(updated_often, Settings()).findings == ()


def test_a_hint_names_a_checkpoint_that_is_there(open_finding, updated_often):
    """Also where a writer died at any of its writes, such as between a checkpoint and its hint."""
    _updated(open_finding(updated_often, **OFTEN), 2)
    counting = FaultyStorage(updated_often.copy())
    _updated(open_finding(counting, **OFTEN), 1)
    writes = [number for number, call in enumerate(counting.calls) if call.verb in WRITES]
    for number in writes:
        inner = updated_often.copy()
        with pytest.raises(Crash):
            _updated(open_finding(FaultyStorage(inner, [Fault(number, Way.CUT_BEFORE)]), **OFTEN), 1)
        tenant = open_finding(inner, **OFTEN)
        _updated(tenant, 2)
        tenant.set_retention(keep_versions=1)
        tenant.gc()

        for folder in ("A.snapshot/_delta_log", ENTRIES):
            kept = complete_checkpoints(sort_listing(list_log(inner, folder)).checkpoint_files)
            versions = [checkpoint.version for checkpoint in kept]
            assert read_hint(inner, folder)[0].version in versions, (folder, counting.calls[number])
        assert verify_tenant(inner, Settings()).findings == ()


def test_a_checkpoint_names_no_files_that_nobody_can_need(open_finding, updated_often):
    """Removed ones were listed for ever, so that each checkpoint was larger than the one before."""
    tenant = shortened(open_finding, updated_often, keep=4)
    _updated(tenant, 3)

    snapshot = DeltaLog(updated_often, "A.snapshot").current_snapshot
    assert (snapshot.segment.checkpoint_version, snapshot.tombstones.num_rows) == (20, 6)
    assert content(open_finding(updated_often).at(19))


def test_what_was_before_the_oldest_version_is_told_so(open_finding, memory):
    """A moment before it, its number, and the version of a stream's last change."""
    tenant = open_finding(memory, **OFTEN, streams={"Old": table(1)})
    first = next(iter(tenant.history())).timestamp
    _updated(tenant, 10)
    tenant.set_retention(keep_versions=5)
    tenant.gc()

    with pytest.raises(VersionNotFound, match="no longer kept"):
        tenant.at(1)
    with pytest.raises(VersionNotFound, match="before version 6, the oldest that is kept"):
        tenant.at(first)
    assert (tenant.stream("Old").version, content(tenant)[0]["Old"]) == (6, [1])
    assert tenant.stream("Old").update(table(2)).stream_version == 1


def test_entries_of_jobs_stay_as_long_as_their_ids(open_finding, memory):
    """A job that is run again has its receipt; its entry goes when its id is forgotten."""
    tenant = open_finding(memory, **OFTEN)
    _updated(tenant, 3)
    with tenant.job("sync-1") as job:
        job.stream("A").update(table(7))
    receipt = job.receipt
    _updated(tenant, 14)
    tenant.set_retention(keep_versions=5)
    tenant.gc()

    assert list(range(3, 20)) == _numbers(memory, ".json", ENTRIES)
    assert 12 <= _numbers(memory, ".json")[0]
    again = open_finding(memory, **OFTEN)
    with again.job("sync-1") as job:
        job.stream("A").update(table(7))
    assert (job.receipt.repeated, job.receipt.tenant_version) == (True, receipt.tenant_version)
    with another_clock(lambda: time.time_ns() // 1_000_000 + 31 * 86_400_000):
        _updated(again, 8)
        again.gc()
        assert find_committed_job(again.context, "sync-1") is None
        assert find_committed_job(tenant.context, "sync-1") is None
    assert 16 <= _numbers(memory, ".json", ENTRIES)[0]


def test_a_table_of_the_same_name_that_was_taken_in_since(open_finding, tmp_path):
    """Its versions are lower than those of the one before, which listed versions had."""
    storage = LocalStorage(tmp_path)
    tenant = open_finding(storage, **NOW)
    _updated(tenant, 14)
    tenant.stream("A").release()
    shutil.rmtree(tmp_path / "A.snapshot")
    for number in range(6):
        rows = pa.table({"Id": [str(number)], "v": [number]})
        write_deltalake(tmp_path / "A.snapshot", rows, mode="append")
    DeltaTable(tmp_path / "A.snapshot").create_checkpoint()
    tenant.adopt("A", key="Id")
    tenant.set_retention(keep_versions=5)

    assert tenant.gc().floor > 0
    assert content(open_finding(storage))[0] == {"A": list(range(6))}


def test_a_tag_keeps_what_follows_it(open_finding, updated_often):
    tenant = open_finding(updated_often, **OFTEN)
    past = content(tenant.at(5))
    tenant.tag("year end", 5)
    tenant.set_retention(keep_versions=5)
    tenant.gc()

    assert (_numbers(updated_often, ".json")[0], _numbers(updated_often, ".json", ENTRIES)[0]) == (4, 4)
    assert past == content(open_finding(updated_often).at("year end"))
    tenant.untag("year end")
    tenant.gc()
    assert verify_tenant(updated_often, Settings()).findings == ()


def test_a_floor_that_another_call_raised_is_left_alone(open_finding, memory):
    tenant, other = open_finding(memory, **NOW), open_finding(memory, **NOW)
    _updated(tenant, 8)
    tenant.set_retention(keep_versions=6)
    state = tenant.context.log.current_state()
    other.set_retention(keep_versions=3)
    assert 5 == other.gc().floor

    assert not garbage._condemn(tenant.context, state, 3, ())
    assert 5 == tenant.context.log.current_state().floor


def test_a_call_with_a_longer_grace_period_comes_after_one_with_none(open_finding, updated_often):
    """It finds the logs begun later than it would have them, and goes on from there."""
    shortened(open_finding, updated_often, keep=4)
    patient = open_finding(updated_often, gc_grace_seconds=3600)
    _updated(patient, 5)

    assert 0 == patient.gc().files
    assert verify_tenant(updated_often, Settings()).findings == ()


def test_logs_begin_later_than_an_erasure_as_well(open_finding, memory):
    """gc goes on with an erasure that was cut off, and not with one that is done."""
    tenant = open_finding(memory, **OFTEN)
    _updated(tenant, 5)
    tenant.erase("A", ["4"])
    _updated(tenant, 12)
    tenant.set_retention(keep_versions=3)

    assert (tenant.gc().floor, tenant.gc().files) == (15, 0)
    assert 12 == _numbers(memory, ".json", ENTRIES)[0]
    _updated(tenant, 3)
    assert tenant.gc().files > 0
    assert verify_tenant(memory, Settings()).findings == ()


def test_an_erasure_that_was_cut_off_has_the_log_to_go_on_by(open_finding, looks_often):
    """Jobs carry out a retention meanwhile, but what it needs to find its remains they leave to gc."""

    def erased(memory, *plan):
        storage = FaultyStorage(memory, plan)
        tenant = open_finding(storage, gc_grace_seconds=0, checkpoint_interval=4)
        tenant.set_retention(keep_versions=2)
        _updated(tenant, 2)
        tenant.erase("A", ["1"])
        return [call.name for call in storage.calls if call.verb == "delete"]

    deletes = erased(MemoryStorage())
    first = next(number for number, name in enumerate(deletes) if "_delta_log" in name)
    memory = MemoryStorage()
    with pytest.raises(Crash):
        erased(memory, Fault(first, Way.CUT_BEFORE, "delete"))
    again = open_finding(memory, gc_grace_seconds=0, checkpoint_interval=4)
    _updated(again, 14)

    assert 0 == _numbers(memory, ".json", ENTRIES)[0]
    again.gc()
    assert 3 < _numbers(memory, ".json", ENTRIES)[0]
    assert verify_tenant(memory, Settings()).findings == ()


def test_a_lost_checkpoint_below_the_oldest_version_is_damage(open_finding, updated_often):
    """Nothing else has what was before it: verification names it, and gc deletes nothing."""
    shortened(open_finding, updated_often, keep=4)
    names = [item.name for item in updated_often.list_below(ENTRIES)]
    (name,) = (name for name in names if f"{12:020d}.checkpoint" in name)
    updated_often.delete(f"{ENTRIES}/{name}")

    again = open_finding(updated_often, **NOW)
    assert [ENTRIES] == [finding.file for finding in verify_tenant(updated_often, Settings()).findings]
    with pytest.raises(CorruptLog):
        again.gc()
    assert len(content(again)[0]["A"]) == 1


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(("gone", "keep"), [(0, None), (5, None), (10, 5)])
def test_a_lost_entry_of_a_kept_version_is_damage(open_finding, memory, gone, keep, dry_run):
    """gc reports a corrupt log, not an unknown version, and deletes nothing."""
    tenant = open_finding(memory, keep_versions=0, **NOW)
    for number in range(12):
        tenant.files.write("f", str(number).encode())
    tenant.set_retention(keep_versions=keep)
    memory.delete(f"{ENTRIES}/{gone:020d}.json")
    before = data(memory)

    with pytest.raises(CorruptLog):
        open_finding(memory, keep_versions=0, **NOW).gc(dry_run=dry_run)
    assert before == data(memory)


def _numbers(storage, end, folder="A.snapshot/_delta_log"):
    names = (file.name.rpartition("/")[2].partition(".") for file in storage.list_below(folder))
    return sorted(int(number) for number, dot, rest in names if f"{dot}{rest}" == end)


def test_a_job_under_way_keeps_its_files(open_finding, memory):
    tenant = open_finding(memory, gc_grace_seconds=0)
    with_versions(tenant, 1)
    with tenant.job() as job:
        job.stream("New").update(table(1), key="Id")
        job.files.write("g", b"g")
        assert (tenant.gc().files, tenant.gc().revoked) == (0, ())

    assert content(tenant) == ({"A": [0], "New": [1]}, {"f": b"0", "g": b"g"})


@pytest.mark.parametrize("place", ["memory", "local"])
def test_a_dead_job_is_revoked_and_then_removed(open_finding, request, place):
    storage = request.getfixturevalue(place)
    tenant = open_finding(storage)
    with_versions(tenant, 1)
    before = data(storage)

    with pytest.raises(JobRevoked), tenant.job() as job:  # noqa: PT012 - the end of the block raises
        job.stream("New").update(table(1), key="Id")
        job.files.write("g", b"g")
        found = open_finding(storage, **NOW).gc()
        assert (len(found.revoked), found.files) == (1, 2)
        assert before == data(storage)

    assert content(tenant) == ({"A": [0]}, {"f": b"0"})
    assert tenant.history()[0].kind == "revoke"


def test_files_of_a_revoked_job_stay_for_the_grace_period(open_finding, memory):
    """Somebody may be reading them; the call that revokes it and those that follow leave them alone."""
    tenant = open_finding(memory)
    with_versions(tenant, 1)
    with pytest.raises(JobRevoked), tenant.job() as job:  # noqa: PT012 - the end of the block raises
        job.stream("New").update(table(1), key="Id")
        staged = data(memory)
        collect = open_finding(memory, lease_dead_seconds=0, gc_grace_seconds=3_600).gc
        assert [(1, 0), (0, 0)] == [(len(found.revoked), found.files) for found in (collect(), collect())]
        assert staged == data(memory)
        assert open_finding(memory, **NOW).gc().files == 1


def test_what_a_crash_left_goes(open_finding, memory):
    """After a crash at any storage call gc leaves exactly what the tenant holds, and takes nothing of it."""
    with_versions(open_finding(memory), 1)

    def change(storage):
        with open_finding(storage).job() as job:
            job.stream("A").update(table(9), key="Id")
            job.stream("New").update(table(1), key="Id")
            job.files.write("f", b"new")

    counting = FaultyStorage(memory.copy())
    change(counting)
    for call in range(0, len(counting.calls), 2):
        inner = memory.copy()
        with pytest.raises(Crash):
            change(FaultyStorage(inner, [Fault(call, Way.CUT_AFTER)]))
        tenant = open_finding(inner, **NOW)
        held = content(tenant)
        tenant.gc()
        assert held == content(tenant), call
        assert content(tenant.at(0)) == ({"A": [0]}, {"f": b"0"})
        committed = 1 + (len(held[0]) == 2)
        assert (committed, 0) == (_blobs(inner), len(list(inner.list_from(STAGING_FOLDER)))), call
        again = tenant.gc()
        assert (again.files, again.revoked) == (0, ()), call


def _blobs(storage):
    return len([name for name in data(storage) if "/blobs/" in name])


def test_what_a_killed_process_was_writing_goes_after_a_day(open_finding, tmp_path):
    """Wherever it is; at an erasure at once, since it may hold what is erased. A copy of it is left alone."""
    storage, unfinished = LocalStorage(tmp_path), f".{'0a' * 16}.tmp"
    tenant = open_finding(storage, **NOW, streams={"A": table(1, 2)}, files={"in/f": b"f"})
    folders = ["", "in/", "A.snapshot/_delta_log/", f"{ENTRIES}/", f"{STAGING_FOLDER}/"]
    for folder in (STAGING_FOLDER, "begun", "A.snapshot/begun"):
        (tmp_path / folder).mkdir(exist_ok=True)
    for name in (unfinished, f"copy-of{unfinished}"):
        for folder in folders:
            (tmp_path / folder / name).write_bytes(b"2")
    assert tenant.gc().files == 0
    with another_clock(lambda: time.time_ns() // 1_000_000 + 86_500_000):
        assert {f"{folder}{unfinished}" for folder in folders} == set(tenant.gc(dry_run=True).names)
        tenant.gc()
    assert [] == list(tmp_path.rglob(unfinished))
    for folder in folders[:-1]:
        (tmp_path / folder / unfinished).write_bytes(b"2")
    tenant.erase("A", ["2"])

    assert [] == list(tmp_path.rglob(unfinished))
    assert len(folders) == len(list(tmp_path.rglob(f"copy-of{unfinished}")))
    assert 2 == len(list(tmp_path.rglob("begun")))  # an empty folder, in which a job is about to write
    assert tenant.verify().is_sound


def test_a_long_commit_that_has_not_landed_is_kept(open_finding, memory, monkeypatch):
    monkeypatch.setattr(roll_forward, "INLINE_BYTES_MAX", 10)
    with_versions(open_finding(memory), 1)
    for call in range(200):
        with pytest.raises(Crash):
            open_finding(FaultyStorage(memory, [Fault(call, Way.CUT_AFTER)])).stream("B").update(
                table(2), key="Id"
            )
        if open_finding(memory).version == 1:
            break
    tenant = open_finding(memory, **NOW)
    tenant.gc()
    assert content(tenant)[0]["B"] == [2]
    tenant.stream("C").update(table(3), key="Id")
    assert content(open_finding(memory))[0]["B"] == [2]


def test_a_released_table_is_left_alone(open_finding, memory):
    tenant = open_finding(memory, **NOW)
    with_versions(tenant, 3)
    tenant.stream("A").release()
    tenant.set_retention(keep_versions=1)
    before = [name for name in data(memory) if name.startswith("A.snapshot")]

    tenant.gc()

    assert before == [name for name in data(memory) if name.startswith("A.snapshot")]


@pytest.mark.parametrize(("version", "keep"), [(3, 1), (2, 2)], ids=["another program's commit", "damage"])
def test_what_a_tables_own_log_names_is_not_deleted(open_finding, memory, version, keep):
    """Another program's commit keeps its files until it is repaired; where the two logs differ, all stays."""
    tenant = open_finding(memory, **NOW)
    _updated(tenant, 3)
    tenant.set_retention(keep_versions=keep)
    folder = "A.snapshot/_delta_log"
    first = memory.read(f"{folder}/{0:020d}.json").decode().splitlines()
    (added,) = (line for line in first if '"add"' in line)
    info = json.dumps({"commitInfo": {"inCommitTimestamp": now_ms() + 9, "operation": "RESTORE"}})
    memory.replace(f"{folder}/{version:020d}.json", f"{info}\n{added}\n".encode())
    for file in [item.name for item in memory.list_from(folder) if item.name.endswith(".crc")]:
        memory.delete(f"{folder}/{file}")
    DeltaLog.clear_cache()

    if version == 2:
        with pytest.raises(CorruptLog, match="would be deleted"):
            open_finding(memory, **NOW).gc()
    else:
        assert 1 == open_finding(memory, **NOW).gc().files
    assert f"A.snapshot/{json.loads(added)['add']['path']}" in data(memory)
