"""Many processes run jobs over the same streams and files: nothing is lost, doubled, or seen in part.

Each job changes one to three streams and up to two files, by inserts, updates of a row that all
share, whole replacements, and lines that are appended to what was read. In the order of their tenant
versions the acknowledged jobs must make every state that any process ever read. The checker is
believed because it finds what a storage without an atomic create loses, and a read of two moments.
"""

import random
import threading
import time
from collections import Counter

import pytest
from tests import given

from freezeframe.errors import ConflictError, FreezeframeError
from freezeframe.proof.model import carry_out, changed, content
from freezeframe.proof.task import race, wait_for_start
from freezeframe.storage import LocalStorage, MemoryStorage

pytestmark = pytest.mark.stateful

STREAMS = ("Account", "Contact", "Lead")
FILES = ("cursor.txt", "maps/seen.txt")
ALONE = 100  # writers from here on make files of their own only: no table tells that the log was overwritten


class RacyStorage(MemoryStorage):
    """The positive control: looks in the tenant log whether the name is free, and writes a moment later."""

    def put_if_absent(self, name, content):
        if not name.startswith("_freezeframe/log/"):
            super().put_if_absent(name, content)  # the probe would refuse a storage that is all like this
            return
        if any(status.name == name.rpartition("/")[2] for status in self.list_from(name.rpartition("/")[0])):
            raise FileExistsError(name)
        time.sleep(0.001)
        self.replace(name, content)


def changes_of(writer, number, bytes_of):
    """What the job does, always the same for the same numbers; lines are added to the bytes of a file."""
    line = f"{writer}-{number}\n".encode()
    if writer >= ALONE:
        return [("write", f"own/{writer}-{number}.txt", line)]
    chosen = random.Random(f"{writer}/{number}")
    streams = chosen.sample(STREAMS, chosen.choice((1, 1, 1, 2, 3)))
    verbs = ["override"] if chosen.random() < 0.2 else ["insert", "insert", "share"]
    files = chosen.sample(FILES, chosen.choice((0, 0, 0, 0, 0, 0, 1, 2)))
    changes = []
    for name in streams:
        verb, mine = chosen.choice(verbs), writer * 10_000 + number
        rows = {"shared" if verb == "share" else f"key-{mine}": mine}
        changes.append(("override" if verb == "override" else "upsert", name, rows))
    return changes + [("write", path, bytes_of(path) + line) for path in files]


def after(held, writer, number):
    """What the job makes of the content of a tenant."""
    return changed(held, changes_of(writer, number, lambda path: held[1].get(path, b"")))


def run_job(tenant, writer, number):
    """The job, again and again until it is taken; its tenant version."""
    while True:
        try:
            with tenant.job(f"{writer}-{number}") as job:
                bytes_of = lambda path: job.files.read(path) if job.files.exists(path) else b""  # noqa: E731
                carry_out(job, changes_of(writer, number, bytes_of))
        except ConflictError:
            continue
        return job.receipt.tenant_version


def work(storage, writer, jobs, read_every, first=0):
    """One writer's life from its ``first`` job on: what was acknowledged, what it read at which versions."""
    tenant = given.tenant(storage, commit_tries_max=100)
    acknowledged, seen = [], []
    for number in range(first, jobs):
        acknowledged.append((run_job(tenant, writer, number), writer, number))
        if number % read_every == writer % read_every:
            view = tenant.at(tenant.version)
            seen.append((view.version, content(view)))
            # The same job again, as after a lost answer: answered, and not done again.
            acknowledged.append((run_job(tenant, writer, number), writer, number))
    return acknowledged, seen


def take_part(connection, folder, *arguments):
    """One process of a race."""
    wait_for_start(connection)
    connection.send(work(LocalStorage(folder), *arguments))


def race_jobs(folder, writers, jobs, read_every, seconds, first=0):
    """What all writers together had acknowledged and read; those that go on leave out their first jobs."""
    arguments = [(str(folder), writer, jobs, read_every, first) for writer in range(writers)]
    found = race(take_part, arguments, seconds)
    return [ack for acks, _ in found for ack in acks], [read for _, reads in found for read in reads]


def without_job(tenant):
    """The versions that are of no job: after a thousand of them the retention lets the oldest go."""
    return {entry.version for entry in tenant.history() if entry.job_id is None}


