"""Histograms: ranges of equal width, or the most frequent values (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.engine.frames.python_values import moment_text, python_values
from freezeframe.service.base.json_values import json_value

BARS_MAX = 12
FREQUENT_MAX = 8
_LABEL_LENGTH_MAX = 60


@dataclass(frozen=True, slots=True)
class Bar:
    """How many values lie from ``low`` to ``high``; of a single value both are that value."""

    low: Any
    high: Any
    count: int


def distribution(column: pa.ChunkedArray) -> tuple[Bar, ...]:
    """Histogram of the non-null values; empty for types that have neither order nor equality.

    Numbers and times of many values have ranges of equal width in order; all else has its most
    frequent values, the most frequent first.
    """
    kind = column.type
    if kinds.is_nested(kind) or kinds.is_null(kind) or kinds.is_binary(kind):
        return ()
    values = column.drop_null()
    if kinds.is_floating(kind):
        values = values.filter(pc.is_finite(values))
    if not len(values):
        return ()
    if _has_width(kind) and pc.count_distinct(values).as_py() > FREQUENT_MAX:
        return _ranges(values)
    counted = pc.value_counts(values)
    counts = counted.field("counts")
    first = pc.sort_indices(counts, sort_keys=[("", "descending")])[:FREQUENT_MAX]
    found = counted.take(first)
    labels = map(_label, python_values(found.field("values"), moment_text))
    pairs = zip(labels, found.field("counts").to_pylist(), strict=True)
    return tuple(Bar(label, label, count) for label, count in pairs)


def _has_width(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind) or kinds.is_temporal(kind)
    )


def _ranges(values: pa.ChunkedArray) -> tuple[Bar, ...]:
    kind = values.type
    if not (kinds.is_integer(kind) or kinds.is_temporal(kind)):
        numbers = values.cast(pa.float64(), safe=False).to_numpy()
        return tuple(_count(numbers, lambda edge: json_value(float(edge))))
    whole = values.cast(pa.int32()).cast(pa.int64()) if kinds.is_date(kind) else values.cast(pa.int64())
    base = int(pc.min(whole).as_py())
    # Distances from the smallest are exact where the numbers themselves are beyond a float's 2^53.
    distances = whole.to_numpy().astype(np.uint64) - np.array(base).astype(np.uint64)
    back = pa.int32() if kinds.is_date(kind) else pa.int64()
    last = base + int(distances.max())

    def told(edge: float) -> Any:
        (value,) = python_values(pa.array([min(base + int(edge), last)], back).cast(kind), moment_text)
        return json_value(value)

    return tuple(_count(distances.astype(np.float64), told))


def _count(numbers: npt.NDArray[np.float64], told: Callable[[float], Any]) -> Iterator[Bar]:
    low, high = float(numbers.min()), float(numbers.max())
    try:
        counts, edges = np.histogram(numbers, bins=BARS_MAX, range=(low, high))
    except ValueError:  # numbers so close together, or so far apart, that no ranges lie between them
        counts, edges = np.array([len(numbers)]), np.array([low, high])
    ends = [told(edge) for edge in edges]
    for place, count in enumerate(counts):
        yield Bar(ends[place], ends[place + 1], int(count))


def _label(value: Any) -> Any:
    told = json_value(value)
    if isinstance(told, str) and len(told) > _LABEL_LENGTH_MAX:
        return told[:_LABEL_LENGTH_MAX] + "…"
    return told
