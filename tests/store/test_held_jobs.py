"""A held job: what it has staged waits for its publication, which commits just that, or nothing."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest
from tests.examples import by_turns, sampled
from tests.given import content, files_of, table
from tests.waiting import until

from freezeframe.clock import now_ms
from freezeframe.errors import (
    ConflictError,
    FileNotFound,
    FreezeframeError,
    InvalidOption,
    JobRevoked,
    StreamNotFound,
)
from freezeframe.settings import Settings
from freezeframe.storage.base import ForwardingStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.job import discard_job, find_held_job, publish_job, revoke_job
from freezeframe.store.model.update_options import SYSTEM
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant import Tenant, open_job

HELD = {"Account": [1, 2, 3, 4], "Lead": [7]}
FILES = {"note": b"22", "new": b"3", "kept": b"0"}


def change(job):
    job.stream("Account").update(table(3, 4), key="Id")
    job.stream("Lead").update(table(7), key="Id")
    job.files.write("note", b"22")
    job.files.write("new", b"3")


def hold(tenant, job_id="held", make=change):
    """Run a job that is held at its end; what it would change."""
    with open_job(
        replace(tenant.context, review=lambda effects, _: effects), job_id, message="of May"
    ) as job:
        make(job)
    return job


@pytest.fixture
def tenant(open_finding, memory):
    """A tenant with two streams and two files, in memory."""
    found = open_finding(memory)
    with found.job("first") as job:
        job.stream("Account").update(table(1, 2), key="Id")
        job.stream("Price").update(table(5), key="Id")
        job.files.write("note", b"1")
        job.files.write("kept", b"0")
    return found


def test_a_held_job_is_published_as_it_was_staged(tenant, open_finding, memory):
    """Nobody sees it before; its version is the job's own, with the very data files that it had written."""
    before = content(tenant)
    job = hold(tenant)
    staged = files_of(memory)
    assert (content(tenant), tenant.version, job.receipt.committed) == (before, 0, False)
    assert {name: effect.counts.inserted for name, effect in job.dry_run.streams.items()} == {
        "Account": 2,
        "Lead": 1,
    }

    receipt = publish_job(open_finding(memory).context, "held")

    assert (receipt.tenant_version, receipt.committed, receipt.repeated) == (1, True, False)
    assert content(tenant) == ({**HELD, "Price": [5]}, FILES)
    assert receipt.streams["Account"].inserted == 2
    entry = next(iter(tenant.history()))
    assert (entry.version, entry.job_id, entry.message) == (1, "held", "of May")
    data = [name for name in files_of(memory) if name.endswith(".parquet") or "/blobs/" in name]
    assert all(staged[name] == memory.read(name) for name in data)
    assert not any(name.startswith("_freezeframe/staging") for name in files_of(memory))
    assert tenant.verify().is_sound
    assert publish_job(tenant.context, "held") == replace(receipt, repeated=True, seconds=receipt.seconds)
    assert tenant.version == 1


def test_a_discarded_job_leaves_nothing(tenant, memory):
    """Its files and its lease go; it cannot be published any more, and its id is free."""
    before = files_of(memory)
    hold(tenant)

    assert discard_job(tenant.context, "held", SYSTEM)

    left = {name for name in files_of(memory) if "_freezeframe/log" not in name}
    assert left == {name for name in before if "_freezeframe/log" not in name}
    with pytest.raises(JobRevoked) as refused:
        publish_job(tenant.context, "held")
    assert refused.value.error_code == "NOT_HELD"
    assert not discard_job(tenant.context, "held", SYSTEM)
    hold(tenant)
    assert publish_job(tenant.context, "held").committed
    with pytest.raises(InvalidOption, match="is published"):
        discard_job(tenant.context, "held", SYSTEM)


class _Meanwhile(ForwardingStorage):
    """Storage in which somebody else works before a read or listing of that number."""

    def __init__(self, inner, number, work):
        super().__init__(inner)
        self.left, self.work = number, work

    def _look(self):
        self.left -= 1
        if self.left == -1:
            self.work()

    def read(self, *given):
        self._look()
        return super().read(*given)

    def list_from(self, *given):
        self._look()
        return super().list_from(*given)


def test_a_job_is_published_or_discarded(tenant, open_finding, memory):
    """Whenever it is published while somebody discards it, nobody hears that it was not held."""
    hold(tenant)
    heard = set()
    for number in range(40):
        inner = memory.copy()
        other, published = open_finding(inner), []

        def publish(other=other, published=published):
            with suppress(JobRevoked):
                published.append(publish_job(other.context, "held"))

        found = open_finding(_Meanwhile(inner, number, publish))
        try:
            heard.add((discard_job(found.context, "held", SYSTEM), bool(published)))
        except InvalidOption:
            heard.add(("is published", bool(published)))
    assert heard == {(True, False), ("is published", True)}


