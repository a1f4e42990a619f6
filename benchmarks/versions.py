"""Several tables in one commit, an older version, rows that changed: beside DuckLake, which has all three.

Each of TABLES tables has ROWS rows of twelve columns. COMMITS commits update every one of them by a tenth of
its rows, cell by cell. Then one table is read as it was in the middle, and the changes of its last VERSIONS
versions are read: freezeframe's are one row a key, DuckLake's one or two rows for each change of a version.
Peers take turns, each in a process of its own; ours write with fsync, hash and tenant log.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from measured import keep, summary
from peer_process import PeerProcess
from update_data import Rows, write_rows

TABLES, ROWS, COMMITS, VERSIONS, READS = 5, 200_000, 11, 3, 5
PEERS = ("freezeframe", "freezeframe_auto", "ducklake")
PATIENCE_SECONDS = 300
WARM_UP = 6


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, help="where tables are made for the time being")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=options.folder) as folder:
        measured = measure(options.rows, Path(folder))
    about = {"tables": TABLES, "rows": options.rows, "sent": options.rows // 10, "versions": VERSIONS}
    if options.rows == ROWS:
        keep("versions", {**about, "peers": measured})
    else:
        print(
            {peer: {name: one["median_seconds"] for name, one in of.items()} for peer, of in measured.items()}
        )
    return 0


def measure(rows: int, folder: Path) -> dict[str, dict[str, dict[str, object]]]:
    """Return the seconds of each question by peer."""
    data = folder / "rows"
    write_rows(Rows(rows, rows // 10), COMMITS, data)
    tables = [f"lead{number}" for number in range(TABLES)]
    peers = {name: PeerProcess(name, folder / name) for name in PEERS}
    seconds: dict[str, dict[str, list[float]]] = {name: {} for name in PEERS}

    def ask(peer: str, title: str, verb: str, *arguments: object) -> None:
        took, count = peers[peer].ask("timed", verb, *arguments, patience_seconds=PATIENCE_SECONDS)
        seconds[peer].setdefault(title, []).append(took)
        print(f"{peer} {title}: {took:.3f} s, {count:,}", file=sys.stderr, flush=True)

    try:
        for peer in peers.values():
            stored = data / "stored.parquet"
            peer.ask("timed", "create_many", stored, tables, patience_seconds=PATIENCE_SECONDS)
        for turn in range(COMMITS):
            for peer in peers:
                ask(peer, "commit", "update_many", data / f"batch-{turn}.parquet", tables)
        for _ in range(READS):
            for peer in peers:
                ask(peer, "older version", "read_before", tables[0], COMMITS // 2)
            for peer in peers:
                ask(peer, "changes", "changes_since", tables[0], VERSIONS)
    finally:
        for peer in peers.values():
            peer.close()
    return {
        peer: {title: summary(runs[WARM_UP if title == "commit" else 0 :]) for title, runs in of.items()}
        for peer, of in seconds.items()
    }


if __name__ == "__main__":
    sys.exit(main())
