"""``freezeframe stream changes|diff|restore`` and ``show --where``, on a stream with two versions."""

import json

import pandas as pd
import pytest

from freezeframe.cli.main import main
from freezeframe.script import open_tenant


@pytest.fixture
def snapshots(tmp_path):
    """A stream whose whole content came twice, beside another one; whole contents need no Spark."""
    tenant = open_tenant(tmp_path)
    tenant.stream("Account").update(pd.DataFrame({"Id": ["1", "2"], "v": [1, 2]}), key=["Id"])
    tenant.stream("Owner").update(pd.DataFrame({"Id": [9]}), key=["Id"])
    return str(tmp_path)


@pytest.fixture
def told(capsys, snapshots):
    """Run a command on the tenant and give the JSON that it prints."""

    def run(*arguments):
        assert main(["stream", *arguments, "--dir", snapshots, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_show_takes_conditions(told, snapshots):
    """All must hold; they are typed as the columns; an unknown column is refused."""
    assert [{"Id": "2", "v": 2}] == told("show", "Account", "--where", "v > 1")
    assert [] == told("show", "Account", "--where", "v > 1", "--where", "Id = 1")
    assert [{"Id": "1"}] == told("show", "Account", "--where", "v = 1", "--column", "Id", "--version", "0")
    assert [{"Id": "1", "v": 1}] == told("show", "Account", "--where", "v<2", "--tenant-version", "0")
    assert 2 == main(["stream", "show", "Account", "--where", "w = 1", "--dir", snapshots])
    assert 4 == main(["stream", "show", "Nope", "--where", "w = 1", "--dir", snapshots])


def test_changes_are_by_row(told, snapshots):
    """From the beginning all rows are insertions; a limit narrows the answer."""
    assert [("insert", "1"), ("insert", "2")] == [
        (row["_change_type"], row["Id"]) for row in told("changes", "Account")
    ]
    assert [] == told("changes", "Account", "--since", "0")
    assert 1 == len(told("changes", "Account", "--limit", "1"))
    assert 4 == main(["stream", "changes", "Account", "--since", "7", "--dir", snapshots])


def test_diff_and_restore_of_one_stream(capsys, told, snapshots):
    """A stream that came or went between versions is told by rows, and comes back alone."""
    assert [("insert", 9)] == [(row["_change_type"], row["Id"]) for row in told("diff", "Owner", "0")]
    assert [] == told("diff", "Account", "0", "1")
    assert 4 == main(["stream", "diff", "Nope", "0", "--dir", snapshots])

    open_tenant(snapshots).drop_stream("Account")
    assert ["delete", "delete"] == [row["_change_type"] for row in told("diff", "Account", "1")]
    capsys.readouterr()
    assert 2 == main(["stream", "restore", "Account", "1", "--dir", snapshots])
    capsys.readouterr()
    assert "brought back" == told("restore", "Account", "1", "--dry-run")["streams"]["Account"]["fate"]
    assert ["Account"] == list(told("restore", "Account", "1", "--yes")["streams"])
    assert 2 == len(told("show", "Account"))
