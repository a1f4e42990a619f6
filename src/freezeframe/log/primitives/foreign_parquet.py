"""Parquet files of any writer, with dates and times as Spark 4.1 reads them.

Spark 2, and later versions in the mode LEGACY, write dates and times before 1582 in the hybrid calendar
(Julian until 4 October 1582, then Gregorian), and times before 1900 by offsets that `java.util.TimeZone`
gives; the footer says so. They become the dates and times of the proleptic Gregorian calendar that show
the same year, month, day, hour, minute and second. A time of the type INT96 is an instant; nanoseconds
are cut to microseconds.
"""

from __future__ import annotations

import importlib.util
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from freezeframe.errors import SetupError
from freezeframe.nested_types import parts

_Numbers = npt.NDArray[np.int64]
Leaf = tuple[str, ...]

_SECOND, _DAY = 1_000_000, 86_400_000_000
_FIRST_GREGORIAN_DAY = -141_427  # 15 October 1582
_FIRST_DAY = -719_164  # 1 January of the year 1 in the Julian calendar
_YEAR_ZERO = 719_470  # days from 1 March of the year 0 in the Julian calendar to 1970
_FIRST_EQUAL_TIME = -2_208_988_800 * _SECOND  # from 1900 on all zones are the same in both calendars
_OFFSET = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?")
_ZONES = "julian-gregorian-rebase-micros.json"
_PER_UNIT = {"ms": 1000, "us": 1}


@dataclass(frozen=True, slots=True)
class Calendar:
    """What a Parquet footer says about its dates and times."""

    is_old: bool
    is_old_int96: bool
    zone: str

    @classmethod
    def of(cls, metadata: Mapping[bytes, bytes] | None) -> Calendar:
        """Return the calendar of a footer's key-value metadata.

        A footer without Spark's version has none to rebase, as by Spark's own default. One of Spark 2
        does not name a zone; UTC is taken, where Spark takes the zone of its machine.
        """
        found = metadata or {}
        version = found.get(b"org.apache.spark.version")
        if version is None:
            return cls(is_old=False, is_old_int96=False, zone="UTC")
        return cls(
            version < b"3.0.0" or b"org.apache.spark.legacyDateTime" in found,
            version < b"3.1.0" or b"org.apache.spark.legacyINT96" in found,
            found.get(b"org.apache.spark.timeZone", b"UTC").decode(errors="replace"),
        )


