"""Would an index of keys find a batch's rows sooner than the scan of the key's column that updates make?

Tried for 100, 10,000 and 200,000 keys at random, nine in ten of them known, in streams of a million rows and
more: the scan (by Arrow and by DuckDB in process), Parquet's
Bloom filters, small pages in the files' own order, a sorted index of hashes, and files split by the key's
hash. Files have a million rows each, at random among files and in order within one, as the product writes
them. ``update`` tells what share of an update the finding is: nothing can gain more. Each step is a process
of its own; results are merged, so single steps can be measured on a quiet machine:
``--only 20m --steps update pages``. On an object store, waiting is simulated: sixteen requests at once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from finding_share import WARM_UP, share_of_finding
from key_files import (
    BLOOM,
    GROUP_ROWS,
    PAGE_ROWS,
    SMALL_PAGES,
    STORED,
    VARIANTS,
    WRITTEN,
    batch_of,
    files_of,
    make_files,
    requests_for,
    size_of,
    waiting,
)
from measured import RESULTS, keep, machine
from scale import Case, processor_seconds, rows_of
from sorted_index import ENTRY, FILE_SHIFT, blocks_of, forget, hashes, places_of, run_of, upkeep

SENT = (100, 10_000, 200_000)
USUAL = 10_000
BLOCKS = (4 * 1024, 64 * 1024, 1024 * 1024)
BUCKETS = (16, 64, 256)
COMMITS = 200
TURNS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=STORED, default=["1m", "5m"])
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.step:
        step, size, folder = wanted.step
        print(json.dumps(STEPS[step](STORED[size], Path(folder))))
        return 0
    path = RESULTS / "key_index.json"
    for size in wanted.only:
        with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=os.environ.get("TMPDIR")) as folder:
            make_files(STORED[size], Path(folder))
            for step in wanted.steps:
                command = [sys.executable, __file__, "--step", step, size, folder]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                found = json.loads(done.stdout.splitlines()[-1])
                sizes = json.loads(path.read_text())["sizes"] if path.exists() else {}
                sizes.setdefault(size, {})[step] = {**found, "load_average": machine()["load_average"]}
                keep("key_index", {"sizes": sizes})
    return 0


def timed(call: Callable[[], int], expected: int, warm_up: int = 1) -> dict[str, float]:
    """Medians of a call that tells how many keys it found, by the clock and of the processor."""
    seconds, processor = [], []
    for _ in range(warm_up + TURNS):
        before, began = processor_seconds(), time.perf_counter()
        found = call()
        seconds.append(time.perf_counter() - began)
        processor.append(processor_seconds() - before)
        assert found == expected, f"{found} keys were found where {expected} are stored"
    return {
        "seconds": round(statistics.median(seconds[warm_up:]), 4),
        "processor_seconds": round(statistics.median(processor[warm_up:]), 3),
    }


def pushed_down(stored: int, folder: Path) -> dict[str, object]:
    """Keys few enough to be told to Spark's reader, which then asks filters and pages of the files."""
    found: dict[str, object] = {}
    with contextlib.closing(engine_of(folder)) as engine:
        engine.session.conf.set("spark.sql.parquet.pushdown.inFilterThreshold", SENT[0])
        wanted = batch_of(stored, SENT[0])["Id"].to_pylist()
        for number, variant in enumerate(VARIANTS):
            read = engine.session.read.schema("Id string").parquet(*files_of(folder, variant))
            chosen = read.where(read["Id"].isin(wanted)).select("_metadata.row_index", "_metadata.file_name")
            found[variant] = timed(
                lambda chosen=chosen: len(chosen.toPandas()),
                SENT[0] * 9 // 10,
                warm_up=1 if number else WARM_UP,
            )
    return found


def engine_of(folder: Path):
    from freezeframe.engine.spark import SparkEngine
    from freezeframe.settings import Settings

    return SparkEngine(Settings(spark="local", state_dir=folder / "state"))


