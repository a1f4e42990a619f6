"""A version that is committed is acknowledged, whichever storage call fails after its commit."""

import itertools
import json
import os
import re
from contextlib import nullcontext, suppress
from functools import partial

import pyarrow as pa
import pytest
from obstore.store import MemoryStore
from tests.buckets import made_bucket
from tests.examples import by_turns, sampled
from tests.given import settings_with

from freezeframe.errors import ForeignCommit
from freezeframe.log import DeltaLog
from freezeframe.log.segments.commit import write_commit
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.location import S3Access
from freezeframe.storage.memory import Fault, FaultyStorage, Way
from freezeframe.storage.objects import ObjectStorage
from freezeframe.store import Store
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.maintenance import garbage

ROWS = pa.table({"Id": ["1", "2"], "v": [1, 2]})
NEW = pa.table({"Id": ["2", "3"], "v": [7, 8]})
COMMIT = re.compile(r"(.*/_freezeframe/log|_freezeframe/registry)/\d{20}\.json")


def a_job(tenant):
    with tenant.job("night") as job:
        job.stream("Account").update(NEW, key="Id")
        job.stream("Lead").update(NEW, key="Id")
        job.files.write_text("report.txt", "new")


def a_job_of_nothing(tenant):
    with tenant.job("nothing") as job:
        job.stream("Account").update(ROWS.slice(1), key="Id")


def a_released_stream_taken_back(tenant):
    tenant.stream("Account").release()
    tenant.adopt("Account")


def a_foreign_commit(tenant, *, undo):
    storage = tenant.context.storage
    paths = DeltaLog(storage, "Account.snapshot").update().files["path"].to_pylist()
    removed = [{"remove": {"path": path, "dataChange": True, "deletionTimestamp": 1}} for path in paths]
    info = {"commitInfo": {"timestamp": 1, "inCommitTimestamp": 10**13, "operation": "X"}}
    text = "".join(json.dumps(line) + "\n" for line in (info, *removed))
    write_commit(storage, "Account.snapshot", 2, text.encode())
    tenant.stream("Account").repair(undo=undo)


# Erasures, collections and deleted tenants are not among these: what they must tell is that files are left.
DOORS = {
    "update": lambda tenant: tenant.stream("Account").update(NEW, key="Id"),
    "new stream": lambda tenant: tenant.stream("Lead").update(NEW, key="Id"),
    "job": a_job,
    "job of nothing": a_job_of_nothing,
    "file": lambda tenant: tenant.files.write_text("report.txt", "new"),
    "file of JSON patched": lambda tenant: tenant.files.patch_json("config.json", {"a": 2}),
    "file moved": lambda tenant: tenant.files.move("report.txt", "old/report.txt"),
    "file deleted": lambda tenant: tenant.files.delete("report.txt"),
    "stream restored": lambda tenant: tenant.stream("Account").restore(0),
    "tenant restored": lambda tenant: tenant.restore(0),
    "stream dropped": lambda tenant: tenant.drop_stream("Account"),
    "tag": lambda tenant: tenant.tag("before the night"),
    "untag": lambda tenant: tenant.untag("first"),
    "retention": lambda tenant: tenant.set_retention(keep_versions=2),
    "release": lambda tenant: tenant.stream("Account").release(),
    "stream adopted": a_released_stream_taken_back,
    "foreign commit adopted": partial(a_foreign_commit, undo=False),
    "foreign commit undone": partial(a_foreign_commit, undo=True),
    "retype": lambda tenant: tenant.stream("Account").retype("v", "double"),
}
STORE_DOORS = {
    "tenant created": lambda store: store.tenant("globex", create=True),
    "tenant cloned": lambda store: store.clone_tenant("acme", "globex"),
}


def opened(storage):
    """The store, with a checkpoint and the retention's policy due after each version."""
    settings = settings_with(checkpoint_interval=1, gc_grace_seconds=0, engine="auto")
    return Store(storage, ArrowEngine(), settings)


def through(door, store):
    """Do what the door does."""
    (STORE_DOORS[door](store)) if door in STORE_DOORS else DOORS[door](store["acme"])


KINDS = ["objects", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("disk", "moto"))]


@pytest.fixture(params=KINDS)
def prepared(request, tmp_path, monkeypatch):
    """A function that gives a new storage with a tenant of two versions and two files.

    A bucket, in memory or of a server, is one that is not trusted: each commit is read back.
    """
    monkeypatch.setattr(garbage, "_COMMITS", 1)
    memory = MemoryStorage()
    tenant = opened(memory).tenant("acme", create=True)
    tenant.stream("Account").update(ROWS, key="Id")
    tenant.stream("Account").update(ROWS.slice(1), key="Id", override=True)
    tenant.files.write_text("report.txt", "old")
    tenant.files.write_json("config.json", {"a": 1})
    tenant.set_retention(keep_versions=5)
    tenant.tag("first")
    numbers = itertools.count()

    def new(bucket=""):
        match request.param:
            case "objects":
                storage = ObjectStorage(MemoryStore(), "memory://bucket", is_trusted=False)
            case "disk":
                storage = LocalStorage(tmp_path / f"{next(numbers)}")
            case _:
                options = S3Access.of_variables(os.environ).obstore_options()
                storage = ObjectStorage.at(f"s3://{bucket}/{next(numbers)}", **options)
        for name, (content, _) in memory._files.items():
            storage.put_if_absent(name, content)
        return storage

    with made_bucket() if request.param == "moto" else nullcontext() as bucket:
        yield partial(new, bucket)


def content_of(storage):
    """What a new process reads: each tenant's version, and the content of its streams and files."""
    store, found = opened(storage), {}
    for name in store:
        tenant = store[name]
        streams = {name: tenant[name].to_arrow().sort_by("Id").to_pylist() for name in tenant.streams()}
        files = {entry.path: tenant.files.read(entry.path) for entry in tenant.files.list(recursive=True)}
        found[name] = (tenant.version, streams, files)
    return found


def updated(storage):
    """What the next update makes of it: it brings rows that are there, or were there before."""
    tenant = opened(storage)["acme"]
    with suppress(ForeignCommit):  # the stream is released
        tenant.stream("Account").update(ROWS.slice(1), key="Id")
    return content_of(storage)


@pytest.mark.sampled
@pytest.mark.parametrize("door", [*DOORS, *STORE_DOORS])
def test_no_failure_after_the_commit_fails_the_caller(prepared, door):
    """Each call after the commit fails in turn, before or after its effect: the caller is not disturbed."""
    inner = prepared()
    storage = FaultyStorage(inner)
    store = opened(storage)
    before = len(storage.calls)
    through(door, store)
    calls = storage.calls
    puts = [number for number, call in enumerate(calls) if call.verb == "put_if_absent"]
    commit = max(number for number in puts if COMMIT.fullmatch(calls[number].name))
    assert commit >= before
    expected, then = content_of(inner), updated(inner)
    after = range(commit + 1, len(calls))
    assert len(after) > 1 or door in STORE_DOORS  # a disk is not read after a tenant's registration
    for number in sampled(after, every=3):
        for way in by_turns((Way.FAIL_BEFORE, Way.FAIL_AFTER), number):
            inner = prepared()
            through(door, opened(FaultyStorage(inner, [Fault(number, way)])))
            assert content_of(inner) == expected, (calls[number], way)
            assert updated(inner) == then, (calls[number], way)
