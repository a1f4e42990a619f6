"""Spark at its worst: of the files that its workers say they wrote, some come late, twice, empty, or never.

It answers as Spark does, with where keys and rows of windows are, and with what tasks say. What its workers
do later they do without the process that asked, which may be dead by then; a power loss ends them.
"""

import io
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.model.directory import StreamTable
from freezeframe.store.updates.file_merge import FileMerge

FATES = ["written", "written", "written", "written", "late", "twice", "empty", "never"]
LATE_STEPS = 60


class Worker:
    """The disk as tasks of Spark call it; what becomes of each new file follows from the machine's seed."""

    def __init__(self, machine):
        self._machine = machine

    def __getattr__(self, name):
        return getattr(self._machine.disk, name)

    def put_if_absent(self, name, content):
        random, fate = self._machine.random, self._machine.random.choice(FATES)
        whole = content if isinstance(content, bytes) else b"".join(content)
        if fate == "empty":
            rows = pq.read_table(io.BytesIO(whole))
            pq.write_table(rows.slice(0, 0), buffer := io.BytesIO(), store_schema=False)
            whole = buffer.getvalue()
        write = partial(self._machine.disk.replace, name, whole)
        if fate in ("written", "twice", "empty"):
            write()
        if fate == "twice":  # the task is tried again, by a worker that nobody waits for
            again = partial(self._machine.disk.replace, f"{name}-again.parquet", whole)
            self._machine.later(random.randrange(LATE_STEPS), again)
        if fate == "late":
            self._machine.later(random.randrange(LATE_STEPS), write)


class Adversary(ArrowEngine):
    """Searches and merges on a machine's disk."""

    def __init__(self, storage, machine):
        self._storage = storage
        self._machine = machine

    def rows_inside(self, task):
        """All rows are inside."""
        return tuple(np.arange(len(self._read(file))) for file in task.stored)

    def storage_of_tasks(self, storage):
        return storage

    def run(self, calls):
        """Searches as they are; merges by workers."""
        tasks = [getattr(call, "__self__", None) for call in calls]
        return [
            self._merge(task) if isinstance(task, FileMerge) else call()
            for task, call in zip(tasks, calls, strict=True)
        ]

    def _merge(self, task):
        worker = Worker(self._machine)
        batch = self._arrived(replace(task.batch, storage=worker))
        return replace(task, table=StreamTable(worker, task.table.table), batch=batch).run()

    def _arrived(self, batch):
        return batch

    def _read(self, file):
        name = file.removeprefix(self._storage.uri("")).lstrip("/")
        return pq.read_table(io.BytesIO(self._storage.read(name)))


class LosingSpark(Adversary):
    """The planted fault: its workers do not see the last row of a batch."""

    def _arrived(self, batch):
        rows = pa.concat_tables(batch.pieces(batch.schema.names))
        return replace(batch, rows=len(rows) - 1, files=(), table=rows.slice(0, len(rows) - 1))
