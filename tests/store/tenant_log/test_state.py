"""A tenant's state as a checkpoint, which has all of it."""

import json
from dataclasses import replace

import pytest
from tests.given import fails

from freezeframe.clock import now_ms
from freezeframe.errors import CorruptLog
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store.tenant_log.entry import (
    THIS_VERSION,
    Chain,
    Entry,
    FileChange,
    TenantChange,
    to_signed_line,
)
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import (
    HeldFile,
    JobRecord,
    TenantState,
    file_entry,
    file_revision,
    parse_checkpoint,
)

HELD = HeldFile("w/blob", "5a" * 32, 7, sealed=True, version=4, modified_ms=40_000)
STATE = TenantState(
    version=9,
    timestamp_ms=90,
    streams={"Account": 3, "Lead": 0},
    dropped={"Old": 2},
    files={"a/b.json": HELD},
    jobs={"first": JobRecord(4, 40, {"status": "done"}), "second": JobRecord(5, 50)},
    tags={"go-live": 2},
    revoked={"w1": 60},
    revoked_tokens={"t1": 41, "t2": 61},
    policy={"keep_versions": 5},
    floor=3,
    floor_ms=33,
    floor_before=2,
    erased=1,
    chain=Chain("ab" * 32, is_begun=True),
)


@pytest.mark.parametrize("oldest", [0, 40, 41, 62])
def test_a_checkpoint_has_all_of_a_state_but_old_jobs(oldest):
    """Jobs and tokens from before a moment are left out; all else is read as it was written."""
    kept = {
        "jobs": {name: job for name, job in STATE.jobs.items() if job.timestamp_ms >= oldest},
        "revoked_tokens": {name: since for name, since in STATE.revoked_tokens.items() if since >= oldest},
    }

    assert replace(STATE, **kept) == parse_checkpoint(STATE.to_checkpoint(oldest), "9.json")


def test_a_checkpoint_of_an_early_release_is_read():
    """It has versions of streams alone, and no hash; what it does not name is as in an empty tenant."""
    record = {"version": 2, "timestamp": 20, "streams": {"Account": 1}}

    assert TenantState(2, 20, {"Account": 1}, chain=Chain(None)) == parse_checkpoint(
        json.dumps(record).encode() + b"\n", "2.json"
    )
    erased = parse_checkpoint(to_signed_line({**record, "floor": [2, 5], "erased": 2}), "2.json")
    assert (2, 5, 2, 2) == (erased.floor, erased.floor_ms, erased.floor_before, erased.erased)


def test_a_damaged_checkpoint_is_named():
    """The error says what can be done: a checkpoint is made anew."""
    for content in (STATE.to_checkpoint()[:-9], b"[]", b'{"version": 1}'):
        with fails(CorruptLog, "checkpoint '9.json' cannot be read", cause="cut off", remedy="Delete it"):
            parse_checkpoint(content, "9.json")


def test_a_file_is_told_as_it_is_held():
    """Its metadata, its revision in an entry, and the change that restores it say the same."""
    change = FileChange("a/b.json", "w/blob", "5a" * 32, 7, sealed=True)
    entry = Entry("w", 40_000, (change,), job_id="j", author="ann", message="m")
    told, revision = file_entry("a/b.json", HELD), file_revision(4, entry, change)

    assert change == HELD.to_change("a/b.json")
    assert {"a/b.json": HELD} == TenantState(3).after(4, entry).files
    assert (told.path, told.size, told.sha256, told.sealed, told.version) == (
        "a/b.json", 7, "5a" * 32, True, 4,
    )  # fmt: skip
    assert (revision.version, revision.deleted, revision.size, revision.sha256, revision.sealed) == (
        4, False, 7, "5a" * 32, True,
    )  # fmt: skip
    assert (told.modified, "j", "ann", "m") == (
        revision.modified, revision.job_id, revision.author, revision.message,
    )  # fmt: skip
    gone = replace(entry, changes=(FileChange("a/b.json", None),))
    assert TenantState(3).after(4, entry, gone).files == {}
    assert file_revision(5, gone, gone.changes[0]).deleted


def test_versions_are_asked_of_a_state():
    """Listed are those from the floor on and tagged ones; a dropped stream has a table, and no version."""
    assert [2, 3, 9] == [version for version in (0, 2, 3, 9, 10) if STATE.is_listed(version)]
    assert (2, 1, 2) == (STATE.kept_from(), STATE.kept_from(1), STATE.kept_from(8))
    names = [StreamName(name) for name in ("Account", "Old", "None")]
    assert [3, -1, -1] == [STATE.table_version(name) for name in names]
    assert [3, 2, -1] == [STATE.base_version(name) for name in names]
    assert (91, 91, 92) == tuple(STATE.next_timestamp_ms(now) for now in (0, 91, 92))


@pytest.mark.parametrize(
    ("change", "then"),
    [
        ({"floor": 5}, {"floor": 5, "floor_ms": 95, "floor_before": 3}),
        ({"floor": THIS_VERSION}, {"floor": 10, "floor_ms": 95, "floor_before": 10, "erased": 10}),
        ({"tags": {"go-live": None, "end": 8}}, {"tags": {"end": 8}}),
        ({"policy": {}}, {"policy": {}}),
        ({"revoked": ("w2",)}, {"revoked": {"w1": 60, "w2": 95}}),
        ({"revoked_tokens": ("t3",)}, {"revoked_tokens": {"t1": 41, "t2": 61, "t3": 95}}),
        ({"dropped": ("Lead",)}, {"streams": {"Account": 3}, "dropped": {"Old": 2, "Lead": 0}}),
        ({"released": ("Lead",)}, {"streams": {"Account": 3}}),
    ],
)
def test_a_change_of_the_tenant_changes_nothing_else(change, then):
    """What an entry does not name stays; only an erasure begins the past anew."""
    before = replace(STATE, chain=Chain())
    entry = Entry("w", 95, (TenantChange(**change),))

    assert before.after(10, entry) == replace(
        before, version=10, timestamp_ms=95, head=entry, chain=Chain(entry.sha256), **then
    )


def test_the_oldest_entry_that_a_job_needs():
    """It is the entry of the first job whose id is still known and whose receipt is nowhere else."""
    now, day_ms = now_ms(), 86_400_000
    log = TenantLog(MemoryStorage(), Settings(job_id_days=1))
    jobs = {
        "old": JobRecord(1, now - 2 * day_ms),
        "kept": JobRecord(3, now, {"status": "done"}),
        "first": JobRecord(5, now),
        "second": JobRecord(7, now),
    }

    assert (5, 9) == tuple(log.oldest_receipt(TenantState(9, now, jobs=kept)) for kept in (jobs, {}))
