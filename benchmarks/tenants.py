"""What does the tenant log cost, and how quick are tenants with a long past and stores with many tenants?

- A job with ten small streams, against the landing of the same ten commits in a copy of the tables,
  with the same durability: the difference is what it costs that they appear at once.
- A tenant with 1,000 versions and 200 streams, opened by a new process; imports are told apart.
- 10,000 tenants: a page of them, from a store that was just opened.
- A tenant of 1 GB whose streams were all dropped, restored whole: what was written, and how long it took.

Everything happens on a local disk and without Java; nothing here moves stored rows.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from measured import keep, summary

from freezeframe.engine.protocol import DeferredEngine
from freezeframe.identifiers import StreamName
from freezeframe.log.segments.commit import Committed, write_commit
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.model.directory import REGISTRY_FOLDER, table_folder
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenants import RegistryEntry

STREAMS = 10
JOBS = 9  # before the tables' first checkpoint, which is no part of the landing alone
VERSIONS, OPENED_STREAMS = 1_000, 200
TENANTS, PAGE, REGISTRY_INTERVAL = 10_000, 100, 100
RESTORED_STREAMS, ROWS, COLUMNS = 8, 2_100_000, 8
OPENINGS = 7


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=os.environ.get("TMPDIR")) as folder:
        root = Path(folder)
        result: dict[str, object] = {
            "job_of_ten_streams": job_of_ten_streams(root / "job", root / "copy"),
            "open_a_long_tenant": open_a_long_tenant(root / "long"),
            "page_of_many_tenants": page_of_many_tenants(root / "many"),
            "restore_of_a_gigabyte": restore_of_a_gigabyte(root / "large"),
        }
    result["claims"] = claims(result)
    keep("tenants", result)
    return 0 if all(result["claims"].values()) else 1


def claims(result: dict) -> dict[str, bool]:
    restored = result["restore_of_a_gigabyte"]
    return {
        "job of ten streams: the tenant log costs less than 30 ms": result["job_of_ten_streams"][
            "overhead_seconds"
        ]
        < 0.03,
        "tenant of 1,000 versions and 200 streams opens in less than 50 ms": result["open_a_long_tenant"][
            "open"
        ]["median_seconds"]
        < 0.05
        and not result["open_a_long_tenant"]["loads_java"],
        "a page of 10,000 tenants takes less than 50 ms": result["page_of_many_tenants"]["cold"][
            "median_seconds"
        ]
        < 0.05,
        "a restoration of 1 GB writes log only": restored["kept_bytes"] > 10**9
        and restored["written_bytes"] < 10**6,
    }


def job_of_ten_streams(root: Path, copy: Path) -> dict[str, object]:
    """Each job adds a row to each of ten streams; the same commits then land in the copy of the tables."""
    tenant = tenant_at(root)
    names = [StreamName(f"Stream {number}") for number in range(STREAMS)]
    add_rows(tenant, names, 0)
    shutil.copytree(root, copy)
    bare = LocalStorage(copy)
    whole, landing = [], []
    for number in range(1, JOBS + 1):
        whole.append(add_rows(tenant, names, number))
        contents = [
            (name, tenant.context.storage.read(f"{table_folder(name)}/_delta_log/{number:020d}.json"))
            for name in names
        ]
        landing.append(seconds_of(lambda found=contents, at=number: land_alone(bare, found, at)))
    overhead = [job - alone for job, alone in zip(whole, landing, strict=True)]
    return {
        "announcing_and_committing": summary(whole),
        "landing_alone": summary(landing),
        "overhead_seconds": round(statistics.median(overhead), 4),
        "fsync_of_a_small_file": summary([fsync_seconds(copy / f"probe-{n}") for n in range(20)]),
    }


def add_rows(tenant: Tenant, names: list[StreamName], number: int) -> float:
    """One job; what its announcement and its commit took, without the staging of the rows."""
    with tenant.job(f"job-{number}") as job:
        announcing = seconds_of(job._work.announce)
        for name in names:
            job.stream(name).update(rows_from(number * 10), key="Id")
        started = time.perf_counter()
    return announcing + time.perf_counter() - started


def land_alone(storage: LocalStorage, contents: list[tuple[StreamName, bytes]], version: int) -> None:
    for name, content in contents:
        if not isinstance(write_commit(storage, table_folder(name), version, content), Committed):
            sys.exit(f"Version {version} of {name} was there already.")


OPENING = """
import os, sys, time
started = time.perf_counter()
from freezeframe.engine.protocol import DeferredEngine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
imported = time.perf_counter()
tenant = Tenant(LocalStorage(sys.argv[1]), None, Settings())
found = tenant.version, len(tenant.streams())
opened = time.perf_counter()
print(imported - started, opened - imported, *found, int("pyspark" in sys.modules))
"""


def open_a_long_tenant(root: Path) -> dict[str, object]:
    """A new process each time; the last checkpoint is as old as it gets."""
    tenant = tenant_at(root)
    with tenant.job() as job:
        for number in range(OPENED_STREAMS):
            job.stream(f"Stream {number:03d}").update(rows_from(0), key="Id")
    interval = Settings().checkpoint_interval
    newest = VERSIONS + interval - 1
    for version in range(1, newest + 1):
        tenant.stream(f"Stream {version % OPENED_STREAMS:03d}").update(rows_from(version * 10), key="Id")
    imports, openings, java = [], [], False
    for _ in range(OPENINGS):
        done = subprocess.run(
            [sys.executable, "-c", OPENING, root], stdout=subprocess.PIPE, text=True, check=True
        )
        imported, opened, version, streams, spark = done.stdout.split()
        if (int(version), int(streams)) != (newest, OPENED_STREAMS):
            sys.exit(f"Version {version} with {streams} streams was found.")
        imports.append(float(imported))
        openings.append(float(opened))
        java |= spark == "1"
    return {"open": summary(openings), "import": summary(imports), "loads_java": java, "versions": newest + 1}


def page_of_many_tenants(root: Path) -> dict[str, object]:
    """The registry's entries as so many calls would have left them; the next call writes the checkpoint."""
    make_registry(root)
    store_at(root).tenant("the first", create=True)
    for number in range(REGISTRY_INTERVAL - 2):
        store_at(root)._registry.create("default", f"later {number:03d}", f"{TENANTS + number:032x}")
    cold, warm = [], []
    for _ in range(OPENINGS):
        opened: list[Store] = []
        cold.append(seconds_of(lambda found=opened: found.append(store_at(root)) or page(found[0])))
        warm.append(seconds_of(lambda found=opened: page(found[0])))
    return {"cold": summary(cold), "warm": summary(warm), "tenants": TENANTS + REGISTRY_INTERVAL - 1}


