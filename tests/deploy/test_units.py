"""The systemd units: systemd reads them, and thinks little of what could be done from within."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = [DEPLOY / "freezeframe.service", DEPLOY / "freezeframe-worker.service"]
ANALYZE = shutil.which("systemd-analyze")
EXPOSURE_MAX = 2.5


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_a_unit_is_read_and_confined(unit, tmp_path):
    """No line is unknown, and the exposure that systemd computes is that of a confined service."""
    installed = tmp_path / unit.name
    installed.write_text(unit.read_text().replace("/opt/freezeframe/bin/freezeframe", sys.executable))
    read = subprocess.run([ANALYZE, "verify", installed], capture_output=True, text=True, check=False)
    looked = subprocess.run(
        [ANALYZE, "security", "--offline=true", installed], capture_output=True, text=True, check=False
    )
    exposure = re.search(r"exposure level for .*: ([\d.]+)", looked.stdout)

    assert (read.returncode, read.stderr) == (0, "")
    assert float(exposure[1]) < EXPOSURE_MAX


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_the_backup_s_units_are_read(tmp_path):
    """No line of the slice, the timer and what it starts is unknown."""
    names = ("freezeframe.slice", "freezeframe-backup.service", "freezeframe-backup.timer")
    for name in names:
        text = (DEPLOY / name).read_text().replace("/usr/local/sbin/freezeframe-backup", sys.executable)
        (tmp_path / name).write_text(text)
    read = subprocess.run(
        [ANALYZE, "verify", *names], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (read.returncode, read.stderr) == (0, "")


def test_both_units_work_in_one_store_as_one_user():
    """The user is the one that is made; the worker's unit hides the secret, which it does not need."""
    made = re.findall(r"^u (\S+) ", (DEPLOY / "freezeframe.sysusers").read_text(), re.MULTILINE)
    texts = [unit.read_text() for unit in UNITS]
    service, worker = sorted(texts, key=lambda text: " worker " in text)

    assert made == [*{re.search(r"^User=(.+)$", item, re.MULTILINE)[1] for item in texts}]
    assert "FREEZEFRAME_SERVICE_SECRET_FILE=/etc/freezeframe/service.secret" in service
    assert "SERVICE_SECRET_FILE" not in worker
    assert "InaccessiblePaths=-/etc/freezeframe/service.secret\n" in worker
