"""What does the REST service answer on this machine: at which rate, how quickly, for how much processor time?

1,000 tenants on a local disk, ``freezeframe serve`` on its defaults with the quotas raised, and a generator
in a process of its own (``service_load.py``): open loop, constant rate, 64 connections, latency from when a
request was due. The generator shares the machine's cores with the service; its processor time is told.

- A tenant's metadata at 1,000/s, a file of 16 KB at 800/s, a durable upload of 16 KB at 200/s; the first
  also in the first seconds of a service, whose processes have yet to open many of the tenants.
- The highest rate that is held: no errors, all answered, and the 99th percentile within its limit.
- A tenant at ten times its quota: what it does to the others' 99th percentile.
- A page of the list of tenants, of 1,000 and of 10,000 of them.

``--seconds`` is how long each figure is measured (15), ``--workers`` how many processes answer (the cores),
``--only metadata,file,upload,highest,noisy,listing`` leaves the rest out and writes no result.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from measured import keep

from freezeframe.log.primitives.paths import commit_name
from freezeframe.service.access.stores import Stores
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.directory.paths import REGISTRY_FOLDER
from freezeframe.store.tenants.registry import Registry
from freezeframe.store.tenants.registry_entries import RegistryEntry

TENANTS, MANY_TENANTS, CONNECTIONS, FILE_BYTES = 1_000, 10_000, 64, 16 * 1024
ENVIRONMENT = "default"
NOISY, NOISY_QUOTA_PER_MINUTE = "t0000", 600
LIMITS_MS = {"metadata": 50, "file": 60, "upload": 200}
RATES = {"metadata": 1_000, "file": 800, "upload": 200}
STEP, STEPS_MAX = 1.25, 5
LISTINGS, REGISTRY_INTERVAL = 40, 100
FIRST_SECONDS = 3
FIGURES = ("metadata", "file", "upload", "highest", "noisy", "listing")


@dataclass(frozen=True)
class Served:
    """A service that runs: where, its key, and its processes."""

    port: int
    key: str
    process: psutil.Process

    def processor_seconds(self) -> float:
        """User and system time of all its processes so far."""
        found = 0.0
        for one in (self.process, *self.process.children(recursive=True)):
            times = one.cpu_times()
            found += times.user + times.system
        return found

    def headers(self) -> str:
        return f"x-api-key: {self.key}\r\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(FIGURES))
    given = parser.parse_args(arguments)
    result: dict[str, Any] = {"tenants": TENANTS, "connections": CONNECTIONS, "workers": given.workers}
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=os.environ.get("TMPDIR")) as folder:
        root = Path(folder) / "store"
        result["setup_seconds"] = round(_timed(lambda: _make_tenants(root)), 1)
        with served(root, given.workers) as service:
            if "metadata" in given.only:
                # Many tenants are opened for the first time by the process that is asked.
                result["first_seconds"] = measured(service, "metadata", RATES["metadata"], FIRST_SECONDS)
                _load(service, [_requests(service, "file", RATES["file"] / 2, range(TENANTS))], given.seconds)
            for name in ("metadata", "file", "upload"):
                if name in given.only:
                    result[name] = measured(service, name, RATES[name], given.seconds)
            if "highest" in given.only:
                result["highest"] = {
                    name: highest(service, name, given.seconds / 2, result.get(name)) for name in RATES
                }
        if "noisy" in given.only:
            quota = {"FREEZEFRAME_SERVICE_TENANT_REQUESTS_PER_MINUTE": str(NOISY_QUOTA_PER_MINUTE)}
            with served(root, given.workers, **quota) as service:
                result["noisy"] = noisy(service, given.seconds * 2 / 3)
        if "listing" in given.only:
            result["listing"] = listing(root, given.workers)
    if set(given.only) != set(FIGURES):
        print(json.dumps(result, indent=2))
        return 0
    result["claims"] = claims(result)
    keep("service", result)
    return 0 if all(result["claims"].values()) else 1


def claims(result: dict[str, Any]) -> dict[str, bool]:
    """What the figures have to be."""
    runs = [result[name] for name in RATES]
    return {
        **{f"{name}_rate_and_p99": _held(result[name], name) for name in RATES},
        "no_5xx": not any(status >= "500" for run in runs for status in run["statuses"]),
        "noisy_tenant_moves_p99_by_less_than_20_percent": result["noisy"]["others_p99_change"] < 0.2,
        "listing_of_10000_costs_less_than_twice_1000": result["listing"]["ratio"] < 2,
    }


def measured(service: Served, name: str, rate: float, seconds: float) -> dict[str, Any]:
    """One kind of request at one rate."""
    before = service.processor_seconds()
    told = _load(service, [_requests(service, name, rate, range(TENANTS))], seconds)
    run = told.pop("streams")[name]
    used = service.processor_seconds() - before
    return {**run, **told, "service_processor_ms_per_request": round(1000 * used / run["requests"], 3)}


def highest(
    service: Served, name: str, seconds: float, usual: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The highest rate that is held, going up or down from the usual one in steps of a quarter.

    ``usual`` is what was measured at the usual rate already.
    """
    rate, held, run = float(RATES[name]), None, {}
    goes_up = None
    for _ in range(STEPS_MAX):
        run = usual or measured(service, name, rate, seconds)
        usual = None
        is_held = _held(run, name)
        if is_held:
            held = run
        if goes_up is None:
            goes_up = is_held
        if is_held != goes_up:
            break
        rate = rate * STEP if goes_up else rate / STEP
    best = held or run
    names = ("asked_per_second", "p50_ms", "p99_ms", "statuses", "service_processor_ms_per_request")
    return {"is_held": held is not None, **{one: best[one] for one in names}}


