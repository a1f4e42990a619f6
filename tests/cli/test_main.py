"""The command itself: answers quickly, never with a traceback, and by exit codes."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version

import pyarrow as pa
import pytest

from freezeframe.cli.application import example
from freezeframe.cli.main import main
from freezeframe.configuration.names import COMMANDS_ELSEWHERE
from freezeframe.engine.daemon import retire
from freezeframe.runs.warm.runner_folder import runner_folder
from freezeframe.runs.warm.spawning import start_runner
from freezeframe.script import open_tenant
from freezeframe.settings import Settings


def test_help_loads_no_heavy_library():
    """``--help`` answers without pandas, Arrow, Spark or Rich being loaded."""
    code = (
        "import sys\n"
        "from freezeframe.cli.main import main\n"
        "assert main(['--help']) == 0\n"
        "print(sorted({'pandas', 'pyarrow', 'pyspark', 'numpy', 'rich'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
    assert "init" in done.stdout


def test_a_missing_folder_is_told_by_code_and_sentence(capsys, tmp_path):
    """What is not found gives exit code 4 and says what to do, on standard error."""
    code = main(["stream", "list", "--dir", str(tmp_path / "no")])
    printed = capsys.readouterr()

    assert code == 4
    assert printed.out == ""
    assert "Remedy:" in printed.err


@pytest.mark.parametrize("words", sorted(COMMANDS_ELSEWHERE))
def test_a_command_of_another_tool_is_told_with_what_to_use_here(capsys, words):
    """Of hotglue's and of Delta's; what is named exists."""
    assert main([*words.split(), "--json"]) == 2
    remedy = json.loads(capsys.readouterr().err)["error"]["remedy"]
    assert remedy == COMMANDS_ELSEWHERE[words]
    named = re.findall(r"(?:freezeframe|and|or) ((?:[a-z]+ )?[a-z]+)", remedy)
    commands = {line for line in map(_command_of, named) if line}
    assert commands or "target" in remedy or "var" in remedy
    for command in commands:
        assert main([*command.split(), "--help"]) == 0


def _command_of(words):
    """The command that words begin with; None where they are no command."""
    first, _, second = words.partition(" ")
    if example(f"{first} {second}"):
        return f"{first} {second}"
    return first if example(first) and not second else None


def test_errors_are_json_when_asked_for(capsys, tmp_path):
    """With --json an error is one object with a stable code, still on standard error."""
    code = main(["stream", "list", "--json", "--dir", str(tmp_path / "no")])
    printed = capsys.readouterr()

    assert code == 4
    assert json.loads(printed.err)["error"]["code"] == "INPUT_NOT_FOUND"
    assert printed.out == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nonsense"], ["'nonsense'", "See freezeframe --help."]),
        (["stram"], ["Did you mean 'stream'?", "See freezeframe --help."]),  # codespell:ignore stram
        (
            ["stream", "shwo"],  # codespell:ignore shwo
            ["Did you mean 'show'?", "See freezeframe stream --help."],
        ),
        (["stream", "list", "--nope"], ["--nope", "See freezeframe stream list --help."]),
        (["stream", "show"], ["NAME", "See freezeframe stream show --help."]),
        (["export", ""], ["The path is empty.", "See freezeframe export --help."]),
        (["import", "a.csv", "", "--key", "Id"], ["The path is empty.", "See freezeframe import --help."]),
    ],
)
def test_wrong_usage_is_exit_code_2(capsys, arguments, told):
    """An unknown command, option or a missing argument is the caller's to correct, with a suggestion."""
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert [part for part in told if part not in printed] == [], printed


def test_the_version_is_printed(capsys):
    """-V and --version print one line, and nothing else is looked at."""
    assert main(["-V"]) == 0
    assert main(["--version", "nonsense"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [f"freezeframe {version('freezeframe')}"] * 2 == printed


def test_an_accident_is_told_without_a_traceback(capsys, tmp_path, monkeypatch):
    """An error that nobody foresaw is one sentence and exit code 1; the traceback is there on request."""

    def refuse():
        raise RuntimeError("disk gone")

    monkeypatch.setattr("platform.python_version", refuse)

    assert main(["doctor"]) == 1
    printed = capsys.readouterr()
    assert "disk gone" in printed.err
    assert "Traceback" not in printed.err
    monkeypatch.setenv("FREEZEFRAME_DEBUG", "1")
    with pytest.raises(RuntimeError, match="disk gone"):
        main(["doctor"])


def test_what_the_system_refuses_is_told_with_a_remedy(tmp_path, monkeypatch, capsys):
    """A command that stands in a folder which is gone: no traceback, and no word of a fault of ours."""
    monkeypatch.setenv("FREEZEFRAME_ROOT", str(tmp_path / "store"))
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert main(["run", "etl.py", "--tenant", "acme"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("The system refused ")
    assert "\nRemedy: " in said


def test_a_mistyped_variable_is_told_by_every_command(capsys, monkeypatch, tmp_path):
    """A variable that begins as settings do and is none is named, with the one that may be meant."""
    monkeypatch.setenv("FREEZEFRAME_ROOTT", "/data")
    monkeypatch.setenv("FREEZEFRAME_XYZZY", "1")
    monkeypatch.setenv("FREEZEFRAME_CONFORMANCE", "x")
    (tmp_path / "t").mkdir()

    assert main(["stream", "list", "--dir", str(tmp_path / "t")]) == 0
    told = capsys.readouterr().err.splitlines()
    assert main(["stream", "list", "--dir", str(tmp_path / "t"), "--json"]) == 0
    printed = capsys.readouterr()

    problem = "Warning: The variable {} is not a setting and has no effect. {}"
    assert [
        problem.format("FREEZEFRAME_ROOTT", "Did you mean FREEZEFRAME_ROOT?"),
        problem.format("FREEZEFRAME_XYZZY", "freezeframe config show lists all settings."),
    ] == told
    assert json.loads(printed.out) == []
    assert json.loads(printed.err.splitlines()[0])["warning"]["remedy"] == "Did you mean FREEZEFRAME_ROOT?"


@pytest.mark.long
def test_reads_are_answered_by_the_warm_runner(tmp_path, capsys, monkeypatch):
    """With the same output and exit code, and without loading the command line or the store here."""
    open_tenant(tmp_path / "t").stream("Account").update(pa.table({"Id": [1]}), key=["Id"])
    settings = Settings(state_dir=tmp_path / "state", runner_idle_seconds=60)
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("FREEZEFRAME_RUNNER_IDLE_SECONDS", "60")
    monkeypatch.chdir(tmp_path)
    code = (
        "import sys\n"
        "sys.argv[0] = 'freezeframe'\n"
        "from freezeframe.cli.main import main\n"
        "code = main()\n"
        "print(*({'typer', 'pyarrow'} & set(sys.modules)))\n"
        "sys.exit(code)\n"
    )
    commands = [
        [*words.split(), "--dir", "t", "--json"]
        for words in ("tenant show", "stream list", "stream show Account", "tenant diff 0")
    ]

    def run(words):
        line = [sys.executable, "-c", code, *words]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()

    cold = run(commands[0])
    assert start_runner(settings)
    for words in commands:
        assert main(words) == 0
        assert [*capsys.readouterr().out.splitlines(), ""] == run(words)
    retire(runner_folder(settings, os.environ))

    assert {"typer", "pyarrow"} == set(cold[-1].split())
