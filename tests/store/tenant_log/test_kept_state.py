"""The state of a table beside its newest commit: what it spares, and when it is not believed."""

import gc
import hashlib
import json
from contextlib import nullcontext

import pyarrow as pa
import pytest
from tests.given import fails, rows_of, table

from freezeframe.errors import ForeignCommit, StorageUnavailable
from freezeframe.log import DeltaLog
from freezeframe.log.format.actions import Add, CommitInfo, Metadata, Protocol, Remove, parse_line
from freezeframe.log.primitives.paths import checkpoint_name, commit_name, state_name
from freezeframe.log.segments.commit import write_commit
from freezeframe.log.segments.commit_content import CommitContent, sign_content
from freezeframe.storage import LocalStorage
from freezeframe.storage.memory import Crash

FOLDER = "A.snapshot/_delta_log"


class WatchedStorage(LocalStorage):
    """A directory that notes what is read of the log; where an error is given, no state can be written."""

    def __init__(self, root, error=None):
        super().__init__(root)
        self.names = []
        self.error = error

    def read(self, name, offset=0, length=None):
        self.names += [name.removeprefix(f"{FOLDER}/")] if name.startswith(FOLDER) else []
        return super().read(name, offset, length)

    def replace(self, name, content, *, durable=True):
        if self.error is not None and name.endswith(".state"):
            raise self.error
        super().replace(name, content, durable=durable)


def states(storage):
    return [item.name for item in storage.list_from(FOLDER) if item.name.endswith(".state")]


def account(storage):
    """All that the newest version of the table is, as a process finds that opens it first."""
    found = DeltaLog(storage, "A.snapshot").current_snapshot
    heads = (found.protocol, found.metadata, found.commit_info, found.transactions, found.domains)
    first = (found.version, found.count, found.size, *heads, found.to_arrow().to_pylist())
    return (*first, *(sorted(map(str, part.to_pylist())) for part in (found.files, found.tombstones)))


def account_of_log(storage):
    """``account`` where no state is beside the commit."""
    kept = {f"{FOLDER}/{name}": storage.read(f"{FOLDER}/{name}") for name in states(storage)}
    for name in kept:
        storage.delete(name)
    found = account(storage)
    for name, content in kept.items():
        storage.replace(name, content)
    return found


CHANGES = [
    lambda stream: stream.update(table(1, 2, 3), key="Id"),
    lambda stream: stream.update(table(3, 4).set_column(1, "v", pa.array([30, 4]))),
    lambda stream: stream.update(pa.table({"Id": ["1"], "w": ["a column"]})),
    lambda stream: stream.update(table(*range(100))),
    lambda stream: stream.update(table(*range(90)), mode="full"),
    lambda stream: stream.update(table(500), drop_column="w"),
    lambda stream: stream.restore(1),
    lambda stream: stream.retype("v", "double"),
    lambda stream: stream.update(table(9, 10), override=True),
]


@pytest.mark.parametrize("vectors_from_bytes", [1, 1 << 30])
def test_the_state_beside_a_commit_is_what_the_log_tells(open_finding, local, vectors_from_bytes):
    """After each kind of change, with deletion vectors and without, over checkpoints; there is one state."""
    for number, change in enumerate(CHANGES):
        DeltaLog.clear_cache()  # as in a process of its own
        options = {"checkpoint_interval": 3, "vectors_from_bytes": vectors_from_bytes}
        change(open_finding(local, **options).stream("A"))
        assert states(local) == [state_name(number)]
        assert account(local) == account_of_log(local)


def filled(open_finding, storage, updates=4):
    """A tenant whose stream has that many versions, the last of them written by a process of its own."""
    tenant = open_finding(storage, checkpoint_interval=3)
    for number in range(updates):
        tenant.stream("A").update(table(number), key="Id")
    DeltaLog.clear_cache()
    return tenant


def parsed_commits():
    """The commits that are in memory."""
    return [item for item in gc.get_objects() if isinstance(item, CommitContent)]


def test_with_the_state_nothing_else_of_the_log_is_read(open_finding, tmp_path):
    """Neither checkpoint nor older commits; what a commit of others adds is read from the log."""
    filled(open_finding, LocalStorage(tmp_path), 5)
    storage, others = WatchedStorage(tmp_path), parsed_commits()
    snapshot = DeltaLog(storage, "A.snapshot").current_snapshot
    assert snapshot.count == snapshot.files.num_rows
    assert storage.names == ["_last_checkpoint", commit_name(4), state_name(4)]
    assert len(parsed_commits()) == len(others)


