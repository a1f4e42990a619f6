"""Data skipping: files that a predicate excludes by partition values and statistics.

The partition values and statistics of a file become an Arrow expression. Arrow's simplifier, which
also skips Parquet row groups, decides whether the predicate is satisfiable under it. Only files
with an unsatisfiable predicate are skipped; missing or unreadable statistics never skip a file.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import and_
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds
from pyarrow.fs import LocalFileSystem

from freezeframe.errors import InvalidOption, MissingColumn, TypeMismatch
from freezeframe.log.primitives import json_fields
from freezeframe.log.primitives.arrow import day, instant
from freezeframe.log.scan.sql_predicate import parse_predicate

Predicate: TypeAlias = Any  # str | pc.Expression | Sequence[Any]: pyarrow ships no types

Claims: TypeAlias = Mapping[str, pc.Expression]
"""What is known of a file's columns, by their names."""

_OPERATORS = ("=", "==", "!=", "<", ">", "<=", ">=", "in", "not in")  # those of pyarrow's filters
MILLISECOND_US = 1_000
_NAN_COLUMNS_MAX = 3
BOUNDED = (
    kinds.is_integer,
    kinds.is_floating,
    kinds.is_decimal,
    kinds.is_date,
    kinds.is_timestamp,
    kinds.is_string,
)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Partition values and statistics (JSON text) of one file.

    ``names`` maps a column of the table to its key in the statistics.
    """

    partition: Mapping[str, pa.Scalar]
    statistics: str | None


@cache
def always_true() -> pc.Expression:
    """Return the expression without information; a constant would import pandas with the module."""
    return pc.scalar(True)  # noqa: FBT003 - the value of the expression


def as_expression(where: Predicate, schema: pa.Schema) -> pc.Expression:
    """Return a predicate over columns of the schema as an Arrow expression.

    It is SQL text (``parse_predicate``), several SQL texts that must all hold, an expression, a tuple
    ``("a", ">", 1)``, a list of tuples that must all hold, or a list of such lists, one of which must hold.
    """
    if isinstance(where, pc.Expression):
        return where
    if isinstance(where, tuple) and where[1:2] and isinstance(where[1], str) and where[1] in _OPERATORS:
        where = [where]
    texts = [where] if isinstance(where, str) else where
    if isinstance(texts, Sequence) and texts and all(isinstance(text, str) for text in texts):
        return reduce(and_, (parse_predicate(text, schema) for text in texts))
    try:
        return pq.filters_to_expression(where)
    except (ValueError, TypeError, AttributeError) as error:
        remedy = "Pass SQL text, a pyarrow.compute expression, or tuples such as [('city', '=', 'Bern')]."
        raise InvalidOption(f"{where!r:.200} is not a predicate.", cause=str(error), remedy=remedy) from error


def columns_of(where: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the columns of the schema that the predicate refers to."""
    empty = schema.empty_table()
    try:
        empty.filter(where)
    except (pa.ArrowException, ValueError, TypeError) as error:
        if "FieldRef" not in str(error):
            raise TypeMismatch(
                f"The predicate {where!s:.200} cannot be applied to this table.",
                cause=str(error),
                remedy="Compare each column with values of its own type.",
            ) from error
        raise MissingColumn(
            f"The predicate {where!s:.200} names a column that the table does not have.",
            cause=str(error),
            remedy=f"The columns are {', '.join(schema.names)}.",
        ) from error
    return _needed(where, empty, schema.names)


def _needed(where: pc.Expression, empty: pa.Table, names: list[str]) -> list[str]:
    """Return the names that the predicate refers to.

    Arrow does not expose the columns of an expression, but binding fails where one is missing. Halves of the
    names are tried, because each trial costs as much as the table has columns.
    """
    without = set(names)
    try:
        empty.select([name for name in empty.column_names if name not in without]).filter(where)
    except (pa.ArrowException, ValueError, TypeError):
        if len(names) == 1:
            return names
        middle = len(names) // 2
        return _needed(where, empty, names[:middle]) + _needed(where, empty, names[middle:])
    return []


