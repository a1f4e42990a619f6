"""The command `target-freezeframe`: options, settings, exit codes, and what it prints where."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.singer.taps import command, lines, record, schema, state

import freezeframe

REPOSITORY = Path(__file__).parent.parent.parent
MESSAGES = [schema(), record(Id="1"), state({"at": 1})]


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"root": str(tmp_path / "data"), "tenant": "acme", "engine": "auto"}))
    return path


@pytest.mark.long
def test_a_process_reads_a_tap_and_prints_the_state(tmp_path, config):
    """The whole command: rows in by standard input, the committed state out, counts on standard error."""
    code = "import sys; from freezeframe.cli.singer_target import main; sys.exit(main())"
    run = subprocess.run(
        [sys.executable, "-c", code, "--config", config],
        check=False,
        input=b"".join(lines(*MESSAGES)),
        capture_output=True,
    )
    assert (run.returncode, run.stdout) == (0, b'{"at": 1}\n'), run.stderr
    assert run.stderr == b"Account: 1 inserted, 0 updated, 0 unchanged, 0 deleted\nacme: version 0\n"
    assert freezeframe.open(tmp_path / "data").tenant("acme").version == 0


def test_the_package_installs_the_command():
    """`target-freezeframe` is a console script of the package."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["target-freezeframe"] == "freezeframe.cli.singer_target:main"


def test_a_refused_run_ends_with_its_code_and_no_state(tmp_path, config, monkeypatch, capsys):
    """A line that cannot be taken: exit 2, the error on standard error, nothing on standard output."""
    code = command(monkeypatch, ["--config", config], *MESSAGES, "{")
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert told.err.startswith("Line 4 of the tap's output is not valid.\nCause: It is not JSON")
    assert freezeframe.open(tmp_path / "data").tenants() == ()


def test_the_output_of_a_tap_may_be_a_file(tmp_path, config, monkeypatch, capsys):
    """`--input` names it; a file that is not there is exit 4."""
    path = tmp_path / "tap.jsonl"
    path.write_bytes(b"".join(lines(*MESSAGES)))
    codes = [
        command(monkeypatch, ["--config", config, "--input", item]) for item in (path, tmp_path / "none")
    ]
    assert (codes, capsys.readouterr().out) == ([0, 4], '{"at": 1}\n')


def test_later_files_and_the_environment_count_before_earlier_files(tmp_path, config, monkeypatch):
    """Each `--config` overrides the one before it, `ENV` all of them; null is not given."""
    other = tmp_path / "other.json"
    other.write_text('{"tenant": "other", "state_file": "s.json", "nulls": null}')
    monkeypatch.setenv("TARGET_FREEZEFRAME_STATE_FILE", "bookmarks.json")
    monkeypatch.setenv("TARGET_FREEZEFRAME_PLUGIN", "not ours")
    command(monkeypatch, ["--config", "ENV", "--config", config, "--config", other], *MESSAGES)
    store = freezeframe.open(tmp_path / "data")
    assert store.tenants() == ("other",)
    assert store.tenant("other").files.read_json("bookmarks.json") == {"at": 1}


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("{", 2, "holds no settings"),
        ("[]", 2, "holds no settings"),
        ("{}", 2, "The setting 'tenant' is missing"),
        ('{"tenent": "a"}', 2, "Did you mean tenant?"),
        ('{"tenant": "a", "engine": "fast"}', 2, "The setting 'engine' cannot be 'fast'"),
        ('{"tenant": "a", "batch_size_rows": 0}', 2, "The setting 'batch_size_rows' cannot be 0"),
        ('{"tenant": "a/b"}', 2, "cannot be a tenant name"),
        ('{"tenant": "a", "state_file": "../x"}', 2, "cannot be a file's path"),
        (None, 4, "There is no file"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, monkeypatch, capsys, text, code, told):
    """The message names the setting; nothing is written anywhere."""
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("config.json").write_text(text)
    found = command(monkeypatch, ["--config", "config.json"], *MESSAGES)
    assert (code, True) == (found, told in capsys.readouterr().err)
    assert {"config.json"} >= {path.name for path in tmp_path.iterdir()}


def test_about_tells_settings_and_capabilities(monkeypatch, capsys):
    """`--about --format=json` is what Meltano's tools read: name, capabilities, settings as JSON schema."""
    assert command(monkeypatch, ["--about", "--format=json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["name"] == "target-freezeframe"
    assert facts["settings"]["required"] == ["tenant"]
    assert set(facts["capabilities"]) == {"about", "activate-version", "hard-delete"}
    assert all("description" in fact for fact in facts["settings"]["properties"].values())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--about"], "Capabilities: ['about'"),
        (["--about", "--format", "markdown"], "| `tenant` | required |"),
        (["--version"], "target-freezeframe v"),
    ],
)
def test_about_and_version_need_no_settings(monkeypatch, capsys, arguments, told):
    """They print and end with 0."""
    code = command(monkeypatch, arguments)
    assert (code, told in capsys.readouterr().out) == (0, True)


def test_an_unknown_form_of_about_is_refused(monkeypatch, capsys):
    """Exit 2 with the known ones."""
    assert command(monkeypatch, ["--about", "--format", "yaml"]) == 2
    assert "Use text, json or markdown." in capsys.readouterr().err
