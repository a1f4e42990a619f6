"""Draw the results of updates.py: time and peak memory by case and peer, and the thousand updates."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
from measured import RESULTS
from update_peers import FRAME_PEERS
from update_verdict import marks

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

ASSETS = Path(__file__).parent.parent / "docs" / "assets"
NAMES = {
    "freezeframe": "freezeframe",
    "freezeframe_auto": "freezeframe, engine=auto",
    "freezeframe_pandas": "freezeframe, pandas in",
    "delta_rs": "delta-rs merge",
    "delta_rs_pandas": "delta-rs merge, pandas in",
    "duckdb": "DuckDB",
    "ducklake": "DuckLake",
    "ducklake_pandas": "DuckLake, pandas in",
    "merge_with_vectors": "Spark MERGE, vectors",
    "merge": "Spark MERGE",
    "pyiceberg": "pyiceberg",
    "freezeframe_frame": "freezeframe, frame back",
    "freezeframe_arrow_frame": "freezeframe, frame of Arrow types back",
    "ducklake_frame": "DuckLake, frame back",
    "gluestick": "gluestick (whole rows), frame back",
    "pandas_csv": "pandas + CSV, frame back",
}
OURS, OTHERS, TEXT, GRID = "#1f6f8b", "#b9c0c4", "#30363a", "#e3e6e8"
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "freezeframe",  # the same figure is the same file
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "axes.edgecolor": GRID,
}
BAR_INCHES, CASE_INCHES, WIDTH_INCHES = 0.23, 0.62, 10


def draw_cases(cases: dict, path: Path) -> None:
    """One row a case: seconds on the left, peak memory on the right, both logarithmic."""
    shown = {name: bars for name, case in cases.items() if (bars := _bars(case))}
    if not shown:
        return
    mark = marks(cases)
    heights = [len(bars) * BAR_INCHES + CASE_INCHES for bars in shown.values()]
    figure, rows = plt.subplots(
        len(shown),
        2,
        figsize=(WIDTH_INCHES, sum(heights)),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    for (name, bars), (left, right) in zip(shown.items(), rows, strict=True):
        _draw(left, bars, "median_seconds", "{:.3g} s")
        _draw(right, bars, "peak_pss_mib", "{:.0f} MiB")
        left.set_yticklabels([NAMES[peer] + mark[one["day"]] for peer, one in bars])
        right.set_yticklabels([])
        left.set_title(cases[name]["title"], loc="left", fontsize=10, fontweight="bold")
    rows[0][1].set_title("peak memory (PSS)", loc="left", fontsize=10)
    _save(figure, path)


def draw_series(series: dict, path: Path) -> None:
    """The seconds of each of the successive updates."""
    seconds = series["seconds"]
    figure, axes = plt.subplots(figsize=(WIDTH_INCHES, 2.6), layout="constrained")
    axes.plot(range(1, len(seconds) + 1), seconds, ".", color=OURS, markersize=2.5)
    axes.set_ylim(bottom=0)
    axes.set_title("successive updates of 100 rows", loc="left", fontsize=10, fontweight="bold")
    axes.set_xlabel("number of the update")
    axes.set_ylabel("seconds")
    axes.grid(axis="y", color=GRID)
    _plain(axes)
    _save(figure, path)


def _bars(case: dict) -> list[tuple[str, dict]]:
    """The peers that came to an end, those of each question together, the quickest first."""
    found = [
        (peer, one)
        for peer, one in case.get("peers", {}).items()
        if peer in NAMES and "median_seconds" in one
    ]
    return sorted(found, key=lambda bar: (bar[0] in FRAME_PEERS, bar[1]["median_seconds"]))


def _draw(axes: Axes, bars: list[tuple[str, dict]], value: str, label: str) -> None:
    places = list(range(len(bars)))
    values = [one[value] for _, one in bars]
    colors = [OURS if peer.startswith("freezeframe") else OTHERS for peer, _ in bars]
    drawn = axes.barh(places, values, color=colors, height=0.7)
    axes.bar_label(drawn, [label.format(item) for item in values], padding=3, fontsize=8)
    axes.set_yticks(places)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min(values) / 3, max(values) * 4)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    axes.grid(axis="x", color=GRID)
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _save(figure: plt.Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)
    # Spaces at line ends would be the only thing that changes from one drawing program to the next.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def draw(results: Path, folder: Path = ASSETS) -> None:
    """``updates.svg`` and, where it was measured, ``updates-series.svg``."""
    cases = json.loads(results.read_text())["cases"]
    with mpl.rc_context(STYLE):
        draw_cases(cases, folder / "updates.svg")
        if "1000_updates" in cases:
            draw_series(cases["1000_updates"], folder / "updates-series.svg")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "updates.json")