def test_gc_keeps_what_a_table_needs_whose_checkpoint_is_damaged(open_finding, local):
    """Its state spares reading the checkpoint, and so does not tell that the files below are needed."""
    tenant = filled(open_finding, local, 7)
    expected = account_of_log(local)
    local.replace(f"{FOLDER}/{checkpoint_name(6)}", b"no parquet")
    tenant.set_retention(keep_versions=1)
    DeltaLog.clear_cache()
    open_finding(local, gc_grace_seconds=0).gc()
    DeltaLog.clear_cache()
    assert account_of_log(local)[:-1] == expected[:-1]


def damaged(content):
    """The state after what may befall it, by what did."""
    head, _, rest = content.partition(b"\n")
    other = json.loads(head)
    other["commitInfo"]["stateOf"]["writeId"] = "0" * 32
    unsigned = json.loads(head)
    del unsigned["commitInfo"]["contentSha256"]
    wrong = rest.replace(b'"numRecords', b'"numRecordz')
    other["commitInfo"]["contentSha256"] = hashlib.sha256(wrong).hexdigest()
    return {
        "empty": b"",
        "zeros": bytes(len(content)),
        "cut off": content[:-20],
        "another number": head + b"\n" + wrong,
        "another commit's": json.dumps(other).encode() + b"\n" + wrong,
        "without a digest": json.dumps(unsigned).encode() + b"\n" + wrong,
    }


@pytest.mark.parametrize("damage", damaged(b'{"commitInfo":{"stateOf":{},"contentSha256":""}}\n'))
def test_a_state_that_is_damaged_or_of_another_commit_is_not_used(open_finding, local, damage):
    """As a power loss leaves one, and a copy of a folder of before."""
    filled(open_finding, local)
    expected, name = account_of_log(local), f"{FOLDER}/{state_name(3)}"
    local.replace(name, damaged(local.read(name))[damage])
    assert account(local) == expected
    tenant = open_finding(local)
    assert tenant.verify().findings == ()
    tenant.stream("A").update(table(9))
    assert [row["v"] for row in rows_of(tenant, "A")] == [0, 1, 2, 3, 9]


def test_a_state_of_an_older_version_is_not_used(open_finding, local):
    """It is left where a writer died between the commit and its state."""
    tenant = filled(open_finding, local)
    old = local.read(f"{FOLDER}/{state_name(3)}")
    tenant.stream("A").update(table(9))
    local.delete(f"{FOLDER}/{state_name(4)}")
    for name in (state_name(3), state_name(4)):
        local.replace(f"{FOLDER}/{name}", old)
        assert account(local) == account_of_log(local)


@pytest.mark.parametrize(
    "error", [Crash(), StorageUnavailable("no", cause="a test", remedy="none"), ValueError("a number")]
)
def test_an_update_does_not_depend_on_its_state(open_finding, tmp_path, caplog, error):
    """It is committed where the state cannot be written, and where its writer dies before."""
    filled(open_finding, LocalStorage(tmp_path))
    with pytest.raises(Crash) if isinstance(error, Crash) else nullcontext():
        open_finding(WatchedStorage(tmp_path, error)).stream("A").update(table(9))
    assert caplog.messages == []
    DeltaLog.clear_cache()
    local = LocalStorage(tmp_path)
    assert [row["v"] for row in rows_of(open_finding(local), "A")] == [0, 1, 2, 3, 9]
    assert account(local) == account_of_log(local)
    open_finding(local).stream("A").update(table(10))
    assert states(local)[-1:] == [state_name(5)]


def test_a_commit_of_others_is_found_beside_a_state(open_finding, local):
    """Reads stay at the tenant log's version, and writes wait for a repair."""
    tenant = filled(open_finding, local)
    info = {"operation": "WRITE", "inCommitTimestamp": 1 << 42}
    local.put_if_absent(f"{FOLDER}/{commit_name(4)}", json.dumps({"commitInfo": info}).encode() + b"\n")
    with fails(ForeignCommit, "has a commit 4"):
        tenant.stream("A").update(table(9))
    assert [row["v"] for row in rows_of(tenant, "A")] == [0, 1, 2, 3]


def test_a_table_of_at_most_32_files_has_a_state(local):
    """To write one of many files with each commit would cost more than its checkpoint does now and then."""
    log = DeltaLog.for_table(local, "A.snapshot")
    files = [Add(f"{number}.parquet", 1, {}, 1) for number in range(33)]
    gone = [Remove(file.path, deletion_timestamp=1) for file in files]
    begin = (Protocol(1, 2), Metadata(id="a", schema_string='{"type":"struct","fields":[]}'))
    changes = [((*begin, *files), []), (gone[:1], [1]), (files[:1], []), (gone[:1], [3]), (gone[1:], [4])]
    for version, (actions, expected) in enumerate(changes):
        content = sign_content(CommitInfo({"writeId": str(version)}), actions)
        write_commit(local, "A.snapshot", version, content)
        DeltaLog.note_commit(local, "A.snapshot", version, content)
        assert states(local) == [*map(state_name, expected)]
        assert log.update().count == {0: 33, 1: 32, 2: 33, 3: 32, 4: 0}[version]