def noisy(service: Served, seconds: float) -> dict[str, Any]:
    """Others at a moderate rate, alone and beside a tenant at ten times its quota."""
    others = _requests(service, "file", RATES["file"] / 8, range(1, TENANTS))
    rate = 10 * NOISY_QUOTA_PER_MINUTE / 60
    loud = {**_requests(service, "file", rate, range(1)), "name": "noisy"}
    # Alone before and after: what the machine itself does meanwhile is seen as the difference of the two.
    runs = [_load(service, [others], seconds)["streams"]]
    # Its quota of the minute is used up before: what is measured is a tenant that is refused, and asks on.
    _load(service, [loud], NOISY_QUOTA_PER_MINUTE / rate)
    runs += [_load(service, streams, seconds)["streams"] for streams in ([others, loud], [others])]
    alone = [runs[0]["file"], runs[2]["file"]]
    usual = sum(one["p99_ms"] for one in alone) / 2
    beside = runs[1]["file"]["p99_ms"]
    return {
        "others_p99_ms_alone": [one["p99_ms"] for one in alone],
        "others_p99_ms_beside": beside,
        "others_p99_change": round(beside / usual - 1, 3),
        "others_statuses": runs[1]["file"]["statuses"],
        "noisy_per_second": rate,
        "noisy_statuses": runs[1]["noisy"]["statuses"],
    }


def listing(root: Path, workers: int) -> dict[str, Any]:
    """The median time of a page of 100 tenants from the middle of the list, few and many."""
    few = _pages(root, workers)
    _list_more_tenants(root)
    many = _pages(root, workers)
    return {"ms_of_1000": few, "ms_of_10000": many, "ratio": round(many / few, 2)}


@contextmanager
def served(root: Path, workers: int, **environment: str) -> Iterator[Served]:
    """A service with quotas that count but do not refuse, unless ``environment`` says otherwise."""
    freezeframe = Path(sys.executable).parent / "freezeframe"
    raised = {
        "FREEZEFRAME_SERVICE_REQUESTS_PER_MINUTE": "100000000",
        "FREEZEFRAME_SERVICE_TENANT_REQUESTS_PER_MINUTE": "100000000",
        **environment,
    }
    arguments = ["serve", "--root", str(root), "--port", "0", "--workers", str(workers), "--json"]
    process = subprocess.Popen(
        [freezeframe, *arguments],
        stdout=subprocess.PIPE,
        env={**os.environ, **raised},
        text=True,
        cwd=root.parent,
    )
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        port = int(told["url"].rpartition(":")[2])
        made = [freezeframe, "key", "create", "--root", str(root), "--env", ENVIRONMENT, "--json"]
        key = json.loads(subprocess.run(made, capture_output=True, check=True, cwd=root.parent).stdout)["key"]
        service = Served(port, key, psutil.Process(process.pid))
        # All workers are warm, and have seen half of the tenants or more, before anything is measured.
        _load(service, [_requests(service, "file", 250, range(TENANTS))], 6)
        yield service
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def _requests(service: Served, name: str, rate: float, tenants: range) -> dict[str, Any]:
    method = "PUT" if name == "upload" else "GET"
    place = f"/api/v1/environments/{ENVIRONMENT}/tenants"
    tails = {"metadata": "", "file": "/files/mappings/a.csv", "upload": "/files/mappings/b.csv"}
    return {
        "name": name,
        "rate": rate,
        "requests": [
            {
                "method": method,
                "target": f"{place}/t{number:04d}{tails[name]}",
                "headers": service.headers(),
            }
            for number in tenants
        ],
        "body_bytes": FILE_BYTES if name == "upload" else 0,
    }


def _load(service: Served, streams: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    order = {
        "host": "127.0.0.1",
        "port": service.port,
        "connections": CONNECTIONS,
        "seconds": seconds,
        "streams": streams,
    }
    run = subprocess.run(
        [sys.executable, Path(__file__).parent / "service_load.py"],
        input=json.dumps(order),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(run.stdout)
    return told


def _held(run: dict[str, Any], name: str) -> bool:
    is_answered = not run["unanswered"] and all(status.startswith("2") for status in run["statuses"])
    return is_answered and run["p99_ms"] < LIMITS_MS[name]


def _make_tenants(root: Path) -> None:
    store = Stores(str(root), Settings()).environment(ENVIRONMENT)
    content = b"Id,Name\n" + b"1,a\n" * (FILE_BYTES // 4 - 2)

    def make(number: int) -> None:
        store.tenant(f"t{number:04d}", create=True).files.write("mappings/a.csv", content)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(TENANTS)))


def _list_more_tenants(root: Path) -> None:
    """Entries of the registry alone: only the list is asked for, so nothing has to be in the folders."""
    registry = Registry(LocalStorage(root), Settings())
    state = registry.current_state()
    for number in range(TENANTS, MANY_TENANTS):
        version, moment = state.version + 1 + number - TENANTS, state.timestamp_ms + number
        entry = RegistryEntry("create", ENVIRONMENT, f"t{number:04d}", f"{number:032x}", f"{number}", moment)
        (root / REGISTRY_FOLDER / commit_name(version)).write_bytes(entry.to_bytes())
    while registry.current_state().version % REGISTRY_INTERVAL:
        registry.create(
            ENVIRONMENT, f"z{uuid.uuid4().hex}", uuid.uuid4().hex
        )  # as far as its next checkpoint


def _pages(root: Path, workers: int) -> float:
    with served(root, workers) as service:
        target = f"/api/v1/environments/{ENVIRONMENT}/tenants?limit=100&prefix=t05"
        one = {"method": "GET", "target": target, "headers": service.headers()}
        stream = {"name": "page", "rate": LISTINGS, "requests": [one]}
        return float(_load(service, [stream], 3)["streams"]["page"]["p50_ms"])


def _timed(call: Any) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