def test_a_discarded_job_does_not_need_versions_that_gc_has_deleted(tenant, open_finding, memory):
    """What the job had staged goes, though the floor of before cannot be read any more."""
    hold(tenant)
    now = open_finding(memory, gc_grace_seconds=0)
    for number in range(25):
        now.stream("Price").update(table(10 + number), key="Id")
    now.set_retention(keep_versions=1)
    now.gc()
    found = open_finding(memory)

    assert discard_job(found.context, "held", SYSTEM)

    assert not any("Lead" in name or "staging" in name for name in files_of(memory))


CHANGES = {
    "a stream that it changes": lambda tenant: tenant.stream("Account").update(table(9), key="Id"),
    "a stream that it makes": lambda tenant: tenant.stream("Lead").update(table(9), key="Id"),
    "a stream that it read": lambda tenant: tenant.stream("Price").update(table(9), key="Id"),
    "a stream that it changes is dropped": lambda tenant: tenant.drop_stream("Account"),
    "a stream is brought back": lambda tenant: (
        tenant.stream("Account").update(table(9), key="Id"),
        tenant.restore(0, streams=["Account"], files=[]),
    ),
    "a file that it changes": lambda tenant: tenant.files.write("note", b"9"),
    "a file that it makes": lambda tenant: tenant.files.write("new", b"9"),
    "a file that it read": lambda tenant: tenant.files.write("kept", b"9"),
    "a stream that it looked for": lambda tenant: tenant.stream("Missing").update(table(9), key="Id"),
    "a file that it looked for": lambda tenant: tenant.files.write("missing", b"9"),
    "a file that it asked for": lambda tenant: tenant.files.write("asked", b"9"),
    "a file where it has a folder": lambda tenant: tenant.files.write("folder", b"9"),
    "a stream of another case": lambda tenant: tenant.stream("LEAD").update(table(9), key="Id"),
    "a stream made and dropped": lambda tenant: (
        tenant.stream("Lead").update(table(9), key="Id"),
        tenant.drop_stream("Lead"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_it_is_published_only_on_what_it_saw(tenant, name):
    """Any change of what it read or changes is a conflict; it stays held, and may be run again."""

    def reading(job):
        job.stream("Price").read(as_="arrow")
        job.files.read("kept")
        with suppress(StreamNotFound):
            job.stream("Missing").read(as_="arrow")
        with suppress(FileNotFound):
            job.files.read("missing")
        job.files.exists("asked")
        job.files.write("folder/file", b"1")
        change(job)

    hold(tenant, make=reading)
    CHANGES[name](tenant)
    before = content(tenant)

    with pytest.raises(ConflictError):
        publish_job(tenant.context, "held")

    assert content(tenant) == before
    assert find_held_job(tenant.context, "held") is not None
    discard_job(tenant.context, "held", SYSTEM)
    if name in {"a file where it has a folder", "a stream of another case"}:
        return  # the job itself cannot make its names any more
    hold(tenant, make=reading)
    assert publish_job(tenant.context, "held").committed


def test_what_it_did_not_touch_may_change(tenant):
    """Other streams and files, and versions that retention takes, do not keep it from its publication."""
    hold(tenant)
    tenant.stream("Price").update(table(6), key="Id")
    tenant.files.write("kept", b"00")
    tenant.set_retention(keep_versions=1)
    tenant.gc()

    assert publish_job(tenant.context, "held").committed
    assert content(tenant) == ({**HELD, "Price": [5, 6]}, {**FILES, "kept": b"00"})


def test_what_a_review_saw_is_committed_or_nothing(tenant, open_finding, memory):
    """A commit after the review is a conflict if it changes a stream of the job; others do not matter."""
    other = open_finding(memory)

    def run(name):
        context = replace(
            tenant.context, review=lambda *_: other.stream(name).update(table(8), key="Id") and None
        )
        with open_job(context, f"beside {name}") as job:
            job.stream("Account").update(table(3), key="Id")

    run("Price")
    with pytest.raises(ConflictError):
        run("Account")
    assert content(tenant)[0] == {"Account": [1, 2, 3, 8], "Price": [5, 8]}


def test_two_held_jobs_of_one_tenant(tenant):
    """Those that share nothing are both published; of two that change one stream the second is refused."""
    hold(tenant, "one")
    hold(tenant, "two", lambda job: job.stream("Price").update(table(6), key="Id"))
    hold(tenant, "three", lambda job: job.stream("Price").update(table(8), key="Id"))

    assert [publish_job(tenant.context, name).tenant_version for name in ("two", "one")] == [1, 2]
    with pytest.raises(ConflictError, match="stream 'Price'"):
        publish_job(tenant.context, "three")
    assert content(tenant)[0] == {**HELD, "Price": [5, 6]}


def test_a_hold_ends_with_gc(tenant, open_finding, memory, monkeypatch):
    """Until its end gc spares what is staged, however long nobody renews it; then it goes."""
    now = open_finding(memory, gc_grace_seconds=0, lease_dead_seconds=0)
    hold(now)
    assert (now.gc().files, find_held_job(tenant.context, "held") is None) == (0, False)
    monkeypatch.setattr("freezeframe.store.maintenance.garbage.now_ms", later(timedelta(days=6)))
    assert (now.gc().files, find_held_job(tenant.context, "held") is None) == (0, False)
    monkeypatch.setattr("freezeframe.store.maintenance.garbage.now_ms", later(timedelta(days=8)))

    assert len(now.gc().revoked) == 1
    assert not any("Lead" in name for name in files_of(memory))
    with pytest.raises(JobRevoked):
        publish_job(tenant.context, "held")


def test_a_hold_ends_in_a_tenant_without_a_version(open_finding, memory, monkeypatch):
    """The first job of a tenant was held and forgotten: gc revokes it by the tenant's first version."""
    tenant = open_finding(memory, gc_grace_seconds=0, lease_dead_seconds=0)
    hold(tenant)
    assert (tenant.gc().revoked, tenant.version) == ((), -1)
    monkeypatch.setattr("freezeframe.store.maintenance.garbage.now_ms", later(timedelta(days=8)))

    assert (len(tenant.gc(dry_run=True).revoked), len(tenant.gc().revoked)) == (1, 1)
    tenant.gc()
    assert not any("snapshot" in name for name in files_of(memory))
    with pytest.raises(JobRevoked):
        publish_job(tenant.context, "held")


def later(by):
    """A clock that is ahead."""
    return lambda: now_ms() + int(by.total_seconds() * 1000)


@pytest.mark.parametrize("size", [1, 2000])
def test_an_erasure_ends_every_held_job(tenant, memory, size):
    """Erased rows cannot come back by a publication, and no byte of what was staged stays."""
    names = [f"c{number}-{'x' * 100}" for number in range(size)]  # many: a commit too long for its entry
    wide = pa.table({"Id": ["secret"], **{name: ["secret"] for name in names}})
    hold(tenant, make=lambda job: job.stream("Account").update(wide, key="Id"))
    tenant.stream("Price").update(pa.table({"Id": ["secret"], "v": [0]}), key="Id")
    beside = tenant.job("beside")  # it holds a lease
    beside.__enter__().files.write("x", b"1")

    tenant.erase("Price", ["secret"])

    assert find_held_job(tenant.context, "held") is None
    assert [name for name, text in files_of(memory).items() if b"secret" in text] == []
    with pytest.raises(JobRevoked):
        publish_job(tenant.context, "held")


WIDE = {f"c{number}-{'x' * 100}": [number] for number in range(2000)}


def test_a_commit_too_long_for_its_entry_is_published(tenant, open_finding, memory):
    """Its staged commit goes with the publication; of two at once one commits, and both answer so."""
    hold(tenant, make=lambda job: job.stream("Account").update(pa.table({"Id": ["9"], **WIDE}), key="Id"))
    assert sum(name.endswith(".commit") for name in files_of(memory)) == 1
    with ThreadPoolExecutor(4) as pool:
        tenants = [open_finding(memory) for _ in range(4)]
        receipts = list(pool.map(lambda one: publish_job(one.context, "held"), tenants))

    assert {receipt.tenant_version for receipt in receipts} == {1}
    assert (tenant.version, tenant.stream("Account").count()) == (1, 3)
    open_finding(memory, gc_grace_seconds=0, lease_dead_seconds=0).gc()
    assert tenant.verify().is_sound
    assert not any("staging" in name for name in files_of(memory))


def test_a_deleted_tenant_takes_its_held_jobs_along(memory):
    """What was staged goes with the tenant's folder; one made again under its id has none."""
    store = Store(memory, ArrowEngine(), Settings(), "default")
    first = store.tenant("acme", create=True)
    hold(first)
    store.delete_tenant("acme")

    assert not any("Account" in name for name in files_of(memory))
    again = store.tenant("acme", create=True)
    assert find_held_job(again.context, "held") is None
    with pytest.raises(FreezeframeError):
        publish_job(first.context, "held")


def test_two_runs_of_one_job_that_were_both_held(tenant, memory):
    """The later one is published; discarding removes both."""
    hold(tenant)
    before = now_ms()
    until(lambda: now_ms() > before)  # of two that are held in one millisecond none is the later one
    hold(tenant, make=lambda job: job.files.write("later", b"1"))
    copy = memory.copy()
    assert publish_job(tenant.context, "held").files_written == ("later",)
    again = Tenant(copy, ArrowEngine(), tenant.context.settings)
    assert discard_job(again.context, "held", SYSTEM)
    assert find_held_job(again.context, "held") is None
    assert not any("staging" in name for name in files_of(copy))


def test_a_takeover_leaves_a_held_job_as_it_is(tenant):
    """The worker died after its job was held: the next one finds it held, and revokes nothing."""
    hold(tenant)
    assert revoke_job(tenant.context, "held", tokens=["t1"]) == ()
    assert publish_job(tenant.context, "held").committed


def test_a_damaged_record_is_no_held_job(tenant, memory):
    """It is not published; gc takes what it had staged, as of a dead job."""
    hold(tenant)
    (name,) = [name for name in files_of(memory) if "staging" in name]
    memory.replace(name, memory.read(name).replace(b"of May", b"of Mai"))

    with pytest.raises(JobRevoked):
        publish_job(tenant.context, "held")


def steps_of(tenant_on, inner, work):
    """The numbers of storage calls that a work makes after its tenant was opened."""
    storage = FaultyStorage(inner.copy())
    tenant = tenant_on(storage)
    before = len(storage.calls)
    work(tenant)
    return sampled(range(before, len(storage.calls)), every=3)


@pytest.mark.sampled
@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER])
def test_a_crash_while_it_is_held(tenant, open_finding, memory, way):
    """It is held whole, or not at all: nothing is visible, and what is not held is garbage."""
    seen = set()
    for call in steps_of(open_finding, memory, hold):
        inner = memory.copy()
        with suppress(Crash):
            hold(open_finding(FaultyStorage(inner, [Fault(call, way)])))
        after = open_finding(inner, gc_grace_seconds=0, lease_dead_seconds=0)
        assert content(after) == content(tenant)
        after.gc()
        is_held = find_held_job(after.context, "held") is not None
        seen.add(is_held)
        if is_held:
            assert publish_job(after.context, "held").committed
            assert content(after) == ({**HELD, "Price": [5]}, FILES)
        else:
            hold(after)
            assert publish_job(after.context, "held").committed
        assert after.verify().is_sound
    assert seen == ({False} if way is Way.CUT_BEFORE else {False, True})  # its last call is the hold


@pytest.mark.sampled
def test_a_crash_while_it_is_published(tenant, open_finding, memory):
    """It is published whole, or still held; the same call again ends it, and commits once."""
    hold(tenant)
    ways = (Way.CUT_BEFORE, Way.CUT_AFTER, Way.FAIL_BEFORE, Way.FAIL_AFTER)
    calls = steps_of(open_finding, memory, lambda one: publish_job(one.context, "held"))
    for number, way in [(call, way) for call in calls for way in by_turns(ways, call)]:
        inner = memory.copy()
        with suppress(Crash, FreezeframeError):
            publish_job(open_finding(FaultyStorage(inner, [Fault(number, way)])).context, "held")
        after = open_finding(inner, gc_grace_seconds=0, lease_dead_seconds=0)
        after.gc()
        assert publish_job(after.context, "held").committed
        assert content(after) == ({**HELD, "Price": [5]}, FILES)
        assert after.version == 1
        after.gc()
        assert after.verify().is_sound


@pytest.mark.sampled
@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER])
def test_a_crash_while_it_is_discarded(tenant, open_finding, memory, way):
    """It is held, or gone: never half of it published. The same call again removes the rest."""
    hold(tenant)
    for call in steps_of(open_finding, memory, lambda one: discard_job(one.context, "held", SYSTEM)):
        inner = memory.copy()
        with suppress(Crash):
            discard_job(open_finding(FaultyStorage(inner, [Fault(call, way)])).context, "held", SYSTEM)
        after = open_finding(inner, gc_grace_seconds=0)
        discard_job(after.context, "held", SYSTEM)
        after.gc()
        assert not any("Lead" in name for name in files_of(inner))
        assert content(after) == content(tenant)
        assert after.verify().is_sound
