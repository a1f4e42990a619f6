"""Spark at its worst: of the files that it says it wrote, some come late, twice, without rows, or never.

It answers as Spark does, with the counts of a window and the names of the files of its tasks. What its
workers do later they do without the process that asked, which may be dead by then; a power loss ends them.
"""

import io
from functools import partial

import pyarrow.parquet as pq

from freezeframe.engine.protocol import NOTHING, MergeResult
from freezeframe.log.format.schema import delta_to_arrow
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.diff.row_changes import compare_tables

FATES = ["written", "written", "written", "written", "late", "twice", "empty", "never"]
LATE_STEPS = 60


class Adversary(ArrowEngine):
    """Windows on a machine's disk; what becomes of each task's file follows from the machine's seed."""

    def __init__(self, storage, machine):
        super().__init__(storage)
        self._machine = machine

    def merge(self, task):
        if not task.output:
            return super().merge(task)
        target = delta_to_arrow(task.target_schema)
        old = self._rows(task.stored, task.stored_schema, target, task.deleted)
        new = self._arrived(self._rows(task.batch, task.batch_schema, target, NOTHING))
        counts = compare_tables(old, new, task.key).counts
        unchanged = len(new) - counts.inserted - counts.updated
        folder = task.output.removeprefix(self._storage.uri("")).lstrip("/")
        names = [self._carry_out(folder, number, new.slice(number, 1)) for number in range(len(new))]
        return MergeResult(
            counts.inserted,
            counts.updated,
            unchanged,
            counts.deleted,
            tuple(names),
            len(new),
        )

    def _arrived(self, rows):
        return rows

    def _carry_out(self, folder, number, rows):
        """A task, which writes a file of its own; its name."""
        random, name = self._machine.random, f"part-{number:05d}.parquet"
        fate, content = random.choice(FATES), io.BytesIO()
        pq.write_table(rows.slice(0, 0) if fate == "empty" else rows, content, store_schema=False)
        write = partial(self._machine.disk.replace, f"{folder}/{name}", content.getvalue())
        if fate in ("written", "twice", "empty"):
            write()
        if fate == "twice":  # the task is tried again, by a worker that nobody waits for
            again = partial(self._machine.disk.replace, f"{folder}/again-{name}", content.getvalue())
            self._machine.later(random.randrange(LATE_STEPS), again)
        if fate == "late":
            self._machine.later(random.randrange(LATE_STEPS), write)
        return name


class LosingSpark(Adversary):
    """The planted fault: it neither writes nor counts the last row."""

    def _arrived(self, rows):
        return rows.slice(0, len(rows) - 1)
