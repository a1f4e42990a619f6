"""The set-up scripts: they find what is there and say in one sentence what is not."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
TOOLS = REPOSITORY / "tools"


def run(script, **environment):
    """Run one of the scripts with some variables set."""
    return subprocess.run(
        [TOOLS / script], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def fake(path, *lines):
    """A program that prints what it is told to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.4"])
def test_a_java_that_spark_runs_on_is_found(tmp_path, version):
    """JAVA_HOME counts first, and the home is printed."""
    fake(tmp_path / "home" / "bin" / "java", f"echo 'openjdk version \"{version}\" 2026-01-20' >&2")
    done = run("find-java.sh", JAVA_HOME=str(tmp_path / "home"))

    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/home\n")


def test_a_java_that_is_too_old_is_passed_over(tmp_path):
    """Java 11 in JAVA_HOME is not taken, whatever else the machine has."""
    fake(tmp_path / "bin" / "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    done = run("find-java.sh", JAVA_HOME=str(tmp_path))

    assert str(tmp_path) not in done.stdout


def test_a_python_that_only_claims_to_be_one_is_passed_over(tmp_path):
    """A version manager's command that fails when run is not taken for a Python."""
    done = run("find-python.sh", PYTHON=str(fake(tmp_path / "python3.11", "exit 127")))

    assert done.returncode == 0
    assert str(tmp_path) not in done.stdout


def test_without_any_python_one_sentence_says_so(tmp_path):
    """The sentence names the versions and how to name one."""
    done = run("find-python.sh", PATH=str(tmp_path), PYTHON="")

    assert done.returncode == 1
    assert "3.11, 3.12 or 3.13" in done.stderr


def test_a_part_that_nobody_knows_is_a_usage_error():
    """setup.sh names the parts that there are."""
    done = subprocess.run([TOOLS / "setup.sh", "nonsense"], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "python, java, jars, classes, console, browser and bench" in done.stderr


def test_files_that_the_scripts_name_exist():
    """What a part is made from is there, so that a stamp follows from it."""
    texts = [script.read_text() for script in TOOLS.glob("*.sh")]
    named = {match for text in texts for match in re.findall(r"src/freezeframe/[\w./-]+", text)}

    assert named
    assert [] == [name for name in named if not (REPOSITORY / name).exists()]


def test_a_run_that_nobody_knows_is_a_usage_error():
    """test.sh names the runs that there are, and starts none."""
    done = subprocess.run([TOOLS / "test.sh", "tests/log"], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "all or fast" in done.stderr


def test_every_target_is_in_the_help():
    """`make` alone lists each target with a sentence."""
    if shutil.which("make") is None:
        pytest.skip("make is not on this machine")
    told = subprocess.run(["make", "-C", REPOSITORY], capture_output=True, text=True, check=True).stdout
    phony = next(line for line in (REPOSITORY / "Makefile").read_text().splitlines() if ".PHONY" in line)

    for target in phony.split()[1:]:
        assert f"make {target} " in told


def test_scripts_are_clean():
    """shellcheck has nothing to say, where it is installed."""
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not on this machine")
    scripts = [*sorted(TOOLS.glob("*.sh")), REPOSITORY / ".ci" / "run"]
    done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True, check=False)

    assert done.stdout == ""
