"""What follows a commit: a job of many streams writes some of the checkpoints that are due."""

import hashlib
import os
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from tests import given
from tests.given import fails

from freezeframe.errors import (
    CorruptLog,
    ForeignCommit,
    InvalidName,
    StorageUnavailable,
    StreamNotFound,
    VersionNotFound,
)
from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage, PrefixStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.model.directory import TENANT_LOG_FOLDER, long_commit_file
from freezeframe.store.model.receipt import Counts
from freezeframe.store.tenant_log import roll_forward
from freezeframe.store.tenant_log.entry import Entry, FileChange, StreamChange
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import (
    INLINE_BYTES_MAX,
    base_snapshot,
    derive_copies,
    require_no_case_twin,
    require_stream,
    shorten_entry,
    stream_base,
    table_snapshot,
)
from freezeframe.store.tenant_log.state import TenantState


def checkpoints(storage):
    names = (item.name for item in storage.list_below("") if item.name.endswith(".checkpoint.parquet"))
    found = {}
    for name in names:
        found.setdefault(name.partition("/")[0], []).append(int(name.rpartition("/")[2].partition(".")[0]))
    return found


def test_checkpoints_of_many_streams_are_spread_over_jobs(open_finding, memory, monkeypatch):
    """No job writes more than its share, and no stream waits much longer than the interval for its own."""
    monkeypatch.setattr(roll_forward, "_CHECKPOINTS_AT_ONCE", 2)
    tenant = open_finding(memory, checkpoint_interval=4)
    written = []
    for number in range(12):
        before = sum(map(len, checkpoints(memory).values()))
        with tenant.job() as job:
            for name in "ABCDEF":
                job.stream(name).update(pa.table({"Id": [number], "v": [number]}), key="Id")
        written.append(sum(map(len, checkpoints(memory).values())) - before)

    assert (max(written), sum(written[:4])) == (2, 0)
    for versions in checkpoints(memory).values():
        gaps = [after - before for before, after in zip([0, *versions], [*versions, 11], strict=True)]
        assert max(gaps) <= 8


def test_checkpoints_of_few_streams_come_at_multiples_of_the_interval(open_finding, memory):
    tenant = open_finding(memory, checkpoint_interval=4)
    for number in range(10):
        with tenant.job() as job:
            for name in "AB":
                job.stream(name).update(pa.table({"Id": [number], "v": [number]}), key="Id")

    assert checkpoints(memory) == {"A.snapshot": [4, 8], "B.snapshot": [4, 8]}


def test_what_fails_after_the_commit_fails_no_update(open_finding):
    """Checkpoints that are due look at the logs again: it is committed all the same."""
    tried = 0
    for number in range(30):
        storage = MemoryStorage()
        tenant = open_finding(storage, checkpoint_interval=2)
        for value in range(2):
            tenant.stream("A").update(pa.table({"Id": [value], "v": [value]}), key="Id")
        faulty = FaultyStorage(storage, [Fault(number, Way.FAIL_BEFORE, "list_from")])
        before = 0
        with suppress(StorageUnavailable):
            other = open_finding(faulty, checkpoint_interval=2)
            before = len(faulty.calls)
            try:
                other.stream("A").update(pa.table({"Id": [9], "v": [9]}), key="Id")
            except StorageUnavailable:
                tried += len(faulty.calls) > before
                assert sorted(tenant.stream("A").read(as_="arrow")["v"].to_pylist()) == [0, 1]
            else:
                assert sorted(tenant.stream("A").read(as_="arrow")["v"].to_pylist()) == [0, 1, 9]
        if sum(call.verb == "list_from" for call in faulty.calls) <= number:
            break
    assert tried


def test_the_next_writer_finishes_what_a_dead_one_left(open_finding, memory):
    """Its entry was the commit: the table gets it from whoever writes next, also to another stream."""
    rows = pa.table({"Id": [1], "v": [1]})
    counting = FaultyStorage(memory)
    open_finding(counting).stream("A").update(rows, key="Id")
    (entry,) = (
        number
        for number, call in enumerate(counting.calls)
        if call.verb == "put_if_absent" and call.name.startswith(f"{TENANT_LOG_FOLDER}/")
    )
    storage = MemoryStorage()
    with pytest.raises(Crash):
        open_finding(FaultyStorage(storage, [Fault(entry, Way.CUT_AFTER)])).stream("A").update(rows, key="Id")
    assert DeltaLog(storage, "A.snapshot").update().version == -1
    open_finding(storage).stream("B").update(rows, key="Id")
    assert DeltaLog(storage, "A.snapshot").update().to_arrow().select(["Id", "v"]).equals(rows)


def test_long_commits_leave_the_entry():
    """Each that is longer than the limit is named by its SHA-256; a short entry stays as it is."""
    long, short = (
        StreamChange(StreamName(name), 0, "x" * size, Counts())
        for name, size in (("A", INLINE_BYTES_MAX + 1), ("B", INLINE_BYTES_MAX))
    )
    entry = Entry("w", 1, (long, short, FileChange("a", None)))
    digest = hashlib.sha256(long.content.encode()).hexdigest()
    shortened = replace(entry, changes=(replace(long, content="", sha256=digest), *entry.changes[1:]))

    assert shorten_entry(entry) == (shortened, {digest: long.content.encode()})
    assert shorten_entry(shortened) == (shortened, {})


