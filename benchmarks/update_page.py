"""Put what was measured into docs/explanation/performance.md: the tables there are made from the results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from measured import RESULTS
from update_peers import FRAME_PEERS
from update_plot import NAMES
from update_verdict import OURS, OURS_WITH_FRAME, items_of, marks

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "performance.md"
LOAD_PER_CORE_MAX = 2


def write_page(page: Path = PAGE, results: Path = RESULTS) -> None:
    """Replace the tables between their marks; what was not measured stays as it is."""
    text, path = page.read_text(), results / "updates.json"
    if path.is_file():
        tables = "\n".join(updates_tables(json.loads(path.read_text())))
        before, begin, rest = text.partition("<!-- updates: begin -->\n")
        _, end, after = rest.partition("<!-- updates: end -->")
        page.write_text(f"{before}{begin}{tables}\n{end}{after}")


def updates_tables(record: dict) -> Iterator[str]:
    """All cases and peers, the bytes of a small change, the thousand updates, the promises."""
    cases = record["cases"]
    mark = marks(cases)
    yield "| case | peer | median, s | runs | its time / ours | peak memory, MiB | MiB more on disk |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, case in cases.items():
        title, peers = case["title"], case.get("peers", {})
        for peer in sorted(peers, key=lambda item: (item in FRAME_PEERS, _seconds(peers[item]))):
            if peer in NAMES:
                ratio = record["ratios"].get(name, {}).get(peer)
                yield f"| {title} | {_peer_cells(peer, peers[peer], ratio, mark[peers[peer]['day']])} |"
                title = ""
    yield from _bytes_of_changes(cases)
    yield from _series(cases.get("1000_updates"))
    yield from ("", "| promise | kept |", "| --- | --- |")
    yield from (
        f"| {promise} | {'yes' if kept else 'not yet'} |" for promise, kept in record["claims"].items()
    )
    yield from _conditions(record)


def _seconds(found: dict) -> float:
    return found.get("median_seconds", math.inf)


def _peer_cells(peer: str, found: dict, times: float | None, mark: str) -> str:
    name = (f"**{NAMES[peer]}**" if peer in {OURS, OURS_WITH_FRAME} else NAMES[peer]) + mark
    if "median_seconds" not in found:
        return f"{name} | {found['problem']} | | | |"
    ratio = "" if times is None else f"{times:.2f}"
    grown = found["bytes_grown"] / 2**20
    runs, memory = len(found["runs"]), found["peak_pss_mib"]
    return f"{name} | {_seconds(found):.3g} | {runs} | {ratio} | {memory} | {grown:.1f}"


def _bytes_of_changes(cases: dict) -> Iterator[str]:
    commits = cases.get("1m_100k_100_changed", {}).get("peers", {}).get(OURS, {}).get("commits")
    if commits:
        most = {name: max(commit[name] for commit in commits) / 1000 for name in commits[0]}
        yield ""
        yield (
            f"Of 100,000 rows sent 100 had changed: the commit newly refers to "
            f"{most['newly_referenced_bytes']:.0f} kB, there were {most['temporary_bytes']:.0f} kB more "
            f"meanwhile, and {most['left_bytes']:.0f} kB of those are left afterwards (the most of all runs)."
        )


def _series(series: dict | None) -> Iterator[str]:
    if series:
        count = series["updates"]
        yield ""
        yield (
            f"{count:,} successive updates of 100 rows: number 10 takes "
            f"{series['around_number_10_seconds']:.3g} s, number {count:,} "
            f"{series['around_the_last_seconds']:.3g} s (medians of eleven), "
            f"{series['last_to_number_10']:.2f} times as long; the longest of the last hundred "
            f"{series['most_of_100_seconds']['last']:.3g} s. Reading all rows takes "
            f"{series['read_after_15_seconds']:.3g} s after 15 updates and "
            f"{series['read_in_the_end_seconds']:.3g} s in the end."
        )
        yield from ("", "![The seconds of each successive update](../assets/updates-series.svg)")


def _conditions(record: dict) -> Iterator[str]:
    for day, mark in marks(record["cases"]).items():
        machines = [item["machine"] for item in items_of(record["cases"]) if item["day"] == day]
        loads = [machine["load_average"] for machine in machines]
        packages = record["versions"][day].items()
        others = ", ".join(f"{name} {number}" for name, number in packages if name != "freezeframe")
        yield ""
        yield (
            f"{f'{mark.strip()} Not repeated since' if mark else 'Measured on'} {day}: "
            f"{machines[0]['cores']} cores, {machines[0]['memory_gib']} GiB; load average {min(loads)} to "
            f"{max(loads)}, the benchmark itself included; {others}."
            f"{_remark(max(loads), machines[0]['cores'])}"
        )


def _remark(load: float, cores: int) -> str:
    # The benchmark alone keeps about as many threads busy as there are cores.
    busy = load > LOAD_PER_CORE_MAX * cores
    return " Other work ran on the machine meanwhile, so these figures are provisional." if busy else ""


if __name__ == "__main__":
    write_page()
