"""The files and keys that `benchmarks/key_index.py` searches, and what reading waits for on an object store.

A file has a million rows, at random among files and in order within one, as the product writes streams
whose keys are at random.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scale import Case, keys_of_batch
from simulated_storage import Prices, SimulatedStorage

MILLION = 1_000_000
STORED = {"1m": MILLION, "5m": 5 * MILLION, "20m": 20 * MILLION}
FILE_ROWS, GROUP_ROWS, PAGE_ROWS = MILLION, 250_000, 1_000
SPREAD = np.uint64(618_033_988_749)
FALSE_SHARE = 0.01
REQUEST_SECONDS = (0.02, 0.1)
AT_ONCE = 16
PIECE_BYTES = 8 * 1024 * 1024
WRITTEN = {"compression": "zstd", "row_group_size": GROUP_ROWS, "store_schema": False}
PLAIN, BLOOM, SMALL_PAGES = "as the product writes", "with Bloom filters", "with pages of 1,000 rows"
VARIANTS = {
    PLAIN: {"write_page_checksum": True},
    BLOOM: {"bloom_filter_options": {"Id": {"ndv": GROUP_ROWS, "fpp": FALSE_SHARE}}},
    SMALL_PAGES: {"max_rows_per_page": PAGE_ROWS, "write_page_index": True},
}


def make_files(stored: int, folder: Path) -> None:
    """The key's column in a folder for each variant, all columns in none: no way reads the others to find."""
    for variant in VARIANTS:
        (folder / variant).mkdir()
    order = np.random.default_rng(stored).permutation(stored)
    for number, at in enumerate(range(0, stored, FILE_ROWS)):
        keys = text_keys(order[at : at + FILE_ROWS]).sort_by("Id")
        for variant, options in VARIANTS.items():
            pq.write_table(keys, folder / variant / f"rows-{number}.parquet", **WRITTEN, **options)


def text_keys(numbers: np.ndarray) -> pa.Table:
    """Twelve digits far apart: keys without gaps would take hardly a byte each."""
    numbers = (numbers.astype(np.uint64) * SPREAD % np.uint64(10**12)).astype(np.int64)
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 12, "0")
    return pa.table({"Id": pc.binary_join_element_wise("00Q", digits, "")})


def files_of(folder: Path, variant: str = PLAIN) -> list[str]:
    """Its files, in the order of their numbers."""
    count = len(list((folder / variant).iterdir()))
    return [str(folder / variant / f"rows-{number}.parquet") for number in range(count)]


def size_of(folder: Path, variant: str = PLAIN) -> int:
    """Bytes of the variant's files."""
    return sum(Path(file).stat().st_size for file in files_of(folder, variant))


def batch_of(stored: int, sent: int, number: int = 0) -> pa.Table:
    return text_keys(keys_of_batch(Case(stored, sent), number, np.random.default_rng(sent + number)))


def waiting(*rounds: Sequence[int]) -> dict[str, float]:
    """What rounds of reads wait for on an object store, each of so many bytes, sixteen at once."""
    found = {"requests": sum(map(len, rounds)), "mib": round(sum(map(sum, rounds)) / 2**20, 2)}
    for request_seconds in REQUEST_SECONDS:
        storage = SimulatedStorage(Prices(request_seconds))
        storage.replace("stored", bytes(max(map(max, filter(None, rounds)))))
        with ThreadPoolExecutor(AT_ONCE) as pool, storage.measured() as measured:
            for sizes in rounds:
                list(pool.map(functools.partial(storage.read, "stored", 0), sizes))
        found[f"seconds_at_{request_seconds * 1000:.0f}_ms"] = round(measured["waiting_seconds"], 2)
    return found


def requests_for(blocks: np.ndarray, size: int) -> list[int]:
    """Bytes of the requests for blocks: neighbours in one, none larger than a piece."""
    lengths = [len(part) * size for part in np.split(blocks, np.flatnonzero(np.diff(blocks) > 1) + 1)]
    return [min(PIECE_BYTES, length - at) for length in lengths for at in range(0, length, PIECE_BYTES)]
