"""kill -9 of a script's process at any moment: the tenant is at the old version or at the new one."""

import os
import random
import signal
import threading
import time

import pytest

pytestmark = pytest.mark.long

FILES = 3


def _killed_run(runs, number, seconds):
    """Run a script that changes several files, and kill its whole group after ``seconds``."""
    script = f"""
        import os, time
        print(os.getpid(), flush=True)
        for name in range({FILES}):
            open(f"snapshots/{{name}}.txt", "w").write("{number}" * 1000)
            time.sleep(0.02)
    """
    killer = threading.Thread(target=_kill, args=(runs, seconds))
    runs.lines = []
    killer.start()
    done = runs.run(script)
    killer.join()
    return done


def _kill(runs, seconds):
    until = time.monotonic() + 30
    while not runs.lines and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(seconds)
    try:
        os.killpg(int(runs.lines[0]), signal.SIGKILL)
    except ProcessLookupError:
        return


def _contents(runs):
    return {entry.path: runs.tenant.files.read(entry.path) for entry in runs.tenant.files.list()}


@pytest.mark.parametrize("rounds", [5, pytest.param(30, marks=pytest.mark.nightly)])
def test_a_killed_script_leaves_old_or_new(runs, rounds):
    """All files are of one run, and the outcome says which: what is committed has succeeded."""
    chance = random.Random(rounds)
    before = _contents(runs)
    for number in range(rounds):
        done = _killed_run(runs, number, chance.uniform(0, 0.15))
        now = _contents(runs)
        new = {f"{name}.txt": str(number).encode() * 1000 for name in range(FILES)}
        assert (new if done.is_success else before) == now
        assert done.is_success or done.error["code"] == "SCRIPT_DIED"
        before = now
    assert runs.run("pass").status == "succeeded"
