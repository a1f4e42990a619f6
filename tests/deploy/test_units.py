"""The systemd units: systemd reads them, and thinks little of what could be done from within."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
MOUNT = DEPLOY / "srv-freezeframe-worker.mount"
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
def test_the_mount_is_read():
    """No line of the worker's mount is unknown."""
    read = subprocess.run([ANALYZE, "verify", MOUNT], capture_output=True, text=True, check=False)

    assert (read.returncode, read.stderr) == (0, "")


def test_the_secret_is_the_services_alone():
    """The service names the file of the secret; the worker's unit hides its folder, and has another user."""
    service, worker = (unit.read_text() for unit in sorted(UNITS, key=lambda unit: "worker" in unit.name))

    assert "FREEZEFRAME_SERVICE_SECRET_FILE=/etc/freezeframe/service/service.secret" in service
    assert "SERVICE_SECRET_FILE" not in worker
    assert "InaccessiblePaths=-/etc/freezeframe/service\n" in worker
    assert {re.search(r"^User=(.+)$", one, re.MULTILINE)[1] for one in (service, worker)} == {
        "freezeframe",
        "freezeframe-worker",
    }


def test_the_mount_maps_the_users_that_are_made():
    """The numbers of the mount are those of the two users, and the worker sees it where the store is."""
    users = dict(re.findall(r"^u (\S+) (\d+)", (DEPLOY / "freezeframe.sysusers").read_text(), re.MULTILINE))
    mount, worker = MOUNT.read_text(), (DEPLOY / "freezeframe-worker.service").read_text()

    assert f"X-mount.idmap=b:{users['freezeframe']}:{users['freezeframe-worker']}:1\n" in mount
    assert "What=/srv/freezeframe/store\nWhere=/srv/freezeframe/worker\n" in mount
    assert "BindPaths=/srv/freezeframe/worker:/srv/freezeframe/store\n" in worker
    assert "RequiresMountsFor=/srv/freezeframe/worker\n" in worker
