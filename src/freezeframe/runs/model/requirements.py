"""A script's ``requirements.txt``, installed once for all its runs.

They go into a virtual environment of their own on top of ours, kept in the state folder under the hash of
what was asked for. Where two versions of a package are there, the script gets its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

from freezeframe.engine.configuration.private_folder import private_folder
from freezeframe.errors import SetupError
from freezeframe.settings import Settings

_FILE = "requirements.txt"
_DONE = "complete"
_OUTPUT_MAX = 4_000
_INSTALL_SECONDS = 1800


def interpreter(script: Path, settings: Settings) -> str:
    """The Python that the script is to run with: this one, or that of its requirements' environment.

    Raises:
        SetupError: they could not be installed; nothing was run.
    """
    file = script.parent / _FILE
    if not file.is_file():
        return sys.executable
    wanted = file.read_bytes()
    if not any(line.partition(b"#")[0].strip() for line in wanted.splitlines()):
        return sys.executable
    folder = private_folder(settings.state_dir) / f"requirements-{_digest(wanted)}"
    private_folder(folder)
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _DONE).exists():
            _install(folder / "venv", file)
            (folder / _DONE).touch()
    return str(folder / "venv" / "bin" / "python")


def _digest(wanted: bytes) -> str:
    identity = f"{sys.executable}\n{sys.version}\n".encode() + wanted
    return hashlib.sha256(identity).hexdigest()[:24]


def _install(place: Path, file: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)  # left by an interrupted installation
    venv.EnvBuilder(system_site_packages=True, symlinks=True).create(place)
    library = next(place.glob("lib/python*/site-packages"))
    # A virtual environment's "system" is the Python below ours; ours is added by hand, last of all.
    ours = "; ".join(f"site.addsitedir({path!r})" for path in site.getsitepackages())
    (library / "freezeframe-packages.pth").write_text(f"import site; {ours}\n", encoding="utf-8")
    python = place / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-r", str(file)]
    done = subprocess.run(  # noqa: S603 - pip, which we depend on
        command,
        cwd=file.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        timeout=_INSTALL_SECONDS,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
    )
    if done.returncode:
        raise SetupError(
            f"The packages in {file} could not be installed.",
            cause=done.stdout.strip()[-_OUTPUT_MAX:],
            remedy="Correct the file, or make the package index reachable, and run it again.",
            code="REQUIREMENTS",
            file=str(file),
        )
