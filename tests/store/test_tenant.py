"""A tenant's versions, history and time travel; writers that race; directories that are not ours."""

import json
import threading

import pandas as pd
import pyarrow as pa
import pytest

from freezeframe.errors import (
    BadInput,
    CorruptLog,
    ForeignCommit,
    FormatTooNew,
    InvalidName,
    InvalidOption,
    MissingColumn,
    NullKeyError,
    StreamNotFound,
    VersionNotFound,
)

ROWS = pd.DataFrame({"Id": ["007", "1"], "v": [1, 2]})


def test_a_new_tenant_holds_nothing(open_on, local):
    """Looking at a tenant writes nothing."""
    tenant = open_on(local)

    assert (tenant.version, tenant.streams(), list(tenant.history())) == (-1, (), [])
    assert not local.local_path("").exists()


def test_history_names_each_commit(open_on, memory, caplog):
    """The newest first: version, time and counts of each stream; each commit is a line of the log."""
    caplog.set_level("INFO", "freezeframe.store")
    tenant = open_on(memory)
    tenant.stream("Account").update(ROWS, key="Id")
    tenant.stream("Lead").update(ROWS.head(1), key="Id")

    newest, oldest = tenant.history()

    assert f"Committed version 1 of {memory.root} (streams: 1, files: 0)" in caplog.text
    assert (newest.version, {n: c.inserted for n, c in newest.streams.items()}) == (1, {"Lead": 1})
    assert newest.timestamp > oldest.timestamp
    assert [newest] == list(tenant.history(limit=1))
    assert oldest.to_json()["streams"]["Account"] == {
        "inserted": 2,
        "updated": 0,
        "unchanged": 0,
        "deleted": 0,
    }


def test_streams_are_those_of_a_tenant_version(open_on, memory):
    """What came later is not there earlier."""
    tenant = open_on(memory)
    tenant.stream("Account").update(ROWS, key="Id")
    tenant.stream("Lead").update(ROWS, key="Id")

    assert tenant.streams(version=0) == ("Account",)
    with pytest.raises(StreamNotFound):
        tenant.stream("Lead").read(tenant_version=0)
    with pytest.raises(VersionNotFound):
        tenant.streams(version=2)


def test_a_moment_finds_its_version(open_on, memory):
    """The moment of a commit reads it; before the first there is nothing."""
    tenant = open_on(memory)
    tenant.stream("Account").update(ROWS, key="Id")
    (entry,) = tenant.history()

    assert len(tenant.stream("Account").read(as_of=entry.timestamp)) == 2
    with pytest.raises(VersionNotFound):
        tenant.stream("Account").read(as_of="2000-01-01T00:00:00Z")
    with pytest.raises(InvalidOption):
        tenant.stream("Account").read(as_of="yesterday-ish")
    with pytest.raises(InvalidOption):
        tenant.stream("Account").read(as_of=entry.timestamp, version=0)


def test_an_unknown_stream_is_named_with_the_known_ones(open_on, memory):
    """The error helps to find the right name."""
    tenant = open_on(memory)
    tenant.stream("Account").update(ROWS, key="Id")

    with pytest.raises(StreamNotFound, match="Account"):
        tenant.stream("Acount").read()  # codespell:ignore acount
    with pytest.raises(VersionNotFound):
        tenant.stream("Account").read(version=1)
    with pytest.raises(InvalidName):
        tenant.stream("../t2/x")


@pytest.mark.parametrize(
    ("frame", "key", "error"),
    [
        (ROWS, "Nope", MissingColumn),
        (pd.DataFrame({"Id": ["1", None]}), "Id", NullKeyError),
        (pd.DataFrame({"Id": ["1"], "id": ["2"]}), "Id", BadInput),
        (pa.table({"Id": ["1"], "t": pa.array([1], pa.duration("s"))}), "Id", BadInput),
        ({"Id": ["1"]}, "Id", BadInput),
        (None, "Id", BadInput),
    ],
)
def test_bad_rows_leave_nothing_behind(open_on, local, frame, key, error):
    """The typed error comes before anything is written, and the stream is as it was."""
    tenant = open_on(local)
    tenant.stream("Account").update(ROWS, key="Id")
    before = sorted(local.local_path("").rglob("*"))

    with pytest.raises(error):
        tenant.stream("Account").update(frame, key=key)

    assert before == sorted(local.local_path("").rglob("*"))


def test_names_that_differ_by_case_are_one_folder_to_some(open_on, memory):
    """A second spelling of a stream's name is refused, naming the first."""
    tenant = open_on(memory)
    tenant.stream("Account").update(ROWS, key="Id")

    with pytest.raises(InvalidName, match="Account"):
        tenant.stream("ACCOUNT").update(ROWS, key="Id")