class ForeignParquetFile(pq.ParquetFile):  # type: ignore[misc]  # pyarrow ships no types
    """A Parquet file whose rows and schema have dates and times as Spark reads them."""

    def __init__(self, source: Any, **options: Any) -> None:
        super().__init__(source, coerce_int96_timestamp_unit="us", **options)
        self._int96: frozenset[Leaf] = frozenset()
        columns = self.metadata.schema
        is_int96 = [columns.column(index).physical_type == "INT96" for index in range(len(columns))]
        if any(is_int96):  # of the schema as it is without them
            leaves = (path for field in self.schema_arrow for path, _ in parquet_leaves(field))
            self._int96 = frozenset(path for path, found in zip(leaves, is_int96, strict=False) if found)
        self._calendar = Calendar.of(self.metadata.metadata)
        self._is_plain = not (self._int96 or self._calendar.is_old)

    @property
    def has_old_times(self) -> bool:
        """Whether dates or times may be of the old calendar, so that the footer's bounds are not theirs."""
        return self._calendar.is_old or (self._calendar.is_old_int96 and bool(self._int96))

    @property
    def schema_arrow(self) -> pa.Schema:
        """The columns; those of the type INT96 are in UTC."""
        return self._converted_schema(super().schema_arrow)

    def iter_batches(self, *args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """Return the rows in batches, as of ``pq.ParquetFile``."""
        batches = super().iter_batches(*args, **options)
        return batches if self._is_plain else map(self._converted, batches)

    def read(self, *args: Any, **options: Any) -> pa.Table:
        """Return the rows, as of ``pq.ParquetFile``."""
        return self._converted_table(super().read(*args, **options))

    def read_row_groups(self, *args: Any, **options: Any) -> pa.Table:
        """Some of the rows, as of ``pq.ParquetFile``."""
        return self._converted_table(super().read_row_groups(*args, **options))

    def read_row_group(self, *args: Any, **options: Any) -> pa.Table:
        """Some of the rows, as of ``pq.ParquetFile``."""
        return self._converted_table(super().read_row_group(*args, **options))

    def _converted_table(self, table: pa.Table) -> pa.Table:
        if self._is_plain or not table.num_columns:
            return table
        batches = map(self._converted, table.to_batches())
        return pa.Table.from_batches(batches, self._converted_schema(table.schema))

    def _converted_schema(self, schema: pa.Schema) -> pa.Schema:
        if not self._int96:
            return schema
        return pa.schema([self._in_utc(field, (field.name,)) for field in schema], schema.metadata)

    def _in_utc(self, field: pa.Field, path: Leaf) -> pa.Field:
        """Return the field with its leaves of the type INT96 in UTC."""
        parts = [self._in_utc(part, (*path, name)) for name, part in _parts(field.type)]
        kind = _with_parts(field.type, parts) if parts else field.type
        return field.with_type(pa.timestamp("us", "UTC") if path in self._int96 else kind)

    def _converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        schema = self._converted_schema(batch.schema)
        columns = [
            self._column(array, field.type, (field.name,))
            for array, field in zip(batch.columns, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _column(self, array: pa.Array, kind: pa.DataType, path: Leaf) -> pa.Array:
        """Return the values of a field in its type ``kind``."""
        parts = _parts(kind)
        if not parts:
            is_old = self._calendar.is_old_int96 if path in self._int96 else self._calendar.is_old
            array = array.cast(kind) if path in self._int96 else array
            if is_old and kinds.is_date32(kind):
                return _renumbered(array, pa.int32(), _FIRST_GREGORIAN_DAY, gregorian_days)
            if is_old and kinds.is_timestamp(kind) and kind.tz and kind.unit in _PER_UNIT:
                per = _PER_UNIT[array.type.unit]
                return _renumbered(
                    array,
                    pa.int64(),
                    _FIRST_EQUAL_TIME // per,
                    lambda times: gregorian_times(times * per, self._calendar.zone) // per,
                )
            return array
        if kinds.is_struct(kind):
            found = [array.field(index) for index in range(kind.num_fields)]
        else:
            found = [array.keys, array.items] if kinds.is_map(kind) else [array.values]
        columns = [
            self._column(values, part.type, (*path, name))
            for values, (name, part) in zip(found, parts, strict=True)
        ]
        fields = [part for _, part in parts]
        if kinds.is_struct(kind):
            return pa.StructArray.from_arrays(columns, fields=fields, mask=array.is_null())
        values = pa.StructArray.from_arrays(columns, fields=fields) if kinds.is_map(kind) else columns[0]
        own = array.buffers()[: kind.num_buffers]
        return pa.Array.from_buffers(kind, len(array), own, array.null_count, array.offset, [values])


def gregorian_days(days: _Numbers) -> _Numbers:
    """Convert days since 1970 from the hybrid calendar to the proleptic Gregorian one."""
    return np.where(days < _FIRST_GREGORIAN_DAY, days + _shift(days), days)


def gregorian_times(times: _Numbers, zone: str) -> _Numbers:
    """Convert microseconds since 1970 in a zone from the hybrid calendar to the proleptic Gregorian one."""
    offset, shift, switches, shifts = _zone(zone)
    day = (times + offset) // _DAY
    found = times + np.where(day < _FIRST_GREGORIAN_DAY, _shift(day) * _DAY, 0) + shift
    if not len(switches):
        return found
    by_table = times + shifts[np.maximum(np.searchsorted(switches, times, side="right") - 1, 0)]
    return np.where(times < switches[0], found, by_table)


def _shift(days: _Numbers) -> _Numbers:
    """Return the days to add to a Julian date to get the Gregorian date with the same day, month and year."""
    year: _Numbers = (4 * (days + _YEAR_ZERO) + 3) // 1461  # it begins in March
    return 2 - year // 100 + year // 400


@lru_cache(maxsize=64)
def _zone(zone: str) -> tuple[int, int, _Numbers, _Numbers]:
    """Return a zone's offset and shift before the year 1, and the moments and shifts of its later changes.

    A name that Java does not know is UTC, as for `java.util.TimeZone`.
    """
    none = np.empty(0, np.int64)
    if match := _OFFSET.fullmatch(zone):
        hours, minutes = int(match[2]), int(match[3] or 0)
        is_known = hours < 24 and minutes < 60  # noqa: PLR2004 - of a day and of an hour
        offset = (hours * 60 + minutes) * 60 * _SECOND * (-1 if match[1] == "-" else 1)
        return offset if is_known else 0, 0, none, none
    record = None if zone in {"UTC", "GMT", "Z"} else _zones().get(zone)
    if record is None:
        return 0, 0, none, none
    switches, shifts = (np.array(record[name], np.int64) * _SECOND for name in ("switches", "diffs"))
    return int(_FIRST_DAY * _DAY - switches[0]), int(shifts[0] - 2 * _DAY), switches, shifts


@lru_cache(maxsize=1)
def _zones() -> Mapping[str, Mapping[str, Sequence[int]]]:
    """Return Spark's table of the differences between the calendars, by zone and moment."""
    package = importlib.util.find_spec("pyspark")  # it is found, not imported
    folders = [] if package is None else package.submodule_search_locations or []
    for jar in (jar for folder in folders for jar in Path(folder).glob("jars/spark-*sql*.jar")):
        with zipfile.ZipFile(jar) as content:
            if _ZONES in content.namelist():
                return {record["tz"]: record for record in json.loads(content.read(_ZONES))}
    raise SetupError(
        "Times of the old calendar cannot be read.",
        cause=f"No jar of the installed PySpark has {_ZONES}, by which Spark reads them.",
        remedy="Install PySpark with its jars, or have the file written again by Spark 3 or later.",
    )


def _renumbered(array: pa.Array, numbers: pa.DataType, first_equal: int, change: Any) -> pa.Array:
    found = array.view(numbers)
    least = pc.min(found).as_py()
    if least is None or least >= first_equal:
        return array
    values = change(found.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values.astype(numbers.to_pandas_dtype()), mask=mask).view(array.type)


def parquet_leaves(field: pa.Field, inside: Leaf = ()) -> Iterator[tuple[Leaf, pa.DataType]]:
    """Yield the leaf columns of a Parquet file that hold a field, in their order, as PyArrow names them."""
    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    path = (*inside, field.name)
    parts = _parts(kind)
    for name, part in parts:
        yield from parquet_leaves(part.with_name(name), path)
    if not parts:
        yield path, kind


def _parts(kind: pa.DataType) -> list[tuple[str, pa.Field]]:
    """Return the fields inside of a nested type, under the names that PyArrow gives them in Parquet."""
    names = ["key_value.key", "key_value.value"] if kinds.is_map(kind) else ["list.element"]
    if kinds.is_struct(kind):
        names = [field.name for field in kind]
    return list(zip(names, parts(kind), strict=False))


def _with_parts(kind: pa.DataType, parts: list[pa.Field]) -> pa.DataType:
    if kinds.is_struct(kind):
        return pa.struct(parts)
    if kinds.is_map(kind):
        return pa.map_(*parts)
    if kinds.is_fixed_size_list(kind):
        return pa.list_(*parts, kind.list_size)
    return (pa.large_list if kinds.is_large_list(kind) else pa.list_)(*parts)
