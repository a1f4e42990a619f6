"""The window of a replacement: a caller's SQL predicate, asked of Spark."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from freezeframe.engine.plans.columns import F, fit_column, quote, struct_type
from freezeframe.engine.plans.parquet_files import FILE, ROW, read_files
from freezeframe.engine.plans.python_tasks import collect
from freezeframe.engine.protocol import Positions, WindowTask
from freezeframe.engine.spark_errors import cause_of
from freezeframe.errors import CorruptData, InvalidOption, OutsideWindow

_ROWS_SHOWN_MAX = 3
_ROW_LENGTH_MAX = 200
# Spark's error classes for values that a predicate cannot handle.
_VALUE_ERRORS = ("CAST_", "ARITHMETIC_", "DIVIDE_", "NUMERIC_", "INVALID_", "CANNOT_PARSE_", "DATETIME_")


def inside(where: str) -> Column:
    """Return whether the predicate is true for a row: false and null are both no."""
    return F.coalesce(F.expr(where), F.lit(False))  # noqa: FBT003 - an SQL literal


def require_inside(batch: DataFrame, where: str) -> None:
    """Check that the predicate is one, and that every row of the batch is inside the window."""
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
            f"{count} rows of the batch are outside the window that they replace: {where}.",
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


def rows_inside(session: SparkSession, task: WindowTask) -> tuple[Positions, ...]:
    """Find the rows of the window; see `TableEngine.rows_inside`."""
    target = struct_type(task.target_schema)
    batch = read_files(session, task.batch, struct_type(task.batch_schema))
    require_inside(fit_frame(batch, task.batch_types or task.batch_schema, target), task.where)
    if not task.stored:
        return ()
    stored = read_files(session, task.stored, struct_type(task.stored_schema), with_places=True)
    fitted = fit_frame(stored, task.stored_schema, target, FILE, ROW)
    found = collect(fitted.where(inside(task.where)).select(FILE, ROW))
    files = _file_numbers(found[FILE], task.stored).to_numpy()
    rows = found[ROW].to_numpy()
    return tuple(np.sort(rows[files == number]) for number in range(len(task.stored)))


def _file_numbers(names: pa.ChunkedArray, files: Sequence[str]) -> pa.ChunkedArray:
    """Return the names that Spark tells as indexes into the files that it was asked to read."""
    known = pa.array([path.rpartition("/")[2] for path in files], pa.string())
    numbers = pc.index_in(names, value_set=known)
    if numbers.null_count:
        strange = names.filter(pc.is_null(numbers)).unique().to_pylist()
        raise CorruptData(
            f"Spark read files that it was not asked to read: {', '.join(map(str, strange))}.",
            remedy="Run the call again; nothing of it was written.",
        )
    return numbers


def fit_frame(frame: DataFrame, schema: Mapping[str, Any], target: StructType, *further: str) -> DataFrame:
    """Return the columns of ``target``, in its types, and some further ones; absent columns are null."""
    types = {field.name: field.dataType for field in struct_type(schema).fields}
    fitted = [
        fit_column(F.col(quote(field.name)), types[field.name], field.dataType)
        if field.name in types
        else F.lit(None).cast(field.dataType)
        for field in target.fields
    ]
    named = [column.alias(field.name) for column, field in zip(fitted, target.fields, strict=True)]
    return frame.select(*named, *further)