def test_another_key_is_refused(open_on, memory):
    """A stream keeps the key it was made with."""
    tenant = open_on(memory)
    tenant.stream("Account").update(ROWS, key="Id")

    with pytest.raises(InvalidOption, match="key"):
        tenant.stream("Account").update(ROWS, key="v")


def test_an_empty_frame_with_columns_makes_an_empty_stream(open_on, memory):
    """Columns without rows are a stream; columns without types wait for them."""
    stream = open_on(memory).stream("Account")

    receipt = stream.update(pd.DataFrame({"Id": pd.Series([], dtype="string"), "v": []}), key="Id")

    assert (receipt.inserted, receipt.committed) == (0, True)
    assert list(stream.read().columns) == ["Id", "v"]
    assert stream.count() == 0


def test_ten_writers_of_ten_streams_all_commit(open_on, local):
    """Who loses the race for a tenant version takes the next one: nothing is lost."""
    errors = []

    def write(number):
        try:
            open_on(local).stream(f"S{number}").update(ROWS, key="Id")
        except Exception as error:  # noqa: BLE001 - collected for the assertion
            errors.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    tenant = open_on(local)
    assert (tenant.version, len(tenant.streams())) == (9, 10)
    assert {tenant.stream(name).count() for name in tenant.streams()} == {2}


def test_checkpoints_carry_the_state(open_on, local):
    """After a checkpoint the entries before it are not needed to open the tenant."""
    tenant = open_on(local)
    for number in range(12):
        tenant.stream(f"S{number:02}").update(ROWS, key="Id")
    log = local.local_path("_freezeframe/log")
    assert len(list(log.glob("*.checkpoint.*.json"))) == 1

    for version in range(9):
        (log / f"{version:020d}.json").unlink()

    assert len(open_on(local).streams()) == 12


def test_a_damaged_checkpoint_costs_time_only(open_on, local):
    """The entries make the same state."""
    tenant = open_on(local)
    for number in range(11):
        tenant.stream(f"S{number:02}").update(ROWS, key="Id")
    (checkpoint,) = local.local_path("_freezeframe/log").glob("*.checkpoint.*.json")
    checkpoint.write_bytes(checkpoint.read_bytes()[:20])

    assert len(open_on(local).streams()) == 11


@pytest.mark.parametrize("content", [b"", b"{", b'{"kind":"commit"'])
def test_a_damaged_entry_is_never_skipped(open_on, local, content):
    """A torn or empty head is damage that names the file."""
    open_on(local).stream("Account").update(ROWS, key="Id")
    local.local_path("_freezeframe/log/00000000000000000000.json").write_bytes(content)

    with pytest.raises(CorruptLog, match=r"00000000000000000000\.json"):
        open_on(local)


def test_a_newer_format_is_refused(open_on, local):
    """The message names the version to install."""
    open_on(local).stream("Account").update(ROWS, key="Id")
    path = local.local_path("_freezeframe/format.json")
    path.write_text(json.dumps({"formatVersion": 2, "features": [], "minimumFreezeframe": "3.1"}))

    with pytest.raises(FormatTooNew, match=r"3\.1"):
        open_on(local)


def test_a_process_that_runs_on_stops_at_a_newer_format(open_on, local):
    """A tenant that is open already is not changed once a newer freezeframe has been there."""
    tenant = open_on(local)
    tenant.files.write("a.csv", b"1")
    path = local.local_path("_freezeframe/format.json")
    path.write_text(json.dumps({"formatVersion": 2, "features": [], "minimumFreezeframe": "3.1"}))
    before = {item.name for item in local.list_below("")}

    with pytest.raises(FormatTooNew, match=r"3\.1"):
        tenant.files.write("a.csv", b"2")
    assert before == {item.name for item in local.list_below("")}


def test_a_commit_around_the_log_is_found(open_on, local):
    """A writer that ignores the protocol's guard stops our writes, not our reads."""
    open_on(local).stream("Account").update(ROWS, key="Id")
    log = local.local_path("Account.snapshot/_delta_log")
    (log / f"{1:020d}.json").write_text('{"commitInfo":{"timestamp":1,"inCommitTimestamp":9999999999999}}\n')

    with pytest.raises(ForeignCommit, match="Account"):
        open_on(local).stream("Account").update(pd.DataFrame({"Id": ["2"]}), key="Id")
    assert len(open_on(local).stream("Account").read()) == 2


def test_a_table_that_lost_versions_is_damage(open_on, local):
    """A tenant directory restored in parts is not read as if it were whole."""
    tenant = open_on(local)
    tenant.stream("Account").update(ROWS, key="Id")
    tenant.stream("Lead").update(ROWS, key="Id")
    local.local_path("Account.snapshot/_delta_log/00000000000000000000.json").unlink()

    with pytest.raises(CorruptLog):
        open_on(local).stream("Account").read()
