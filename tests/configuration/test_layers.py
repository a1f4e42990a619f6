"""Sources of settings: which one wins, where a value comes from, and what is wrong told by its place."""

import pytest

from freezeframe.errors import InputNotFound, InvalidOption, SetupError
from freezeframe.settings import load_settings, resolve_settings


@pytest.fixture
def project(tmp_path, monkeypatch, no_variables):
    """A repository's folder as the working one, and a home that is empty; no variables of ours."""
    home = tmp_path / "home"
    folder = home / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    return folder


def write_user_file(project, text):
    file = project.parent / ".config" / "freezeframe" / "freezeframe.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_the_first_source_that_has_a_value_wins(project, monkeypatch):
    """Flag, environment, project's file, user's file, default: each hides those after it."""
    assert load_settings().spark == "auto"
    user = write_user_file(project, 'spark = "local"\n')
    assert load_settings().spark == "local"
    file = project / "freezeframe.toml"
    file.write_text('# ours\nspark = "sc://project"\n')
    assert load_settings().spark == "sc://project"
    monkeypatch.setenv("FREEZEFRAME_SPARK", "sc://environment")
    assert load_settings().spark == "sc://environment"
    assert load_settings(spark="sc://flag").spark == "sc://flag"
    assert load_settings(spark=None).spark == "sc://environment"

    origins = resolve_settings().origins
    assert (origins["spark"].kind, origins["spark"].place) == ("environment", "FREEZEFRAME_SPARK")
    monkeypatch.setenv("FREEZEFRAME_SPARK", "")
    assert f"{file}:2" == str(resolve_settings().origins["spark"])
    file.unlink()
    assert f"{user}:1" == str(resolve_settings().origins["spark"])
    assert str(resolve_settings().origins["root"]) == "default"


def test_the_projects_file_is_found_from_below_and_no_higher_than_the_repository(project, monkeypatch):
    """A folder inside the repository sees its file; one above the repository's root is not looked at."""
    below = project / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    (project.parent / "freezeframe.toml").write_text('spark = "sc://above"\n')
    assert load_settings().spark == "auto"
    (project / "freezeframe.toml").write_text('spark = "sc://mine"\n')
    assert load_settings().spark == "sc://mine"


def test_outside_of_home_and_repository_only_the_working_folder_counts(project, tmp_path, monkeypatch):
    """Where anybody may write, a file of a folder above decides nothing."""
    below = tmp_path / "elsewhere" / "work"
    below.mkdir(parents=True)
    (below.parent / "freezeframe.toml").write_text('spark = "sc://planted"\n')
    monkeypatch.chdir(below)
    assert load_settings().spark == "auto"
    (below / "freezeframe.toml").write_text('spark = "sc://mine"\n')
    assert load_settings().spark == "sc://mine"


def test_a_named_file_is_used_in_the_projects_place(project, monkeypatch):
    """FREEZEFRAME_CONFIG names a file; one that is not there is an error, not the default."""
    named = project / "other.toml"
    named.write_text('spark = "sc://named"\n')
    (project / "freezeframe.toml").write_text('spark = "sc://project"\n')
    monkeypatch.setenv("FREEZEFRAME_CONFIG", str(named))
    assert load_settings().spark == "sc://named"
    named.unlink()
    with pytest.raises(InputNotFound, match="FREEZEFRAME_CONFIG"):
        load_settings()


def test_paths_of_a_file_are_meant_from_its_folder(project, monkeypatch):
    """The store and a key's file stay the same wherever below the project a command is run; URLs stay."""
    file = project / "freezeframe.toml"
    file.write_text('root = "data"\nmaster_key_file = "keys/a"\nstate_dir = "~/state"\n')
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    settings = load_settings()

    assert str(project / "data") == settings.root
    assert project / "keys" / "a" == settings.master_key_file
    assert project.parent / "state" == settings.state_dir
    file.write_text('root = "s3://bucket/prefix"\n')
    assert load_settings().root == "s3://bucket/prefix"
    assert load_settings(root="here").root == "here"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('\nsprak = "local"\n', ["freezeframe.toml:2", "'sprak' is not a setting", "Did you mean spark"]),
        ("\n\nspark_idle_seconds = 'soon'\n", ["freezeframe.toml:3", "spark_idle_seconds", "'soon'"]),
        ("spark_idle_seconds = 0\n", ["freezeframe.toml:1", "greater than or equal to 1"]),
        ('compatibility = "none"\n', ["freezeframe.toml:1", "'auto' or 'plain'"]),
        ("spark = local\n", ["freezeframe.toml is not TOML", "line 1"]),
        ('[spark]\nmemory = "4g"\n', ["the setting 'spark' cannot be"]),
    ],
)
def test_what_is_wrong_in_a_file_is_told_by_its_place(project, text, told):
    """Unknown names, values of another type and broken files: file, line and what is allowed are named."""
    (project / "freezeframe.toml").write_text(text)
    with pytest.raises(InvalidOption) as caught:
        load_settings()
    message = str(caught.value)

    assert [part for part in told if part not in message] == [], message


def test_a_wrong_variable_is_named(project, monkeypatch):
    """The message says which variable holds the value."""
    monkeypatch.setenv("FREEZEFRAME_COMMIT_TRIES_MAX", "many")
    with pytest.raises(InvalidOption, match="FREEZEFRAME_COMMIT_TRIES_MAX: the setting"):
        load_settings()


def test_an_unknown_flag_is_refused(project):
    """A name that is not a setting is never dropped in silence."""
    with pytest.raises(InvalidOption, match="'sparkk' is not a setting"):
        load_settings(sparkk="local")


def test_a_file_that_others_may_write_is_not_used_unless_it_is_named(project, monkeypatch):
    """Settings name commands that are run: a file that anybody could have changed is refused."""
    file = project / "freezeframe.toml"
    file.write_text('spark = "local"\n')
    file.chmod(0o666)
    with pytest.raises(SetupError, match="others can write"):
        load_settings()
    monkeypatch.setenv("FREEZEFRAME_CONFIG", str(file))
    assert load_settings().spark == "local"


def test_a_file_that_is_no_text_is_refused(project):
    """Bytes that are not UTF-8 are told as such, with the file's name."""
    (project / "freezeframe.toml").write_bytes(b"spark = '\xff'\n")
    with pytest.raises(SetupError, match="cannot be read"):
        load_settings()
