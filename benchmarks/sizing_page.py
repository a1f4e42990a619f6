"""Put what was measured into docs/how-to/sizing.md: the table by which a machine is chosen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from measured import RESULTS
from update_page import LOAD_PER_CORE_MAX

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "sizing.md"
BEGIN, END = "<!-- sizing: begin -->\n", "<!-- sizing: end -->"
ONE_MACHINE = ("one machine, 2 cores", "4g")
OF_UPDATES = {"10k_1k": (10_000, 1_000), "1m_100k": (10**6, 10**5), "5m_500k": (5 * 10**6, 5 * 10**5)}


def write_sizing(page: Path = PAGE, results: Path = RESULTS) -> None:
    """Replace the table between its marks by what the results hold."""
    text = page.read_text()
    rows = sorted(set(_rows(results)))
    lines = [
        "| rows stored | rows sent | keys | Spark | memory given to Spark | highest, MiB | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {stored:,} | {sent:,} | {' | '.join(cells)} |" for stored, sent, *cells in rows),
    ]
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    table = "".join(f"{line}\n" for line in lines)
    page.write_text(f"{before}{begin}{table}{end}{after}")


def _rows(results: Path) -> Iterator[tuple[int, int, str, str, str, str, str]]:
    updates = _read(results / "updates.json").get("cases", {})
    for name, (stored, sent) in OF_UPDATES.items():
        found = updates.get(name, {}).get("peers", {}).get("freezeframe", {})
        if "median_seconds" in found:
            yield (stored, sent, "random", *ONE_MACHINE, *_measured(found, "peak_pss_mib"))
    for case in _read(results / "scale.json").get("cases", {}).values():
        keys = {"time": "in time order", "skewed": "share their first part"}.get(case["keys"], case["keys"])
        yield case["stored"], case["sent"], keys, *ONE_MACHINE, *_measured(case, "peak_mib")
    cluster = _read(results / "cluster.json")
    found = cluster.get("routes", {}).get("patch")
    if found:
        size, memory = cluster["rows"], cluster["memory"]
        given = _given(memory)
        cells = _measured({**found["cluster"], "machine": cluster["machine"]}, "spark_mib")
        yield size["stored"], size["batch"], "random", "cluster, 2 x 1 core", given, *cells
    in_bucket = _read(results / "bucket_cluster.json")
    if in_bucket:
        size, memory, found = in_bucket["rows"], in_bucket["memory"], in_bucket["update"]
        given = _given(memory)
        told = f"{found['script_mib']:,} script, {found['driver_mib']:,} driver", f"{found['seconds']:.3g}"
        yield size["stored"], size["batch"], "random", "cluster of 2 workers, store in a bucket", given, *told


def _given(memory: dict[str, str]) -> str:
    return f"{memory['driver']} + 2 x {memory['each of two executors']}"


def _measured(found: dict, memory: str) -> tuple[str, str]:
    """(the highest memory, the seconds); no seconds where other work kept the machine busy."""
    machine = found["machine"]
    is_quiet = machine["load_average"] <= LOAD_PER_CORE_MAX * machine["cores"]
    return f"{found[memory]:,}", f"{found['median_seconds']:.3g}" if is_quiet else ""


def _read(path: Path) -> dict:
    return json.loads(path.read_text()) if path.is_file() else {}


if __name__ == "__main__":
    write_sizing()
