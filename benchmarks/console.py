"""How soon does the console show a tenant of 10,000 files, and a list of 1,000 tenants?

``freezeframe serve`` on its defaults, a tenant with 10,000 small files in its top folder among 20 others,
and Chromium without a window on the same machine. From the list of tenants the tenant's panel is opened by a
click; the time ends in the browser, in the first frame after a row of the list of its snapshots is there.
The first opening is left out: the figure is of a warm service and browser. The panel is closed and the list
reloaded between two openings, so that nothing of the tenant is kept in the page.

The list is of 1,000 tenants with a version each: the time from its address to the first frame in which rows
fill the page, and what scrolling through all of them costs: the longest task of the page's
thread, the share of frames that came late, and the processor's time that the browser took for a frame, which
other work on the machine does not change. ``tasks_100ms`` are those that a person would feel.

The first load is of a browser that has nothing of the console: requests, bytes as they came over the
network, and seconds until the first page is there, for somebody who is signed in. Its parts are told by
``npm run size`` in ``ui``.

``--runs`` is how often it is opened (20), ``--files`` how many files there are; CHROMIUM names the browser.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from measured import keep, summary
from playwright.sync_api import Page, sync_playwright

from freezeframe.control.database import ControlDatabase, database_url
from freezeframe.service.access.access import Stores
from freezeframe.service.access.keys import Keys
from freezeframe.settings import load_settings

FILES, RUNS, OTHERS, LISTED = 10_000, 20, 20, 1_000
FILES_PER_JOB = 200
LIMIT_SECONDS = 0.3
LONG_TASK_MS, LATE_FRAME_MS = 100, 34
LIST, TENANT = "listed", "acme"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
# The clock is the page's own: it starts in the click and ends in a frame that has rows.
WATCH = """() => new Promise((done) => {
    const cells = [...document.querySelectorAll('[role="gridcell"]')];
    const cell = cells.find((one) => one.textContent === "acme");
    const begun = performance.now();
    const look = () => document.querySelector('[aria-label="Snapshots"][role="grid"] [role="gridcell"]')
        ? done((performance.now() - begun) / 1000)
        : requestAnimationFrame(look);
    cell.click();
    requestAnimationFrame(look);
})"""
# Long tasks are told by the browser itself, from 50 ms on; a frame is late that took more than two.
SCROLL = """async () => {
    const tasks = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)))
        .observe({ type: "longtask" });
    const grid = document.querySelector('[aria-label="Tenants"][role="grid"]');
    const frames = [];
    const frame = () => new Promise(requestAnimationFrame);
    let before = await frame();
    while (grid.scrollTop + grid.clientHeight < grid.scrollHeight - 1) {
        grid.scrollTop += 200;
        const now = await frame();
        frames.push(now - before);
        before = now;
    }
    await new Promise((done) => setTimeout(done, 500));
    return { tasks, frames };
}"""
SEEN = """() => {
    const cells = document.querySelectorAll('[aria-label="Tenants"] [role="gridcell"] svg.spark');
    return cells.length >= 12 && performance.now() / 1000;
}"""
FILLED = """rows => document.querySelectorAll(
    '[aria-label="Tenants"] [role="gridcell"] svg.spark'
).length === rows"""


def main() -> None:
    """Measure, tell and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--files", type=int, default=FILES)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="freezeframe-") as folder,
        served(Path(folder), options.files) as (url, key),
    ):
        seconds, listed, first = measured(url, key, options.runs)
    result: dict[str, object] = {
        "files": options.files,
        "panel": summary(seconds),
        "limit_seconds": LIMIT_SECONDS,
        "list": listed,
        "first_load": first,
        "is_within": statistics.median(seconds) < LIMIT_SECONDS,
    }
    if options.files == FILES:
        keep("console", result)
    else:
        print(json.dumps(result, indent=2))