def page(store: Store) -> None:
    if len(store.tenants(after="tenant-04999", limit=PAGE)) != PAGE:
        sys.exit("The page is not full.")


def make_registry(root: Path) -> None:
    folder = root / REGISTRY_FOLDER
    folder.mkdir(parents=True)
    for number in range(TENANTS):
        name, place = f"tenant-{number:05d}", f"{number:032x}"
        entry = RegistryEntry("create", "default", name, place, place, 1_700_000_000_000 + number)
        (folder / f"{number:020d}.json").write_bytes(entry.to_bytes())


def restore_of_a_gigabyte(root: Path) -> dict[str, object]:
    """All streams are dropped, and restored by one call; every byte below the tenant is counted."""
    tenant = tenant_at(root)
    random = np.random.default_rng(7)
    for number in range(RESTORED_STREAMS):
        columns = {f"c{item}": pa.array(random.random(ROWS)) for item in range(COLUMNS - 1)}
        table = pa.table({"Id": pa.array(np.arange(ROWS)), **columns})
        tenant.stream(f"Stream {number}").update(table, key="Id")
    full = tenant.version
    for name in tenant.streams():
        tenant.drop_stream(name)
    before = bytes_below(root)
    seconds = seconds_of(lambda: tenant.restore(full))
    written = bytes_below(root) - before
    rows = sum(tenant.stream(name).count() for name in tenant.streams())
    if rows != RESTORED_STREAMS * ROWS:
        sys.exit(f"{rows} rows came back.")
    return {"kept_bytes": before, "written_bytes": written, "seconds": round(seconds, 4), "rows": rows}


def tenant_at(root: Path) -> Tenant:
    return Tenant(LocalStorage(root), DeferredEngine(no_engine), Settings())


def store_at(root: Path) -> Store:
    return Store(LocalStorage(root), DeferredEngine(no_engine), Settings())


def no_engine() -> None:
    sys.exit("No stored row is to be moved here.")


def rows_from(first: int) -> pa.Table:
    return pa.table({"Id": pa.array(range(first, first + 10)), "Name": ["a name"] * 10})


def bytes_below(root: Path) -> int:
    return sum(file.stat().st_size for file in root.rglob("*") if file.is_file())


def fsync_seconds(path: Path) -> float:
    def write() -> None:
        with path.open("wb") as file:
            file.write(b"x" * 1000)
            file.flush()
            os.fsync(file.fileno())

    return seconds_of(write)


def seconds_of(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
