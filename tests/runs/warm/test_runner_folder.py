"""A runner that is asked to end is gone when the asking returns, unless jobs use it."""

import os
import sys

import pytest

from freezeframe.engine.daemon import is_alive
from freezeframe.runs.warm.runner_folder import LOCK_NAME, runner_folder, runner_variables, stop_runners
from freezeframe.runs.warm.spawning import ForkedProcess, spawn
from freezeframe.settings import Settings

pytestmark = pytest.mark.long


def test_a_stop_waits_for_a_runner_without_jobs(tmp_path):
    """Else the next command would reach one that is about to end, and start none for those after it."""
    settings = Settings(state_dir=tmp_path / "state", runner_idle_seconds=60)
    lock = runner_folder(settings, os.environ) / LOCK_NAME
    (tmp_path / "job.py").write_text("import time; time.sleep(600)")
    with (tmp_path / "output").open("wb") as output:
        process = spawn(
            [sys.executable, "-m", "job"],
            environment={"PATH": os.environ["PATH"], **runner_variables(os.environ, settings)},
            cwd=tmp_path,
            stdout=output.fileno(),
            settings=settings,
        )
    assert isinstance(process, ForkedProcess)
    stop_runners(settings, 600)
    assert (is_alive(lock), process.poll()) == (True, None)
    process.kill()
    process.wait(60)
    stop_runners(settings, 60)
    assert not is_alive(lock)
