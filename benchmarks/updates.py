"""How long does an update take, and how much memory, beside everything else that could do it?

Two questions, as a script asks them: ``stream.update()`` gives a receipt, ``update_snapshot()``
the whole merged pandas frame. All peers get the same batches, in turns, each in a process of its
own, and must hold the right rows in the end. Ours includes fsync, the hash of what was written
and the tenant log. Results are written case by case, with the day, beside those of earlier days; a peer that
fails or takes too long is named and the others go on.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from delta_merge import DELTA
from measured import RESULTS, machine
from update_data import Rows, write_rows
from update_page import write_page
from update_peers import FRAME_PEERS, LAKE, PEERS
from update_plot import draw
from update_series import measure_series
from update_turns import Case, measure
from update_verdict import claims, ratios

SERIES = "1000_updates"
SERIES_UPDATES = 1_000
QUICK_DIVISOR = 20
PACKAGES = ["freezeframe", "pyspark", "deltalake", "duckdb", "pyiceberg", "gluestick", "pandas", "pyarrow"]
_FRAMES = tuple(FRAME_PEERS)
_OURS = ("freezeframe", "freezeframe_auto")
_FAST = (*_OURS, "delta_rs", "duckdb", "ducklake", "merge_with_vectors")
_FROM_PANDAS = ("freezeframe_pandas", "delta_rs_pandas", "ducklake_pandas")


def _of_a_million(name: str, title: str, **special: Any) -> Case:
    """A batch of 100,000 rows that is special in one way."""
    title = f"1,000,000 rows, 100,000 sent{title}"
    return Case(f"1m_100k_{name}", title, Rows(1_000_000, 100_000, **special), _FAST, warm_up=6)


CASES = (
    Case(
        "10k_1k",
        "10,000 rows, 1,000 sent",
        Rows(10_000, 1_000),
        (*_FAST, "merge", *_FROM_PANDAS, "pyiceberg", *_FRAMES),
        # What a server's code is compiled to depends on how often it ran; a day's jobs are some dozens.
        warm_up=20,
    ),
    Case(
        "1m_100k",
        "1,000,000 rows, 100,000 sent",
        Rows(1_000_000, 100_000),
        (*_FAST, "merge", *_FROM_PANDAS, "pyiceberg", *_FRAMES),
        warm_up=6,
    ),
    _of_a_million("no_nulls", ", no null among them", batch_nulls=False),
    _of_a_million("column_missing", " without one of the columns", missing_column="Notes"),
    replace(_of_a_million("100_changed", ", 100 really changed", changed=100), counts_bytes=True),
    Case(
        "5m_500k",
        "5,000,000 rows, 500,000 sent",
        Rows(5_000_000, 500_000),
        (*_OURS, "delta_rs", "duckdb", "ducklake", *_FROM_PANDAS, *_FRAMES),
        warm_up=1,
        budget_seconds=120,
        patience_seconds=400,
        alternates=False,
    ),
)
NAMES = (*(case.name for case in CASES), SERIES)


def main(options: argparse.Namespace) -> int:
    results = _Results(options.results)
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=options.folder) as folder:
        for name in options.cases:
            work = Path(folder) / name
            tell(f"--- {name}")
            if name == SERIES:
                updates = options.updates // QUICK_DIVISOR if options.quick else options.updates
                results.put(
                    name, {"title": "successive updates of 100 rows", **measure_series(updates, work, tell)}
                )
            else:
                case = next(case for case in CASES if case.name == name)
                _run(smaller(case) if options.quick else case, options, work, results, tell)
            shutil.rmtree(work, ignore_errors=True)
    told = () if options.quick else ("ratios", "claims")
    print(json.dumps({name: results.record.get(name) for name in told}, indent=2))
    print(f"Results are in {options.results}")
    if options.draws:
        draw(options.results)
        write_page()
    return 0 if results.all_equal(options.cases) else 1


def _run(case: Case, options: argparse.Namespace, work: Path, results: _Results, tell) -> None:
    peers = options.peers or case.peers
    data = work / "rows"
    write_rows(case.rows, case.warm_up + options.runs, data)
    tell("the rows are written")
    # Those that hand a frame back are a race of their own: all together would not fit into memory.
    for group in ([p for p in peers if p not in FRAME_PEERS], [p for p in peers if p in FRAME_PEERS]):
        for turns in measure(case, group, options.runs, data, work, tell) if group else ():
            results.put(case.name, {"title": case.title}, {turns.peer: turns.result(case.warm_up)})


def smaller(case: Case) -> Case:
    """A case of the same kind that tells whether everything works, and nothing about speed."""
    rows = case.rows
    size = replace(
        rows,
        stored=rows.stored // QUICK_DIVISOR,
        sent=rows.sent // QUICK_DIVISOR,
        changed=rows.changed // QUICK_DIVISOR if rows.changed else None,
    )
    return replace(case, rows=size, warm_up=1)


class _Results:
    """The results file: each case and peer is replaced by its newest measurement, the others stay."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._day = datetime.now(UTC).date().isoformat()
        known = path.is_file()
        self.record = (
            json.loads(path.read_text()) if known else {"question": "updates", "versions": {}, "cases": {}}
        )

    def put(self, case: str, about: dict[str, object], peers: dict[str, dict] | None = None) -> None:
        kept = self.record["cases"].setdefault(case, {})
        kept.update(about)
        measured = {"machine": machine(), "day": self._day}
        if peers is not None:
            found = {peer: {**result, **measured} for peer, result in peers.items()}
            kept.setdefault("peers", {}).update(found)
        else:
            kept.update(measured)
        others = {"delta-spark": f"{DELTA} on Spark 4.2", "DuckLake": LAKE}
        self.record["versions"][self._day] = {name: version(name) for name in PACKAGES} | others
        self.record["ratios"] = ratios(self.record["cases"])
        self.record["claims"] = claims(self.record["cases"])
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self.record, indent=2) + "\n")

    def all_equal(self, cases: Sequence[str]) -> bool:
        """Whether every peer that came to an end has the right rows, and ours came to an end."""
        for name in cases:
            case = self.record["cases"][name]
            found = case.get("peers", {"series": case})
            for peer, result in found.items():
                if not result.get("rows_equal", not peer.startswith("freezeframe")):
                    return False
        return True


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(NAMES)
    parser.add_argument("--cases", type=_list(NAMES), default=list(NAMES), help=f"some of {names}")
    parser.add_argument(
        "--peers", type=_list(PEERS), default=[], help=f"some of {', '.join(PEERS)}; default: the case's own"
    )
    parser.add_argument("--runs", type=int, default=5, help="counted turns of each peer (default 5)")
    parser.add_argument(
        "--updates", type=int, default=SERIES_UPDATES, help=f"successive ones of the case {SERIES}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a twentieth of all sizes: does everything work?"
    )
    parser.add_argument("--folder", type=Path, help="where tables are made for the time being")
    parser.add_argument("--results", type=Path, help="default: benchmarks/results/updates.json")
    options = parser.parse_args()
    options.draws = not options.quick and not options.results
    options.results = options.results or RESULTS / ("updates_quick.tmp" if options.quick else "updates.json")
    return options


def _list(known: Sequence[str]):
    def parsed(text: str) -> list[str]:
        names = text.split(",")
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
        return names

    return parsed


def _stop(*_signal: object) -> None:
    raise SystemExit("stopped")


if __name__ == "__main__":
    # Whoever stops this shall find nothing of the peers still running.
    signal.signal(signal.SIGTERM, _stop)
    sys.exit(main(_options()))
