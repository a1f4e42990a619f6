"""The settings on the command line: shown with their origin, changed in a file, and no secret printed."""

import json

import pytest

from freezeframe.cli.main import main


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A working folder in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "FREEZEFRAME_CONFIG", "FREEZEFRAME_SPARK", "FREEZEFRAME_ROOT"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    (folder / "below").mkdir(parents=True)
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    return folder


def answer(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_setting_is_changed_and_its_origin_told(project, capsys, monkeypatch):
    """Set writes the project's file; show and get name the file and line, and get prints the value alone."""
    assert answer(capsys, "config", "show", "--origin")["spark"]["origin"] == "default"
    set_ = answer(capsys, "config", "set", "spark", "local")
    assert {"setting": "spark", "value": "local", "file": str(project / "freezeframe.toml")} == set_
    place = f"{project / 'freezeframe.toml'}:1"
    told = {"setting": "spark", "value": "local", "origin": "project", "place": place}
    assert told == answer(capsys, "config", "get", "spark")
    assert main(["config", "get", "spark"]) == 0
    assert capsys.readouterr().out == "local\n"
    assert answer(capsys, "config", "show")["spark"] == "local"
    assert str(project / "freezeframe.toml") == answer(capsys, "config", "path")["project"]
    assert main(["config", "show", "--origin"]) == 0
    assert "freezeframe.toml:1" in capsys.readouterr().out


def test_the_users_file_is_below_the_projects(project, capsys, monkeypatch):
    """--user writes the other file; a change that something hides is told."""
    user = project.parent / ".config" / "freezeframe" / "freezeframe.toml"
    assert str(user) == answer(capsys, "config", "set", "spark_memory", "2g", "--user")["file"]
    assert answer(capsys, "config", "get", "spark_memory")["origin"] == "user"
    monkeypatch.setenv("FREEZEFRAME_SPARK", "sc://there")
    assert main(["config", "set", "spark", "local"]) == 0
    assert "FREEZEFRAME_SPARK comes first" in capsys.readouterr().out


def test_a_path_is_kept_as_seen_from_the_file(project, capsys, monkeypatch):
    """A path is given from the working folder, and is the same one wherever it is read."""
    answer(capsys, "config", "set", "root", "data")
    assert 'root = "data"' in (project / "freezeframe.toml").read_text()
    monkeypatch.chdir(project / "below")
    assert str(project / "data") == answer(capsys, "config", "get", "root")["value"]
    answer(capsys, "config", "set", "root", "mine")
    assert 'root = "below/mine"' in (project / "freezeframe.toml").read_text()
    answer(capsys, "config", "set", "root", "s3://bucket/a")
    assert answer(capsys, "config", "get", "root")["value"] == "s3://bucket/a"


def test_secrets_are_not_printed(project, capsys):
    """Neither by show nor by get nor by set."""
    for arguments in (
        ["config", "set", "master_key_command", "echo pa55"],
        ["config", "get", "master_key_command"],
        ["config", "show"],
        ["config", "show", "--origin"],
        ["config", "set", "database_url", "postgresql://me:pa55@host/db"],
        ["config", "show", "--json"],
    ):
        assert main(arguments) == 0
    printed = capsys.readouterr()

    assert "pa55" not in printed.out + printed.err
    assert "pa55" in (project / "freezeframe.toml").read_text()


def test_wrong_settings_are_refused_before_anything_is_written(project, capsys):
    """An unknown name gets a suggestion, a wrong value is not a value; both end with 2."""
    assert main(["config", "get", "sparc"]) == 2
    assert "Did you mean spark" in capsys.readouterr().err
    assert main(["config", "set", "spark_idle_seconds", "soon"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("freezeframe config set: the setting 'spark_idle_seconds' cannot be 'soon'.")
    assert "--spark-idle-seconds" not in told
    assert main(["config", "set", "root", ""]) == 2
    assert not (project / "freezeframe.toml").exists()
