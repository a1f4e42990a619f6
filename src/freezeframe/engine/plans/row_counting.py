"""Row counts observed while files are written, without a second pass.

Spark reports such counts through a listener, and its Connect server waits 100 ms for it. A busy
server responds without them (SPARK-54279), and so does a plan with an empty counted part
(SPARK-54620). A query then counts the same rows: its input is immutable files, so the result is the
same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.observation import Observation as ConnectObservation

from freezeframe.engine.plans.columns import functions_of


class Counting:
    """Named counts over a frame, classic or Connect: write ``frame()``, then ask for ``counts()``."""

    def __init__(self, frame: DataFrame, **counts: Column) -> None:
        functions = functions_of(frame)
        self._rows = frame
        self._columns = [
            functions.coalesce(column, functions.lit(0)).alias(name) for name, column in counts.items()
        ]
        self._names = frozenset(counts)
        self._observation: Any = ConnectObservation() if isinstance(frame, ConnectFrame) else Observation()

    @classmethod
    def of_rows(cls, frame: DataFrame) -> Counting:
        """The number of rows, under the name ``rows``."""
        functions = functions_of(frame)
        return cls(frame, rows=functions.count(functions.lit(1)))

    def frame(self) -> DataFrame:
        """The frame to write, once, with the counts observed."""
        return self._rows.observe(self._observation, *self._columns)

    def read_metrics(self) -> Mapping[str, int] | None:
        """The counts after the frame was written; None if Spark did not report them."""
        told = self._observation.get
        if self._names - told.keys() or None in told.values():
            return None
        return {name: int(value) for name, value in told.items()}

    def counts(self) -> Mapping[str, int]:
        """The counts after the frame was written; computed from the rows if Spark did not report them."""
        return self.read_metrics() or self.query()

    def query(self) -> Mapping[str, int]:
        """The counts by a separate query, for a frame that is not written."""
        row = self._rows.agg(*self._columns).collect()[0]
        return {name: int(row[name]) for name in self._names}
