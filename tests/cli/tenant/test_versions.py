"""``freezeframe tenant show|history|diff|restore|tag|untag``, on the past of a small tenant."""

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

    assert (2, ["Account", "Lead"], ["config.json"]) == (
        now["tenant_version"],
        [one["stream"] for one in now["streams"]],
        [one["path"] for one in now["files"]],
    )
    assert (0, ["Account"], []) == (
        then["tenant_version"],
        [one["stream"] for one in then["streams"]],
        then["files"],
    )
    assert 2 == told("tenant", "show", "--as-of", now["timestamp"])["tenant_version"]
    assert 2 == main(["tenant", "show", "--dir", snapshots, "--version", "0", "--as-of", "2026-01-01"])
    assert 4 == main(["tenant", "show", "--dir", snapshots, "--version", "9"])
    capsys.readouterr()
    assert 0 == main(["tenant", "show", "--dir", snapshots])
    assert "all versions" in capsys.readouterr().out


def test_show_of_nothing_is_no_error(capsys, tmp_path):
    """A directory without a commit is version -1 and empty."""
    assert 0 == main(["tenant", "show", "--dir", str(tmp_path), "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert (-1, [], []) == (shown["tenant_version"], shown["streams"], shown["files"])


def test_history_is_newest_first_and_can_be_narrowed(capsys, told, snapshots):
    """Who, when, job and message; by stream, file or job."""
    everything = told("tenant", "history")

    assert [2, 1, 0] == [entry["tenant_version"] for entry in everything]
    assert ("ops", "sync-1", "Nightly", ["config.json"]) == tuple(
        everything[1][name] for name in ("author", "job_id", "message", "files_written")
    )
    assert [0] == [entry["tenant_version"] for entry in told("tenant", "history", "--stream", "Account")]
    assert [2, 1] == [entry["tenant_version"] for entry in told("tenant", "history", "--file", "config.json")]
    assert [1] == [entry["tenant_version"] for entry in told("tenant", "history", "--job", "sync-1")]
    assert [2] == [entry["tenant_version"] for entry in told("tenant", "history", "--limit", "1")]
    assert 0 == main(["tenant", "history", "--dir", snapshots])
    assert "Lead +1 ~0 -0" in capsys.readouterr().out


def test_diff_tells_streams_and_files(capsys, told, snapshots):
    """By rows and by name; with --text the changed lines as well."""
    found = told("tenant", "diff", "0", "1")
    assert ("added", 1) == (found["streams"]["Lead"]["fate"], found["streams"]["Lead"]["inserted"])
    assert {"config.json": {"fate": "added", "sealed": False}} == found["files"]

    later = told("tenant", "diff", "1", "--text")
    assert '-{"a": 1}\n+{"a": 2}' in later["files"]["config.json"]["text"]
    assert 0 == main(["tenant", "diff", "2", "--dir", snapshots])
    assert "hold the same" in capsys.readouterr().out
    assert 4 == main(["tenant", "diff", "7", "--dir", snapshots])


def test_restore_previews_asks_and_makes_a_version(capsys, told, snapshots):
    """--dry-run does nothing, without --yes and a terminal nothing is done, with it a version is made."""
    preview = told("tenant", "restore", "0", "--dry-run")
    assert (False, "removed", ["config.json"]) == (
        preview["committed"],
        preview["streams"]["Lead"]["fate"],
        preview["files_deleted"],
    )
    assert 2 == main(["tenant", "restore", "0", "--dir", snapshots])
    printed = capsys.readouterr()
    assert "--yes" in printed.err
    assert "Lead" in printed.out
    assert 2 == told("tenant", "show")["tenant_version"]

    done = told("tenant", "restore", "0", "--yes", "--who", "ops", "--message", "Back")
    assert (True, 3) == (done["committed"], done["tenant_version"])
    (entry,) = told("tenant", "history", "--limit", "1")
    assert ("ops", "restore version 0: Back") == (entry["author"], entry["message"])
    assert ("restore", 0) == (entry["kind"], entry["restored_version"])
    assert told("tenant", "restore", "0")["committed"] is False  # nothing differs, so nothing is asked


def test_diff_and_restore_take_tags_and_moments(capsys, told, snapshots):
    """As the library does; what is neither is refused, and nothing was done."""
    moment = told("tenant", "history")[1]["timestamp"]
    told("tenant", "tag", "go-live", moment)

    assert {"config.json"} == set(told("tenant", "diff", "go-live")["files"])
    assert {"Lead"} == set(told("tenant", "diff", "0", moment)["streams"])
    assert [] == told("stream", "diff", "Lead", "go-live")
    assert 1 == told("tenant", "restore", "go-live", "--yes")["restored_version"]
    assert 0 == told("stream", "restore", "Lead", "0", "--yes")["restored_version"]
    assert 1 == told("stream", "restore", "Lead", moment, "--yes")["restored_version"]
    assert 2 == main(["tenant", "restore", "yesterday", "--yes", "--dir", snapshots])
    assert "'yesterday' is not a version, tag or moment" in capsys.readouterr().err
    assert 2 == main(["tenant", "diff", "yesterday", "--dir", snapshots])
    assert ("restore", 1) == (
        told("tenant", "history")[0]["kind"],
        told("tenant", "history")[0]["restored_version"],
    )


def test_restore_takes_parts(told):
    """Single files and streams come back alone."""
    done = told("tenant", "restore", "1", "--file", "config.json", "--yes")
    assert ({}, ["config.json"]) == (done["streams"], done["files_written"])


@pytest.mark.parametrize(("answer", "code", "version"), [("y\n", 0, 3), ("n\n", 130, 2)])
def test_on_a_terminal_it_is_asked(monkeypatch, snapshots, answer, code, version):
    """Yes goes on, no stops with nothing done."""
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)

    assert code == main(["tenant", "restore", "0", "--dir", snapshots])
    assert version == open_tenant(snapshots).version


def test_tags_name_versions(capsys, told, snapshots):
    """A tag is set on a version and taken off; a name that is taken is refused."""
    assert {"tag": "go-live", "tenant_version": 1} == told("tenant", "tag", "go-live", "1")
    assert {"go-live": 1} == told("tenant", "show")["tags"]
    assert 2 == main(["tenant", "tag", "go-live", "0", "--dir", snapshots])
    assert {"tags": {}} == told("tenant", "untag", "go-live")
    assert 4 == main(["tenant", "untag", "go-live", "--dir", snapshots])
    assert "go-live" in capsys.readouterr().err