def in_process(stored: int, folder: Path) -> dict[str, object]:
    """The same scan by Arrow and by DuckDB in this process; what it reads, on an object store."""
    files = files_of(folder)
    footers = [pq.read_metadata(file) for file in files]
    chunks = [footer.row_group(at).column(0) for footer in footers for at in range(footer.num_row_groups)]
    found: dict[str, object] = {
        "object store": waiting(
            [footer.serialized_size for footer in footers], [chunk.total_compressed_size for chunk in chunks]
        )
    }
    for sent in SENT:
        batch = batch_of(stored, sent)
        found[str(sent)] = {
            "arrow": timed(lambda keys=batch["Id"]: by_arrow(files, keys), sent * 9 // 10),
            "duckdb": timed(lambda batch=batch: by_duckdb(files, batch), sent * 9 // 10),
        }
    return found


def by_arrow(files: Sequence[str], keys: pa.ChunkedArray) -> int:
    places = []
    for file in files:
        numbers = pc.index_in(pq.read_table(file, columns=["Id"])["Id"], value_set=keys)
        places.append(np.flatnonzero(numbers.is_valid()))
    return sum(map(len, places))


def by_duckdb(files: Sequence[str], batch: pa.Table) -> int:  # noqa: ARG001 - read by its name
    scanned = "read_parquet($files, filename = true, file_row_number = true)"
    joined = f"select filename, file_row_number from {scanned} stored join batch using (Id)"
    return len(duckdb.sql(joined, params={"files": list(files)}).to_arrow_table())


def bloom(stored: int, folder: Path) -> dict[str, object]:
    """Which row groups the filters tell to skip; those of a larger batch are among those of a smaller one."""
    plain, filtered, files = size_of(folder), size_of(folder, BLOOM), files_of(folder, BLOOM)
    probe = "select bloom_filter_excludes from parquet_bloom_probe($files, 'Id', $key)"
    groups = stored // GROUP_ROWS
    filter_bytes, chunk_bytes = (filtered - plain) // groups, plain // groups
    found: dict[str, object] = {"filters_bytes_a_row": round((filtered - plain) / stored, 2)}
    for sent in (10, SENT[0]):
        read = np.zeros(groups, bool)
        for key in batch_of(stored, sent)["Id"].to_pylist():
            rows = duckdb.sql(probe, params={"files": files, "key": key}).to_arrow_table()
            read |= ~rows["bloom_filter_excludes"].to_numpy()
        found[str(sent)] = {
            "share_of_row_groups_read": round(float(read.mean()), 3),
            "object store": waiting(
                [1024] * len(files), [filter_bytes] * groups, [chunk_bytes] * int(read.sum())
            ),
        }
    return found


def pages(stored: int, folder: Path) -> dict[str, object]:
    """How many pages of 1,000 rows hold a key's place, where each file is in the order of its keys."""
    plain, small = size_of(folder), size_of(folder, SMALL_PAGES)
    keys = {sent: sortable(batch_of(stored, sent)) for sent in SENT}
    touched = dict.fromkeys(SENT, 0)
    for file in files_of(folder):
        column = sortable(pq.read_table(file))
        for sent in SENT:
            places = np.minimum(np.searchsorted(column, keys[sent]), len(column) - 1)
            touched[sent] += len(np.unique(places // PAGE_ROWS))
    shares = {str(sent): round(touched[sent] / (stored / PAGE_ROWS), 3) for sent in SENT}
    sizes = {"large pages": round(plain / stored, 2), "small": round(small / stored, 2)}
    return {"bytes_a_row": sizes, "share_of_pages_read": shares}


def sortable(keys: pa.Table) -> np.ndarray:
    """The keys in bytes of one length, which NumPy compares without making objects of them."""
    return keys["Id"].to_numpy().astype("S15")


def index(stored: int, folder: Path) -> dict[str, object]:
    """A sorted index of hashes: its bytes, a search with the file in memory and from the disk."""
    began, path = time.process_time(), folder / "index"
    parts = [hashes(pq.read_table(file)["Id"]) for file in files_of(folder)]
    places = [(number << FILE_SHIFT) + np.arange(len(part)) for number, part in enumerate(parts)]
    run_of(np.concatenate(parts), np.concatenate(places).astype(np.uint64)).tofile(path)
    found: dict[str, object] = {
        "build_processor_seconds": round(time.process_time() - began, 2),
        "mib": round(path.stat().st_size / 2**20),
    }
    for sent in SENT:
        keys = batch_of(stored, sent)["Id"]

        def search(keys: pa.ChunkedArray = keys) -> int:
            return len(places_of(np.memmap(path, ENTRY, "r"), hashes(keys)))

        def cold(search: Callable[[], int] = search) -> int:
            forget(path)
            return search()

        entries, wanted = np.memmap(path, ENTRY, "r"), hashes(keys)
        found[str(sent)] = {
            "warm": timed(search, sent * 9 // 10),
            "cold": timed(cold, sent * 9 // 10),
            "object store, by bytes of a block": {
                str(size): waiting(
                    [path.stat().st_size // size * 8], requests_for(blocks_of(entries, wanted, size), size)
                )
                for size in BLOCKS
            },
        }
    return found


def kept(stored: int, folder: Path) -> dict[str, object]:
    """The index's upkeep with each commit of 10,000 rows."""
    return upkeep(stored, USUAL, COMMITS, row_bytes=26, folder=folder / "runs")


def buckets(stored: int, folder: Path) -> dict[str, object]:
    """Files split by the key's hash: the share that is searched, and what a commit of 10,000 writes."""
    from freezeframe.storage import LocalStorage

    plain = size_of(folder)
    rows = rows_of(Case(stored), np.arange(USUAL), np.random.default_rng(1))
    storage, found = LocalStorage(folder / "buckets"), {}
    hashed = hashes(rows["Id"])
    for count in (1, *BUCKETS):
        began, started, sizes = time.perf_counter(), time.process_time(), []
        numbers = hashed % count
        for bucket in range(count):
            sink = pa.BufferOutputStream()
            pq.write_table(rows.filter(pa.array(numbers == bucket)), sink, **WRITTEN)
            sizes.append(sink.tell())
            storage.put_if_absent(f"{count}-{bucket}.parquet", sink.getvalue().to_pybytes())
        touched = {sent: len(np.unique(hashes(batch_of(stored, sent)["Id"]) % count)) for sent in SENT}
        found[str(count)] = {
            "write_seconds": round(time.perf_counter() - began, 3),
            "write_processor_seconds": round(time.process_time() - started, 3),
            "kib_written": sum(sizes) // 1024,
            "object store, writing": waiting(sizes),
            **{
                str(sent): {
                    "share_searched": round(used / count, 3),
                    "object store": waiting([1024] * used, [plain // count] * used),
                }
                for sent, used in touched.items()
            },
        }
    return found


STEPS = {
    "update": share_of_finding,
    "pushed_down": pushed_down,
    "in_process": in_process,
    "bloom": bloom,
    "pages": pages,
    "index": index,
    "upkeep": kept,
    "buckets": buckets,
}

if __name__ == "__main__":
    sys.exit(main())
