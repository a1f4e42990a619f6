"""Who may write to a table: releasing, adopting, repairing what was changed around the log."""

import contextlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.given import table

from freezeframe.errors import BadInput, ForeignCommit, InvalidOption, StreamNotFound, UnsupportedTable
from freezeframe.log import DeltaLog
from freezeframe.log.format.actions import Add, Metadata, Protocol
from freezeframe.log.segments.commit import write_commit
from freezeframe.log.table.transaction import Transaction
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.schema.columns import TENANT_LOG_FEATURE


def rows(stream):
    return sorted(stream.read(as_="arrow")["v"].to_pylist())


def foreign(storage, table_name, version, *actions):
    """A commit of a writer that ignores the table's features."""
    lines = [
        {"commitInfo": {"timestamp": 1, "inCommitTimestamp": 10**13 + version, "operation": "X"}},
        *actions,
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    write_commit(storage, f"{table_name}.snapshot", version, text.encode())


def removal_of_all(storage, name):
    files = DeltaLog(storage, f"{name}.snapshot").update().files["path"].to_pylist()
    return [{"remove": {"path": path, "dataChange": True, "deletionTimestamp": 1}} for path in files]


def features(storage, name):
    return DeltaLog(storage, f"{name}.snapshot").update().protocol.writer_features


def test_a_released_stream_is_taken_back_as_it_is_then(open_finding, memory):
    """Meanwhile it is unlisted and unguarded; what others wrote is part of it, and the key is the old one."""
    tenant = open_finding(memory)
    stream = tenant.stream("Lead")
    stream.update(table(1), key="Id")

    assert stream.release() == 1
    assert (tenant.streams(), TENANT_LOG_FEATURE in features(memory, "Lead")) == ((), False)
    assert rows(tenant.at(0).stream("Lead")) == [1]
    with pytest.raises(StreamNotFound):
        stream.release()
    with pytest.raises(ForeignCommit):
        stream.update(table(2), key="Id")
    foreign(memory, "Lead", 2, *removal_of_all(memory, "Lead"))

    assert tenant.adopt("Lead") == 2
    assert (rows(stream), stream.stream_version) == ([], 3)
    assert TENANT_LOG_FEATURE in features(memory, "Lead")
    stream.update(table(5))
    assert rows(stream) == [5]
    with pytest.raises(InvalidOption, match="already"):
        tenant.adopt("Lead")


def test_a_table_with_text_that_is_no_utf8_is_not_adopted(open_finding, memory):
    """Other writers let such text pass; taken over, nobody could read the stream."""
    tenant = open_finding(memory, streams={"Lead": table(1)})
    tenant.stream("Lead").release()
    content = pa.array([b"\xff\xfe"], pa.binary())
    rows_of_others = pa.table({"Id": pa.Array.from_buffers(pa.string(), 1, content.buffers()), "v": [2]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows_of_others, sink)
    memory.put_if_absent("Lead.snapshot/theirs.parquet", sink.getvalue().to_pybytes())
    added = {"path": "theirs.parquet", "partitionValues": {}, "size": sink.getvalue().size}
    foreign(memory, "Lead", 2, {"add": {**added, "modificationTime": 1, "dataChange": True}})

    with pytest.raises(BadInput, match=r"'Id'.*UTF-8"):
        tenant.adopt("Lead")

    assert tenant.streams() == ()


def test_any_plain_delta_table_can_be_adopted(open_finding, memory):
    """One that never was a stream gets guard, key and times in its commits."""
    schema = {
        "type": "struct",
        "fields": [
            {"name": n, "type": t, "nullable": True, "metadata": {}}
            for n, t in (("Id", "string"), ("v", "long"))
        ],
    }
    log = DeltaLog(memory, "Old.snapshot")
    Transaction(log).commit([Protocol(1, 2), Metadata("id", json.dumps(schema))], "CREATE TABLE")
    tenant = open_finding(memory)

    with pytest.raises(InvalidOption, match="Nope"):
        tenant.adopt("Old", key="Nope")
    tenant.adopt("Old", key="Id")

    tenant.stream("Old").update(table(3))
    assert (rows(tenant.stream("Old")), tenant.stream("Old").key) == ([3], ("Id",))
    assert {"appendOnly", "invariants", TENANT_LOG_FEATURE} <= set(features(memory, "Old"))
    with pytest.raises(StreamNotFound):
        tenant.adopt("Absent")


def test_a_table_that_streams_are_not_written_like_is_refused(open_finding, memory):
    schema = {"type": "struct", "fields": [{"name": "p", "type": "long", "nullable": True, "metadata": {}}]}
    for name, options in (
        ("Parts", {"partition_columns": ("p",)}),
        ("Append", {"configuration": {"delta.appendOnly": "true"}}),
        ("Feed", {"configuration": {"delta.enableChangeDataFeed": "true"}}),
    ):
        metadata = Metadata("id", json.dumps(schema), **options)
        lines = [{"protocol": Protocol(1, 4).to_json()}, {"metaData": metadata.to_json()}]
        foreign(memory, name, 0, *lines)
        with pytest.raises(UnsupportedTable):
            open_finding(memory).adopt(name)
    assert open_finding(memory).version == -1


@pytest.mark.parametrize(("undo", "action", "left"), [(False, "adopted", []), (True, "undone", [1])])
def test_foreign_commits_are_taken_over_or_undone(open_finding, memory, undo, action, left):
    """Writes stop, reads go on at the log's version; repair adopts the commits or restores the table."""
    stream = open_finding(memory, streams={"Lead": table(1)}).stream("Lead")
    foreign(memory, "Lead", 1, *removal_of_all(memory, "Lead"))

    with pytest.raises(ForeignCommit, match="repair"):
        stream.update(table(2), key="Id")
    assert rows(stream) == [1]

    found = stream.repair(undo=undo)
    assert (found.action, found.versions, found.version) == (action, (1,), 1)
    assert (rows(stream), found.stream_version) == (left, 1 + undo)
    assert open_finding(memory).history(1)[0].kind == "external"
    stream.update(table(2))
    assert (rows(stream), stream.repair().action) == ([*left, 2], "nothing")


def test_a_key_that_is_there_twice_is_not_taken_over(open_finding, memory):
    """A file named twice under another name doubles every key: that is undone, and the reason is told."""
    tenant = open_finding(memory, streams={"Lead": table(1)})
    (path,) = DeltaLog(memory, "Lead.snapshot").update().files["path"].to_pylist()
    content = memory.read(f"Lead.snapshot/{path}")
    memory.put_if_absent("Lead.snapshot/copy.parquet", content)
    foreign(memory, "Lead", 1, {"add": Add("copy.parquet", len(content)).to_json()})

    found = tenant.stream("Lead").repair()

    assert (found.action, rows(tenant.stream("Lead"))) == ("undone", [1])
    assert "share a key" in found.reason


def test_a_commit_that_lost_its_place_is_brought_back(open_finding, memory):
    """Committed in the log, and a foreign commit lies where the table's belongs: ours is what counts."""
    tenant = open_finding(memory, streams={"Lead": table(1)})
    for call in range(100):
        with contextlib.suppress(Crash):
            faulty = open_finding(FaultyStorage(memory, [Fault(call, Way.CUT_AFTER)]))
            faulty.stream("Lead").update(table(2), key="Id")
        if open_finding(memory).version == 1:
            break
    log = DeltaLog(memory, "Lead.snapshot").update()
    assert log.version == 0
    foreign(memory, "Lead", 1, *removal_of_all(memory, "Lead"))

    tenant = open_finding(memory)
    assert rows(tenant.stream("Lead")) == [1, 2]
    with pytest.raises(ForeignCommit):
        tenant.stream("Other").update(table(1), key="Id")
    assert tenant.stream("Lead").repair().action == "undone"
    assert rows(tenant.stream("Lead")) == [1, 2]
    tenant.stream("Lead").update(table(3))
    assert rows(tenant.stream("Lead")) == [1, 2, 3]


def test_custody_is_the_tenants_business(open_finding, memory):
    tenant = open_finding(memory, streams={"Lead": table(1)})

    with tenant.job() as job, pytest.raises(InvalidOption):
        job.stream("Lead").release()
    with pytest.raises(InvalidOption):
        tenant.at(0).stream("Lead").repair()