def keep(
    where: pc.Expression, schema: pa.Schema, files: Iterable[FileFacts], names: Mapping[str, str]
) -> list[bool]:
    """For each file, whether its rows may match; ``schema`` has only the predicate's columns."""
    return keep_claimed(where, schema, [claims_of(facts, schema, names) for facts in files])


def keep_claimed(where: pc.Expression, schema: pa.Schema, claims: Sequence[Claims]) -> list[bool]:
    """For each claim, whether the predicate is satisfiable under it.

    Bounds exclude NaN, and a file may hold NaN. Where NaN can satisfy the predicate, a second test
    uses NaN in place of the bounds.
    """
    kept = [False] * len(claims)
    for odd in _nan_cases(where, schema):
        known = [reduce(and_, {**claim, **odd}.values(), always_true()) for claim in claims]
        kept = [was or now for was, now in zip(kept, _satisfiable(where, schema, known), strict=True)]
    return kept


def _nan_cases(where: pc.Expression, schema: pa.Schema) -> list[Claims]:
    """Alternatives to the bounds of floating columns: every subset of them as NaN."""
    nan = {
        field.name: pc.field(field.name) == pc.scalar(pa.scalar(math.nan, field.type))
        for field in schema
        if kinds.is_floating(field.type)
    }
    met = _satisfiable(where, schema, list(nan.values())) if nan else []
    names = [name for name, is_met in zip(nan, met, strict=True) if is_met]
    if len(names) > _NAN_COLUMNS_MAX:
        return [dict.fromkeys(names, always_true())]  # no information: sound, and skips no file
    choices = itertools.product((False, True), repeat=len(names))
    return [
        {name: nan[name] for name, is_nan in zip(names, choice, strict=True) if is_nan} for choice in choices
    ]


def _satisfiable(where: pc.Expression, schema: pa.Schema, known: Sequence[pc.Expression]) -> list[bool]:
    # Lazy: the import loads pandas, which costs most of a second.
    import pyarrow.dataset as ds  # noqa: PLC0415 - see above

    format_ = ds.ParquetFileFormat()
    files = LocalFileSystem()
    fragments = [
        format_.make_fragment(str(index), files, partition_expression=claim)
        for index, claim in enumerate(known)
    ]
    kept = {
        int(fragment.path)
        for fragment in ds.FileSystemDataset(fragments, schema, format_, files).get_fragments(filter=where)
    }
    return [index in kept for index in range(len(known))]


def claims_of(facts: FileFacts, schema: pa.Schema, names: Mapping[str, str]) -> Claims:
    """Return the expressions implied by a file's partition values and statistics; they ignore NaN."""
    claims = {
        name: partition_claim(name, value) for name, value in facts.partition.items() if name in schema.names
    }
    if len(claims) == len(schema):
        return claims
    statistics = json_fields.statistics(facts.statistics)
    for field in schema:
        if statistics and field.name not in facts.partition:
            key = names.get(field.name, field.name)
            if _holds_only_nulls(key, statistics):
                claims[field.name] = pc.field(field.name).is_null()
            else:
                claims[field.name] = bound_claim(field.name, *_limits(field, key, statistics))
    return claims


def partition_claim(name: str, value: pa.Scalar) -> pc.Expression:
    """Return the expression implied by a partition value."""
    field = pc.field(name)
    return field == pc.scalar(value) if value.is_valid else field.is_null()


def value_bounds(
    field: pa.Field, key: str, statistics: str | None
) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """Minimum and maximum of a column in a file; None where unknown.

    ``key`` is the column's name in the statistics' JSON text. The bounds exclude nulls and NaN.
    """
    return _limits(field, key, json_fields.statistics(statistics))


def bound_claim(name: str, low: pa.Scalar | None, high: pa.Scalar | None) -> pc.Expression:
    """Return the expression implied by the bounds of a column without NaN; None is an unknown bound."""
    column = pc.field(name)
    claims = []
    if low is not None:
        claims.append((column >= pc.scalar(low)) | column.is_null())
    if high is not None:
        claims.append((column <= pc.scalar(high)) | column.is_null())
    return reduce(and_, claims, always_true())