def violations(acknowledged, seen, newest, others=()):
    """What is wrong: jobs that are doubled, share a version or left a gap; reads that no prefix makes.

    ``others`` are the versions ``without_job``.
    """
    wrong = []
    jobs = {}
    for version, *job in acknowledged:
        jobs.setdefault(tuple(job), set()).add(version)
    wrong += [f"doubled: {job} is {sorted(found)}" for job, found in jobs.items() if len(found) > 1]
    owners = Counter(min(found) for found in jobs.values())
    wrong += [f"shared: version {version} is of {n} jobs" for version, n in owners.items() if n > 1]
    if sorted([*owners, *others]) != list(range(len(owners) + len(others))):
        wrong.append("gap: the versions are not contiguous")
    state, states = ({}, {}), {-1: ({}, {})}
    done = {min(versions): job for job, versions in jobs.items()} | dict.fromkeys(others)
    for version, job in sorted(done.items()):
        state = after(state, *job) if job else state
        states[version] = state
    wrong += [f"mixed: what was read at {version}" for version, found in seen if states.get(version) != found]
    if newest != state:
        wrong.append("lost: the newest state is not what the acknowledged jobs make")
    return wrong


def prove(folder, writers, jobs, read_every, seconds):
    acknowledged, seen = race_jobs(folder, writers, jobs, read_every, seconds)
    tenant = given.tenant(LocalStorage(folder))
    others = without_job(tenant)
    assert violations(acknowledged, seen, content(tenant), others) == []
    assert writers * jobs == tenant.version + 1 - len(others) == len({job[1:] for job in acknowledged})
    assert len(seen) >= writers
    assert [entry.job_id for entry in tenant.history() if entry.job_id] == [
        f"{writer}-{number}" for _, writer, number in sorted(set(acknowledged), reverse=True)
    ]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("writers", "jobs"), [(3, 8), pytest.param(8, 50, marks=pytest.mark.nightly)])
def test_processes_of_mixed_jobs(tmp_path, writers, jobs):
    """Jobs of all over 3 streams and 2 files: each job once and whole, each read one moment."""
    prove(tmp_path, writers, jobs, read_every=10, seconds=850)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_sixteen_processes_of_mixed_jobs_for_long(tmp_path):
    """16 processes x 200 jobs: the same over many checkpoints of log and tables."""
    prove(tmp_path, writers=16, jobs=200, read_every=20, seconds=7000)


def test_the_checker_finds_what_a_racy_storage_loses():
    """Where creating is not atomic, jobs share a version or are gone, and the checker says so."""
    storage, acknowledged = RacyStorage(), []

    def writer(name):
        tenant = given.tenant(storage)
        for number in range(10):
            try:
                acknowledged.append((run_job(tenant, name, number), name, number))
            except FreezeframeError:  # a log that was overwritten may be told as damage; that loses nothing
                return

    threads = [threading.Thread(target=writer, args=(ALONE + name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert violations(acknowledged, [], ({}, {}))[0].startswith("shared")


def test_the_checker_finds_a_read_of_two_moments():
    """A reader that takes one stream before a job and the next one after it is found; one view is not."""
    tenant = given.tenant()
    wide, number = [
        n for n in range(1000) if len(changes_of(1, n, lambda _: b"")) == len(STREAMS) + len(FILES)
    ][:2]
    acknowledged = [(run_job(tenant, 1, wide), 1, wide)]
    view = tenant.at(tenant.version)
    first = content(view)
    acknowledged.append((run_job(tenant, 1, number), 1, number))
    newest = content(tenant)

    mixed = ({**newest[0], STREAMS[0]: first[0][STREAMS[0]]}, newest[1])

    assert violations(acknowledged, [(0, content(view)), (1, newest)], newest) == []
    assert violations(acknowledged, [(1, mixed)], newest) == ["mixed: what was read at 1"]


def test_the_checker_finds_each_kind_of_damage():
    """Doubled, shared, left out and lost jobs are each found in hand-made histories."""
    one = after(({}, {}), 0, 0)
    both = after(one, 0, 1)
    assert violations([(0, 0, 0), (1, 0, 1), (1, 0, 1)], [(0, one), (1, both)], both) == []
    for kind, acknowledged, newest in (
        ("doubled", [(0, 0, 0), (1, 0, 0)], one),
        ("shared", [(0, 0, 0), (0, 0, 1)], both),
        ("gap", [(0, 0, 0), (2, 0, 1)], both),
        ("lost", [(0, 0, 0), (1, 0, 1)], one),
    ):
        assert any(found.startswith(kind) for found in violations(acknowledged, [], newest)), kind
