"""Pieces of a long run: what each was, kept as lines of one file, so that a later run goes on from there."""

import contextlib
import fcntl
import json
import subprocess
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Piece:
    """A part that was run for some seconds from one seed: what was counted, and what was found wrong."""

    part: str
    date: str
    commit: str
    seed: int
    seconds: float
    counts: dict = field(default_factory=dict)
    violations: list = field(default_factory=list)


class Record:
    """The pieces in the folder of a long run."""

    def __init__(self, folder):
        self.path = Path(folder) / "pieces.jsonl"

    def pieces(self):
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [Piece(**json.loads(line)) for line in lines]

    def add(self, piece):
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(piece)) + "\n")

    def total(self, part):
        found = Counter()
        for piece in self.pieces():
            if piece.part == part:
                found.update(piece.counts)
        return found


class Turns:
    """Work in turns with others on one machine: ``with turns()`` shares the lock file's lock, if any."""

    def __init__(self, path=None):
        self._path = path

    @contextlib.contextmanager
    def __call__(self):
        if self._path is None:
            yield
            return
        with open(self._path) as lock:  # noqa: PTH123 - a path of the command line
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield
        time.sleep(2)  # so that who waits for it alone gets it


def commit_of_code():
    """The commit that is tried; with a mark where files were changed since."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or "unknown"