def is_only_nulls(key: str, statistics: str | None) -> bool:
    """Return whether a file's statistics report only nulls in the column of that key."""
    return _holds_only_nulls(key, json_fields.statistics(statistics))


def _holds_only_nulls(key: str, statistics: Mapping[str, Any]) -> bool:
    nulls = _entry(statistics, "nullCount", key)
    return isinstance(nulls, int) and nulls == statistics.get("numRecords")


def _limits(
    field: pa.Field, key: str, statistics: Mapping[str, Any]
) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    if not any(is_kind(field.type) for is_kind in BOUNDED):
        return None, None
    low = _to_bound(_entry(statistics, "minValues", key), field.type)
    high = _to_bound(_entry(statistics, "maxValues", key), field.type)
    low, high = outwards(low, high, field.type)
    return (
        low if low is not None and low.is_valid else None,
        high if high is not None and high.is_valid else None,
    )


_SINGLE_ERROR, _SINGLE_LEAST = 2.0**-23, 2.0**-149
_MINUTE_US = 60_000_000
_WHOLE_MINUTES_US = 63_072_000_000_000  # from 1972 on offsets of all zones are whole minutes
_TIME_MAX = 2**63 - 1
_ROOM_US = _MINUTE_US + MILLISECOND_US


def outwards(low: Any, high: Any, kind: pa.DataType) -> tuple[Any, Any]:
    """Move bounds (scalars, arrays or None) outwards, as far as their texts may be from the values.

    A file keeps its bounds when its column is widened from float to double. There ``0.2`` stands for the
    float next to it, which is greater than the double 0.2. What is a float itself stays.
    Delta truncates times to milliseconds, and Delta 3 the offset of old times to minutes.
    """
    if kinds.is_float64(kind):
        return _moved(low, _around_single, pc.subtract), _moved(high, _around_single, pc.add)
    if kinds.is_timestamp(kind):
        least, most = _moved(low, _around_time, pc.subtract), _moved(high, _around_time, pc.add)
        return _moved(least, pc.cast, kind), most if most is None else pc.add(most, MILLISECOND_US).cast(kind)
    return low, high


def _moved(values: Any, move: Callable[[Any, Any], Any], how: Any) -> Any:
    return None if values is None else move(values, how)


def _around_single(values: Any, shift: Callable[[Any, Any], Any]) -> Any:
    is_single = pc.equal(pc.cast(pc.cast(values, pa.float32(), safe=False), pa.float64()), values)
    error = pc.add(pc.multiply(pc.abs(values), _SINGLE_ERROR), _SINGLE_LEAST)
    return pc.if_else(is_single, values, shift(values, error))


def _around_time(values: Any, shift: Callable[[Any, Any], Any]) -> Any:
    """Return microseconds, of an instant before 1972 moved by a minute; null at the ends of the type."""
    moments = values.cast(pa.int64())
    is_far = pc.or_(pc.less(moments, _ROOM_US - _TIME_MAX), pc.greater(moments, _TIME_MAX - _ROOM_US))
    near = pc.if_else(is_far, pa.scalar(None, pa.int64()), moments)
    if values.type.tz is None:
        return near
    return pc.if_else(pc.less(near, _WHOLE_MINUTES_US), shift(near, _MINUTE_US), near)


def _entry(statistics: Mapping[str, Any], group: str, key: str) -> Any:
    found = statistics.get(group)
    return found.get(key) if isinstance(found, Mapping) else None


def _to_bound(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    if value is None or isinstance(value, bool | Mapping):
        return None
    try:
        if kinds.is_timestamp(kind):
            return instant(str(value), kind)
        if kinds.is_date(kind):
            return day(value) if isinstance(value, str) else None
        if kinds.is_floating(kind):
            number = pa.scalar(float(value), kind)
            return None if math.isnan(number.as_py()) else number  # NaN is not a bound
        if isinstance(value, str) != kinds.is_string(kind):
            return None  # a bound of another type is unknown
        if kinds.is_string(kind) or (kinds.is_integer(kind) and isinstance(value, int)):
            return pa.scalar(value, kind)
        return pa.scalar(str(value)).cast(kind)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError):
        return None
