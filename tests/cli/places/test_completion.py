"""Shell completion, by the protocol that the shells speak: commands, options, tenants and streams."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

import freezeframe
from freezeframe.cli.main import main

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A store with two tenants, of which one has streams with plain and with hostile names."""
    folder = tmp_path_factory.mktemp("store")
    freezeframe.open(folder).tenant("globex", create=True)
    tenant = freezeframe.open(folder).tenant("acme", create=True)
    for name in ("Account", "Accrual", "Lead", "Acc$(id)", "Acc'x"):
        tenant.stream(name).update(pd.DataFrame({"Id": ["007"]}), key="Id")
    return str(folder)


@pytest.fixture
def complete(monkeypatch, capsys):
    """What a shell is offered for a line; the last word is the one that is being typed."""

    def ask(shell, *words):
        line = ["freezeframe", *words]
        variables = {
            "_FREEZEFRAME_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": " ".join(line),
            "COMP_CWORD": str(len(line) - 1),
            "_TYPER_COMPLETE_ARGS": " ".join(line),
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with suppress(SystemExit):
            main([])
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out

    return ask


def test_each_shell_is_offered_the_commands(complete):
    """Bash gets words, zsh an expression, fish words with help; sub-commands and options as well."""
    assert complete("bash", "strea").split() == ["stream"]
    assert '"stream":"A tenant' in complete("zsh", "strea")
    assert "stream\tA tenant" in complete("fish", "strea")
    assert complete("bash", "stream", "re").split() == ["restore", "retype", "release", "repair"]
    assert complete("bash", "stream", "show", "--vers").split() == ["--version"]
    assert "--version" in complete("bash", "--ver").split()


def test_tenants_and_streams_are_offered_by_name(complete, root, monkeypatch):
    """Those of the store that the line or the settings name; names that a shell would obey are left out."""
    assert complete("bash", "stream", "list", "--root", root, "--tenant", "a").split() == ["acme"]
    place = ["--root", root, "--tenant", "acme"]
    assert complete("bash", "stream", "show", *place, "Acc").split() == ["Account", "Accrual"]
    assert "Lead" in complete("zsh", "stream", "show", *place, "L")
    monkeypatch.setenv("FREEZEFRAME_ROOT", root)
    assert complete("fish", "tenant", "delete", "g").split() == ["globex"]
    assert complete("bash", "config", "get", "spark_mem").split() == ["spark_memory"]


def test_where_nothing_is_known_nothing_is_offered(complete, tmp_path, monkeypatch):
    """A store or folder that is not there, or settings that are broken, are no error while typing."""
    monkeypatch.chdir(tmp_path)
    assert (
        complete("bash", "stream", "show", "--root", str(tmp_path / "no"), "--tenant", "a", "A").strip() == ""
    )
    assert complete("bash", "stream", "show", "A").strip() == ""
    (tmp_path / "freezeframe.toml").write_text("broken")
    assert complete("bash", "tenant", "delete", "a").strip() == ""
    assert list(tmp_path.glob("no*")) == []


def test_a_real_bash_completes(root):
    """The script that is given out for bash works in it."""
    script = (
        'eval "$(_FREEZEFRAME_COMPLETE=source_bash freezeframe)"\n'
        f"COMP_WORDS=(freezeframe stream show --root {root} --tenant acme Acco)\n"
        "COMP_CWORD=7\n_freezeframe_completion freezeframe\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
    )

    assert done.stdout.split() == ["Account"], done.stderr
