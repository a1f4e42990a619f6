"""The archive of Spark's classes, made before the first job. Java here is a script that only listens."""

import sys
from pathlib import Path

import pytest
from tests.listening_java import use_listener

from freezeframe.engine.java import find_java
from freezeframe.engine.server.archive import make_archive
from freezeframe.engine.server.launch import class_archive
from freezeframe.engine.server.server import attach, running_servers
from freezeframe.errors import SetupError
from freezeframe.settings import Settings


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Settings with a state folder of this test alone."""
    use_listener(tmp_path, monkeypatch)
    return Settings(state_dir=tmp_path / "state", spark="auto")


def jobs(listed, seen):
    """Jobs on the server of the settings that they get, which loads the listed classes."""

    def run(training):
        attachment = attach(training, "local[1]", lambda _: None)
        (work,) = attachment.folder.glob("work-*")
        (work / "classes.lst").write_text(listed)
        attachment.close()
        seen.append(training)

    return run


def test_what_jobs_load_is_archived_once(own):
    """By a server of their own, which is gone then; a second call runs nothing. Half a line is left out."""
    seen = []
    archive = make_archive(own, jobs("a/Class\nb/Cla", seen), lambda _: None)

    assert archive == class_archive(own.state_dir, find_java()) == make_archive(own, jobs("", seen), print)
    assert archive.read_text() == "a/Class\n"
    assert [len(seen), running_servers(seen[0]), seen[0].state_dir.exists()] == [1, [], False]
    assert running_servers(own) == []


@pytest.mark.parametrize("reason", ["Java", "jobs"])
def test_what_fails_leaves_no_archive_and_no_server(own, reason):
    """Neither half of an archive nor a server is left, whoever fails."""
    seen = []

    def fail(training):
        jobs("too/Large\n", seen)(training)
        if reason == "jobs":
            raise SetupError("no memory")

    with pytest.raises(SetupError) as caught:
        make_archive(own, fail, lambda _: None)

    assert "no memory" in f"{caught.value.problem} {caught.value.cause}"
    assert list(own.state_dir.glob("*.jsa")) + list(own.state_dir.glob("*.new")) == []
    assert running_servers(seen[0]) == []


def test_an_archive_of_the_installation_serves_all_its_users(own, tmp_path, monkeypatch):
    """It is read in place of their own, beside it nothing is written, and a damaged one is done without."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "installed"))
    installed = tmp_path / "installed" / "share" / "freezeframe" / class_archive(tmp_path, find_java()).name
    installed.mkdir(parents=True)  # Java cannot read a folder, and nobody can unlink one

    assert make_archive(own, jobs("", []), print) == installed
    assert [installed] == list(installed.parent.iterdir())
    attach(own, "local[1]", lambda _: None).close()
    (server,) = running_servers(own)
    assert b"SharedArchiveFile" not in Path(f"/proc/{server.process}/cmdline").read_bytes()
