"""Checks of the machine and its software."""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from freezeframe.errors import FreezeframeError
from freezeframe.settings import Settings

# The result of one check of a machine.

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check: ``ok``, ``warning`` (jobs run, with a defect) or ``error`` (they do not)."""

    part: str
    level: Level
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        """All fields by name, and whether jobs can run."""
        return {
            "part": self.part,
            "ok": self.level != "error",
            "level": self.level,
            "found": self.found,
            "remedy": self.remedy,
        }


def looked_at(part: str, look: Callable[[], Finding]) -> Finding:
    """The finding of a check; an error of the check itself is a finding too."""
    try:
        return look()
    except FreezeframeError as error:
        return Finding(part, "error", f"{error.problem} {error.cause}".strip(), error.remedy)
    except OSError as error:
        return Finding(part, "error", str(error), "check who may read and write there, and the disk itself")


# Checks of the machine: disk, memory, clock, limits, and the folder of the user's own servers.

_GIGABYTE = 1024**3
_DISK_ERROR_BYTES = _GIGABYTE // 2
_DISK_WARNING_BYTES = 5 * _GIGABYTE
_SKEW_SECONDS_MAX = 5.0
_FILES_MIN = 4096
_MEMORY_SHARE_MAX = 0.75
_UNITS = {"k": 1024, "m": 1024**2, "g": _GIGABYTE, "t": 1024**4}
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def disk(folder: Path) -> Finding:
    """Check free space and free inodes where the store is."""
    usage = shutil.disk_usage(folder)
    files = os.statvfs(folder)
    told = f"{usage.free / _GIGABYTE:.1f} GB of {usage.total / _GIGABYTE:.0f} GB free at {folder}"
    remedy = "freezeframe gc --dry-run"
    if usage.free < _DISK_ERROR_BYTES:
        return Finding("Disk", "error", told, remedy)
    if files.f_files and files.f_favail < files.f_files / 100:
        return Finding("Disk", "warning", f"{told}, but only {files.f_favail:,} files more", remedy)
    return Finding("Disk", "warning" if usage.free < _DISK_WARNING_BYTES else "ok", told, remedy)


def memory(settings: Settings) -> Finding:
    """Check that the warm server's memory fits into the machine's or the container's."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if _CGROUP_LIMIT.is_file() and (limit := _CGROUP_LIMIT.read_text().strip()).isdigit():
        total = min(total, int(limit))
    told = f"{total / _GIGABYTE:.1f} GB; the warm Spark server takes {settings.spark_memory} of it"
    wanted = _bytes(settings.spark_memory)
    if wanted is None or wanted <= total * _MEMORY_SHARE_MAX or "://" in settings.spark:
        return Finding("Memory", "ok", told)
    half = max(1, round(total / 2 / _GIGABYTE))
    return Finding("Memory", "warning", told, f"freezeframe config set spark_memory {half}g")


def clock(folder: Path) -> Finding:
    """Compare the clocks of disk and machine: they may differ on network disks, and leases need both."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".freezeframe-doctor-") as file:
        file.write(b"now")
        file.flush()
        skew = abs(Path(file.name).stat().st_mtime - time.time())
    if skew > _SKEW_SECONDS_MAX:
        told = f"the disk at {folder} and this machine differ by {skew:.0f} seconds"
        return Finding("Clock", "warning", told, "timedatectl set-ntp true, on both")
    return Finding("Clock", "ok", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def limits() -> Finding:
    """Check the limits of open files and of a file's size."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if size != resource.RLIM_INFINITY:
        told = f"no file may be larger than {size:,} bytes"
        return Finding("Limits", "warning", told, "ulimit -f unlimited")
    if files != resource.RLIM_INFINITY and files < _FILES_MIN:
        return Finding("Limits", "warning", f"{files:,} open files", f"ulimit -n {_FILES_MIN}")
    return Finding("Limits", "ok", "any number of open files" if files < 0 else f"{files:,} open files")


def state_folder(settings: Settings) -> Finding:
    """Check that the folder of the warm server's token is writable and only this user's."""
    folder = settings.state_dir
    if not folder.exists():
        return Finding("State", "ok", f"{folder} is not there yet; it is made with mode 0700")
    status = folder.stat()
    if status.st_uid != os.geteuid():
        told = f"{folder} belongs to another user"
        return Finding("State", "error", told, "freezeframe config set state_dir FOLDER --user")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("State", "error", f"{folder} cannot be written", f"chmod 700 {folder}")
    if stat.S_IMODE(status.st_mode) & 0o077:
        return Finding("State", "warning", f"others may look into {folder}", f"chmod 700 {folder}")
    return Finding("State", "ok", str(folder))


def _bytes(text: str) -> int | None:
    found = re.fullmatch(r"(\d+)([kmgt])b?", text.strip().lower())
    return None if found is None else int(found[1]) * _UNITS[found[2]]
