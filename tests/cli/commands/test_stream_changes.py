"""``freezeframe stream retype``, ``release``, ``adopt`` and ``repair``."""

import json

import pandas as pd
import pytest
from deltalake import write_deltalake

from freezeframe.cli.main import main
from freezeframe.log.segments.commit import write_commit
from freezeframe.script import open_tenant
from freezeframe.storage import LocalStorage

GROUP = "stream"


@pytest.fixture
def snapshots(tmp_path):
    """A tenant with one stream."""
    rows = pd.DataFrame({"Id": [1, 2], "zip": ["3000", "0800"]})
    open_tenant(tmp_path).stream("Account").update(rows, key=["Id"])
    return str(tmp_path)


def test_a_column_is_retyped_after_a_look(told, snapshots):
    """A dry run tells the same and writes nothing; the command is one version, with who and why."""
    expected = {"stream": "Account", "column": "Id", "type_before": "long", "type_after": "string", "rows": 2}
    looked = told("retype", "Account", "Id", "string", "--dry-run")
    assert {**expected, "tenant_version": 0, "committed": False} == looked
    done = told("retype", "Account", "Id", "string", "--who", "ada", "--message", "Ticket 4711")
    assert {**expected, "tenant_version": 1, "committed": True} == done

    tenant = open_tenant(snapshots)
    entry = tenant.history()[0]
    assert (entry.who, entry.message) == ("ada", "retype Account.Id as string: Ticket 4711")
    assert list(tenant.stream("Account").read()["Id"]) == ["1", "2"]


def test_what_would_be_lost_is_told_by_its_key(capsys, snapshots):
    """Exit code 2 for a value, a type or an option that does not do, 4 for what is not there."""
    assert main(["stream", "retype", "Account", "zip", "long", "--dir", snapshots]) == 2
    assert "Id 2, value '0800'" in capsys.readouterr().err
    assert main(["stream", "retype", "Account", "zip", "uuid", "--dir", snapshots]) == 2
    assert main(["stream", "retype", "Account", "nope", "long", "--dir", snapshots]) == 2
    assert main(["stream", "retype", "Nobody", "Id", "string", "--dir", snapshots]) == 4
    assert open_tenant(snapshots).version == 0


def test_a_stream_is_released_and_taken_back(told, snapshots):
    """Released it is not listed; adopted it has its key again."""
    assert told("release", "Account", "--who", "ops") == {"stream": "Account", "tenant_version": 1}
    assert told("list") == []
    assert main(["stream", "release", "Account", "--dir", snapshots]) == 4
    assert told("adopt", "Account") == {"stream": "Account", "tenant_version": 2, "key": ["Id"]}
    assert [row["stream"] for row in told("list")] == ["Account"]
    assert main(["stream", "adopt", "Account", "--dir", snapshots]) == 2


def test_anybodys_table_is_adopted(told, snapshots):
    """With the key that is named, or with none; not with both or one that it lacks."""
    write_deltalake(f"{snapshots}/Lead.snapshot", pd.DataFrame({"Id": [1], "v": [2]}))
    adopt = ["stream", "adopt", "Lead", "--dir", snapshots]
    assert main([*adopt, "--key", "Nope"]) == 2
    assert main([*adopt, "--key", "Id", "--no-key"]) == 2
    assert main(["stream", "adopt", "Nope", "--dir", snapshots]) == 4
    assert told("adopt", "Lead", "--key", "Id")["key"] == ["Id"]


def test_repair_takes_over_or_undoes(capsys, told, snapshots):
    """A sound stream needs nothing; a foreign commit is taken over, or undone with a yes."""
    assert told("repair", "Account")["action"] == "nothing"
    foreign = {"timestamp": 1, "inCommitTimestamp": 10**13, "operation": "X"}
    for version in (1, 2):
        line = json.dumps({"commitInfo": {**foreign, "inCommitTimestamp": 10**13 + version}}) + "\n"
        write_commit(LocalStorage(snapshots), "Account.snapshot", version, line.encode())
        if version == 1:
            assert told("repair", "Account")["action"] == "adopted"
    assert main(["stream", "repair", "Account", "--undo", "--dir", snapshots]) == 2
    capsys.readouterr()
    done = told("repair", "Account", "--undo", "--yes")
    assert (done["action"], done["versions"]) == ("undone", [2])
