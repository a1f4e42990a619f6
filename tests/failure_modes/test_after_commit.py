"""What fails after the commit point fails nothing: the job is told as committed at each door."""

import pyarrow as pa
import pytest
from tests.examples import sampled

from freezeframe.errors import FreezeframeError, OutcomeUnknown, StorageUnavailable
from freezeframe.runs.job_root import JobRoot, ScriptResult
from freezeframe.runs.running import find_receipt
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import VERBS, Fault, FaultyStorage, Way
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store

DOORS = {}
ROWS = pa.table({"Id": ["1", "2"], "v": [1, 2]})
SETTINGS = Settings(
    engine="auto", gc_grace_seconds=0, lease_dead_seconds=0, checkpoint_interval=2, keep_versions=2
)


def door(function):
    """One of the calls that commit."""
    DOORS[function.__name__] = function
    return function


@door
def update(tenant):
    return tenant.stream("Account").update(ROWS, key="Id", override=True)


@door
def job(tenant):
    with tenant.job("j") as done:
        done.stream("Account").update(pa.table({"Id": ["3"], "v": [3]}), key="Id")
        done.stream("New").update(ROWS, key="Id")
        done.files.write("a/state.json", b"2")
    return done.receipt


@door
def job_of_nothing(tenant):
    with tenant.job("nothing") as done:
        done.stream("Account").update(pa.table({"Id": ["1"], "v": [1]}), key="Id")
    return done.receipt


@door
def patch(tenant):
    return tenant.files.patch_json("state.json", {"a": 1})


@door
def move(tenant):
    return tenant.files.move("state.json", "moved.json")


@door
def delete(tenant):
    return tenant.files.delete("state.json")


@door
def file(tenant):
    return tenant.files.write("a/state.json", b"2")


@door
def restore(tenant):
    return tenant.restore(tenant.version - 1)


@door
def drop(tenant):
    return tenant.drop_stream("Account")


@door
def tag(tenant):
    return tenant.tag("t")


def store_on(storage):
    return Store(storage, ArrowEngine(storage), SETTINGS)


def prepared(inner):
    """A store with a tenant of three versions, so that the next commit writes checkpoints and collects."""
    tenant = store_on(inner).tenant("acme", create=True)
    for number in range(3):
        with tenant.job() as work:
            work.stream("Account").update(pa.table({"Id": ["1"], "v": [1 - number % 2]}), key="Id")
            work.files.write("state.json", b"{}" if number else b"[]")


def copied(storage):
    """A storage with the same files."""
    copy = MemoryStorage()
    for status in storage.list_below(""):
        copy.put_if_absent(status.name, storage.read(status.name))
    return copy


@pytest.mark.sampled
@pytest.mark.parametrize("name", sampled(DOORS, 3))
def test_a_call_that_fails_after_the_commit_fails_nothing(name):
    """Each call of the storage of one door after another is refused, or its answer is lost."""
    first = MemoryStorage()
    prepared(first)
    tried = 0
    for verb in VERBS:
        for way in (Way.FAIL_BEFORE, Way.FAIL_AFTER):
            number = 0
            while True:
                inner = copied(first)
                before = store_on(inner).tenant("acme").version
                storage = FaultyStorage(inner, [])
                tenant = store_on(storage).tenant("acme")
                begun = sum(call.verb == verb for call in storage.calls)
                storage._plan = (Fault(begun + number, way, verb),)
                error = None
                try:
                    DOORS[name](tenant)
                except FreezeframeError as raised:
                    error = raised
                after = store_on(inner).tenant("acme").version
                seen = f"{name} at {verb} {number} ({way.value}): {error!r}"
                if error is None or isinstance(error, OutcomeUnknown):
                    assert error is not None or after == before + 1, seen
                else:
                    assert after == before, seen
                if sum(call.verb == verb for call in storage.calls) <= begun + number:
                    break
                number += 1
                tried += 1
    assert tried > 10


def test_a_run_is_told_as_committed_while_the_log_cannot_be_read(tmp_path):
    """What the script's process said counts then; without its word the run ends with the storage's error."""
    inner = MemoryStorage()
    prepared(inner)
    receipt = job(store_on(inner).tenant("acme"))
    root = JobRoot(tmp_path)
    root.own.mkdir(parents=True)
    refused = FaultyStorage(inner)
    tenant = store_on(refused).tenant("acme")
    refused._plan = tuple(Fault(call, Way.FAIL_BEFORE) for call in range(1000))
    with pytest.raises(StorageUnavailable):
        find_receipt(tenant, "j", root)
    ScriptResult(receipt.to_json(), None, 0).write(root)
    assert receipt.tenant_version == find_receipt(tenant, "j", root).tenant_version
