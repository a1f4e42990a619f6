"""Parquet in, rows out: what the engine's tests share."""

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freezeframe.engine.protocol import MergeTask
from freezeframe.log.format.schema import arrow_to_delta


class Bench:
    """A folder in which tables are laid down, merged by the engine and read back."""

    def __init__(self, engine, folder):
        self.engine = engine
        self.folder = folder
        self.numbers = itertools.count()

    def new(self, name="out"):
        return str(self.folder / f"{name} {next(self.numbers)}")

    def file(self, table):
        path = self.new("in [x] %20") + ".parquet"
        pq.write_table(table, path)
        return path

    def task(self, stored, batch, *, key=(), target=None, **options):
        target = target or (
            batch.schema if stored is None else pa.unify_schemas([stored.schema, batch.schema])
        )
        nothing = {"type": "struct", "fields": []}
        return MergeTask(
            stored=() if stored is None else (self.file(stored),),
            stored_schema=nothing if stored is None else arrow_to_delta(stored.schema),
            batch=(self.file(batch),),
            batch_schema=arrow_to_delta(batch.schema),
            target_schema=arrow_to_delta(target),
            key=tuple(key),
            **({"output": self.new()} if "where" in options else {}),
            **options,
        )

    def merge(self, stored, batch, **options):
        """The result and the rows that were written."""
        task = self.task(stored, batch, **options)
        result = self.engine.merge(task)
        return result, self.rows(task.output, result.files)

    def rows(self, output, files):
        return [row for name in files for row in pq.read_table(f"{output}/{name}").to_pylist()]


@pytest.fixture(scope="session")
def bench(spark_engine, tmp_path_factory):
    """The run's engine with a folder of its own."""
    return Bench(spark_engine, tmp_path_factory.mktemp("bench"))


def counts(result):
    return (result.inserted, result.updated, result.unchanged, result.deleted)
