"""``freezeframe tenant show|history|diff|restore|revert|tag|untag``, on the past of a small tenant."""

import io
import json

import pandas as pd
import pytest

from freezeframe.cli.main import main
from freezeframe.script import open_tenant


@pytest.fixture
def snapshots(tmp_path):
    """A tenant with three versions, of which the second is a job; whole rewrites need no Spark."""
    tenant = open_tenant(tmp_path)
    tenant.stream("Account").update(pd.DataFrame({"Id": [1, 2], "v": ["a", "b"]}), key=["Id"])
    with tenant.job("sync-1", message="Nightly", who="ops") as job:
        job.stream("Lead").update(pd.DataFrame({"Id": [5]}), key=["Id"])
        job.files.write("config.json", b'{"a": 1}\n')
    tenant.files.write("config.json", b'{"a": 2}\n')
    return str(tmp_path)


@pytest.fixture
def told(capsys, snapshots):
    """Run a command on the tenant and give the JSON that it prints."""

    def run(*arguments):
        assert main([*arguments, "--dir", snapshots, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_show_is_the_tenant_now_or_then(capsys, told, snapshots):
    """Streams, files, tags and retention; --version and --as-of look back, both at once are refused."""
    now, then = told("tenant", "show"), told("tenant", "show", "--version", "0")

    assert (
        now["tenant_version"],
        [item["stream"] for item in now["streams"]],
        [item["path"] for item in now["files"]],
    ) == (2, ["Account", "Lead"], ["config.json"])
    assert (
        then["tenant_version"],
        [item["stream"] for item in then["streams"]],
        then["files"],
    ) == (0, ["Account"], [])
    assert told("tenant", "show", "--as-of", now["timestamp"])["tenant_version"] == 2
    assert main(["tenant", "show", "--dir", snapshots, "--version", "0", "--as-of", "2026-01-01"]) == 2
    assert main(["tenant", "show", "--dir", snapshots, "--version", "9"]) == 4
    capsys.readouterr()
    assert main(["tenant", "show", "--dir", snapshots]) == 0
    assert "the newest 1000 versions" in capsys.readouterr().out


def test_history_has_who_why_and_counts(capsys, told, snapshots):
    """Of a job its id, its author and message; what a version did to a stream is one line."""
    (entry,) = told("tenant", "history", "--job", "sync-1")["versions"]
    assert ("ops", "sync-1", "Nightly", ["config.json"]) == tuple(
        entry[name] for name in ("who", "job_id", "message", "files_written")
    )
    assert main(["tenant", "history", "--dir", snapshots]) == 0
    assert "Lead +1 ~0 -0" in capsys.readouterr().out


def test_history_says_that_a_job_changed_nothing(capsys, snapshots):
    """Its version is there because its id must not run again; an own message of the job stays."""
    tenant = open_tenant(snapshots)
    for job_id, message in (("idle", ""), ("idle-2", "Nightly")):
        with tenant.job(job_id, message=message) as job:
            job.stream("Lead").update(pd.DataFrame({"Id": [5]}), key=["Id"])
    assert main(["tenant", "history", "--dir", snapshots]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "changed nothing" in line]
    assert [True, True] == ["idle-2" in lines[0] and "Nightly (" in lines[0], "idle" in lines[1]]
    assert 2 == len(lines)


def test_a_difference_of_nothing_is_a_sentence(capsys, snapshots):
    """A version and itself hold the same."""
    assert main(["tenant", "diff", "2", "--dir", snapshots]) == 0
    assert "hold the same" in capsys.readouterr().out


def test_restore_previews_asks_and_makes_a_version(capsys, told, snapshots):
    """--dry-run does nothing, without --yes and a terminal nothing is done, with it a version is made."""
    preview = told("tenant", "restore", "0", "--dry-run")
    assert (
        preview["committed"],
        preview["streams"]["Lead"]["fate"],
        preview["files_deleted"],
    ) == (False, "removed", ["config.json"])
    assert main(["tenant", "restore", "0", "--dir", snapshots]) == 2
    printed = capsys.readouterr()
    assert "--yes" in printed.err
    assert "Lead" in printed.out
    assert told("tenant", "show")["tenant_version"] == 2

    done = told("tenant", "restore", "0", "--yes", "--who", "ops", "--message", "Back")
    assert (done["committed"], done["tenant_version"]) == (True, 3)
    (entry,) = told("tenant", "history", "--limit", "1")["versions"]
    assert (entry["who"], entry["message"]) == ("ops", "restore version 0: Back")
    assert (entry["kind"], entry["restored"]) == ("restore", 0)
    assert told("tenant", "restore", "0")["committed"] is False  # nothing differs, so nothing is asked


def test_diff_and_restore_take_tags_and_moments(capsys, told, snapshots):
    """As the library does; what is neither is refused, and nothing was done."""
    moment = told("tenant", "history")["versions"][1]["timestamp"]
    told("tenant", "tag", "go-live", moment)

    assert set(told("tenant", "diff", "go-live")["files"]) == {"config.json"}
    assert set(told("tenant", "diff", "0", moment)["streams"]) == {"Lead"}
    assert told("stream", "diff", "Lead", "go-live") == []
    assert told("tenant", "restore", "go-live", "--yes")["version"] == 1
    assert told("stream", "restore", "Lead", "0", "--yes")["version"] == 0
    assert told("stream", "restore", "Lead", moment, "--yes")["version"] == 1
    assert main(["tenant", "restore", "yesterday", "--yes", "--dir", snapshots]) == 2
    assert "'yesterday' is not a version, tag or moment" in capsys.readouterr().err
    assert main(["tenant", "diff", "yesterday", "--dir", snapshots]) == 2
    assert (
        told("tenant", "history")["versions"][0]["kind"],
        told("tenant", "history")["versions"][0]["restored"],
    ) == ("restore", 1)


def test_restore_takes_parts(told):
    """Single files and streams come back alone."""
    done = told("tenant", "restore", "1", "--file", "config.json", "--yes")
    assert (done["streams"], done["files_written"]) == ({}, ["config.json"])


@pytest.mark.parametrize(("answer", "code", "version"), [("y\n", 0, 3), ("n\n", 130, 2)])
def test_on_a_terminal_it_is_asked(monkeypatch, snapshots, answer, code, version):
    """Yes goes on, no stops with nothing done."""
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)

    assert code == main(["tenant", "restore", "0", "--dir", snapshots])
    assert version == open_tenant(snapshots).version


def test_show_has_the_tags(told):
    """Set and taken off, they are told with the tenant."""
    told("tenant", "tag", "go-live", "1")
    assert told("tenant", "show")["tags"] == {"go-live": 1}
    assert told("tenant", "untag", "go-live") is None
    assert told("tenant", "show")["tags"] == {}


def test_one_version_is_taken_back_after_its_effect_was_shown(capsys, told, snapshots, monkeypatch):
    """Counts, cells and what stays; without a terminal nothing is done unless --yes is given."""
    account = open_tenant(snapshots).stream("Account")
    account.update(pd.DataFrame({"Id": [1, 2, 3], "v": ["A", "B", "C"]}))
    account.update(pd.DataFrame({"Id": [2], "v": ["later"]}))
    revert = ["tenant", "revert", "3", "--dir", snapshots]

    assert main([*revert, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("v: A → a", "later", "changed again since"))
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(revert) == 2
    capsys.readouterr()
    assert 4 == open_tenant(snapshots).version
    some = told("tenant", "revert", "3", "--only", "Account", "--where", "Id = 3", "--yes")
    done = told("tenant", "revert", "3", "--yes", "--message", "Ticket 4711", "--who", "ada")

    assert (5, 1) == (some["tenant_version"], some["streams"]["Account"]["counts"]["deleted"])
    assert (6, 1, 1) == (
        done["tenant_version"],
        done["streams"]["Account"]["counts"]["updated"],
        done["streams"]["Account"]["kept_rows"],
    )
    assert {1: "a", 2: "later"} == dict(account.read().itertuples(index=False))
    assert ("revert version 3: Ticket 4711", "ada") == tuple(
        told("tenant", "history")["versions"][0][name] for name in ("message", "who")
    )
    assert main(revert) == 0
    assert "Nothing of version 3 is left that can go back." in capsys.readouterr().out
