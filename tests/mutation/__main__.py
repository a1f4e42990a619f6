"""Plant each fault in a copy of the repository, and print which tests find it.

``python -m tests.mutation [WORD ...]`` tries the faults whose tests have one of the words in a path.
The exit code is 1 if a fault is found by no test.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutation.faults import FAULTS, Fault

_REPOSITORY = Path(__file__).parents[2]
_SECONDS_MAX = 1_200


@contextmanager
def copied_repository() -> Iterator[Path]:
    """A folder with the package, its tests and their settings, and nothing else."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        for name in ("src", "tests", "docs", "tools", "benchmarks", "pyproject.toml", "README.md"):
            source, target = _REPOSITORY / name, Path(folder) / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        (Path(folder) / ".cache").symlink_to(_REPOSITORY / ".cache")
        yield Path(folder)


@contextmanager
def planted(fault: Fault, folder: Path) -> Iterator[None]:
    """The fault in the copy, until the block ends."""
    (path,) = fault.modules(folder / "src" / "freezeframe")
    before = path.read_text()
    path.write_text(before.replace(fault.old, fault.new))
    try:
        yield
    finally:
        path.write_text(before)


def finders(fault: Fault, folder: Path) -> list[str]:
    """The first tests that fail with the fault; empty if all pass.

    Raises:
        RuntimeError: the tests could not be run.
    """
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not nightly"),
        *(f"tests/{name}" for name in fault.tests.split()),
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    with planted(fault, folder):
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ["(the tests hang)"]
    if done.returncode == 0:
        return []
    if done.returncode < 0:
        return ["(the tests crash)"]
    found = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if not found or done.returncode != 1:  # 2: the tests could not be collected
        raise RuntimeError(f"The tests of {fault.tests} could not be run:\n{done.stdout}{done.stderr}")
    return found


def main(words: list[str]) -> int:
    """Try the faults and print the table; 1 if one of them survives."""
    chosen = [item for item in FAULTS if not words or any(word in item.tests for word in words)]
    survivors = 0
    with copied_repository() as folder:
        for fault in chosen:
            began = time.monotonic()
            found = finders(fault, folder)
            survivors += not found
            change = " -> ".join(" ".join(text.split())[:60] or "nothing" for text in (fault.old, fault.new))
            told = found[0] if found else "SURVIVES"
            sys.stdout.write(f"{fault.package} | {change} | {told} | {time.monotonic() - began:.0f} s\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survivors} of {len(chosen)} faults were found.\n")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
