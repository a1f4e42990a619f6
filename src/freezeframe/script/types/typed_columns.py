"""Types of text columns: known ones first, then those that were asked for, then inferred ones."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from freezeframe.script.types.inference import DATES, INFERENCE, ColumnRule, Reading
from freezeframe.script.types.text_values import UTC_TIMESTAMP, naive_as_utc
from freezeframe.script.types.written_values import written_values
from freezeframe.store.schema.schema_evolution import is_undecided

_LONGEST_INTEGER = pa.decimal128(38, 0)


@dataclass(frozen=True, slots=True)
class KnownTypes:
    """What is known of a stream's columns, in this order.

    ``stored`` are the stream's own types, ``declared`` those of a catalog, ``requested`` those that the
    caller names, each of which must hold every value. Dates and times are looked for in the columns that
    ``dates`` names, in all for true.
    """

    stored: pa.Schema | None = None
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)
    requested: Mapping[str, pa.DataType] = field(default_factory=dict)
    dates: bool | frozenset[str] = False

    def rule(self, name: str, otherwise: tuple[Reading, ...] = INFERENCE.ways) -> ColumnRule:
        """How a column of text is read. A type is taken only if every value of the column is exact in it.

        Args:
            name: the column.
            otherwise: the ways for values that are not exact in a stored type, or of no known one.
        """
        kind = self._stored_type(name)
        if kind is None and name in self.declared:
            return declared_rule(self.declared[name])
        further = self._further(name, otherwise)
        if kind is None:
            return further
        # Values that do not fit the stored type are kept as read: the update then
        # refuses or widens, and names the rows.
        return ColumnRule((exact_reading(kind), *further.ways), kind)

    def is_required(self, name: str) -> bool:
        """Whether a column must be of the type that was asked for."""
        return name in self.requested and self._stored_type(name) is None and name not in self.declared

    def table(self, text: pa.Table) -> pa.Table:
        """The columns in the known types, others as inferred."""
        return pa.table({name: self.rule(name).whole(text.column(name)) for name in text.column_names})

    def _stored_type(self, name: str) -> pa.DataType | None:
        place = -1 if self.stored is None else self.stored.get_field_index(name)
        if self.stored is None or place < 0:
            return None
        known = self.stored.field(place)
        return None if is_undecided(known) or pa.types.is_null(known.type) else known.type

    def _further(self, name: str, otherwise: tuple[Reading, ...]) -> ColumnRule:
        if name in self.requested:
            kind = self.requested[name]
            return ColumnRule(_exact_readings(kind), kind)
        if self.dates is True or (self.dates and name in self.dates):
            return ColumnRule((*DATES, *otherwise), INFERENCE.kind_without_values)
        return ColumnRule(otherwise, INFERENCE.kind_without_values)


def typed_columns(text: pa.Table, stored: pa.Schema | None) -> pa.Table:
    """The columns in the types of ``stored`` where every value is exact in them, else as inferred."""
    return KnownTypes(stored).table(text)


def declared_rule(kind: pa.DataType) -> ColumnRule:
    """How a column of text is read whose type is declared; integers of more than 64 bits are decimals."""
    ways = _exact_readings(kind)
    if pa.types.is_integer(kind):
        ways = (*ways, exact_reading(_LONGEST_INTEGER))
    return ColumnRule(ways, kind)


def _exact_readings(kind: pa.DataType) -> tuple[Reading, ...]:
    naive = (Reading(kind, naive_as_utc),) if kind == UTC_TIMESTAMP else ()
    return (exact_reading(kind), *naive)


def exact_reading(kind: pa.DataType) -> Reading:
    """The way to read text as values of a type, each of them exact."""
    return Reading(kind, functools.partial(written_values, kind=kind))