def test_verify_names_a_state_that_differs_from_the_log(open_finding, local):
    """Also one that was signed: reads would take it in the log's place; also whoever wrote the commit."""
    tenant = filled(open_finding, local)
    tenant.stream("A").update(table(9))
    name = f"{FOLDER}/{state_name(4)}"
    info, *actions = map(parse_line, local.read(name).splitlines())
    local.replace(name, sign_content(CommitInfo(info.fields), actions[:-1]))
    for _ in range(2):
        assert [(item.file, item.code) for item in tenant.verify().findings] == [(name, "STATE_DIFFERS")]
        DeltaLog.clear_cache()
    local.delete(name)
    assert tenant.verify().findings == ()


def test_a_released_table_has_no_state(open_finding, local):
    """Others may write it then, and delete rows whose least and greatest values it would keep."""
    filled(open_finding, local).stream("A").release()
    assert states(local) == []
    assert account(local)[1] == 1


def test_states_of_erased_rows_and_of_old_versions_go(open_finding, local):
    """Their statistics would tell least and greatest values; also a state that nobody deleted."""
    tenant = open_finding(local, gc_grace_seconds=0, checkpoint_interval=2)
    tenant.stream("A").update(pa.table({"Id": ["a", "secret"], "v": [1, 2]}), key="Id")
    tenant.stream("A").update(pa.table({"Id": ["b"], "v": [3]}))
    old = local.read(f"{FOLDER}/{state_name(1)}")
    assert b"secret" in old
    tenant.stream("A").update(pa.table({"Id": ["c"], "v": [4]}))
    local.replace(f"{FOLDER}/{state_name(1)}", old)
    tenant.erase("A", ["secret"])
    assert [item.name for item in local.list_below("") if b"secret" in local.read(item.name)] == []
    assert len(states(local)) == 1

    for number in range(6):
        tenant.stream("A").update(table(number))
    local.replace(f"{FOLDER}/{state_name(4)}", old)
    tenant.set_retention(keep_versions=1)
    tenant.gc()
    assert states(local) == [state_name(tenant.stream("A").stream_version)]


class SlowStorage(LocalStorage):
    """A directory in which an erasure runs before the next state is written."""

    def __init__(self, root, erase):
        super().__init__(root)
        self.erase = erase

    def replace(self, name, content, *, durable=True):
        if name.endswith(".state"):
            erase, self.erase = self.erase, lambda: None
            DeltaLog.clear_cache()  # as of another process
            erase()
        super().replace(name, content, durable=durable)


def test_a_state_that_is_written_after_an_erasure_goes(open_finding, tmp_path):
    """By its writer, who stopped between commit and state; if that is killed then, by the next ``gc``."""
    local = LocalStorage(tmp_path)
    people = pa.table({"Id": ["a", "secret"], "v": [1, 2]})
    open_finding(local).stream("A").update(people.slice(0, 1), key="Id")
    other = open_finding(local, gc_grace_seconds=0)
    DeltaLog.clear_cache()
    slow = open_finding(SlowStorage(tmp_path, lambda: other.erase("A", ["secret"])))
    slow.stream("A").update(people)
    assert [item.name for item in local.list_below("") if b"secret" in local.read(item.name)] == []

    names = [f"{FOLDER}/{name}" for name in (state_name(1), commit_name(1))]
    for name in names:
        local.replace(name, b"secret")
    other.gc()
    assert [item.name for item in local.list_below("") if b"secret" in local.read(item.name)] == []
    assert rows_of(other, "A") == [{"Id": "a", "v": 1}]
    assert other.verify().findings == ()


def test_an_erasure_goes_on_until_nothing_is_left(open_finding, tmp_path):
    """A state that is written while it deletes goes as well, although its commit was still there."""

    class Busy(LocalStorage):
        def delete(self, name, *, durable=True):
            super().delete(name, durable=durable)
            if durable and name == f"{FOLDER}/{commit_name(0)}":
                self.replace(f"{FOLDER}/{state_name(0)}", b"secret")

    tenant = open_finding(Busy(tmp_path))
    tenant.stream("A").update(pa.table({"Id": ["a", "secret"], "v": [1, 2]}), key="Id")
    tenant.erase("A", ["secret"])
    assert states(tenant.context.storage) == [state_name(1)]