def test_a_table_and_the_tenant_log_must_agree(open_finding, memory):
    """A reader lays the newest commit over a table that lacks it; nothing is written on one that differs."""
    for number in range(3):
        open_finding(memory).stream("A").update(pa.table({"Id": [number], "v": [number]}), key="Id")
    name = StreamName("A")

    def log_of(last):
        """Return the tenant log beside a table whose own log ends at that version."""
        storage, commits = MemoryStorage(), "A.snapshot/_delta_log/"
        for item in memory.list_below(""):
            if not item.name.startswith(commits):
                storage.replace(item.name, memory.read(item.name))
        for version in range(last + 1):
            content = memory.read(f"{commits}{min(version, 2):020}.json")
            storage.replace(f"{commits}{version:020}.json", content)
        return (log := TenantLog(storage, Settings())), log.current_state()

    for last in (1, 2, 3):
        assert (last, 3) == (last, table_snapshot(*log_of(last), name).to_arrow().num_rows)
    assert stream_base(*log_of(1), name).version == base_snapshot(*log_of(2), name).version == 2
    for read, last in ((base_snapshot, 1), (table_snapshot, 0), (stream_base, 0)):
        with fails(CorruptLog, "'A' lacks version 2", cause=f"ends at version {last}", remedy="one backup"):
            read(*log_of(last), name)
    for read in (base_snapshot, stream_base):
        with fails(ForeignCommit, "'A' has a commit 3", cause="versions up to 2", remedy="('A').repair()"):
            read(*log_of(3), name)


def test_what_is_not_there_is_named(open_finding, memory):
    """The errors say which streams and versions there are; a name must differ by more than its case."""
    open_finding(memory).stream("A").update(pa.table({"Id": [1], "v": [1]}), key="Id")
    log = TenantLog(memory, Settings())
    state = log.current_state()

    for there, streams in ((state, "A"), (TenantState(), "none")):
        with fails(StreamNotFound, "stream 'B' in", cause=f"are: {streams}.", remedy="by a first update"):
            require_stream(there, StreamName("B"))
    for version in (-1, 1):
        with fails(VersionNotFound, f"no version {version}", cause="are 0 to 0", remedy="for the newest"):
            table_snapshot(log, state, StreamName("A"), version)
    with fails(InvalidName, "'a' differs from the stream 'A' only by", cause="one folder", remedy="Use 'A'"):
        require_no_case_twin({"A"}, StreamName("a"))
    require_no_case_twin(("A", "a"), StreamName("a"))


def test_a_staged_commit_is_the_one_that_its_entry_names(memory):
    content = b'{"commitInfo":{}}\n'
    digest = hashlib.sha256(content).hexdigest()
    change = StreamChange(StreamName("A"), 1, "", Counts(), sha256=digest)
    for damage in (None, b'{"commitInfo":[]}\n'):
        if damage is not None:
            memory.put_if_absent(long_commit_file(digest), damage)
        with pytest.raises(CorruptLog, match="gone or damaged"):
            roll_forward.change_content(TenantLog(memory, Settings()), change)
    memory.replace(long_commit_file(digest), content)
    assert content.decode() == roll_forward.change_content(TenantLog(memory, Settings()), change)


@pytest.fixture
def tenant(open_on, local):
    return open_on(local)


def test_a_script_finds_files_by_name(tenant, tmp_path):
    """What was written, moved and deleted is so in the directory, empty folders included."""
    root = tmp_path / "snapshots"
    tenant.files.write("folder/deep/a.txt", b"1")
    assert (root / "folder/deep/a.txt").read_bytes() == b"1"
    tenant.files.move("folder/deep/a.txt", "folder")
    assert (root / "folder").read_bytes() == b"1"
    tenant.files.delete("folder")
    assert not (root / "folder").exists()


def test_a_changed_copy_is_not_the_file(tenant, tmp_path):
    """Reading gives the version that was committed; the next change derives the copy anew."""
    tenant.files.write("a", b"1")
    (tmp_path / "snapshots" / "a").write_bytes(b"forged")
    assert tenant.files.read("a") == b"1"
    tenant.files.write("a", b"2")
    assert (tmp_path / "snapshots" / "a").read_bytes() == b"2"


def test_a_slow_writer_never_brings_an_old_file_back(tenant, open_on, local, tmp_path):
    """The newest version is looked up anew, whatever change asks for the copy."""
    tenant.files.write("a", b"1")
    open_on(local).files.write("a", b"2")
    derive_copies(tenant.context.log, ["a"])
    assert (tmp_path / "snapshots" / "a").read_bytes() == b"2"


def test_a_copy_that_cannot_be_written_costs_nothing_else(tenant, tmp_path, caplog):
    """A folder in the way, or a planted link, loses the copy only, and the link's target is untouched."""
    (tmp_path / "snapshots" / "a").mkdir(parents=True)
    (tmp_path / "snapshots" / "link").symlink_to(tmp_path)
    tenant.files.write("a", b"1")
    tenant.files.write("link/b", b"2")
    assert [tenant.files.read(path) for path in ("a", "link/b")] == [b"1", b"2"]
    assert not (tmp_path / "b").exists()
    assert caplog.text.count("could not be written") == 2


def test_secrets_and_tenants_of_a_store_have_no_copies(local, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    tenant = given.tenant(local, master_key_file=key)
    tenant.files.write("a", b"1")
    tenant.files.write("a", b"2", sealed=True)
    assert not (tmp_path / "snapshots" / "a").exists()
    place = PrefixStorage(local, f"tenants/{'a' * 32}")
    given.tenant(place).files.write("a", b"1")
    assert not place.local_path("a").exists()
