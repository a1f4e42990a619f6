"""What is read of the settings without checking them is what the checked ones say."""

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.runs.warm.forwarding import PlainSettings, plain_settings
from freezeframe.settings import load_settings

VARIABLES = ("STATE_DIR", "RUNNER_IDLE_SECONDS", "SCRIPT_VARIABLES")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A project and a home of this test's own, with no setting in the environment."""
    for name in VARIABLES:
        monkeypatch.delenv(f"FREEZEFRAME_{name}", raising=False)
    monkeypatch.delenv("FREEZEFRAME_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    (tmp_path / "project" / "below").mkdir(parents=True)
    (tmp_path / "user" / "freezeframe").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "below")
    return tmp_path


def checked():
    """The same settings, loaded and checked."""
    found = load_settings()
    return PlainSettings(found.state_dir, found.runner_idle_seconds, found.script_variables)


def test_the_defaults_are_the_same():
    """Where nothing is set."""
    assert checked() == plain_settings()


@pytest.mark.parametrize(
    ("project", "user", "environment"),
    [
        ('state_dir = "state"', 'state_dir = "other"\nrunner_idle_seconds = 5', {}),
        ('script_variables = "A,B"', "", {"SCRIPT_VARIABLES": "C", "STATE_DIR": "here"}),
        ('state_dir = "~/state"', 'script_variables = "D"', {"RUNNER_IDLE_SECONDS": " 7 "}),
        ("runner_idle_seconds = 0", 'state_dir = "/absolute"', {"STATE_DIR": ""}),
        ("", "", {"STATE_DIR": "~/state"}),
    ],
)
def test_each_source_counts_as_it_does_for_all_settings(place, monkeypatch, project, user, environment):
    """The environment before the project's file, that before the user's; paths from the file's folder."""
    (place / "project" / "freezeframe.toml").write_text(project)
    (place / "user" / "freezeframe" / "freezeframe.toml").write_text(user)
    for name, value in environment.items():
        monkeypatch.setenv(f"FREEZEFRAME_{name}", value)
    # The project's file is looked for up to the home directory.
    assert checked() == plain_settings()


@pytest.mark.parametrize("text", ["state_dir = 5", 'runner_idle_seconds = "soon"', "no TOML"])
def test_what_is_wrong_is_left_to_who_checks(place, text):
    """Nothing is told here: the whole settings tell it, with file and line."""
    (place / "project" / "freezeframe.toml").write_text(text)
    assert plain_settings() is None
    with pytest.raises(InvalidOption):
        load_settings()
