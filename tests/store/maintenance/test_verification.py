"""Verifying a whole tenant: every file that a listed version needs is read, and damage is named."""

import json

import pyarrow as pa
import pytest
from tests.examples import sampled

from freezeframe.errors import CorruptLog, InputNotFound, StorageUnavailable
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.maintenance.verification import verify_tenant
from freezeframe.store.model.directory import BLOBS_FOLDER, TENANT_LOG_FOLDER


def filled(tenant):
    """Two streams and a file, of which older versions differ; a checkpoint, a tag and a dropped stream."""
    for number in range(11):
        rows = pa.table({"Id": ["a", "b"], "v": [number, number + 1]})
        tenant.stream("Account").update(rows, key="Id")
    tenant.tag("early", 2)
    with tenant.job() as job:
        job.stream("Lead").update(pa.table({"Id": ["x"]}), key="Id")
        job.files.write("a/config.json", b"{}")
    tenant.files.write("a/config.json", b'{"new": 1}')
    return tenant


def damage(storage, name):
    """Change one byte in the middle."""
    content = storage.read(name)
    place = len(content) // 2
    storage.replace(name, content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


def test_a_sound_tenant_is_told_with_what_was_read(open_finding, memory):
    tenant = filled(open_finding(memory))

    told = tenant.verify()

    assert (told.is_sound, told.findings) == (True, ())
    assert (tenant.version, tenant.version + 1, 2, 2) == (
        told.version,
        told.entries,
        told.streams,
        told.blobs,
    )
    data = [item.name for item in memory.list_below("") if item.name.endswith(".parquet")]
    assert len([name for name in data if "_delta_log" not in name]) == told.data_files


@pytest.mark.sampled
def test_every_damaged_file_is_found(open_finding, memory):
    """One changed byte is named by its file; it is undone before the next.

    Hints only say where to begin, and a Parquet checkpoint's footer has no checksum.
    """
    filled(open_finding(memory))
    spared = (f"{TENANT_LOG_FOLDER}/_last_checkpoint", "_freezeframe/format.json", ".checkpoint.parquet")
    names = [item.name for item in memory.list_below("") if not item.name.endswith(spared)]
    missed = []
    for name in sampled(names, 2):
        before = memory.read(name)
        damage(memory, name)
        found = {finding.file for finding in verify_tenant(memory, Settings()).findings}
        if name not in found:
            missed.append((name, found))
        memory.replace(name, before)
    assert missed == []
    assert verify_tenant(memory, Settings()).is_sound


@pytest.mark.parametrize("part", ["Account.snapshot/", f"{TENANT_LOG_FOLDER}/", f"{BLOBS_FOLDER}/"])
def test_a_missing_file_is_found(open_finding, memory, part):
    filled(open_finding(memory))
    name = next(item.name for item in memory.list_below("") if item.name.startswith(part))
    memory.delete(name)

    told = verify_tenant(memory, Settings())

    assert not told.is_sound


def test_a_replaced_entry_is_named_where_the_tenant_does_not_open(open_finding, memory):
    filled(open_finding(memory))
    one, other = (f"{TENANT_LOG_FOLDER}/{version:020d}.json" for version in (12, 13))
    memory.replace(other, memory.read(one))
    with pytest.raises(CorruptLog):
        open_finding(memory)

    told = verify_tenant(memory, Settings())

    assert [other] == [finding.file for finding in told.findings]


def test_a_tables_commit_that_was_replaced_is_found(open_finding, memory):
    """A valid commit that is not the one of the tenant log's entry is damage."""
    filled(open_finding(memory))
    name = f"Account.snapshot/_delta_log/{3:020d}.json"
    lines = memory.read(name).split(b"\n")
    info = json.loads(lines[0])
    info["commitInfo"]["operation"] = "FORGED"
    memory.replace(name, b"\n".join([json.dumps(info, separators=(",", ":")).encode(), *lines[1:]]))

    assert name in {finding.file for finding in verify_tenant(memory, Settings()).findings}


def test_what_a_crash_left_half_way_is_sound(open_finding):
    """A commit that has not landed in its table is laid over, also that of a new stream."""
    counting = FaultyStorage(MemoryStorage())
    open_finding(counting).stream("A").update(pa.table({"Id": ["a"]}), key="Id")
    names = [call.name for call in counting.calls]
    after = names.index(f"{TENANT_LOG_FOLDER}/{0:020d}.json", names.index("_freezeframe/format.json") + 1)
    for number in range(after, len(counting.calls)):
        inner = MemoryStorage()
        storage = FaultyStorage(inner, [Fault(number, Way.CUT_AFTER)])
        with pytest.raises(Crash):
            open_finding(storage).stream("A").update(pa.table({"Id": ["a"]}), key="Id")
        assert verify_tenant(inner, Settings()).findings == ()


def test_it_goes_on_after_an_erasure_and_gc(open_finding, memory):
    tenant = filled(open_finding(memory, gc_grace_seconds=0))
    tenant.set_retention(keep_versions=2)
    tenant.gc()
    assert tenant.verify().findings == ()
    tenant.erase("Account", ["a"])
    assert tenant.verify().findings == ()
    tenant.stream("Lead").release()
    assert tenant.verify().findings == ()
    tenant.adopt("Lead")
    tenant.stream("Lead").update(pa.table({"Id": ["y"]}), key="Id")
    assert tenant.verify().findings == ()


def test_no_tenant_is_an_error(tmp_path):
    with pytest.raises(InputNotFound, match="holds no tenant"):
        verify_tenant(LocalStorage(tmp_path), Settings())


def test_a_failed_read_is_no_finding(open_finding, memory):
    filled(open_finding(memory))
    reads = FaultyStorage(memory)
    verify_tenant(reads, Settings())
    total = sum(call.verb == "read" for call in reads.calls)

    failed = 0
    for number in range(0, total, 7):
        try:
            found = verify_tenant(FaultyStorage(memory, [Fault(number, Way.FAIL_BEFORE, "read")]), Settings())
        except StorageUnavailable:
            failed += 1
        else:
            assert found.findings == ()  # it was read ahead, and again when it was needed
    assert failed > total // 14
