"""``freezeframe init`` and ``config``."""

import ast
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest

import freezeframe.gluestick as gs
from freezeframe.cli.commands.project import _write
from freezeframe.cli.main import main
from freezeframe.errors import StorageUnavailable
from freezeframe.settings import load_settings


def test_a_project_can_be_used_at_once(tmp_path, capsys, monkeypatch):
    """Settings, script and syncs are whole: the settings load, the script parses, the syncs are read."""
    monkeypatch.delenv("FREEZEFRAME_ROOT", raising=False)
    project = tmp_path / "new" / "project"
    assert main(["init", str(project), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)

    assert sorted(told["files"]) == sorted(path.name for path in project.iterdir())
    assert f"cd {project}" == told["next"][0]
    monkeypatch.chdir(project)
    assert str(project / "freezeframe-data") == load_settings().root
    assert "pyspark" in (project / "etl.py").read_text()
    ast.parse((project / "etl.py").read_text())
    first, second = gs.read_csv_folder("sync-1"), gs.read_csv_folder("sync-2")
    assert set(first) == set(second) == {"Account", "Invoice", "LedgerReport"}
    assert first["Account"]["Id"].tolist() == ["007", "008", "009", "010", "011", "012"]
    assert second["Account"]["Id"].tolist() == ["008", "009", "010", "013"]


def test_the_script_can_be_a_notebook(tmp_path, capsys):
    """It is valid, and its cells together are the script."""
    assert main(["init", str(tmp_path / "a"), "--notebook"]) == 0
    assert main(["init", str(tmp_path / "b")]) == 0
    assert "freezeframe run etl.ipynb --tenant acme --input sync-1" in capsys.readouterr().out
    book = nbformat.read(tmp_path / "a" / "etl.ipynb", as_version=4)
    nbformat.validate(book)
    cells = "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")

    script = ast.parse((tmp_path / "b" / "etl.py").read_text())
    assert ast.dump(ast.Module(script.body[1:], [])) == ast.dump(ast.parse(cells))
    assert not (tmp_path / "a" / "etl.py").exists()


def test_the_script_can_use_pandas(tmp_path):
    """With --pandas it reads and writes pandas frames, and needs no session."""
    assert main(["init", str(tmp_path), "--pandas"]) == 0
    script = (tmp_path / "etl.py").read_text()
    ast.parse(script)
    assert "to_csv" in script
    assert "pyspark" not in script


def test_nothing_is_overwritten(tmp_path, capsys):
    """One file that is there already is enough to write none; a file in the folder's place is told."""
    (tmp_path / "etl.py").write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert "There is etl.py in" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["etl.py"]
    assert main(["init", str(tmp_path / "etl.py")]) == 2
    (tmp_path / "etl.py").rename(tmp_path / "other.py")
    assert main(["init", str(tmp_path)]) == 0
    assert main(["init", str(tmp_path)]) == 2


def test_a_name_that_the_disk_does_not_take_is_told(tmp_path, capsys):
    """A folder that cannot be made is a typed error, and the folders above it are not left."""
    assert main(["init", str(tmp_path / "new" / ("x" * 300))]) == 1
    assert "Remedy: Check the disk" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_of_two_at_once_one_writes_the_project(tmp_path):
    """The other one is refused, and leaves the files of the first."""
    texts = {"etl.py": "pass", "sync-1/a.csv": "Id", "sync-2/a.csv": "Id"}
    with ThreadPoolExecutor(8) as threads:
        calls = [threads.submit(_write, tmp_path / "project", texts) for _ in range(8)]
    errors = [call.exception() for call in calls]

    assert errors.count(None) == 1
    assert {type(error) for error in errors if error} == {StorageUnavailable}
    assert all((tmp_path / "project" / name).read_text() == text for name, text in texts.items())


@pytest.mark.long
@pytest.mark.parametrize("limit", [0, 600])
def test_half_a_project_is_none(tmp_path, limit):
    """Where the files or the syncs cannot be written, the error is typed and nothing is left."""
    code = (
        "import resource, signal, sys; from freezeframe.cli.main import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "sys.exit(main(['init', sys.argv[1]]))"
    )
    project = tmp_path / "project"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, project, str(limit)],  # -B: no half of a module is kept
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "\nRemedy: Check the disk" in done.stderr
    assert "Traceback" not in done.stderr
    assert not project.exists()


@pytest.fixture
def project(tmp_path, monkeypatch, no_variables):
    """A working folder in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
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
