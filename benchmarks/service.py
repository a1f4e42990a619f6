"""What does the REST service answer on this machine: at which rate, how quickly, for how much processor time?

1,000 tenants on a local disk, ``freezeframe serve`` on its defaults with the quotas raised, and a generator
in a process of its own (``service_load.py``): open loop, constant rate, 64 connections, latency from when a
request was due. The generator shares the machine's cores with the service; its processor time is told.

- A tenant's metadata at 1,000/s, a file of 16 KB at 800/s, a durable upload of 16 KB at 200/s; the first
  also in the first seconds of a service, whose processes have yet to open many of the tenants.
- The highest rate that is held: no errors, all answered, and the 99th percentile within its limit.
- One key at all limits at once (a tenant at ten times its quota of requests; files of a full tenant; uploads,
  jobs and followed events beyond what may be under way): what it does to the others' 99th percentile.
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
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil
from measured import keep

from freezeframe.log.primitives.paths import commit_name
from freezeframe.service.access.access import Stores
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.model.directory import REGISTRY_FOLDER
from freezeframe.store.tenant_log.entry import Link
from freezeframe.store.tenants import Registry, RegistryEntry

TENANTS, MANY_TENANTS, CONNECTIONS, FILE_BYTES = 1_000, 10_000, 64, 16 * 1024
ENVIRONMENT = "default"
NOISY_QUOTA_PER_SECOND = 10
LIMITED_TENANTS = range(995, 1_000)
LIMITS_MS = {"metadata": 50, "file": 60, "upload": 200}
RATES = {"metadata": 1_000, "file": 800, "upload": 200}
STEP, STEPS_MAX = 1.25, 5
LISTINGS, REGISTRY_INTERVAL = 40, 100
FIRST_SECONDS = 3
FIGURES = ("metadata", "file", "upload", "highest", "noisy", "listing")


@dataclass(frozen=True)
class Served:
    """A service that runs: where, its keys, and its processes."""

    port: int
    key: str
    noisy_key: str
    process: psutil.Process

    def processor_seconds(self) -> float:
        """User and system time of all its processes so far."""
        found = 0.0
        for child in (self.process, *self.process.children(recursive=True)):
            times = child.cpu_times()
            found += times.user + times.system
        return found

    def headers(self, *, noisy: bool = False) -> str:
        return f"x-api-key: {self.noisy_key if noisy else self.key}\r\n"


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
            (root.parent / "etl.py").touch()
            quota = {
                "REQUESTS_PER_SECOND": NOISY_QUOTA_PER_SECOND,
                "TENANT_STORED_BYTES_MAX": 64 * 1024,
                "TENANT_UPLOADS_MAX": 1,
                "TENANT_JOBS_QUEUED_MAX": 1,
                "STREAMS_PER_PRINCIPAL_MAX": 1,
                "SCRIPTS_DIR": root.parent,
            }
            limits = {f"FREEZEFRAME_SERVICE_{name}": str(value) for name, value in quota.items()}
            with served(root, given.workers, **limits) as service:
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
        "noisy_key_moves_p99_by_less_than_20_percent": result["noisy"]["others_p99_change"] < 0.2,
        "noisy_key_alone_is_refused": set(result["noisy"]["others_statuses"]) == {"200"}
        and all(
            set(found) <= {"200", "413", "429"} and set(found) != {"200"}
            for found in result["noisy"]["noisy_statuses"].values()
        ),
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
    return {"is_held": held is not None, **{item: best[item] for item in names}}


def noisy(service: Served, seconds: float) -> dict[str, Any]:
    """Others at a moderate rate, alone and beside a key that is at every limit."""
    others = _requests(service, "file", RATES["file"] / 8, range(1, LIMITED_TENANTS.start))
    loud = list(_limited_requests(service))
    # Alone before and after: what the machine itself does meanwhile is seen as the difference of the two.
    runs = [_load(service, [others], seconds)["streams"]]
    with _followed_events(service):
        # The limits are reached before: what is measured is a key that is refused, and asks on.
        _load(service, loud, 10 * NOISY_QUOTA_PER_SECOND / loud[0]["rate"])
        runs.append(_load(service, [others, *loud], seconds)["streams"])
    runs.append(_load(service, [others], seconds)["streams"])
    alone = [runs[0]["file"], runs[2]["file"]]
    usual = sum(item["p99_ms"] for item in alone) / 2
    beside = runs[1].pop("file")
    return {
        "others_p99_ms_alone": [item["p99_ms"] for item in alone],
        "others_p99_ms_beside": beside["p99_ms"],
        "others_p99_change": round(beside["p99_ms"] / usual - 1, 3),
        "others_statuses": beside["statuses"],
        "noisy_per_second": sum(item["rate"] for item in loud),
        "noisy_statuses": {name: run["statuses"] for name, run in runs[1].items()},
    }


def _limited_requests(service: Served) -> Iterator[dict[str, Any]]:
    """Requests that are refused by each limit, of the other key."""
    place = f"/api/v1/environments/{ENVIRONMENT}"
    events = f"/api/v1/events?environment={ENVIRONMENT}&seconds=60"
    asked = (
        ("requests", "GET", f"{place}/tenants/{{}}", 10 * NOISY_QUOTA_PER_SECOND, "", {}),
        ("stored bytes", "PUT", f"{place}/tenants/{{}}/files/b.bin", 7, "", {"body_bytes": 64 * 1024}),
        ("blobs", "POST", f"{place}/tenants/{{}}/blobs", 9, "", {"body_bytes": 9}),
        (
            "jobs",
            "POST",
            f"{place}/tenants/{{}}/jobs",
            8,
            "content-type: application/json\r\n",
            {"body": '{"script": "etl.py"}'},
        ),
        ("events", "GET", events, 11, "", {}),
    )
    for number, (name, method, target, rate, headers, body) in zip(LIMITED_TENANTS, asked, strict=True):
        wanted = {
            "method": method,
            "target": target.format(f"t{number:04d}"),
            "headers": service.headers(noisy=True) + headers,
        }
        yield {"name": name, "rate": rate, "requests": [wanted], **body}


@contextmanager
def _followed_events(service: Served) -> Iterator[None]:
    """As many followed events of the noisy key as it may have."""
    target = f"/api/v1/events?environment={ENVIRONMENT}&seconds=300"
    connection = HTTPConnection("127.0.0.1", service.port, timeout=30)
    connection.request("GET", target, headers={"x-api-key": service.noisy_key})
    connection.getresponse()
    try:
        yield
    finally:
        connection.close()


def listing(root: Path, workers: int) -> dict[str, Any]:
    """The median time of a page of 100 tenants from the middle of the list, few and many."""
    few = _pages(root, workers)
    _list_more_tenants(root)
    many = _pages(root, workers)
    return {"ms_of_1000": few, "ms_of_10000": many, "ratio": round(many / few, 2)}


@contextmanager
def served(root: Path, workers: int, **environment: str) -> Iterator[Served]:
    """A service without a limit of requests, unless ``environment`` says otherwise."""
    freezeframe = Path(sys.executable).parent / "freezeframe"
    raised = {
        "FREEZEFRAME_SERVICE_REQUESTS_PER_SECOND": "0",
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
        keys = [
            json.loads(subprocess.run(made, capture_output=True, check=True, cwd=root.parent).stdout)["key"]
            for _ in "ab"
        ]
        service = Served(port, *keys, psutil.Process(process.pid))
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
    previous = state.chain.head or ""
    for number in range(TENANTS, MANY_TENANTS):
        version, moment = state.version + 1 + number - TENANTS, state.timestamp_ms + number
        names = (f"t{number:04d}", f"{number:032x}", f"{number}")
        entry = RegistryEntry("create", ENVIRONMENT, *names, moment, Link(version, previous))
        content = entry.to_bytes()
        previous = json.loads(content)["sha256"]
        (root / REGISTRY_FOLDER / commit_name(version)).write_bytes(content)
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
