"""Turns of one case: each peer gets the same batches, in turns, and must end with the right rows."""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measured import summary
from peer_process import NotFinished, PeerFailed, PeerProcess, bytes_in
from update_data import Rows, expected_digest
from update_peers import PEERS, STREAM

CREATE_SECONDS = 600
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Case:
    """Sizes, peers, and how much time a peer may take.

    1. ``warm_up`` turns are not counted;
    2. a peer whose turns took ``budget_seconds`` together gets no further one, but always a counted one;
    3. a peer that needs more than ``patience_seconds`` for a turn, or than its own, is stopped.
    """

    name: str
    title: str
    rows: Rows
    peers: tuple[str, ...]
    warm_up: int
    budget_seconds: float = 75
    patience_seconds: float = 150
    alternates: bool = True
    """False: one peer after the other, where all of them together would not fit into memory."""
    counts_bytes: bool = False


@dataclass(slots=True)
class Turns:
    """What became of one peer."""

    peer: str
    seconds: list[float] = field(default_factory=list)
    peak_pss: int = 0
    bytes_grown: list[int] = field(default_factory=list)
    commits: list[dict[str, int]] = field(default_factory=list)
    problem: str = ""
    rows_equal: bool = False

    def result(self, warm_up: int) -> dict[str, object]:
        """As it stands in the results."""
        counted = self.seconds[warm_up:]
        if self.problem or not counted:
            return {"problem": self.problem or "no counted turn"}
        result = {
            **summary(counted),
            "peak_pss_mib": round(self.peak_pss / MIB),
            "bytes_grown": round(statistics.median(self.bytes_grown[warm_up:])),
            "rows_equal": self.rows_equal,
        }
        if self.commits:
            result["commits"] = self.commits[warm_up:]
        return result


Tell = Callable[[str], None]


def measure(
    case: Case, peers: Sequence[str], runs: int, data: Path, work: Path, tell: Tell
) -> Iterator[Turns]:
    """The turns of each peer, whether they came to an end or not."""
    groups = [list(peers)] if case.alternates else [[peer] for peer in peers]
    for group in groups:
        with contextlib.ExitStack() as stack:
            racers = [_Racer(case, peer, data, work, tell) for peer in group]
            for racer in racers:
                stack.callback(racer.close)
                racer.begin()
            for number in range(case.warm_up + runs):
                # Who begins changes, so that nobody always has the same one before him.
                first = number % len(racers)
                for racer in [*racers[first:], *racers[:first]]:
                    racer.turn(number)
            for racer in racers:
                racer.compare()
        yield from (racer.turns for racer in racers)


class _Racer:
    """One peer of a case; after a problem it stands still, and the others go on."""

    def __init__(self, case: Case, peer: str, data: Path, work: Path, tell: Tell) -> None:
        self.turns = Turns(peer)
        self._case, self._data, self._tell = case, data, tell
        self._folder = work / peer
        self._process: PeerProcess | None = None

    def begin(self) -> None:
        with self._noted("create"):
            self._process = PeerProcess(self.turns.peer, self._folder)
            self._ask("create", self._data / "stored.parquet", patience_seconds=CREATE_SECONDS)
            if not PEERS[self.turns.peer].has_jvm:
                self._process.restart()
                self._ask("open", patience_seconds=CREATE_SECONDS)

    def turn(self, number: int) -> None:
        case, turns = self._case, self.turns
        spent, counted = sum(turns.seconds), len(turns.seconds) - case.warm_up
        if turns.problem or len(turns.seconds) < number or (spent > case.budget_seconds and counted > 0):
            return
        with self._noted(f"turn {number + 1}"):
            before = bytes_in(self._process.data)
            patience = min(case.patience_seconds, PEERS[turns.peer].patience_seconds)
            with self._process.watched(folder=case.counts_bytes) as seen:
                seconds = self._ask(
                    "update", self._data / f"batch-{number}.parquet", patience_seconds=patience
                )
            after = bytes_in(self._process.data)
            turns.seconds.append(seconds)
            turns.peak_pss = max(turns.peak_pss, seen.peak_pss)
            turns.bytes_grown.append(after - before)
            if case.counts_bytes and turns.peer == "freezeframe":
                table = self._process.data / "snapshots" / f"{STREAM}.snapshot"
                turns.commits.append(commit_bytes(table, before, seen.peak_of_other, after))
            self._tell(f"{turns.peer} turn {number + 1}: {seconds:.3f} s, {seen.peak_pss / MIB:.0f} MiB")

    def compare(self) -> None:
        """Whether the peer has the rows that must be there after its turns."""
        if self.turns.problem:
            return
        with self._noted("compare"):
            found = self._ask("digest", patience_seconds=CREATE_SECONDS)
            rule = PEERS[self.turns.peer].rule
            self.turns.rows_equal = found == expected_digest(self._case.rows, len(self.turns.seconds), rule)
            self._tell(f"{self.turns.peer} rows equal: {self.turns.rows_equal}")

    def close(self) -> None:
        if self._process:
            self._process.close()

    def _ask(self, verb: str, *arguments: object, patience_seconds: float):
        return self._process.ask(verb, *arguments, patience_seconds=patience_seconds)

    @contextlib.contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        try:
            yield
        except (NotFinished, PeerFailed) as error:
            self.turns.problem = f"{what}: {str(error).splitlines()[-1]}"
            self._tell(f"{self.turns.peer} {what}: {error}")
            # What it holds in memory is needed by those who go on.
            self.close()
            self._process = None


def commit_bytes(table: Path, before: int, peak: int, after: int) -> dict[str, int]:
    """What the newest commit newly refers to, how much more there was meanwhile, and what of it is left."""
    commits = sorted((table / "_delta_log").glob("*[0-9].json"))
    *earlier, newest = [
        [action["add"] for line in commit.read_text().splitlines() if "add" in (action := json.loads(line))]
        for commit in commits
    ]
    known = {name for adds in earlier for add in adds for name, _ in _parts(add)}
    referenced = sum(size for add in newest for name, size in _parts(add) if name not in known)
    return {
        "newly_referenced_bytes": referenced,
        "temporary_bytes": max(0, peak - after),
        "left_bytes": after - before - referenced,
    }


def _parts(add: dict) -> Iterator[tuple[str, int]]:
    """The file of an action, and its deletion vector if it has one, with their bytes."""
    yield add["path"], add["size"]
    vector = add.get("deletionVector")
    if vector:
        yield f"{vector['pathOrInlineDv']} {vector.get('offset', 0)}", vector["sizeInBytes"]
