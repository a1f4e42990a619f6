"""Where a command finds its tenant: a directory, or a store with an id; and what a shell is offered."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

import freezeframe
import freezeframe.gluestick as gs
from freezeframe.cli.location import TenantLocation
from freezeframe.cli.main import main
from freezeframe.errors import InputNotFound, InvalidOption, TenantNotFound


@pytest.fixture(scope="module")
def store_root(tmp_path_factory):
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


@pytest.mark.long
def test_each_shell_is_offered_the_commands(complete):
    """Bash gets words, zsh an expression, fish words with help; sub-commands and options as well."""
    assert complete("bash", "strea").split() == ["stream"]
    assert '"stream":"A tenant' in complete("zsh", "strea")
    assert "stream\tA tenant" in complete("fish", "strea")
    assert complete("bash", "stream", "re").split() == ["restore", "retype", "repair", "release"]
    assert complete("bash", "stream", "show", "--vers").split() == ["--version"]
    assert "--version" in complete("bash", "--ver").split()


@pytest.mark.long
def test_tenants_and_streams_are_offered_by_name(complete, store_root, monkeypatch):
    """Those of the store that the line or the settings name; names that a shell would obey are left out."""
    assert complete("bash", "stream", "list", "--root", store_root, "--tenant", "a").split() == ["acme"]
    place = ["--root", store_root, "--tenant", "acme"]
    assert complete("bash", "stream", "show", *place, "Acc").split() == ["Account", "Accrual"]
    assert "Lead" in complete("zsh", "stream", "show", *place, "L")
    monkeypatch.setenv("FREEZEFRAME_ROOT", store_root)
    assert complete("fish", "tenant", "delete", "g").split() == ["globex"]
    assert complete("bash", "config", "get", "spark_mem").split() == ["spark_memory"]


@pytest.mark.long
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


@pytest.mark.long
def test_a_real_bash_completes(store_root):
    """The script that is given out for bash works in it."""
    script = (
        'eval "$(_FREEZEFRAME_COMPLETE=source_bash freezeframe)"\n'
        f"COMP_WORDS=(freezeframe stream show --root {store_root} --tenant acme Acco)\n"
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


@pytest.fixture
def root(tmp_path):
    """A store with the tenant acme in two environments, of which one has a stream."""
    freezeframe.open(tmp_path, "test").tenant("acme", create=True)
    tenant = freezeframe.open(tmp_path).tenant("acme", create=True)
    tenant.stream("Account").update(pd.DataFrame({"Id": ["007"]}), key="Id")
    return str(tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        {"tenant_id": "acme"},
        {"environment": "test"},
        {"root": "store"},
        {"root": "store", "tenant_id": "acme", "directory": Path("snapshots")},
    ],
)
def test_a_place_is_one_tenant(given):
    """Half a place, or two, is refused before anything is opened."""
    with pytest.raises(InvalidOption):
        TenantLocation(**given)


def test_without_options_it_is_the_folder_snapshots(tmp_path, monkeypatch):
    """The default is told in the error where it is not there."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputNotFound, match="snapshots"):
        TenantLocation().tenant()
    assert str(TenantLocation()) == "snapshots"


def test_a_store_tenant_is_found_by_root_id_and_environment(root):
    """The same id in two environments is two tenants; an unknown one is not made."""
    assert TenantLocation(root=root, tenant_id="acme").tenant().streams() == ("Account",)
    assert TenantLocation(root=root, tenant_id="acme", environment="test").tenant().streams() == ()
    with pytest.raises(TenantNotFound):
        TenantLocation(root=root, tenant_id="acme", environment="nope").tenant()
    with pytest.raises(InputNotFound):
        TenantLocation(root=f"{root}/nope", tenant_id="acme").tenant()
    assert not Path(root, "nope").exists()


