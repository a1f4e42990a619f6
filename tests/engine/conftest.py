"""Parquet in, rows out: what the engine's tests share."""

import itertools

import pyarrow.parquet as pq
import pytest

from freezeframe.engine.protocol import WindowTask
from freezeframe.log.format.schema import arrow_to_delta


class Bench:
    """A folder in which tables are laid down, searched by the engine and read back."""

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

    def window(self, table, where="true"):
        """The search for the rows of a table inside a window, for which no batch is given."""
        schema = arrow_to_delta(table.schema)
        return WindowTask((self.file(table),), schema, (), schema, schema, where)

    def rows(self, output, files):
        return [row for name in files for row in pq.read_table(f"{output}/{name}").to_pylist()]


@pytest.fixture(scope="session")
def bench(spark_engine, tmp_path_factory):
    """The run's engine with a folder of its own."""
    return Bench(spark_engine, tmp_path_factory.mktemp("bench"))
