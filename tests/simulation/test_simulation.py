"""Jobs of one tenant under every interleaving, crash and power loss that a seed comes up with.

A failing seed is one line to repeat: ``simulate(SEED)``; ``shrunk`` leaves out faults that it does not need.
"""

import os
import re
from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pytest
from tests.examples import sampled
from tests.simulation.adversary import Adversary, LosingSpark
from tests.simulation.simulated import Bucket, Disk, Machine

from freezeframe.clock import another_clock
from freezeframe.errors import (
    ConflictError,
    FreezeframeError,
    JobRevoked,
    StorageNotShared,
    StorageUnavailable,
)
from freezeframe.log.segments import hint
from freezeframe.proof.model import carry_out, changed, content, frame
from freezeframe.proof.task import tenant_on
from freezeframe.storage import read_ahead

pytestmark = pytest.mark.stateful

WHOLE = "Whole"
"""The stream without a key that is replaced whole, whose files Spark's workers merge."""
LONG_SEEDS = 100_000
"""Seeds below it are short: one or two processes, a job each, a fault every eighty steps, at least one."""
SURE_WITHIN = 40
"""Of a short seed: one of the first so many steps has a fault."""
OPTIONS = {"checkpoint_interval": 3, "lease_dead_seconds": 3600}


def planned(seed):
    """The jobs of each process: id to the rows that it brings to each of its streams, and a file."""
    random = Random(seed)
    processes, jobs_max = (1 + seed % 2, 1) if seed < LONG_SEEDS else (3, 2)
    return {
        f"process-{process}": [
            (f"job-{process}-{job}", {f"key-{random.randrange(5)}": 100 * process + job, "shared": process})
            for job in range(random.randint(1, jobs_max))
        ]
        for process in range(processes)
    }


def changes_of(seed, job_id, rows):
    """What a job of the seed changes, in the words of the model."""
    streams = ("Account", "Lead") if seed >= LONG_SEEDS or seed % 8 == 0 else ("Account",)
    return [*(("upsert", name, rows) for name in streams), ("write", "state.json", job_id.encode())]


def carried_out(storage, seed, jobs, acknowledged, adversary=None):
    """A process: its jobs in turn, each until it is acknowledged; then what dead ones left goes.

    With an adversary in Spark's place each job also replaces a stream, which it carries out.
    """
    for job_id, rows in jobs:
        while job_id not in acknowledged:
            try:
                engine = {"searched_rows_max": 0} if adversary else {}
                with tenant_on(storage, adversary, **OPTIONS, **engine).job(job_id) as job:
                    carry_out(job, changes_of(seed, job_id, rows))
                    if adversary:
                        job.stream(WHOLE).update(frame(rows), replace_where="true")
            except (ConflictError, JobRevoked):
                continue
            except (StorageUnavailable, StorageNotShared):
                if adversary:  # a file that Spark says it wrote is not there, or not yet, or has no rows
                    continue
                raise
            acknowledged[job_id] = job.receipt.tenant_version
    if seed >= LONG_SEEDS or seed % 5 == 0:
        tenant_on(storage, **OPTIONS).gc()


def violations(disk, seed, jobs, acknowledged, *, wholes=False):
    """What is wrong: jobs that are lost, doubled or by half, at any version."""
    tenant = tenant_on(disk, **OPTIONS)
    rows_by_job = {job_id: rows for job in jobs.values() for job_id, rows in job}
    held, done = ({}, {}), []
    for entry in reversed(list(tenant.history())):
        if entry.job_id:
            rows = rows_by_job[entry.job_id]
            done.append(entry.job_id)
            held = changed(held, changes_of(seed, entry.job_id, rows))
            if wholes:
                held[0][WHOLE] = rows
            if content(tenant.at(entry.version)) != held:
                yield f"version {entry.version} is not what the jobs up to {entry.job_id} make"
            if acknowledged.get(entry.job_id, entry.version) != entry.version:
                yield f"{entry.job_id} was acknowledged as version {acknowledged[entry.job_id]}"
    yield from (f"{item} is there twice" for item in set(done) if done.count(item) > 1)
    yield from (f"{item} was acknowledged and is lost" for item in acknowledged if item not in done)


def no_thread(*_):
    """What a system without threads left says: calls that would run side by side run in turn, each a step."""
    raise RuntimeError("can't start new thread")


def simulate(seed, faults=None, new_disk=Disk, new_engine=None):
    """One run: steps, those at which something broke, violations. Processes that die are started again."""
    disk, jobs, acknowledged = new_disk(), planned(seed), {}
    chance, sure = (0.008, 0) if seed >= LONG_SEEDS else (0.012, SURE_WITHIN)
    machine = Machine(seed, disk, faults, chance, sure)
    names = Random(seed)
    with pytest.MonkeyPatch.context() as patch, another_clock(machine.now_ms):
        patch.setattr(os, "urandom", names.randbytes)
        patch.setattr(read_ahead._workers, "submit", no_thread)
        patch.setattr(hint, "RETRY_SECONDS", 0)  # the second that a reader gives to the writer of a torn hint
        left = dict(jobs)
        found = []
        while left and not found:
            works = {
                name: lambda storage, own=own: carried_out(
                    storage, seed, own, acknowledged, new_engine and new_engine(storage, machine)
                )
                for name, own in left.items()
            }
            try:
                died = machine.run(works)
                found = list(violations(disk, seed, jobs, acknowledged, wholes=new_engine is not None))
            except FreezeframeError as error:
                return machine.step, machine.struck, [f"{error.error_code}: {error}"]
            left = {name: own for name, own in left.items() if name in died}
    if not found and set(acknowledged) != {job_id for own in jobs.values() for job_id, _ in own}:
        found = ["a job was never acknowledged"]
    return machine.step, machine.struck, found


