"""A store under everything at once, for hours: jobs, restores, gc, erasures, a service with load, and kills.

What each tenant holds is compared with plain dictionaries all the time; memory, open files, latency and bytes
on the disk are noted every few seconds in ``samples.jsonl``. A piece goes on with the store of the last one.
"""

import contextlib
import json
import os
import random
import statistics
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

import psutil
from tests.endurance.soaked_service import Load, served

from freezeframe.proof.model import Step, content, numbered
from freezeframe.proof.task import children
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store

TENANTS, KEYS, KEPT = ("s0", "s1", "s2"), 500, 50
ROUND_SECONDS, SAMPLE_SECONDS = 100, 5
OPERATIONS = {"job": 20, "override": 1, "read": 6, "restore": 2, "gc": 2, "erase": 0.3, "kill": 1}
LATENCIES = ("job", "read", "upload", "download", "rows")


def open_tenant(root, name):
    storage = LocalStorage(root)
    settings = Settings(engine="auto", gc_grace_seconds=20, lease_dead_seconds=60)
    return Store(storage, ArrowEngine(), settings).tenant(name, create=True)


class Soaked:
    """A tenant, what it should hold, and what it held at the versions that this process made."""

    def __init__(self, root, name, known):
        self.root, self.name = root, name
        self.tenant = open_tenant(root, name)
        self.tenant.set_retention(keep_versions=KEPT)
        if known is not None:
            self.now = known[0], {path: text.encode() for path, text in known[1].items()}
            self.require()
        self.now = content(self.tenant)
        self.past = {}

    def require(self):
        found = content(self.tenant)
        assert found == self.now, f"{self.name} holds {_difference(found, self.now)}"

    def note(self, streams, files):
        self.now = (streams, files)
        self.past[self.tenant.version] = self.now
        for version in sorted(self.past)[: -KEPT // 2]:
            del self.past[version]

    def do(self, step):
        step.run(self.tenant)
        self.note(*step.expected(self.now, self.past))

    def restore(self, chosen):
        listed = {entry.version for entry in self.tenant.history(limit=KEPT // 2)} & set(self.past)
        if listed:
            self.do(Step("restore", chosen.choice(sorted(listed))))

    def erase(self, chosen):
        rows = self.now[0].get("Account")
        if rows:
            self.do(Step("erase", chosen.choice(sorted(rows)), "Account"))
            self.past = {self.tenant.version: self.now}

    def kill(self, chosen, job_id):
        """A process that runs one job after the other is killed; the job under way is run again by its id."""
        seed = chosen.getrandbits(32)
        with children(_run_jobs, [(str(self.root), self.name, job_id, seed)]) as (child,):
            said = [child.hear(), child.hear()]
            time.sleep(chosen.uniform(0, 0.3))
            said += child.kill()
        done = sum(isinstance(item, int) for item in said)
        source = random.Random(seed)
        for number in range(done + 1):
            job = job_step(source, f"{job_id}-{number}")
            if number == done:  # whether it was committed or not: afterwards it is there once
                job.run(self.tenant)
            self.note(*job.expected(self.now, {}))
        self.require()


def job_step(chosen, job_id, kind="upsert"):
    rows = {f"key-{chosen.randrange(KEYS)}": chosen.getrandbits(30) for _ in range(100)}
    return Step("job", numbered(job_id, rows, kind), job_id)


def _run_jobs(connection, root, name, job_id, seed):
    tenant, source = open_tenant(root, name), random.Random(seed)
    connection.send("begun")
    for number in range(10_000):
        job_step(source, f"{job_id}-{number}").run(tenant)
        connection.send(number)


def soak(folder, seed, ends, turns):
    """See the module."""
    chosen, root, kept = random.Random(seed), folder / "store", folder / "models.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    tenants = [Soaked(root, name, known.get(name)) for name in TENANTS]
    open_tenant(root, "served")
    samples = Samples(folder, root)
    with served(root) as service, Load(service, TENANTS, samples.seconds) as load:
        samples.service = service.process
        number = 0
        while number == 0 or time.monotonic() < ends:
            with turns(), load.running():
                until = min(time.monotonic() + ROUND_SECONDS, max(ends, time.monotonic() + SAMPLE_SECONDS))
                while time.monotonic() < until:
                    _operate(chosen, chosen.choice(tenants), f"{seed}-{number}", samples)
                    number += 1
                    samples.take_if_due()
            samples.pause()
    for tenant in tenants:
        tenant.require()
    kept.write_text(
        json.dumps(
            {
                tenant.name: (tenant.now[0], {path: data.decode() for path, data in tenant.now[1].items()})
                for tenant in tenants
            }
        )
    )
    counts = samples.counts + load.counts
    return {**counts, "soaked_seconds": round(samples.spent)}, load.wrong


def _operate(chosen, one, job_id, samples):
    kind = chosen.choices(list(OPERATIONS), OPERATIONS.values())[0]
    with samples.timed(kind):
        if kind in ("job", "override"):
            one.do(job_step(chosen, job_id, "override" if kind == "override" else "upsert"))
        elif kind == "read":
            one.require()
        elif kind == "restore":
            one.restore(chosen)
        elif kind == "gc":
            one.tenant.gc()
        elif kind == "erase":
            one.erase(chosen)
        else:
            one.kill(chosen, job_id)


class Samples:
    """Memory, open files, latencies and bytes on the disk, every few seconds of the time that was soaked."""

    def __init__(self, folder, root):
        self.path, self.root = folder / "samples.jsonl", root
        self.seconds = defaultdict(list)
        self.counts = Counter()
        self.service = None
        self.spent = 0.0
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self._before = json.loads(lines[-1])["at_seconds"] if lines else 0
        self._piece = len({json.loads(line)["piece"] for line in lines})
        self._last = None

    @contextlib.contextmanager
    def timed(self, kind):
        began = time.perf_counter()
        yield
        self.seconds[kind].append(time.perf_counter() - began)
        self.counts[kind] += 1

    def pause(self):
        self._last = None

    def take_if_due(self):
        now = time.monotonic()
        if self._last is None:
            self._last = now
        if now - self._last < SAMPLE_SECONDS:
            return
        self.spent, self._last = self.spent + now - self._last, now
        service = [self.service, *self.service.children(recursive=True)]
        # Folders go while they are walked through, which os.walk takes as it comes.
        files = [Path(folder, name) for folder, _, names in os.walk(self.root) for name in names]
        found = {
            "piece": self._piece,
            "at_seconds": round(self._before + self.spent, 1),
            "service_mib": round(sum(item.memory_info().rss for item in service) / 2**20, 1),
            "service_files": sum(item.num_fds() for item in service),
            "jobs_mib": round(psutil.Process().memory_info().rss / 2**20, 1),
            "jobs_files": psutil.Process().num_fds(),
            "disk_mib": round(sum(_size(path) for path in files) / 2**20, 2),
            "disk_files": len(files),
            "threads": threading.active_count(),
        }
        for kind in LATENCIES:
            taken, self.seconds[kind] = self.seconds[kind], []
            if taken:
                found[f"{kind}_ms"] = round(1000 * statistics.median(taken), 1)
                found[f"{kind}_most_ms"] = round(1000 * max(taken), 1)
        with self.path.open("a") as file:
            file.write(json.dumps(found) + "\n")


def _size(path):
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _difference(found, expected):
    return [
        (name, sorted(set(found[0].get(name, {}).items()) ^ set(expected[0].get(name, {}).items()))[:5])
        for name in {*found[0], *expected[0]}
        if found[0].get(name) != expected[0].get(name)
    ] or (found[1], expected[1])
