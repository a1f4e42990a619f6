"""A new project: its files are there, are valid, and nothing that was there is touched."""

import ast
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest

import freezeframe.gluestick as gs
from freezeframe.cli.commands import project
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
        calls = [threads.submit(project._write, tmp_path / "project", texts) for _ in range(8)]
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
        [sys.executable, "-c", code, project, str(limit)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "\nRemedy: Check the disk" in done.stderr
    assert "Traceback" not in done.stderr
    assert not project.exists()
