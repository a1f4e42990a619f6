"""The long runs, in pieces: ``python -m tests.endurance --state DIR --minutes N`` goes on where it stopped.

Each piece of a part is checked whole and is one line of ``DIR/pieces.jsonl``: date, commit, seed, seconds,
counts, violations. A part that has reached its aim is left out. ``--lock FILE`` works in turns with
measurements of the same machine; ``--keep`` writes all pieces to ``benchmarks/results/endurance.json``.
Ends with 1 at a violation, whose folder is kept.
"""

import argparse
import json
import logging
import os
import re
import shutil
import sys
import time
import traceback
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.endurance import machines, soak
from tests.endurance.pieces import REPOSITORY, Piece, Record, Turns, commit_of_code

PARTS = {
    "commits": (machines.commits, "commits", 1_000_000),
    "bucket": (machines.commits_in_bucket, "commits", 20_000),
    "machine": (machines.machine, "steps", 100_000),
    "mixed": (machines.mixed, "tenants", 1),
    "soak": (soak.soak, "soaked_seconds", 8 * 3600),
    "power": (machines.power, "states", 100_000),
}
GOES_ON = ("mixed", "soak")  # in the folder of the piece before


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--piece-minutes", type=float, default=5)
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--lock", type=Path)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ["FREEZEFRAME_ENGINE"] = "auto"  # no Spark takes part
    given.state.mkdir(parents=True, exist_ok=True)
    record = Record(given.state)
    if given.keep:
        keep(record)
        return 0
    ends = time.monotonic() + 60 * given.minutes
    while time.monotonic() < ends:
        part = least_done(record, given.only or list(PARTS))
        if part is None:
            break
        until = min(ends, time.monotonic() + 60 * given.piece_minutes)
        piece = run(record, given.state, part, until, Turns(given.lock))
        print(json.dumps(asdict(piece)), flush=True)  # noqa: T201 - a command
        if piece.violations:
            return 1
    return 0


def least_done(record, parts):
    """The part with the least seconds so far of those whose aim is not reached."""
    seconds = {part: 0.0 for part in parts if record.total(part)[PARTS[part][1]] < PARTS[part][2]}
    for piece in record.pieces():
        if piece.part in seconds:
            seconds[piece.part] += piece.seconds
    return min(seconds, key=seconds.get, default=None)


def run(record, state, part, until, turns):
    """A piece of a part, which is kept whatever becomes of it; its folder goes unless something is wrong."""
    folder = state / part
    if part not in GOES_ON and folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(exist_ok=True)
    seed, began = int.from_bytes(os.urandom(4)), time.monotonic()
    date = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        counts, wrong = PARTS[part][0](folder, seed, until, turns)
    except Exception:  # noqa: BLE001 - whatever it is, it is what the long run is there to find
        counts, wrong = {}, [re.sub(rf"{REPOSITORY}/|{sys.base_prefix}/", "", traceback.format_exc())]
    seconds = round(time.monotonic() - began, 1)
    piece = Piece(part, date, commit_of_code(), seed, seconds, counts, wrong)
    record.add(piece)
    if part not in GOES_ON and not wrong:
        shutil.rmtree(folder)
    return piece


def keep(record):
    """Write all pieces and their sums beside the results of the benchmarks."""
    pieces = [asdict(piece) for piece in record.pieces()]
    totals = {
        part: {
            **record.total(part),
            "seconds": round(sum(item["seconds"] for item in pieces if item["part"] == part)),
            "violations": sum(len(item["violations"]) for item in pieces if item["part"] == part),
            "aim": f"{aim} {unit}",
        }
        for part, (_, unit, aim) in PARTS.items()
    }
    path = REPOSITORY / "benchmarks" / "results" / "endurance.json"
    path.write_text(json.dumps({"totals": totals, "pieces": pieces}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
