"""The window of ``replace_where``: a caller's SQL predicate, checked before anything is written."""

from __future__ import annotations

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it

from freezeframe.engine.errors.spark_errors import cause_of
from freezeframe.engine.plans.columns import quote
from freezeframe.errors import InvalidOption, OutsideWindow

_ROWS_SHOWN_MAX = 3
_ROW_LENGTH_MAX = 200
# Spark's error classes for values that a predicate cannot handle.
_VALUE_ERRORS = ("CAST_", "ARITHMETIC_", "DIVIDE_", "NUMERIC_", "INVALID_", "CANNOT_PARSE_", "DATETIME_")


def inside(where: str) -> Column:
    """Whether the predicate is true for a row: false and null are both no."""
    return F.coalesce(F.expr(where), F.lit(False))  # noqa: FBT003 - an SQL literal


def require_inside(batch: DataFrame, where: str) -> None:
    """Check that the predicate is one, and that every row of the batch is inside the window.

    Raises:
        InvalidOption: it is not a predicate over the frame's columns, or fails on a value.
        OutsideWindow: rows are outside; the first are named.
    """
    try:
        outside = batch.where(~inside(where))
        count = outside.count()
    except AnalysisException as error:
        raise _invalid(where, error, batch) from error
    except PySparkException as error:
        if str(error.getCondition() or "").startswith(_VALUE_ERRORS):
            raise _invalid(where, error, batch) from error
        raise
    if count:
        rows = [row.asDict(recursive=True) for row in outside.limit(_ROWS_SHOWN_MAX).collect()]
        shown = "; ".join(str(row)[:_ROW_LENGTH_MAX] for row in rows)
        raise OutsideWindow(
            f"{count} rows of the batch are outside the window they are to replace: {where}.",
            cause=f"The first of them: {shown}.",
            remedy="Leave them out, or widen replace_where.",
            count=count,
        )


def _invalid(where: str, error: Exception, batch: DataFrame) -> InvalidOption:
    return InvalidOption(
        f"replace_where is not a predicate over the columns: {where}",
        cause=cause_of(error),
        remedy=f"The columns are {', '.join(quote(name) for name in batch.columns)}; case matters.",
    )
