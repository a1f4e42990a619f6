"""A part whose packages are not installed says which extra brings them."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import freezeframe
from freezeframe import extras
from freezeframe.errors import MissingExtra
from freezeframe.extras import missing_extra, requires_extra

PROJECT = Path(__file__).parent.parent / "pyproject.toml"

WITHOUT = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def without_extras(code, besides=()):
    """Run Python code in a process that finds none of the extras' packages, but for those ``besides``."""
    absent = {
        package
        for extra, packages in extras._PACKAGES.items()
        if extra not in besides
        for package in packages
    }
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(absent=absent) + code],
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_package_belongs_to_an_extra_of_the_project():
    """The extras here are those of pyproject.toml."""
    declared = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert set(extras._PACKAGES) == set(extras._PART) == set(declared) - {"all"}


def test_the_error_names_the_extra_and_the_command():
    """Problem, cause, remedy."""
    with pytest.raises(MissingExtra) as raised, requires_extra("s3"):
        raise ModuleNotFoundError("No module named 'obstore.store'", name="obstore.store")
    assert raised.value.problem == "A store in a bucket needs the extra 's3', which is not installed."
    assert raised.value.remedy == "pip install 'freezeframe[s3]'"


def test_a_package_of_two_extras_is_told_for_the_part_that_asked():
    """The service needs the jobs' packages: whoever serves is told of the service."""
    error = ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy")
    assert missing_extra(error).details["extra"] == "jobs"
    assert missing_extra(error, "service").details["extra"] == "service"


def test_another_missing_module_stays_what_it_is():
    """A script's own missing import is not an extra of freezeframe."""
    assert missing_extra(ModuleNotFoundError("No module named 'mine'", name="mine")) is None
    with pytest.raises(ModuleNotFoundError, match="mine"), requires_extra("s3"):
        raise ModuleNotFoundError("No module named 'mine'", name="mine")


def without_extras_run(folder, lines, besides=(), first=""):
    """Run code and then commands; the process ends well if each command does."""
    return without_extras(
        f"import os; os.chdir({str(folder)!r}); os.environ['FREEZEFRAME_ROOT'] = 'data'\n"
        f"os.environ['FREEZEFRAME_STATE_DIR'] = {str(folder / 'state')!r}\n"
        f"{first}\nfrom freezeframe.cli.main import main\n"
        f"codes = [main(line.split()) for line in {lines!r}]\n"
        "sys.exit(f'{codes}' if any(codes) else 0)",
        besides,
    )


def test_a_command_without_its_extra_says_which(tmp_path):
    """Exit code 2 and one sentence, no traceback."""
    done = without_extras_run(tmp_path, ["job list", "serve --root data", "key list"])

    assert done.stderr.strip().endswith("[2, 2, 2]"), done.stderr
    named = re.findall(r"pip install 'freezeframe\[(\w+)\]'", done.stderr)
    assert named == ["jobs", "service", "jobs"]
    assert "Traceback" not in done.stderr


UPDATES = """
import freezeframe, pyarrow as pa
tenant = freezeframe.open("data", engine="auto").tenant("acme", create=True)
for name in ("Ada", "Bob"):
    tenant.stream("Account").update(pa.table({"Id": ["007"], "Name": [name]}), key="Id")
"""


def test_the_first_commands_need_no_extra(tmp_path):
    """What the README begins with, and a stream that is written, read and shown."""
    (tmp_path / "etl.py").write_text("print('carried out')\n")
    lines = [
        "tenant create globex",
        "doctor",
        "run etl.py --tenant acme",
        "stream show Account --tenant acme",
    ]
    done = without_extras_run(tmp_path, lines, first=UPDATES)

    assert (done.returncode, "needs the extra" in done.stderr + done.stdout) == (0, False), done.stderr
    assert "Bob" in done.stdout


@pytest.mark.long
def test_the_queue_needs_the_extra_of_jobs_alone(tmp_path):
    """Jobs are submitted, run and scheduled; tenants are deleted, keys made and audited."""
    (tmp_path / "etl.py").write_text("print('carried out')\n")
    lines = [
        "tenant create acme",
        "job submit etl.py --tenant acme",
        "worker --once --metrics 127.0.0.1:0",
        "schedule create nightly etl.py --tenant acme --cron @daily",
        "key create",
        "audit verify",
        "tenant delete acme --yes",
    ]
    done = without_extras_run(tmp_path, lines, besides=("jobs",))

    assert (done.returncode, "needs the extra" in done.stderr) == (0, False), done.stderr


def test_the_version_is_that_of_the_package():
    """`freezeframe.__version__` is what pip shows."""
    assert version("freezeframe") == freezeframe.__version__


@pytest.mark.parametrize(
    ("call", "name", "release"),
    [("freezeframe.spark()", "pyspark", "4.0.1"), ("tenant['S'].to_pandas()", "pandas", "2.1.4")],
)
def test_a_release_that_does_not_fit_is_refused_by_the_call_that_needs_it(tmp_path, call, name, release):
    """The error has the range and the command; what needs no such library works."""
    code = f"""
import importlib.metadata
found = importlib.metadata.version
importlib.metadata.version = lambda package: {release!r} if package == {name!r} else found(package)
import freezeframe, pyarrow as pa
from freezeframe.errors import SetupError
tenant = freezeframe.open({str(tmp_path)!r}).tenant("acme", create=True)
tenant.stream("S").update(pa.table({{"k": [1]}}), key="k")
try:
    {call}
except SetupError as error:
    print(error)
print(tenant["S"].count())
"""
    environment = {**os.environ, "FREEZEFRAME_ENGINE": "auto"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )

    assert f"{name} is {release}, needed is <" in run.stdout
    assert "pip install --upgrade freezeframe" in run.stdout
    assert run.stdout.splitlines()[-1] == "1"
