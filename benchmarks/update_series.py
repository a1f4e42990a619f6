"""Does an update stay as fast as it was after a thousand of them?

10,000 stored rows, then 1,000 updates of 100 rows. The server is warmed by another stream first,
else the first of the thousand would pay for what the last ones use.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from peer_process import PeerProcess, bytes_in
from update_data import Rows, expected_digest, write_rows
from update_peers import STREAM

ROWS = Rows(stored=10_000, sent=100)
WARM_UP = 40
NEIGHBOURS = 5  # a single update's time says little: the median of these on either side is told
READS = 5
PATIENCE_SECONDS = 60
TOLD_EVERY = 100


def measure_series(updates: int, work: Path, tell: Callable[[str], None]) -> dict[str, object]:
    """The seconds of each update, the two that are compared, and reading the rows early and late."""
    write_rows(ROWS, max(updates, WARM_UP), work / "data-of-series")
    process = PeerProcess("freezeframe", work / "series")
    try:
        return _measured(process, updates, work / "data-of-series", tell)
    finally:
        process.close()


def _measured(
    process: PeerProcess, updates: int, data: Path, tell: Callable[[str], None]
) -> dict[str, object]:
    def update(number: int) -> float:
        return process.ask("update", data / f"batch-{number}.parquet", patience_seconds=PATIENCE_SECONDS)

    def read() -> float:
        return statistics.median(process.ask("read", patience_seconds=PATIENCE_SECONDS) for _ in range(READS))

    process.ask("create", data / "stored.parquet", "Warm", patience_seconds=PATIENCE_SECONDS)
    for number in range(WARM_UP):
        update(number)
    process.ask("create", data / "stored.parquet", STREAM, patience_seconds=PATIENCE_SECONDS)
    early = 10 + NEIGHBOURS
    seconds, read_early = [], 0.0
    with process.watched() as seen:
        for number in range(updates):
            seconds.append(update(number))
            if number + 1 == early:
                read_early = read()
            if (number + 1) % TOLD_EVERY == 0:
                tell(f"{number + 1} updates, the last {TOLD_EVERY} at {_median(seconds[-TOLD_EVERY:])} s")
        read_late = read()
    equal = process.ask("digest", patience_seconds=PATIENCE_SECONDS) == expected_digest(
        ROWS, updates, "coalesce"
    )
    table = process.data / "snapshots" / f"{STREAM}.snapshot"
    first, last = seconds[10 - NEIGHBOURS - 1 : early], seconds[-2 * NEIGHBOURS - 1 :]
    return {
        "updates": updates,
        "around_number_10_seconds": _median(first),
        "around_the_last_seconds": _median(last),
        "last_to_number_10": round(_median(last) / _median(first), 3),
        "most_of_100_seconds": {"first": max(seconds[:100]), "last": max(seconds[-100:])},
        "total_seconds": round(sum(seconds), 1),
        "read_after_15_seconds": round(read_early, 4),
        "read_in_the_end_seconds": round(read_late, 4),
        "peak_pss_mib": round(seen.peak_pss / 2**20),
        "data_bytes_on_disk": bytes_in(table),
        "rows_equal": equal,
        "seconds": [round(second, 3) for second in seconds],
    }


def _median(seconds: list[float]) -> float:
    return round(statistics.median(seconds), 4)
