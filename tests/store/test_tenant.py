"""A tenant's versions, history and time travel; writers that race; directories that are not ours."""

import json

import pandas as pd
import pyarrow as pa
import pytest

from freezeframe.errors import (
    BadInput,
    CorruptLog,
    FormatTooNew,
    InvalidOption,
    MissingColumn,
    NullKeyError,
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
    tenant = open_on(memory, streams={"Account": ROWS})
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
    tenant = open_on(local, streams={"Account": ROWS})
    before = sorted(local.local_path("").rglob("*"))

    with pytest.raises(error):
        tenant.stream("Account").update(frame, key=key)

    assert before == sorted(local.local_path("").rglob("*"))


def test_another_key_is_refused(open_on, memory):
    """A stream keeps the key it was made with."""
    tenant = open_on(memory, streams={"Account": ROWS})

    with pytest.raises(InvalidOption, match="key"):
        tenant.stream("Account").update(ROWS, key="v")


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


def test_a_table_that_lost_versions_is_damage(open_on, local):
    """A tenant directory restored in parts is not read as if it were whole."""
    tenant = open_on(local, streams={"Account": ROWS})
    tenant.stream("Lead").update(ROWS, key="Id")
    local.local_path("Account.snapshot/_delta_log/00000000000000000000.json").unlink()

    with pytest.raises(CorruptLog):
        open_on(local).stream("Account").read()
