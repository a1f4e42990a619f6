"""Counts of rows taken on their way into files, so that no second look at the rows is needed.

Spark tells such counts through a listener of its own, and its Connect server waits 100 ms for it:
a busy server answers without them (SPARK-54279), and so does a plan whose counted part turned out
to be empty (SPARK-54620). Then the same rows are counted by a query: the input is files that do
not change, so the answer is the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.observation import Observation


class Counting:
    """Named counts over a frame: write ``frame()``, then ask for ``counts()``."""

    def __init__(self, frame: DataFrame, **counts: Column) -> None:
        self._rows = frame
        self._columns = [F.coalesce(column, F.lit(0)).alias(name) for name, column in counts.items()]
        self._names = frozenset(counts)
        self._observation = Observation()

    def frame(self) -> DataFrame:
        """The frame to write, once; what it leads to is counted."""
        # The declared type is the classic class; Connect's frame takes Connect's.
        return self._rows.observe(self._observation, *self._columns)  # type: ignore[arg-type]

    def counts(self) -> Mapping[str, int]:
        """The counts, once the frame was written; asked of the rows if Spark did not tell them."""
        told = self._observation.get
        if self._names - told.keys() or None in told.values():
            return self.asked()
        return {name: int(value) for name, value in told.items()}

    def asked(self) -> Mapping[str, int]:
        """The counts by a query of their own, for a frame that is not written."""
        row = self._rows.agg(*self._columns).collect()[0]
        return {name: int(row[name]) for name in self._names}