def test_a_mistyped_tenant_gets_a_suggestion(capsys, root):
    """The error of an unknown tenant names the ids that are like it, and none where none is."""
    assert main(["stream", "list", "--root", root, "--tenant", "amce"]) == 4
    assert "Did you mean acme?" in capsys.readouterr().err
    assert main(["stream", "list", "--root", root, "--tenant", "globex"]) == 4
    assert "Did you mean" not in capsys.readouterr().err


def test_without_a_root_the_store_is_that_of_the_settings(capsys, root, monkeypatch):
    """A tenant's id is enough where a file or variable names the store; so it is for commands of stores."""
    monkeypatch.setenv("FREEZEFRAME_ROOT", root)
    assert main(["stream", "list", "--tenant", "acme", "--json"]) == 0
    assert [row["stream"] for row in json.loads(capsys.readouterr().out)] == ["Account"]
    assert main(["tenant", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tenants"] == ["acme"]
    monkeypatch.setenv("FREEZEFRAME_ENVIRONMENT", "test")
    assert main(["stream", "list", "--tenant", "acme", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    monkeypatch.setenv("FREEZEFRAME_ROOT", f"{root}/nope")
    assert main(["stream", "list", "--tenant", "acme"]) == 4


@pytest.mark.parametrize(
    "command",
    [
        ["stream", "list"],
        ["stream", "import", "Account", "rows.csv", "--key", "Id"],
        ["import", "rows.csv", "--key", "Id"],
        ["file", "list"],
        ["tenant", "history"],
        ["tenant", "gc"],
        ["export", "out"],
    ],
)
def test_a_store_is_no_directory_of_a_tenant(root, capsys, tmp_path, monkeypatch, command):
    """Every command refuses it by --dir before anything is written, and names --root and --tenant."""
    monkeypatch.chdir(tmp_path.parent)
    Path("rows.csv").write_text("Id\n1\n")
    before = sorted(Path(root).rglob("*"))

    assert main([*command, "--dir", root]) == 2

    assert "--tenant" in capsys.readouterr().err
    assert before == sorted(Path(root).rglob("*"))
    assert not Path("out").exists()
    assert main(["tenant", "list", "--root", root]) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda root, rows: freezeframe.update_snapshot(root, "Account", ["Id"], rows),
        lambda root, _: freezeframe.get_snapshot(root, "Account"),
        lambda root, rows: gs.snapshot_records(rows, "Account", root, pk="Id"),
        lambda root, rows: gs.snapshot_records(rows, "Account", root, pk="Id", overwrite=True),
        lambda root, rows: gs.drop_redundant(rows, "Account", root, pk=["Id"]),
        lambda root, _: gs.read_snapshots("Account", root),
    ],
)
def test_a_store_is_no_snapshot_directory_of_a_script(root, call):
    """Nor does a script's call, by our names or by gluestick's, begin a tenant in it."""
    before = sorted(Path(root).rglob("*"))

    with pytest.raises(InvalidOption, match="--tenant"):
        call(root, pd.DataFrame({"Id": ["1"]}))
    assert before == sorted(Path(root).rglob("*"))


def test_a_forgotten_tenant_is_that_of_the_settings(capsys, root, monkeypatch, tmp_path):
    """Where nothing names one the error says how; --tenant and --dir go first."""
    monkeypatch.chdir(tmp_path)
    assert main(["run", "etl.py", "--root", root]) == 2
    assert "FREEZEFRAME_TENANT" in capsys.readouterr().err
    assert main(["stream", "list", "--root", root]) == 2
    assert "FREEZEFRAME_TENANT" in capsys.readouterr().err
    monkeypatch.setenv("FREEZEFRAME_ROOT", root)
    monkeypatch.setenv("FREEZEFRAME_TENANT", "acme")
    assert main(["stream", "list", "--json"]) == 0
    assert [load["stream"] for load in json.loads(capsys.readouterr().out)] == ["Account"]
    assert main(["stream", "list", "--dir", "absent"]) == 4
    monkeypatch.setenv("FREEZEFRAME_TENANT", "globex")
    assert main(["stream", "list", "--tenant", "acme"]) == 0
