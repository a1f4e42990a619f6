"""A plain Debian 12 in namespaces of this machine: systemd as its first process, a network of its own."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TOOLS = ("mmdebstrap", "slirp4netns")
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
START_SECONDS = 60

# A first process in a folder: file systems, devices, a cgroup of its own, and the folder as the root.
BOOT = """
set -eu
cd "$1"
mount --bind . .
cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir "sys/fs/cgroup/$2"
echo 0 >"sys/fs/cgroup/$2/cgroup.procs"
exec unshare --cgroup sh -euc '
umount sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
if [ -n "${1:-}" ]; then mkdir -p ".$1"; mount --bind "$1" ".$1"; fi
ip link set lo up
mkdir -p old
pivot_root . old
umount -l old
exec env -i container=namespaces PATH=/usr/sbin:/usr/bin /lib/systemd/systemd
' sh "${3:-}"
"""


class Machine:
    """A running machine; ``run`` carries a script of bash out as root."""

    def __init__(self, folder):
        """Make the root in ``folder`` and start it."""
        self.root = folder / "root"
        self._name = f"freezeframe-{folder.name}"
        self._links = os.environ.get("PIP_FIND_LINKS", "")
        self._make_root()
        local = self._links if Path(self._links).is_dir() else ""
        spaces = ("--mount", "--pid", "--fork", "--uts", "--ipc", "--net", "--kill-child")
        boot = ("--propagation", "private", "sh", "-c", BOOT, "sh", self.root, self._name, local)
        with (folder / "boot.log").open("w") as log:
            self._first = subprocess.Popen(["unshare", *spaces, *boot], stdout=subprocess.DEVNULL, stderr=log)
        self._pid = self._process(folder / "boot.log")
        self._network = subprocess.Popen(
            ["slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback", str(self._pid), "tap0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait = "until [ -e /run/systemd/private ] && ip -4 addr show tap0 | grep -q inet; do sleep 0.2; done"
        self.run(f"timeout {START_SECONDS} bash -c '{wait}'; systemctl is-system-running --wait || true")

    def _make_root(self):
        suites = (
            ("debian", "bookworm"),
            ("debian", "bookworm-updates"),
            ("debian-security", "bookworm-security"),
        )
        sources = [f"deb {MIRROR}/{archive} {suite} main" for archive, suite in suites]
        command = [
            "mmdebstrap",
            "--quiet",
            "--variant=important",
            "--dpkgopt=force-unsafe-io",
            "--mode=root",
            "bookworm",
            self.root,
        ]
        # The clock of a test's machine may be another one than the mirror's.
        options = [f'--aptopt=Acquire::Check-{what} "false"' for what in ("Valid-Until", "Date")]
        subprocess.run([*command, *sources, *options], check=True, capture_output=True, text=True)
        etc = self.root / "etc"
        (etc / "resolv.conf").write_text("nameserver 10.0.2.3\n")
        (etc / "hosts").write_text(f"127.0.0.1 localhost {os.uname().nodename} snapshots.example.org\n")
        if CERTIFICATES.is_file():
            shutil.copy(CERTIFICATES, etc / "certificates-of-the-host.crt")
        if Path("/etc/pip.conf").is_file():
            shutil.copy("/etc/pip.conf", etc)

    def _process(self, log):
        """Return the id of the first process, when it is systemd."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._first.poll() is None:
            children = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children").read_text().split()
            if children and Path(f"/proc/{children[0]}/comm").read_text() == "systemd\n":
                return int(children[0])
            time.sleep(0.1)
        self._first.kill()
        raise RuntimeError(f"systemd did not start: {log.read_text()}")

    def run(self, script, *, timeout=1200, is_expected=True):
        """Run a script of bash, and return what it printed; with ``is_expected`` False it must fail."""
        pip = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("PIP_")]
        if CERTIFICATES.is_file():
            pip.append("PIP_CERT=/etc/certificates-of-the-host.crt")
        environment = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin", "HOME=/root", *pip]
        environment += ["LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
        enter = [
            "nsenter",
            f"--target={self._pid}",
            *(f"--{kind}" for kind in ("mount", "uts", "ipc", "net")),
        ]
        done = subprocess.run(
            [*enter, "--pid", "--cgroup", *environment, "bash", "-euo", "pipefail", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert (done.returncode == 0) == is_expected, f"{script}\n{done.stdout[-6000:]}"
        return done.stdout

    def stop(self):
        """End all of its processes, and remove its cgroup."""
        for process in (self._network, self._first):
            process.terminate() if process is self._network else process.kill()
            process.wait(30)
        # Its last processes end a moment later.
        remove = (
            'mount -t cgroup2 cgroup2 "$1"; until find "$1/$2" -depth -type d -delete; do sleep 0.2; done'
        )
        inside = ["timeout", "30", "unshare", "--mount", "sh", "-c", remove, "sh", self.root / "mnt"]
        subprocess.run([*inside, self._name], check=True)


def start_machine():
    """Return a new machine and its folder; skip the test where this machine cannot have one."""
    if os.uname().sysname != "Linux" or os.geteuid() != 0:
        pytest.skip("a machine in namespaces needs root on Linux")
    spaces = ["unshare", "--mount", "--pid", "--fork", "--net", "--cgroup"]
    tried = subprocess.run([*spaces, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no namespaces here: {tried.stderr.strip()}")
    for tool in TOOLS:
        if shutil.which(tool) is None:
            install = [
                REPOSITORY / "tools" / "install-debian-package.sh",
                tool,
                "The deployment's test needs it.",
            ]
            done = subprocess.run(install, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(done.stderr.strip())
    folder = Path(tempfile.mkdtemp(prefix="deploy-", dir="/var/tmp"))
    return Machine(folder), folder
