"""Eight processes commit to a few tables at once, for a time; what was acknowledged must be there once."""

import json
import multiprocessing
import random
import shutil
import time
from collections import Counter
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake.exceptions import DeltaError
from tests.buckets import made_bucket
from tests.log.tables import commit_at_last

from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import Add, Metadata, Protocol, Txn, parse_line
from freezeframe.log.segments.commit import Committed
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import Upkeep
from freezeframe.script.tenants import storage_at
from freezeframe.settings import Settings

WRITERS, TABLES, ROUND_SECONDS = 8, 4, 100
SCHEMA = {"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}]}


def on_disk(folder, seed, ends, turns):
    """Rounds of the race on a local disk."""
    return _rounds(lambda number: str(folder / f"round-{number}"), seed, ends, turns, _write)


def in_bucket(folder, seed, ends, turns):
    """The same in a bucket of a server on this machine: each commit is a conditional put."""
    with made_bucket() as bucket:
        return _rounds(lambda number: f"s3://{bucket}/round-{number}", seed, ends, turns, _write)


def by_stock(folder, seed, ends, turns):
    """Beside it: delta-rs appends to tables of its own, in the same way and on the same disk."""
    return _rounds(lambda number: str(folder / f"round-{number}"), seed, ends, turns, _append)


def _rounds(root_of, seed, ends, turns, write):
    counts, wrong, number = Counter(), [], 0
    while number == 0 or (time.monotonic() + ROUND_SECONDS / 2 < ends and not wrong):
        root = root_of(number)
        with turns():
            for table in range(TABLES):
                _begin(root, f"t{table}", stock=write is _append)
            told = _race(write, root, seed + number, min(ROUND_SECONDS, max(5, ends - time.monotonic())))
        acknowledged = [item for found in told for item in found["acknowledged"]]
        wrong += _violations(root, acknowledged, stock=write is _append)
        counts.update(commits=len(acknowledged), conflicts=sum(item["conflicts"] for item in told), rounds=1)
        shutil.rmtree(root, ignore_errors=True)
        number += 1
    return dict(counts), wrong


def _begin(root, table, *, stock):
    if stock:
        deltalake.write_deltalake(f"{root}/{table}", pa.table({"n": pa.array([], pa.string())}))
        return
    log = DeltaLog(storage_at(root, Settings()), table)
    Transaction(log).commit([Protocol(1, 2), Metadata("id", json.dumps(SCHEMA))], "CREATE TABLE")


def _race(write, root, seed, seconds):
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(WRITERS), context.Queue()
    processes = [
        context.Process(target=_answer, args=(write, root, seed, item, seconds, start, results))
        for item in range(WRITERS)
    ]
    for process in processes:
        process.start()
    found = [results.get(timeout=seconds + 600) for _ in processes]
    for process in processes:
        process.join(60)
    if None in found:
        raise RuntimeError("A writer ended by an error.")
    return found


def _answer(write, root, seed, writer, seconds, start, results):
    found = None
    try:
        start.wait()
        found = write(root, random.Random(f"{seed}/{writer}"), writer, time.monotonic() + seconds)
    finally:
        results.put(found)  # whatever happened, so that nobody waits for it


def _write(root, chosen, writer, ends):
    storage = storage_at(root, Settings())
    logs = [DeltaLog(storage, f"t{table}") for table in range(TABLES)]
    acknowledged, conflicts, number = [], 0, 0
    while time.monotonic() < ends:
        table, name = chosen.randrange(TABLES), f"{writer}-{number}"
        # As a stream's table is kept.
        upkeep = Upkeep(checkpoint_interval=50, write_checksums=False)
        found, lost = commit_at_last(logs[table], [Add(f"{name}.parquet", 1), Txn(name, 1)], upkeep)
        if isinstance(found, Committed):
            acknowledged.append((table, found.version, name))
            conflicts += lost
        number += 1
    return {"acknowledged": acknowledged, "conflicts": conflicts}


def _append(root, chosen, writer, ends):
    acknowledged, conflicts, number = [], 0, 0
    while time.monotonic() < ends:
        table, name = chosen.randrange(TABLES), f"{writer}-{number}"
        try:
            deltalake.write_deltalake(f"{root}/t{table}", pa.table({"n": [name]}), mode="append")
            acknowledged.append((table, None, name))
        except DeltaError:
            conflicts += 1
        number += 1
    return {"acknowledged": acknowledged, "conflicts": conflicts}


def _violations(root, acknowledged, *, stock):
    """What is wrong between the acknowledgements and the tables: lost, doubled, or under another version."""
    wrong = []
    for table in range(TABLES):
        there = _stored_by_stock(root, table) if stock else _stored(root, table)
        mine = [(version, name) for place, version, name in acknowledged if place == table]
        lost = Counter(mine) - Counter(there)
        more = Counter(there) - Counter(mine)
        wrong += [f"lost: {name} of t{table}, acknowledged as {version}" for version, name in lost]
        wrong += [f"not acknowledged, or twice: {name} of t{table} at {version}" for version, name in more]
    return wrong


def _stored(root, table):
    """All commits of a table by its log's own files; none may be left out, and each holds one."""
    storage = storage_at(root, Settings())
    folder = f"t{table}/_delta_log"
    names = [item.name for item in storage.list_from(folder) if Path(item.name).suffix == ".json"]
    versions = [int(Path(name).stem) for name in names]
    assert versions == list(range(len(versions))), "the versions are not contiguous"
    found = []
    for version, name in zip(versions, names, strict=True):
        actions = map(parse_line, storage.read(f"{folder}/{name}").splitlines())
        found += [
            (version, action.path.removesuffix(".parquet")) for action in actions if isinstance(action, Add)
        ]
    assert len(found) == DeltaLog(storage, f"t{table}").update().count == len(versions) - 1
    return found


def _stored_by_stock(root, table):
    rows = deltalake.DeltaTable(f"{root}/t{table}").to_pyarrow_table()
    return [(None, name) for name in rows["n"].to_pylist()]
