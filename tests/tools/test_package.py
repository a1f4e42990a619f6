"""The package as a stranger installs it: a wheel in an empty environment, a source archive that builds."""

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import httpx
import pytest

REPOSITORY = Path(__file__).parent.parent.parent
UV = REPOSITORY / ".cache" / "uv" / "bin" / "uv"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not UV.exists(), reason="uv is not in .cache/uv: tools/setup.sh python brings it"),
]


def call(*command, **options):
    """Run a command to its end; its output is in the message if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    call("make", "wheel", f"OUT={folder}", cwd=REPOSITORY)
    call(UV, "build", "--quiet", "--sdist", "--out-dir", folder, cwd=REPOSITORY)
    return folder


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """Commands of an environment that has the wheel with all extras, and nothing of this repository."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    call(sys.executable, "-m", "venv", folder)
    (wheel,) = built.glob("*.whl")
    call(folder / "bin" / "pip", "install", "--quiet", f"./{wheel.name}[all]", cwd=built)
    return folder / "bin"


def test_the_wheel_holds_the_pages_the_examples_and_the_licence(built):
    """The console's pages, what `init` writes, the type marker and the licence are in it; tests are not."""
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("index.html") for name in names)
    assert {name for name in names if name.startswith("freezeframe/examples/")} == {
        f"freezeframe/{path.relative_to(REPOSITORY)}"
        for pattern in ("freezeframe.toml", ".gitignore", "*/etl.py", "sync-*/*.csv")
        for path in (REPOSITORY / "examples").glob(pattern)
    }
    assert "freezeframe/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert [name for name in names if name.startswith("tests/")] == []


def test_the_source_archive_holds_what_its_make_needs(built):
    """Makefile, tools, tests, lock file and the sources of the pages."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    wanted = {
        "Makefile",
        "tools/setup.sh",
        "tools/run_tests.py",
        "uv.lock",
        "mkdocs.yml",
        "ui/package.json",
        ".ci/run",
    }
    assert wanted - names == set()


def test_what_is_declared_is_what_is_installed(installed):
    """The package tells its own version."""
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    assert f"freezeframe {version}\n" == call(installed / "freezeframe", "--version")


def test_a_project_is_begun_and_run_from_the_wheel(installed, tmp_path):
    """`init`, two runs and a comparison, in an environment without the repository."""
    environment = os.environ | {"HOME": str(tmp_path / "home"), "PYTHONPATH": ""}
    freezeframe = installed / "freezeframe"
    call(freezeframe, "init", "shop", "--pandas", cwd=tmp_path, env=environment)
    for sync in ("sync-1", "sync-2"):
        line = (freezeframe, "run", "etl.py", "--tenant", "acme", "--input", sync)
        call(*line, cwd=tmp_path / "shop", env=environment | {"FREEZEFRAME_ENGINE": "auto"})
    shown = call(
        freezeframe, "tenant", "diff", "0", "1", "--tenant", "acme", cwd=tmp_path / "shop", env=environment
    )
    assert {"Account", "Invoice", "LedgerReport"} <= set(shown.split())


def test_a_project_is_begun_without_an_installation(built, tmp_path):
    """`uvx` runs the command of the wheel, which brings the examples."""
    (wheel,) = built.glob("*.whl")
    call(UV, "tool", "run", "--from", f"./{wheel.name}", "freezeframe", "init", tmp_path / "shop", cwd=built)
    assert {"etl.py", "freezeframe.toml", "sync-1"} <= {path.name for path in (tmp_path / "shop").iterdir()}


def test_the_service_answers_from_the_wheel(installed, tmp_path):
    """`serve` has its pages and says that it lives."""
    process = subprocess.Popen(
        [
            installed / "freezeframe",
            "serve",
            "--root",
            tmp_path / "store",
            "--port",
            "0",
            "--workers",
            "1",
            "--json",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"HOME": str(tmp_path / "home"), "PYTHONPATH": ""},
    )
    try:
        url = json.loads(process.stdout.readline())["url"]
        assert httpx.get(f"{url}/health/ready", timeout=30).status_code == 200
        assert (
            "<title>"
            in httpx.get(url, headers={"Accept": "text/html"}, follow_redirects=True, timeout=30).text
        )
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
