"""Races of commits and of mixed jobs, the tenant state machine and power losses, for a time."""

import json
import logging
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
from tests import given
from tests.buckets import seaweed_bucket
from tests.power_loss.scenarios import SCENARIOS
from tests.power_loss.states import record_scenarios, try_states
from tests.stateful import test_concurrent_commits as concurrent_commits
from tests.stateful import test_mixed_jobs as mixed_jobs
from tests.store import test_tenant_machine as tenant_machine

from freezeframe.storage import LocalStorage

WRITERS, JOBS, JOBS_AT_ONCE = 16, 200, 5
COMMITTERS, COMMITS_AT_ONCE = 8, 500
EXAMPLES = 8  # at once
STATES = {"tenant": 200, "registry": 500, "uploads": 1000, "control": 300}  # at once, by what they take


def commits(folder, seed, ends, turns):
    """Eight processes commit to one table at once; what was acknowledged is there once."""
    return _commits(LocalStorage, lambda number: folder / f"round-{number}", ends, turns)


def commits_in_bucket(folder, seed, ends, turns):
    """The same in a bucket of SeaweedFS on this machine: each commit is a conditional put."""
    with seaweed_bucket(folder) as bucket:
        place = f"s3://{bucket}/round-"
        return _commits(concurrent_commits.in_bucket, lambda number: f"{place}{number}", ends, turns)


def _commits(kind, root_of, ends, turns):
    counts, wrong = Counter(), []
    while not counts or (time.monotonic() < ends and not wrong):
        root = root_of(counts["rounds"])
        with turns():
            acknowledged = concurrent_commits.race_commits(kind, root, COMMITTERS, COMMITS_AT_ONCE)
        wrong += concurrent_commits.violations(kind(root), acknowledged)
        counts.update(commits=len(acknowledged), rounds=1)
        shutil.rmtree(root, ignore_errors=True)
    return dict(counts), wrong


def machine(folder, seed, ends, turns):
    """Operations of a tenant in any order, with crashes, against plain dictionaries."""
    logging.getLogger("freezeframe").setLevel(logging.CRITICAL)
    pa.set_cpu_count(1)
    steps = 0
    while steps == 0 or time.monotonic() < ends:
        with turns():
            steps += tenant_machine.run(given.tenant, examples=EXAMPLES, steps=25)
    return {"steps": steps}, []


def mixed(folder, seed, ends, turns):
    """16 processes with 200 mixed jobs each on one tenant; a piece goes on where the last one stopped."""
    counts, wrong = Counter(), []
    while not counts or (time.monotonic() < ends and not wrong):
        tenant = folder / "tenant"
        tenant.mkdir(exist_ok=True)
        kept = folder / "acknowledged.json"
        before = [tuple(load) for load in json.loads(kept.read_text())] if kept.exists() else []
        done = len({job[1:] for job in before}) // WRITERS
        with turns():
            acknowledged, seen = mixed_jobs.race_jobs(
                tenant, WRITERS, done + JOBS_AT_ONCE, read_every=5, seconds=600, first=done
            )
            opened = given.tenant(LocalStorage(tenant))
            newest, others = mixed_jobs.content(opened), mixed_jobs.without_job(opened)
        acknowledged = before + acknowledged
        wrong += mixed_jobs.violations(acknowledged, seen, newest, others)
        kept.write_text(json.dumps(acknowledged))
        counts.update(jobs=WRITERS * JOBS_AT_ONCE, reads=len(seen))
        if done + JOBS_AT_ONCE >= JOBS and not wrong:
            counts["tenants"] += 1
            shutil.rmtree(tenant)
            kept.unlink()
    return dict(counts), wrong


def power(folder, seed, ends, turns):
    """States after a power loss, of recordings of all that we keep on a disk."""
    logging.getLogger("freezeframe").setLevel(logging.CRITICAL)
    counts, wrong, known = Counter(), [], {name: set() for name in SCENARIOS}
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else folder) as place:
        with turns():
            calls = record_scenarios(Path(place))
        while not counts or (time.monotonic() < ends and not wrong):
            for name, states in STATES.items():
                with turns():
                    found, seen = try_states(
                        name,
                        Path(place),
                        calls,
                        f"{seed}/{counts.total()}",
                        states_max=states,
                        known=known[name],
                    )
                counts.update(found)
                wrong += seen
    return {"states": counts.total(), **counts}, wrong
