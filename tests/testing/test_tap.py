"""The tap as a program: what it leaves is what the generator writes."""

import subprocess
import sys

from freezeframe.testing import SyncSize, write_sync_output


def test_the_program_writes_the_same_sync(tmp_path):
    """Seed, sync and sizes given as options lead to the same bytes as the call, and to no output."""
    options = ["--sync=2", "--seed=5", "--leads=10", "--invoices=12", "--ledger-lines=40"]
    command = [sys.executable, "-W", "error", "-m", "freezeframe.testing.tap", tmp_path / "a", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    expected = write_sync_output(tmp_path / "b", 2, seed=5, size=SyncSize(10, 12, 40))

    assert done.stdout + done.stderr == ""
    assert {file.name: file.read_bytes() for file in (tmp_path / "a").iterdir()} == {
        file.name: file.read_bytes() for file in expected.values()
    }
