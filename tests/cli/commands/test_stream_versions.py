"""``freezeframe stream changes|diff|restore`` and ``show --where``, on a stream with two versions."""

import json

import pandas as pd
import pytest
from tests import given

from freezeframe.cli.main import main
from freezeframe.script import open_tenant
from freezeframe.storage import LocalStorage

GROUP = "stream"


@pytest.fixture
def snapshots(tmp_path):
    """A stream whose whole content came twice, beside another one; whole contents need no Spark."""
    tenant = open_tenant(tmp_path)
    tenant.stream("Account").update(pd.DataFrame({"Id": ["1", "2"], "v": [1, 2]}), key=["Id"])
    tenant.stream("Owner").update(pd.DataFrame({"Id": [9]}), key=["Id"])
    return str(tmp_path)


def test_show_takes_conditions(told, snapshots):
    """All must hold; they are typed as the columns; an unknown column is refused."""
    assert told("show", "Account", "--where", "v > 1") == [{"Id": "2", "v": 2}]
    assert told("show", "Account", "--where", "v > 1", "--where", "Id = '1'") == []
    assert told("show", "Account", "--where", "v = 1", "--column", "Id", "--version", "0") == [{"Id": "1"}]
    assert told("show", "Account", "--where", "v<2", "--tenant-version", "0") == [{"Id": "1", "v": 1}]
    assert main(["stream", "show", "Account", "--where", "w = 1", "--dir", snapshots]) == 2
    assert main(["stream", "show", "Nope", "--where", "w = 1", "--dir", snapshots]) == 4


def test_changes_are_by_row(told, snapshots):
    """From the beginning all rows are insertions; a limit narrows the answer."""
    assert [(row["_change_type"], row["Id"]) for row in told("changes", "Account")] == [
        ("insert", "1"),
        ("insert", "2"),
    ]
    assert told("changes", "Account", "--since", "0") == []
    assert len(told("changes", "Account", "--limit", "1")) == 1
    assert main(["stream", "changes", "Account", "--since", "7", "--dir", snapshots]) == 4


def test_changes_of_each_version_have_the_words_of_a_change_feed(told, snapshots):
    """As Spark's options name them; net changes are asked for by other ones."""
    open_tenant(snapshots).stream("Account").update(pd.DataFrame({"Id": ["2"], "v": [7]}))
    found = [(row["_change_type"], row["v"]) for row in told("changes", "Account", "--starting-version", "2")]
    assert [("update_preimage", 2), ("update_postimage", 7)] == found
    assert 2 == len(told("changes", "Account", "--starting-version", "0", "--ending-version", "1"))
    both = ["--starting-version", "0", "--since", "0"]
    assert 2 == main(["stream", "changes", "Account", *both, "--dir", snapshots])


def test_diff_and_restore_of_one_stream(capsys, told, snapshots):
    """A stream that came or went between versions is told by rows, and comes back alone."""
    assert [(row["_change_type"], row["Id"]) for row in told("diff", "Owner", "0")] == [("insert", 9)]
    assert told("diff", "Account", "0", "1") == []
    assert main(["stream", "diff", "Nope", "0", "--dir", snapshots]) == 4

    open_tenant(snapshots).drop_stream("Account")
    assert [row["_change_type"] for row in told("diff", "Account", "1")] == ["delete", "delete"]
    capsys.readouterr()
    assert main(["stream", "restore", "Account", "1", "--dir", snapshots]) == 2
    capsys.readouterr()
    assert told("restore", "Account", "1", "--dry-run")["streams"]["Account"]["fate"] == "brought back"
    assert list(told("restore", "Account", "1", "--yes")["streams"]) == ["Account"]
    assert len(told("show", "Account")) == 2


def test_drop_asks_and_its_past_stays(capsys, told, snapshots):
    """Without a terminal it takes --yes; a dry run tells; the rows come back by a restoration."""
    assert main(["stream", "drop", "Account", "--dir", snapshots]) == 2
    assert told("drop", "Account", "--dry-run")["rows"] == 2
    dropped = told("drop", "Account", "--yes", "--message", "done with it")
    assert dropped["tenant_version"] == 2
    assert main(["stream", "drop", "Account", "--yes", "--dir", snapshots]) == 4
    told("restore", "Account", "1", "--yes")
    assert len(told("show", "Account")) == 2


def test_people_see_changed_cells_and_a_line_of_rows(capsys, snapshots):
    """An update reads as old and new values, a history begins with the number of rows over time."""
    tenant = given.tenant(LocalStorage(snapshots))  # what becomes of each row is for an engine
    rows = pd.DataFrame({"Id": ["1"], "v": [10], "w": ["x"]})
    tenant.stream("Account").update(rows, override=True, key=["Id"])
    capsys.readouterr()

    assert main(["stream", "diff", "Account", "1", "--dir", snapshots]) == 0
    told = capsys.readouterr().out
    assert "v: 1 → 10" in told
    assert "w: (null) → x" in told
    assert main(["stream", "history", "Account", "--dir", snapshots]) == 0
    assert "Rows █▅ 2 at version 0, 1 now" in capsys.readouterr().out


def test_a_row_is_told_with_what_each_version_did_to_it(snapshots, capsys):
    """As JSON and as text; a key that is none of the stream is refused."""
    tenant = given.tenant(LocalStorage(snapshots))
    tenant.stream("Account").update(pd.DataFrame({"Id": ["2"], "v": [5]}), key=["Id"])
    assert main(["stream", "row", "Account", "2", "--dir", snapshots, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["row"], told["is_whole"]) == ({"Id": "2", "v": 5}, True)
    assert [(item["version"], item["row"]["fate"], item["row"]["changed"]) for item in told["versions"]] == [
        (2, "update", ["v"]),
        (0, "insert", []),
    ]
    assert main(["stream", "row", "Account", "2", "--dir", snapshots, "--limit", "1"]) == 0
    text = capsys.readouterr().out
    assert "v: 2 → 5" in text
    assert "Older ones: --until 0" in text
    assert main(["stream", "row", "Account", "3", "--dir", snapshots]) == 4
    assert "no row 3" in capsys.readouterr().out
    assert main(["stream", "row", "Owner", "x", "--dir", snapshots]) == 2
    assert main(["stream", "row", "Account", "2", "--origin", "--dir", snapshots, "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [("Id", "2", 0), ("v", 5, 2)] == [(c["column"], c["value"], c["version"]) for c in cells]
    assert main(["stream", "row", "Account", "2", "--origin", "--dir", snapshots]) == 0
    text = capsys.readouterr().out
    assert ("commit" in text, "no job made the version" in text) == (True, True)
    assert main(["stream", "row", "Account", "3", "--origin", "--dir", snapshots]) == 4
    assert "no row 3" in capsys.readouterr().out