def shrunk(seed, new_disk=Disk, new_engine=None):
    """The faults that a failing seed needs: each is left out without which it fails in the same way."""
    _, faults, seen = simulate(seed, None, new_disk, new_engine)
    for fault in list(faults):
        fewer = [item for item in faults if item != fault]
        if kinds(simulate(seed, fewer, new_disk, new_engine)[2]) & kinds(seen):
            faults = fewer
    return faults


def kinds(found):
    """Violations without the jobs and numbers that they are about."""
    return {re.sub(r"job-\S+|\d+", "", item) for item in found}


class ForgettingDisk(Disk):
    """The planted fault: it keeps entries of the tenant log in its cache, whatever it was told."""

    def put_if_absent(self, name, content):
        if name.startswith("_freezeframe/log/") and name.endswith("0.json"):
            self.remember(name)
        super().put_if_absent(name, content)


class TearingDisk(Disk):
    """The planted fault: entries and commits are acknowledged with half of their bytes on the platter."""

    def put_if_absent(self, name, content):
        super().put_if_absent(name, content)
        if name.endswith(".json"):
            self.unsynced[name] = content[: len(content) // 2]


class OverwritingDisk(Disk):
    """The planted fault: it looks whether a name is free, and writes a step later."""

    def create(self, call, name, content):
        if call(lambda: any(item.name == name for item in self.list_below(""))):
            raise FileExistsError(name)
        call(lambda: self.replace(name, content))


class LateBucket(Bucket):
    """The planted fault: each listing is without the newest entry of the tenant log."""

    def list_from(self, folder, start=""):
        found = list(super().list_from(folder, start))
        is_log = folder.rstrip("/") == "_freezeframe/log"
        return iter(found[:-1] if is_log and len(found) > 1 else found)


@pytest.fixture(autouse=True)
def one_thread():
    """Few rows: handing work to Arrow's threads takes longer than the work."""
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    yield
    pa.set_cpu_count(threads)


def failing(seeds, new_disk=Disk, new_engine=None):
    """Seeds with violations, and what they are."""
    found = {}
    for seed in seeds:
        _, _, seen = simulate(seed, None, new_disk, new_engine)
        if seen:
            found[f"simulate({seed}, {shrunk(seed, new_disk, new_engine)})"] = seen
    return found


@pytest.mark.sampled
@pytest.mark.timeout(300)
def test_no_seed_breaks_a_promise():
    """Short seeds (a thousand at night): each job is there once, whole, at the acknowledged version."""
    assert failing(sampled(range(1_000), every=21)) == {}


def test_each_short_seed_has_a_fault():
    """Something breaks in each of the runs."""
    assert [seed for seed in range(0, 1_000, 100) if not simulate(seed)[1]] == []


@pytest.mark.sampled
def test_no_seed_breaks_a_promise_in_a_bucket():
    """Listings by pages, between which others write; processes that die."""
    assert failing(sampled(range(100), every=11), Bucket) == {}


@pytest.mark.sampled
@pytest.mark.parametrize("new_disk", [Disk, Bucket])
def test_no_seed_breaks_a_promise_with_the_worst_of_sparks(new_disk):
    """Files of a merge that come late, twice or never, beside processes that die."""
    assert failing(sampled(range(40), every=9), new_disk, Adversary) == {}


def test_a_spark_that_loses_a_row_is_found():
    """Which no check of the files can tell: the content of a version is not what its job makes."""
    assert any(simulate(seed, new_engine=LosingSpark)[2] for seed in range(20))


@pytest.mark.parametrize("planted", [TearingDisk, OverwritingDisk, LateBucket])
def test_a_planted_fault_is_found(planted):
    """A storage that breaks its contract breaks a promise in one of a few seeds, which pass without."""
    for seed in range(LONG_SEEDS, LONG_SEEDS + 20):
        if simulate(seed, new_disk=planted)[2]:
            assert simulate(seed, new_disk=planted.__base__)[2] == []
            return
    pytest.fail("no seed came upon the planted fault")


def test_no_long_seed_breaks_a_promise():
    """A seed of some five hundred steps."""
    assert failing([LONG_SEEDS]) == {}


def test_a_seed_repeats_itself():
    """The same steps, the same faults; of some whose jobs write several tables."""
    for seed in range(LONG_SEEDS, LONG_SEEDS + 3):
        assert simulate(seed)[:2] == simulate(seed)[:2]


def test_a_disk_that_forgets_is_caught():
    """Entries that were acknowledged and not synced are missed after a power loss; the seed shrinks to it."""
    for seed in range(LONG_SEEDS, LONG_SEEDS + 60):
        if simulate(seed, new_disk=ForgettingDisk)[2]:
            faults = shrunk(seed, ForgettingDisk)
            assert 1 <= len(faults)
            assert kinds(simulate(seed, faults, ForgettingDisk)[2]) & kinds(
                simulate(seed, new_disk=ForgettingDisk)[2]
            )
            assert simulate(seed)[2] == []
            return
    pytest.fail("no seed lost power at the wrong moment")


@pytest.mark.nightly
@pytest.mark.timeout(14_400)
def test_no_seed_breaks_a_promise_for_long():
    """A million steps of other seeds each day; FREEZEFRAME_SIMULATION_STEPS is another number of them."""
    wanted, steps = int(os.environ.get("FREEZEFRAME_SIMULATION_STEPS", "1000000")), 0
    given = os.environ.get("FREEZEFRAME_SIMULATION_SEED")
    seed = int(given or LONG_SEEDS + datetime.now(UTC).toordinal() * 10_000)
    while steps < wanted:
        done, _, found = simulate(seed)
        assert found == [], f"simulate({seed}, {shrunk(seed)})"
        steps, seed = steps + done, seed + 1
