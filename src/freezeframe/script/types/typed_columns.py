"""Types of text columns: declared ones first, then inferred ones."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from freezeframe.script.types.inference import INFERENCE, ColumnRule, Reading
from freezeframe.script.types.text_values import UTC_TIMESTAMP, exact_values, naive_as_utc
from freezeframe.store.schema.schema_evolution import is_undecided

_LONGEST_INTEGER = pa.decimal128(38, 0)


@dataclass(frozen=True, slots=True)
class KnownTypes:
    """What is known of a stream's columns: the ``stored`` types, else the ``declared`` ones."""

    stored: pa.Schema | None = None
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)

    def rule(self, name: str, otherwise: tuple[Reading, ...] = INFERENCE.ways) -> ColumnRule:
        """How a column of text is read. A type is taken only if every value of the column is exact in it.

        Args:
            name: the column.
            otherwise: the ways for values that are not exact in a stored type, or of no known one.
        """
        place = -1 if self.stored is None else self.stored.get_field_index(name)
        if self.stored is not None and place >= 0:
            known = self.stored.field(place)
            if not is_undecided(known) and not pa.types.is_null(known.type):
                # Values that do not fit the stored type are kept as read: the update then
                # refuses or widens, and names the rows.
                return ColumnRule((exact_reading(known.type), *otherwise), known.type)
        if name in self.declared:
            return declared_rule(self.declared[name])
        return ColumnRule(otherwise, INFERENCE.kind_without_values)

    def table(self, text: pa.Table) -> pa.Table:
        """The columns in the known types, others as inferred."""
        return pa.table({name: self.rule(name).whole(text.column(name)) for name in text.column_names})


def typed_columns(text: pa.Table, stored: pa.Schema | None) -> pa.Table:
    """The columns in the types of ``stored`` where every value is exact in them, else as inferred."""
    return KnownTypes(stored).table(text)


def declared_rule(kind: pa.DataType) -> ColumnRule:
    """How a column of text is read whose type is declared; integers of more than 64 bits are decimals."""
    ways = [exact_reading(kind)]
    if kind == UTC_TIMESTAMP:
        ways.append(Reading(kind, naive_as_utc))
    if pa.types.is_integer(kind):
        ways.append(exact_reading(_LONGEST_INTEGER))
    return ColumnRule(tuple(ways), kind)


def exact_reading(kind: pa.DataType) -> Reading:
    """The way to read text as values of a type, each of them exact."""
    return Reading(kind, functools.partial(exact_values, kind=kind))
