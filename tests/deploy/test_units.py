"""The systemd units: systemd reads them, and thinks little of what could be done from within."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
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


def test_both_units_work_in_one_store_as_one_user():
    """The user is the one that is made; the worker's unit hides the secret, which it does not need."""
    made = re.findall(r"^u (\S+) ", (DEPLOY / "freezeframe.sysusers").read_text(), re.MULTILINE)
    texts = [unit.read_text() for unit in UNITS]
    service, worker = sorted(texts, key=lambda text: " worker " in text)

    assert made == [*{re.search(r"^User=(.+)$", item, re.MULTILINE)[1] for item in texts}]
    assert "FREEZEFRAME_SERVICE_SECRET_FILE=/etc/freezeframe/service.secret" in service
    assert "SERVICE_SECRET_FILE" not in worker
    assert "InaccessiblePaths=-/etc/freezeframe/service.secret\n" in worker
