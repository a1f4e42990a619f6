"""The set-up scripts: they find what is there and say in one sentence what is not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
TOOLS = REPOSITORY / "tools"


def run(script, *arguments, **environment):
    """Run one of the scripts with some variables set."""
    command = [TOOLS / script, *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
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


def machine(folder, **programs):
    """The PATH of a machine that has these programs, and the few that every system has."""
    for name in ("sh", "sed", "cat", "grep", "dirname", "readlink", "mktemp", "rm", "printf"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(shutil.which(name))
    for name, line in programs.items():
        fake(folder / name.replace("_", "-"), line)
    return str(folder)


OLD_JAVA = "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2"
JAVAS = "openjdk-17-jre-headless openjdk-21-jre-headless"


def test_only_an_old_java_is_named(tmp_path):
    """A machine with Java 11 alone is told which one that is."""
    path = machine(tmp_path / "bin", java=OLD_JAVA)
    done = run("find-java.sh", PATH=path, JAVA_HOME="", JAVA_ROOT=str(tmp_path))

    sentence = f"Spark does not run on the Java of this machine: {path}/java is Java 11.\n"
    assert (1, "", sentence) == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "home", ["Library/Java/JavaVirtualMachines/temurin-17.jdk/Contents/Home", "opt/homebrew/opt/openjdk@21"]
)
def test_a_java_of_macos_is_found(tmp_path, home):
    """Where macOS and Homebrew install it, behind a command that only says that there is none."""
    path = machine(tmp_path / "bin", java="exit 1")
    version = "17.0.9" if "17" in home else "21.0.2"
    fake(tmp_path / home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2024-01-16' >&2")
    done = run("find-java.sh", PATH=path, JAVA_HOME="", JAVA_ROOT=str(tmp_path))

    assert (0, f"{tmp_path / home}\n") == (done.returncode, done.stdout)


def installed(path):
    """What became of a try to install one of two Javas, with programs from these folders alone."""
    command = [TOOLS / "install-debian-package.sh", JAVAS, "None."]
    return subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("programs", "sentence"),
    [
        ({"uname": "echo Darwin"}, "None. Install it once: brew install openjdk@21\n"),
        (
            {"uname": "echo Linux"},
            f"None. Install it once with the packages of your system (Debian's name: {JAVAS}).\n",
        ),
        (
            {"apt_get": "exit 1", "id": "echo 1000"},
            f"None. Install it once as root: apt-get install {JAVAS.replace(' ', ' (or ')})\n",
        ),
        (
            {"apt_get": "exit 1", "id": "echo 0"},
            f"None. apt-get could not install it ({JAVAS}): see above, and check that a mirror is reached.\n",
        ),
    ],
    ids=["macOS", "another Linux", "no root", "offline"],
)
def test_who_should_install_is_one_sentence(tmp_path, programs, sentence):
    """Each system is told its own command; apt-get is named only where it is."""
    path = machine(tmp_path / "bin", **programs)
    done = installed(path)

    assert (1, sentence) == (done.returncode, done.stderr)


def test_debian_13_gets_the_java_that_it_has(tmp_path):
    """Where openjdk-17 is unknown, openjdk-21 is installed."""
    path = machine(
        tmp_path / "bin",
        apt_get=f'echo "$@" >>{tmp_path}/told',
        apt_cache='test "$2" = openjdk-21-jre-headless',
        id="echo 0",
    )
    done = installed(path)

    assert (done.returncode, done.stderr) == (0, "Installing openjdk-21-jre-headless: None.\n")
    assert "openjdk-21-jre-headless" in (tmp_path / "told").read_text()
    assert "openjdk-17" not in (tmp_path / "told").read_text()


@pytest.mark.parametrize(
    ("version", "kept"), [("17.0.9", True), ("21", True), ("11.0.2", False), (None, False)]
)
def test_a_java_home_that_spark_runs_on_is_kept(tmp_path, version, kept):
    """run.sh puts the Java that was found in the place of an old one, or of a folder that is none."""
    shutil.copytree(TOOLS, tmp_path / "tools")
    (tmp_path / ".cache" / "stamps").mkdir(parents=True)
    (tmp_path / ".cache" / "stamps" / "java").write_text("/found\n")
    home = tmp_path / "home"
    home.mkdir()
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    done = subprocess.run(
        [tmp_path / "tools" / "run.sh", "sh", "-c", 'echo "$JAVA_HOME"'],
        env={**os.environ, "JAVA_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert (str(home) if kept else "/found") == done.stdout.strip()


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("ERROR: No matching distribution found for uv", "does not reach the Python package index"),
        ("ERROR: something else", "ERROR: something else"),
    ],
)
def test_a_machine_that_is_offline_gets_one_sentence(tmp_path, says, told):
    """What pip says of the network is replaced; any other failure is shown as it is."""
    shutil.copytree(TOOLS, tmp_path / "tools")
    (tmp_path / "uv.lock").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    # The environment's interpreter is whichever the venv module of this fake puts there.
    pip = tmp_path / "pip"
    fake(pip, f'echo "{says}" >&2', "exit 1")
    python = fake(
        tmp_path / "bin" / "python3.11",
        f'if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp {pip} "$3/bin/python"; fi',
        'if [ "$1" = -c ]; then echo "$0"; fi',
    )
    done = subprocess.run(
        [tmp_path / "tools" / "setup.sh", "python"],
        env={**os.environ, "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert told in done.stderr
    assert ("ERROR" in done.stderr) == ("else" in says)


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
    assert "python, java, jars, oracle, classes, console, browser, bench, ducklake and nightly" in done.stderr


def test_files_that_the_scripts_name_exist():
    """What a part is made from is there, so that a stamp follows from it."""
    texts = [script.read_text() for script in TOOLS.glob("*.sh")]
    named = {match for text in texts for match in re.findall(r"src/freezeframe/[\w./-]+", text)}

    assert named
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


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


@pytest.mark.parametrize(
    ("said", "code", "expected"),
    [
        ("exit 0", 0, "No known vulnerability in the Python packages."),
        (
            "echo 'error sending request for url' >&2; exit 2",
            0,
            "Not audited: the Python packages. The database of vulnerabilities cannot be reached from here.",
        ),
        ("echo 'jinja2 2.0 has GHSA-1'; exit 1", 1, "jinja2 2.0 has GHSA-1"),
    ],
)
def test_an_audit_tells_a_vulnerability_from_a_database_that_is_not_there(tmp_path, said, code, expected):
    """A known vulnerability ends it with 1; offline it says that nothing was asked."""
    done = run("audit.sh", UV=str(fake(tmp_path / "uv", said)), PATH=machine(tmp_path / "bin", npm="exit 0"))

    assert (code, True) == (done.returncode, expected in done.stdout)
    assert "No known vulnerability in the packages of the console." in done.stdout


@pytest.mark.parametrize("code", [0, 3])
def test_the_demo_ends_with_its_first_failure_and_leaves_no_folder(tmp_path, code):
    """It shows each command before it runs, and no setting of the environment leads to another store."""
    sends = 'case "$*" in *--output*) mkdir to-send && touch to-send/Billed.csv ;; esac'
    fake(tmp_path / "bin" / "freezeframe", 'echo "root: ${FREEZEFRAME_ROOT-none}"', sends, f"exit {code}")
    (tmp_path / "tmp").mkdir()
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = run("demo.sh", PATH=path, TMPDIR=str(tmp_path / "tmp"), FREEZEFRAME_ROOT="/mine")
    shown = re.findall(r"^\$ freezeframe (.+)\nroot: none$", done.stdout, re.MULTILINE)

    assert (done.returncode, done.stderr) == (code, "")
    assert shown[0].startswith("init ")
    assert len(shown) == (7 if code == 0 else 1)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.nightly
@pytest.mark.spark
def test_the_demo_shows_what_the_second_sync_did(tmp_path, spark_settings, spark_session, default_engine):
    """Its project is kept where it is told to, whatever store the environment names, and not overwritten."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = run("demo.sh", tmp_path / "shop", PATH=path, FREEZEFRAME_ROOT=str(tmp_path / "mine"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "update  008  Phone: (null) → +31 30 555 0101\n" in done.stdout
    assert "$ cat to-send/Billed.csv\nId,Name,Billed\n" in done.stdout
    assert "\n013,Ginkgo,5.5\n" in done.stdout
    assert re.search(r"^LedgerReport +changed +2 +0 +0 +2 *$", done.stdout, re.MULTILINE)
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]
    assert (tmp_path / "shop" / "freezeframe-data").is_dir()
    again = run("demo.sh", tmp_path / "shop", PATH=path)
    assert (again.returncode, "There is freezeframe.toml" in again.stderr) == (2, True)
