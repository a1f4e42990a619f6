"""``freezeframe stream release|adopt|repair``: who may write to a table."""

import json

import pandas as pd
import pytest
from deltalake import write_deltalake

from freezeframe.cli.main import main
from freezeframe.log.commits.commit import write_commit
from freezeframe.script import open_tenant
from freezeframe.storage import LocalStorage

GROUP = "stream"


@pytest.fixture
def snapshots(tmp_path):
    """A tenant with one stream."""
    open_tenant(tmp_path).stream("Account").update(pd.DataFrame({"Id": ["1", "2"]}), key=["Id"])
    return str(tmp_path)


def test_a_stream_is_released_and_taken_back(told, snapshots):
    """Released it is not listed; adopted it has its key again."""
    assert {"stream": "Account", "tenant_version": 1} == told("release", "Account", "--who", "ops")
    assert [] == told("list")
    assert 4 == main(["stream", "release", "Account", "--dir", snapshots])
    assert ["Id"] == told("adopt", "Account")["key"]
    assert ["Account"] == [row["stream"] for row in told("list")]
    assert 2 == main(["stream", "adopt", "Account", "--dir", snapshots])


def test_anybodys_table_is_adopted(told, snapshots):
    """With the key that is named, or with none; not with both or one that it lacks."""
    write_deltalake(f"{snapshots}/Lead.snapshot", pd.DataFrame({"Id": [1], "v": [2]}))
    adopt = ["stream", "adopt", "Lead", "--dir", snapshots]
    assert 2 == main([*adopt, "--key", "Nope"])
    assert 2 == main([*adopt, "--key", "Id", "--no-key"])
    assert 4 == main(["stream", "adopt", "Nope", "--dir", snapshots])
    assert ["Id"] == told("adopt", "Lead", "--key", "Id")["key"]


def test_repair_takes_over_or_undoes(capsys, told, snapshots):
    """A sound stream needs nothing; a foreign commit is taken over, or undone with a yes."""
    assert "nothing" == told("repair", "Account")["action"]
    foreign = {"timestamp": 1, "inCommitTimestamp": 10**13, "operation": "X"}
    for version in (1, 2):
        line = json.dumps({"commitInfo": {**foreign, "inCommitTimestamp": 10**13 + version}}) + "\n"
        write_commit(LocalStorage(snapshots), "Account.snapshot", version, line.encode())
        if version == 1:
            assert "adopted" == told("repair", "Account")["action"]
    assert 2 == main(["stream", "repair", "Account", "--undo", "--dir", snapshots])
    capsys.readouterr()
    done = told("repair", "Account", "--undo", "--yes")
    assert ("undone", [2]) == (done["action"], done["versions"])
