"""An index of keys, tried and not built: a hash of 64 bits and a row's place, in sorted runs.

`benchmarks/key_index.py` asks it the same questions as the scan of keys. A hash of several rows leads to
several places, so who uses them compares the keys there. The newest entries come as small runs, which are
joined eight at a time, as the product joins files.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from freezeframe.storage import LocalStorage
from freezeframe.store.table.reader import LiveFile
from freezeframe.store.updates.plan import FILES_PER_SIZE_MAX, FileRule, choose

ENTRY = np.dtype([("hash", "<u8"), ("place", "<u8")])
FILE_SHIFT = 32
"""A place is the number of a file, and below so many bits the number of a row in it."""


def hashes(keys: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """64 bits for each key."""
    keys = pa.table({"key": keys})
    return duckdb.sql("select hash(key) as hash from keys").to_arrow_table()["hash"].to_numpy()


def run_of(keys: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Entries in the order of their hashes."""
    entries = np.empty(len(keys), ENTRY)
    order = np.argsort(keys, kind="stable")
    entries["hash"], entries["place"] = keys[order], places[order]
    return entries


def places_of(entries: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The places of all hashes that are wanted."""
    wanted = np.sort(wanted)
    first = np.searchsorted(entries["hash"], wanted)
    # A hash with a second row has it next to the first: hardly ever, so a loop until none has one more.
    found, at = [], first
    while len(wanted):
        is_here = at < len(entries)
        at, wanted = at[is_here], wanted[is_here]
        is_same = entries["hash"][at] == wanted
        at, wanted = at[is_same], wanted[is_same]
        found.append(entries["place"][at])
        at = at + 1
    return np.concatenate([*found, np.empty(0, np.uint64)])


def blocks_of(entries: np.ndarray, wanted: np.ndarray, block_bytes: int) -> np.ndarray:
    """Numbers of the blocks of a run's file that have to be read for the hashes; ascending."""
    at = np.searchsorted(entries["hash"], np.sort(wanted))
    return np.unique(np.minimum(at, len(entries) - 1) * ENTRY.itemsize // block_bytes)


def forget(path: Path) -> None:
    """Take a file out of this machine's memory, so that the next reader meets the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def upkeep(stored: int, sent: int, commits: int, row_bytes: int, folder: Path) -> dict[str, object]:
    """What the index writes with each of so many commits, and how many runs a search then asks.

    Rows that a commit moves are its own and those of files that the product's own rule writes anew: the
    places of all of them are new. An index that is joined keeps the entry of the later run.
    """
    storage, source = LocalStorage(folder), np.random.default_rng(stored)
    runs: list[np.ndarray] = []
    seconds, processor, written, moved_rows, asked = [], [], 0, [], []
    for number, moved in enumerate(itertools.islice(_moved(stored, sent, row_bytes), commits)):
        keys = source.integers(0, 2**63, moved).astype(np.uint64)
        began, started = time.perf_counter(), time.process_time()
        runs.append(run_of(keys, np.arange(moved, dtype=np.uint64)))
        runs = _joined(runs)
        storage.put_if_absent(f"{number}.run", runs[-1].tobytes())
        written += runs[-1].nbytes
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - started)
        moved_rows.append(moved)
        asked.append(len(runs) + 1)  # and the large one that was there before
    return {
        "commits": commits,
        "rows_moved_a_commit": round(float(np.mean(moved_rows))),
        "mib_written_a_commit": round(written / commits / 2**20, 2),
        "seconds_a_commit": round(float(np.mean(seconds)), 4),
        "processor_seconds_a_commit": round(float(np.mean(processor)), 4),
        "most_seconds": round(max(seconds), 3),
        "runs_asked": round(float(np.mean(asked)), 1),
    }


def _moved(stored: int, sent: int, row_bytes: int) -> Iterator[int]:
    """For each commit of random keys, nine in ten known, how many rows are written, by the product's rule."""
    rule = FileRule(vectors_from_bytes=2 * 1024 * 1024, is_plain=False)
    names = itertools.count()
    files = [LiveFile(str(next(names)), stored * row_bytes, stored)]
    while True:
        live = sum(file.rows - file.deleted for file in files)
        known = sent * 9 // 10
        touched = {file.path: (file.rows - file.deleted) * known // live for file in files}
        choices = choose(files, touched, rule)
        gone = [choice.file for choice in choices if choice.fate == "rewritten"]
        moved = sent + sum(file.rows - file.deleted - touched[file.path] for file in gone)
        files = [
            LiveFile(file.path, file.size, file.rows, file.deleted + touched[file.path])
            for file in files
            if file not in gone
        ]
        files.append(LiveFile(str(next(names)), moved * row_bytes, moved))
        yield moved


def _joined(runs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The runs, or fewer: the last ones are joined while there are eight of about the size of the last."""
    runs = list(runs)
    while len(alike := list(itertools.takewhile(lambda run: len(run) <= 2 * len(runs[-1]), runs[::-1]))) >= (
        FILES_PER_SIZE_MAX
    ):
        whole = np.concatenate(alike[::-1])
        # Runs that are sorted each: a stable sort finds them and only merges.
        runs[-len(alike) :] = [whole[np.argsort(whole["hash"], kind="stable")]]
    return runs
