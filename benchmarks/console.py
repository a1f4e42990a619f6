"""How soon does the console show a tenant of 10,000 files?

``freezeframe serve`` on its defaults, a tenant with 10,000 small files in its top folder among 20 others,
and Chromium without a window on the same machine. From the list of tenants the tenant's panel is opened by a
click; the time ends in the browser, in the first frame after a row of the list of its snapshots is there.
The first opening is left out: the figure is of a warm service and browser. The panel is closed and the list
reloaded between two openings, so that nothing of the tenant is kept in the page.

What a browser loads for the first page is told by ``npm run size`` in ``ui``.

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measured import keep, summary
from playwright.sync_api import Page, sync_playwright

from freezeframe.control.database import ControlDatabase
from freezeframe.control.place import database_url
from freezeframe.service.people import People
from freezeframe.service.stores import Stores
from freezeframe.settings import load_settings

FILES, RUNS, OTHERS = 10_000, 20, 20
FILES_PER_JOB = 200
LIMIT_SECONDS = 0.3
TENANT, PERSON, PASSWORD = "acme", "ada", "a long enough password"
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
        served(Path(folder), options.files) as url,
    ):
        seconds = measured(url, options.runs)
    result: dict[str, object] = {
        "files": options.files,
        "panel": summary(seconds),
        "limit_seconds": LIMIT_SECONDS,
        "is_within": statistics.median(seconds) < LIMIT_SECONDS,
    }
    if options.files == FILES:
        keep("console", result)
    else:
        print(json.dumps(result, indent=2))


@contextmanager
def served(folder: Path, files: int) -> Iterator[str]:
    """A service of a store with that many files; its address."""
    root = folder / "store"
    settings = load_settings(root=str(root))
    store = Stores(str(root), settings).environment("default")
    for number in range(OTHERS):
        store.tenant(f"customer-{number:02d}", create=True)
    tenant = store.tenant(TENANT, create=True)
    for start in range(0, files, FILES_PER_JOB):
        with tenant.job(f"seed-{start}") as job:
            for number in range(start, min(start + FILES_PER_JOB, files)):
                job.files.write(f"file-{number:05d}.json", b"{}")
    database = ControlDatabase.open(database_url(settings, str(root)))
    People(database, session_hours=1).create(PERSON, PASSWORD, "admin")
    database.close()
    command = [sys.executable, "-m", "freezeframe", "serve", "--root", str(root), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait(timeout=60)


def measured(url: str, runs: int) -> list[float]:
    """How long each opening took."""
    place = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=FLAGS)
        context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800})
        body = {"name": PERSON, "password": PASSWORD}
        answer = context.request.post("/api/v1/session", data=body, headers={"Origin": url})
        assert answer.ok, answer.text()
        page = context.new_page()
        opened(page)
        page.evaluate(WATCH)
        seconds = []
        for _ in range(runs):
            opened(page)
            seconds.append(float(page.evaluate(WATCH)))
        browser.close()
    return seconds


def opened(page: Page) -> None:
    """The list of tenants, at rest."""
    page.goto("/tenants")
    page.get_by_role("gridcell", name=TENANT, exact=True).wait_for()
    # All of the list is there with what is told of each tenant, and nothing is asked for any more.
    page.wait_for_function(FILLED, arg=OTHERS + 1)


if __name__ == "__main__":
    main()
