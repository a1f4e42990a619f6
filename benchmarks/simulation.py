"""What would a stream of ten billion rows and a store of 100,000 tenants cost on an object store?

The product's own code runs on a storage that keeps its bytes in memory and counts waiting and money
instead of spending them (``simulated_storage``): the log of a stream with up to a million files, a store with
up to 100,000 tenants, jobs of a tenant. Rows themselves are not moved, so Spark takes no part.
What could not be run is a curve fitted to what was, and is called so in the result.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import uuid
from collections.abc import Callable
from types import MappingProxyType

import pyarrow as pa
from measured import RESULTS, keep
from simulated_storage import Prices, SimulatedStorage
from simulation_plot import draw

from freezeframe.engine.protocol import DeferredEngine
from freezeframe.log import DeltaLog
from freezeframe.log.format.actions import Add, CommitInfo, Metadata, Protocol, to_json_line
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.primitives.paths import commit_name, version_prefix
from freezeframe.log.scan import rows
from freezeframe.log.segments.hint import Hint, hint_text
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import Upkeep, write_checkpoint
from freezeframe.settings import Settings
from freezeframe.store.model.directory import REGISTRY_FOLDER, tenant_folder
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenants import RegistryEntry, RegistryState

FILES = (1_000, 10_000, 100_000, 1_000_000)
ROWS_PER_FILE = {"1,000,000 (128 MiB)": 1_000_000, "10,000": 10_000}
ROWS_WANTED = 10_000_000_000
TENANTS = (1_000, 10_000, 100_000)
JOBS = (10, 100, 1_000)
JOBS_A_DAY, TENANTS_WANTED, DAY_SECONDS = 24, 100_000, 86_400
SWEPT = (100, 1_000)
NEVER = Upkeep(checkpoint_interval=10**9, write_checksums=False)
LOG = "t/_delta_log"


def main() -> int:
    parts: dict[str, Callable[[Prices], object]] = {"streams": streams, "tenants": tenants, "jobs": jobs}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=parts, action="append")
    parser.add_argument("--request-seconds", type=float, default=Prices.request_seconds)
    wanted = parser.parse_args()
    prices = Prices(request_seconds=wanted.request_seconds)
    path = RESULTS / "simulation.json"
    result = json.loads(path.read_text()) if path.exists() else {}
    kept = {name: result[name] for name in parts if name in result}
    for name, measure in parts.items():
        if not wanted.only or name in wanted.only:
            kept[name] = measure(prices)
    whole = {"prices": vars(prices), **kept}
    is_whole = all(name in kept for name in parts)
    if is_whole:
        whole["projected"] = projected(kept)
    keep("simulation", whole)
    if is_whole:
        draw(kept)
    return 0


# A stream with many files


def streams(prices: Prices) -> list[dict[str, object]]:
    return [stream_of(prices, files) for files in FILES]


def stream_of(prices: Prices, files: int) -> dict[str, object]:
    """Its log: a checkpoint is written, a stranger opens it, a commit is added, a key is asked for."""
    storage = SimulatedStorage(prices)
    begin_table(storage, files)
    writer = DeltaLog(storage, "t")
    assert files == writer.current_snapshot.count
    found: dict[str, object] = {"files": files}
    with storage.measured() as found["checkpoint"]:
        write_checkpoint(writer.current_snapshot)
    with storage.measured() as found["open"]:
        reader = DeltaLog(storage, "t")
        assert files == reader.current_snapshot.count
    with storage.measured() as found["commit"]:
        one = Add("one/part-0.parquet", 1, modification_time=1, stats='{"numRecords":1}')
        Transaction(writer, upkeep=NEVER).commit([one], "WRITE")
    with storage.measured() as found["refresh"]:
        assert files + 1 == reader.update().count
    with storage.measured() as found["find_a_key"]:
        kept = rows.files_matching(reader.current_snapshot, [("Id", "=", f"00Q{files * 500:012d}")])
    found["files_with_the_key"] = kept.num_rows
    return found


def begin_table(storage: SimulatedStorage, files: int) -> None:
    source = random.Random(files)
    schema = json.dumps(arrow_to_delta(pa.schema([("Id", pa.string()), ("amount", pa.int64())])))
    info = CommitInfo({"timestamp": 1, "operation": "WRITE"})
    first = [info, Protocol(1, 2), Metadata(str(uuid.UUID(int=files)), schema)]
    lines = [f"{to_json_line(action)}\n" for action in first]
    lines += [add_line(number, source) for number in range(files)]
    storage.put_if_absent(f"{LOG}/{commit_name(0)}", "".join(lines).encode())


def add_line(index: int, source: random.Random) -> str:
    name = f"{source.getrandbits(128):032x}"
    statistics = {
        "numRecords": 1000,
        "minValues": {"Id": f"00Q{index * 1000:012d}", "amount": 1, "day": "2026-01-01"},
        "maxValues": {"Id": f"00Q{index * 1000 + 999:012d}", "amount": 999999, "day": "2026-12-31"},
        "nullCount": {"Id": 0, "amount": 3, "day": 7},
    }
    path, texts = f"{name[:12]}/part-00000-{name}.zstd.parquet", json.dumps(statistics)
    return f"{to_json_line(Add(path, 1_000_000 + index, modification_time=1, stats=texts))}\n"


# A store with many tenants


def tenants(prices: Prices) -> dict[str, object]:
    return {
        "stores": [store_of(prices, count) for count in TENANTS],
        "sweep": [sweep_of(prices, n) for n in SWEPT],
    }


def store_of(prices: Prices, count: int) -> dict[str, object]:
    """Its registry after that many creations: opened, asked, grown by one tenant and by a hundred."""
    storage = SimulatedStorage(prices)
    begin_registry(storage, count)
    found: dict[str, object] = {"tenants": count}
    with storage.measured() as found["open_and_find"]:
        store = opened(storage)
        assert store.folder(f"tenant-{count // 2}")
    with storage.measured() as found["page_of_1000"]:
        assert store.tenants(after=f"tenant-{count // 3}")
    with storage.measured() as found["find_again"]:
        assert store.folder(f"tenant-{count // 4}")
    stranger = opened(storage)
    assert stranger.folder("tenant-0")
    with storage.measured() as found["create"]:
        store.tenant("the new one", create=True)
    with storage.measured() as found["see_the_new_one"]:
        assert stranger.folder("the new one")
    with storage.measured() as hundred:
        for number in range(100):
            store.tenant(f"one more {number}", create=True)
    found["create_of_a_hundred"] = hundred
    return found


def begin_registry(storage: SimulatedStorage, count: int) -> None:
    """Entries and the newest checkpoint as ``Registry`` leaves them, without creating one by one."""
    opened(storage).tenant("the first", create=True)
    folders = {f"tenant-{number}": uuid.UUID(int=number + 1).hex for number in range(count - 1)}
    for version, (tenant, folder) in enumerate(folders.items(), start=1):
        entry = RegistryEntry(
            "create", "default", tenant, folder, uuid.UUID(int=version).hex, 10**12 + version
        )
        storage.put_if_absent(f"{REGISTRY_FOLDER}/{commit_name(version)}", entry.to_bytes())
    newest = (count - 1) // 100 * 100
    known = dict(itertools.islice(folders.items(), newest))
    before = opened_state(storage)
    state = RegistryState(
        newest, 10**12 + newest, MappingProxyType({"default": MappingProxyType({**before, **known})})
    )
    content = state.to_checkpoint()
    storage.put_if_absent(
        f"{REGISTRY_FOLDER}/{version_prefix(newest)}.checkpoint.{uuid.uuid4()}.json", content
    )
    storage.replace(
        f"{REGISTRY_FOLDER}/_last_checkpoint", hint_text(Hint(newest, 1, size_in_bytes=len(content))).encode()
    )


def opened_state(storage: SimulatedStorage) -> dict[str, str]:
    entry = json.loads(storage.read(f"{REGISTRY_FOLDER}/{commit_name(0)}"))
    return {"the first": entry["folder"]}


def sweep_of(prices: Prices, count: int) -> dict[str, object]:
    """Looking for what crashes left: every name of every tenant is listed. Each tenant has forty files."""
    storage = SimulatedStorage(prices)
    store = opened(storage)
    for number in range(count):
        store.tenant(f"tenant-{number}", create=True)
        folder = tenant_folder(store.folder(f"tenant-{number}"))
        for name in range(40):
            storage.put_if_absent(f"{folder}/{name}", b"")
    with storage.measured() as found:
        assert not store.sweep()
    return {"tenants": count, **found}


def opened(storage: SimulatedStorage) -> Store:
    return Store(storage, DeferredEngine(no_engine), Settings(), "default")


def no_engine():
    sys.exit("The simulation asked for Spark.")


# Jobs of a tenant


def jobs(prices: Prices) -> list[dict[str, object]]:
    """One tenant, job after job: each adds ten rows to a stream and writes a file."""
    storage = SimulatedStorage(prices)
    tenant = opened(storage).tenant("one", create=True)
    found: list[dict[str, object]] = []
    done = 0
    for count in JOBS:
        while done < count - 10:
            run_job(tenant, done)
            done += 1
        with storage.measured() as ten:
            for _ in range(10):
                run_job(tenant, done)
                done += 1
        stranger = opened(storage)
        with storage.measured() as first:
            run_job(stranger.tenant("one"), done)
            done += 1
        found.append({"jobs_before": count, "ten_jobs": ten, "job_of_a_new_process": first})
    return found


def run_job(tenant: Tenant, number: int) -> None:
    keys = [f"{number * 10 + item:09d}" for item in range(10)]
    with tenant.job(f"job-{number}") as job:
        job.stream("Account").update(pa.table({"Id": keys, "n": list(range(10))}), key="Id")
        job.files.write_json("state.json", {"job": number})


# What follows


def projected(kept: dict) -> dict[str, object]:
    """Measured points read off, and what is only fitted or multiplied, each called by its name."""
    million = kept["streams"][-1]
    by_size = {}
    for name, size in ROWS_PER_FILE.items():
        files = ROWS_WANTED // size
        near = min(kept["streams"], key=lambda item: abs(item["files"] - files))
        by_size[name] = {
            "files": files,
            "measured_at": near["files"],
            **{key: near[key] for key in ("checkpoint", "open", "commit", "refresh", "find_a_key")},
        }
    ten = kept["jobs"][-1]["ten_jobs"]
    requests = ten["requests"] / 10
    a_day = TENANTS_WANTED * JOBS_A_DAY
    sweeps = kept["tenants"]["sweep"]
    slope = (sweeps[1]["waiting_seconds"] - sweeps[0]["waiting_seconds"]) / (
        sweeps[1]["tenants"] - sweeps[0]["tenants"]
    )
    return {
        "ten_billion_rows_by_rows_per_file": by_size,
        "checkpoint_bytes_per_file": round(
            million["checkpoint"]["written_mib"] * 2**20 / million["files"], 1
        ),
        "multiplied: requests a job": requests,
        "multiplied: dollars a day for 100,000 tenants with 24 jobs each": round(
            ten["dollars"] / 10 * a_day, 2
        ),
        "multiplied: requests a second in the mean": round(requests * a_day / DAY_SECONDS),
        "multiplied: jobs waiting at once": round(ten["waiting_seconds"] / 10 * a_day / DAY_SECONDS),
        "fitted: waiting of a sweep of 100,000 tenants, in seconds": round(slope * TENANTS_WANTED),
    }


if __name__ == "__main__":
    sys.exit(main())
