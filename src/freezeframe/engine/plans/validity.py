"""Validity periods (``scd2``) as columns of a merge's plan: close the old row, open the new one.

A row has the period from ``valid_from`` (included) to ``valid_to`` (not included, null for a row that
holds now). Rows of the result are carried as an array for each key, because a key that changes has two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it

from freezeframe.engine.protocol.table_engine import Validity

_ROWS = "rows"


@dataclass(frozen=True, slots=True)
class PeriodColumns:
    """Positions of the two period columns in the target, and the times of the merge."""

    validity: Validity
    valid_from: int
    valid_to: int

    @classmethod
    def of(cls, validity: Validity, names: Sequence[str]) -> PeriodColumns:
        """The columns of a target with these names."""
        return cls(validity, names.index(validity.valid_from), names.index(validity.valid_to))

    @property
    def is_closed(self) -> Column:
        """Whether a stored row is of the past already."""
        return F.col(f"o{self.valid_to}").isNotNull()

    def versions(self, results: Sequence[Column], *, changed: Column, ended: Column) -> Column:
        """The rows that a key leads to: as it was, closed, where it ``changed``; and as it is now.

        ``results`` are the values now, in the target's order; where the key ``ended``, they are the old ones.
        """
        moment = F.timestamp_micros(F.lit(self.validity.moment_us))
        since = F.timestamp_micros(F.lit(self.validity.since_us))
        was_from = F.coalesce(F.col(f"o{self.valid_from}"), since)
        is_new = F.col("stored").isNull() | changed
        now = self._row(results, F.when(is_new, moment).otherwise(was_from), F.when(ended, moment))
        before = self._row([F.col(f"o{index}") for index in range(len(results))], was_from, moment)
        return F.when(changed, F.array(before, now)).otherwise(F.array(now)).alias(_ROWS)

    def _row(self, values: Sequence[Column], valid_from: Column, valid_to: Column) -> Column:
        period = {self.valid_from: valid_from, self.valid_to: valid_to}
        return F.struct(*(period.get(index, value).alias(f"r{index}") for index, value in enumerate(values)))


def add_closed_rows(joined: DataFrame, closed: DataFrame, fate: int, width: int) -> DataFrame:
    """The joined rows and the closed ones, which have the ``fate`` and stay as they are."""
    row = F.struct(*(F.col(f"o{index}").alias(f"r{index}") for index in range(width)))
    past = closed.select(
        F.lit(fate).alias("fate"),
        F.lit(None).cast("int").alias("nth"),
        F.lit(None).cast("boolean").alias("has_null_key"),
        F.lit(False).alias("is_live"),  # noqa: FBT003 - an SQL literal
        F.array(row).alias(_ROWS),
    )
    return joined.unionByName(past)


def with_periods(joined: DataFrame, width: int) -> DataFrame:
    """Each row of each key by itself, under ``r0 … rn``."""
    one = joined.select(F.explode(_ROWS).alias("row"))
    return one.select(*(F.col("row").getField(f"r{index}").alias(f"r{index}") for index in range(width)))
