"""The package goes with other programs: uv finds a solution with our locked versions, nothing installed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
UV = REPOSITORY / ".cache" / "uv" / "bin" / "uv"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not UV.exists(), reason="uv is not in .cache/uv: tools/setup.sh python brings it"),
]


def asked(*words, text=""):
    """What uv answers."""
    done = subprocess.run(
        [UV, *words],
        input=text,
        cwd=REPOSITORY,
        env=os.environ | {"UV_SYSTEM_CERTS": "1", "FREEZEFRAME_SKIP_CONSOLE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("extra", ["", "jobs"])
@pytest.mark.parametrize("program", ["apache-airflow==3.3.2", "prefect==3.8.8", "dagster==1.13.29"])
def test_it_goes_with_an_orchestrator(tmp_path, program, extra, python):
    """In the very versions of uv.lock, which all other tests run on."""
    words = ("--locked", "--no-dev", "--no-hashes", "--no-emit-project", "--quiet")
    locked = tmp_path / "locked.txt"
    locked.write_text(asked("export", *words, *(["--extra", extra] if extra else [])))
    package = f"freezeframe{f'[{extra}]' if extra else ''} @ file://{REPOSITORY}"

    found = asked(
        *("pip", "compile", "--quiet", "--python-version", python, "-c", str(locked), "-"),
        text=f"{package}\n{program}\n",
    )

    assert re.search(rf"^{re.escape(program)}$", found, re.MULTILINE), found