@contextmanager
def served(folder: Path, files: int) -> Iterator[tuple[str, str]]:
    """A service of a store with that many files; its address, and a key."""
    root = folder / "store"
    settings = load_settings(root=str(root))
    store = Stores(str(root), settings).environment("default")
    for number in range(OTHERS):
        store.tenant(f"customer-{number:02d}", create=True)
    listed = Stores(str(root), settings).environment(LIST)
    for number in range(LISTED):
        listed.tenant(f"customer-{number:04d}", create=True).files.write("config.json", b"{}")
    tenant = store.tenant(TENANT, create=True)
    for start in range(0, files, FILES_PER_JOB):
        with tenant.job(f"seed-{start}") as job:
            for number in range(start, min(start + FILES_PER_JOB, files)):
                job.files.write(f"file-{number:05d}.json", b"{}")
    database = ControlDatabase.open(database_url(settings, str(root)))
    key = Keys(database).create("bench", scopes=["admin"]).key
    database.close()
    command = [sys.executable, "-m", "freezeframe", "serve", "--root", str(root), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["url"], key
    finally:
        process.terminate()
        process.wait(timeout=60)


def measured(url: str, key: str, runs: int) -> tuple[list[float], dict[str, object], dict[str, object]]:
    """How long each opening took, what the list of many tenants costs, and what a first load takes."""
    place = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=FLAGS)
        context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800})
        answer = context.request.post("/api/v1/session", data={"key": key}, headers={"Origin": url})
        assert answer.ok, answer.text()
        page = context.new_page()
        first = first_load(page)
        opened(page)
        page.evaluate(WATCH)
        seconds = []
        for _ in range(runs):
            opened(page)
            seconds.append(float(page.evaluate(WATCH)))
        listed = [list_of_many(page) for _ in range(runs)]
        browser.close()
    return (
        seconds,
        {
            "tenants": LISTED,
            "filled": summary([item[0] for item in listed]),
            "longest_task_ms": max(max(item[1], default=0.0) for item in listed),
            "tasks_100ms": sum(task > LONG_TASK_MS for item in listed for task in item[1]),
            "late_frames_share": round(statistics.mean(item[2] for item in listed), 4),
            "processor_ms_per_frame": round(statistics.median(item[3] for item in listed), 1),
        },
        first,
    )


def first_load(page: Page) -> dict[str, object]:
    """Requests and bytes of the first page, the overview, in a browser that has nothing of it."""
    came: list[float] = []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda item: came.append(item["encodedDataLength"]))
    begun = time.perf_counter()
    page.goto("/", wait_until="commit")
    page.get_by_role("heading", level=1).wait_for()
    there = time.perf_counter() - begun
    page.wait_for_load_state("networkidle")
    network.detach()
    return {"requests": len(came), "bytes": int(sum(came)), "seconds": round(there, 2)}


def list_of_many(page: Page) -> tuple[float, list[float], float, float]:
    """Seconds until rows fill the page; tasks above 50 ms; share of late frames; processor ms per frame."""
    page.goto(f"/tenants?env={LIST}", wait_until="commit")
    filled = float(page.wait_for_function(SEEN).json_value())
    page.get_by_text(f"{LISTED:,} tenants").wait_for()
    before = browser_seconds()
    seen = page.evaluate(SCROLL)
    took = browser_seconds() - before
    frames = len(seen["frames"])
    late = sum(frame > LATE_FRAME_MS for frame in seen["frames"])
    return filled, [float(task) for task in seen["tasks"]], late / frames, 1000 * took / frames


def browser_seconds() -> float:
    """What the browser's processes took of the processor so far."""
    below = psutil.Process().children(recursive=True)
    times = [item.cpu_times() for item in below if "chrom" in item.name()]
    return sum(item.user + item.system for item in times)


def opened(page: Page) -> None:
    """The list of tenants, at rest."""
    page.goto("/tenants")
    page.get_by_role("gridcell", name=TENANT, exact=True).wait_for()
    # All of the list is there with what is told of each tenant, and nothing is asked for any more.
    page.wait_for_function(FILLED, arg=OTHERS + 1)


if __name__ == "__main__":
    main()
