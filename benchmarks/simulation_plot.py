"""Drawings of the simulation and of growth: what grows, against how much there is, both in logarithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

ASSETS = Path(__file__).parent.parent / "docs" / "assets"


def draw(kept: Mapping) -> None:
    """``docs/assets/simulation.svg``: the log of a stream, a store's registry, a tenant's jobs."""
    streams, stores, jobs = kept["streams"], kept["tenants"]["stores"], kept["jobs"]
    asked = (
        ("A stream's log", "files", streams, ("checkpoint", "open", "commit", "refresh", "find_a_key")),
        ("A store's registry", "tenants", stores, (
            "open_and_find", "page_of_1000", "create", "see_the_new_one", "create_of_a_hundred",
        )),
        ("Jobs of a tenant", "jobs_before", jobs, ("ten_jobs", "job_of_a_new_process")),
    )  # fmt: skip
    panels = [
        (
            title,
            size.replace("_", " "),
            {name.replace("_", " "): [(one[size], seconds(one[name])) for one in points] for name in names},
        )
        for title, size, points, names in asked
    ]
    plot(panels, "simulation.svg")


def seconds(measured: Mapping) -> float:
    """Waiting for the storage, then work of the processor; at least a tenth of a millisecond."""
    return max(1e-4, measured["waiting_seconds"] + measured["cpu_seconds"])


def plot(panels: Sequence[tuple[str, str, Mapping[str, Sequence[tuple[float, float]]]]], name: str) -> None:
    """One drawing beside the other, seconds against size, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = name
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 4), squeeze=False)
    for axis, (title, below, lines) in zip(axes[0], panels, strict=True):
        for label, points in lines.items():
            axis.plot(*zip(*points, strict=True), marker="o", label=label)
        axis.set(title=title, xlabel=below, ylabel="seconds", xscale="log", yscale="log")
        axis.grid(visible=True, which="major", alpha=0.3)
        axis.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(ASSETS / name, metadata={"Date": None})
    plt.close(figure)
