"""``docs/assets/soak.svg``: memory, open files, latency and the disk over the time that was soaked."""

import json

from tests.endurance.pieces import REPOSITORY

PANELS = (
    ("Memory", "MiB", ("service_mib", "jobs_mib")),
    ("Open files", "descriptors", ("service_files", "jobs_files")),
    ("Latency, medians of 5 s", "ms", ("job_ms", "read_ms", "upload_ms", "download_ms", "rows_ms")),
    ("The store on the disk", "MiB", ("disk_mib",)),
    ("The store on the disk", "files", ("disk_files",)),
)
SMOOTHED = 6  # samples, half a minute


def draw(lines):
    """Draw the samples; a grey line is where one piece ended and the next began, with new processes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "soak"
    from matplotlib import pyplot as plt

    samples = [json.loads(line) for line in lines]
    figure, axes = plt.subplots(len(PANELS), 1, figsize=(8, 11), sharex=True)
    begun = [
        one["at_seconds"] / 60
        for one, last in zip(samples[1:], samples, strict=False)
        if one["piece"] != last["piece"]
    ]
    for axis, (title, unit, names) in zip(axes, PANELS, strict=True):
        for name in names:
            points = [(sample["at_seconds"] / 60, sample[name]) for sample in samples if name in sample]
            smooth = [_mean(points[max(0, at - SMOOTHED + 1) : at + 1]) for at in range(len(points))]
            label = name.rpartition("_")[0]
            axis.plot([moment for moment, _ in points], smooth, label=label, linewidth=1)
        for moment in begun:
            axis.axvline(moment, color="#b9c0c4", linewidth=0.7)
        axis.set(title=title, ylabel=unit, ylim=(0, None))
        axis.legend(fontsize="small", loc="upper left")
    axes[-1].set(xlabel="minutes of load")
    figure.tight_layout()
    figure.savefig(REPOSITORY / "docs" / "assets" / "soak.svg", metadata={"Date": None})
    plt.close(figure)


def _mean(points):
    return sum(value for _, value in points) / len(points)
