"""Paths from where the command stands."""

from pathlib import Path

from freezeframe.cli.output import near_path


def test_the_shorter_form_is_taken(tmp_path, monkeypatch):
    """Below the working directory and near it a path is relative; far away it stays whole."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert near_path(folder / "store" / "log") == "store/log"
    assert near_path(tmp_path / "beside") == "../beside"
    assert near_path(Path("/x")) == "/x"


def test_without_a_working_directory_it_stays_whole(tmp_path, monkeypatch):
    """Another program may have removed the folder meanwhile."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert near_path(Path("/a/b")) == "/a/b"
