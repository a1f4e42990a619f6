"""Checks of what a job would commit: conditions on the rows of a stream, and on its change.

A condition on rows has columns only (``Total IS NOT NULL``), and must be true for each row. One on the change
has numbers of it (``deleted <= 0.05 * rows``): ``inserted``, ``updated``, ``deleted``, ``rows``, aggregates
such as ``sum(Total)``, and with ``before.`` the rows and aggregates of before. A column of such a name stands
in backticks. Rows are read a batch at a time, and only the columns that a check names.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.log import Snapshot
from freezeframe.log.scan.sql_predicate import (
    COMPARISONS,
    EXPONENT_MAX,
    not_a_predicate,
    parse_condition,
    predicate_of,
)
from freezeframe.store.diff.tenant_diff import StreamDifference
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import DELETED, read_system_columns, stored_key
from freezeframe.store.table.reader import live_row_count, read_row_batches, row_columns

FAILING_MAX = 1000
"""Rows of a stream that fail a check and are kept, the first that are read."""
_COUNTS = ("inserted", "updated", "deleted", "unchanged")
_WORDS = {*_COUNTS, "rows"}
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_BEFORE = "before"
_AGGREGATES = {"sum", "avg", "min", "max", "count"}
_ARITHMETIC = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv}
# What a condition on rows may consist of.
_OF_ROWS = {
    *("Paren", "Not", "And", "Or", "EQ", "NEQ", "LT", "LTE", "GT", "GTE", "Between", "In", "Is", "Like"),
    *("Column", "Identifier", "Literal", "Null", "Boolean", "Neg", "HexString", "Cast", "DataType"),
}


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check that what a job would commit does not pass: why, and of a condition on rows some that fail."""

    stream: str
    check: str
    reason: str
    failing: pa.Table | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return stream, check and reason."""
        return {"stream": self.stream, "check": self.check, "reason": self.reason}


def require_checks(texts: Sequence[str]) -> None:
    """Refuse what cannot be a check of any stream; which columns it has, only the check of its rows knows."""
    for text in texts:
        node = parse_condition(text)
        if _is_of_change(node):
            _Numbers(text, lambda *_: Fraction(1)).truth(node)
        else:
            for one in node.walk():
                if type(one).__name__ not in _OF_ROWS:
                    raise not_a_predicate(text, f"{one.sql('spark')!r} is not supported.")


def failed_checks(
    difference: StreamDifference, counts: Counts, texts: Sequence[str]
) -> Iterator[FailedCheck]:
    """Yield the checks that the change of a stream does not pass.

    Conditions on the change of a stream that is new say nothing of it, unless they have aggregates only.

    Raises:
        InvalidOption, MissingColumn: a condition does not fit the stream's columns.
    """
    before, after = difference.before, difference.after
    assert after is not None  # noqa: S101 - a job drops no stream
    for text in texts:
        node = parse_condition(text)
        if not _is_of_change(node):
            yield from _failing_rows(difference.name, after, text, node)
        elif before is not None or not _compares(node):
            content = _Content(text, difference, counts)
            if _Numbers(text, content.number).truth(node) is not True:
                told = ", ".join(f"{name} = {_shown(value)}" for name, value in content.told.items())
                yield FailedCheck(difference.name, text, told)


def _failing_rows(stream: str, table: Snapshot, text: str, node: Any) -> Iterator[FailedCheck]:
    predicate = predicate_of(node, text, row_columns(table))
    named = [column.parts[0].name for column in node.find_all(_expressions().Column)]
    names = list(dict.fromkeys((*(stored_key(table.metadata) or ()), *named)))
    failing, count, kept = list[pa.Table](), 0, 0
    for batch in _live_batches(table, names):
        found = pa.Table.from_batches([batch]).filter(~predicate | predicate.is_null())
        count += len(found)
        if len(found) and kept < FAILING_MAX:
            failing.append(found.slice(0, FAILING_MAX - kept))
            kept += len(failing[-1])
    if count:
        reason = f"{count:,} of {live_row_count(table):,} rows"
        yield FailedCheck(stream, text, reason, pa.concat_tables(failing))


def _live_batches(table: Snapshot, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield these columns of the rows without a deletion flag."""
    if not read_system_columns(table.metadata).flags_deleted:
        yield from read_row_batches(table, names)
        return
    for batch in read_row_batches(table, list(dict.fromkeys((*names, DELETED)))):
        yield batch.filter(pc.invert(pc.fill_null(batch.column(DELETED), fill_value=False))).select(names)


def _expressions() -> Any:
    from sqlglot import exp  # noqa: PLC0415 - lazy: a tenth of a second

    return exp


def _is_word(column: Any) -> bool:
    """Return whether a name stands for a number of the change, not for a column."""
    names = [part.name.lower() for part in column.parts]
    is_bare = not any(part.quoted for part in column.parts)
    return is_bare and (names == [_BEFORE, "rows"] or (len(names) == 1 and names[0] in _WORDS))


def _is_of_before(node: Any) -> bool:
    """Return whether a node is an aggregate of the rows of before: ``before.sum(Total)``."""
    return type(node).__name__ == "Dot" and node.this.name.lower() == _BEFORE


def _aggregate_of(node: Any) -> tuple[str, Any] | None:
    """Return name and argument of an aggregate; None of any other node."""
    name = node.sql_name().lower() if isinstance(node, _expressions().AggFunc) else node.name.lower()
    argument = node.this if isinstance(node, _expressions().AggFunc) else next(iter(node.expressions), None)
    return (name, argument) if name in _AGGREGATES and isinstance(node, _expressions().Func) else None


def _is_of_change(node: Any) -> bool:
    return any(
        _is_of_before(one) or _aggregate_of(one) or (type(one).__name__ == "Column" and _is_word(one))
        for one in node.walk()
    )


def _compares(node: Any) -> bool:
    """Return whether a condition needs a version of before."""
    columns = [one for one in node.find_all(_expressions().Column) if _is_word(one)]
    return any(map(_is_of_before, node.walk())) or any(one.sql().lower() != "rows" for one in columns)


class _Numbers:
    """The value of a condition on a change; None is SQL's null."""

    def __init__(self, text: str, number: Callable[[str, str, str], Any]) -> None:
        self._text = text
        self._number = number

    def truth(self, node: Any) -> bool | None:
        kind = type(node).__name__
        if kind == "Paren":
            return self.truth(node.this)
        if kind == "Not":
            inner = self.truth(node.this)
            return None if inner is None else not inner
        if kind in {"And", "Or"}:
            sides = (self.truth(node.left), self.truth(node.right))
            decided = kind == "Or"
            return decided if decided in sides else None if None in sides else not decided
        if kind in COMPARISONS:
            return self._compared(kind, node.left, node.right)
        if kind == "Between":
            low = self._compared("GTE", node.this, node.args["low"])
            high = self._compared("LTE", node.this, node.args["high"])
            return False if False in {low, high} else None if None in {low, high} else True
        raise self._refusal(node)

    def value(self, node: Any) -> Any:
        kind = type(node).__name__
        if kind == "Paren":
            return self.value(node.this)
        if kind == "Literal" and not node.is_string:
            return self._literal(node.name)
        if kind == "Neg":
            return self._with(lambda one, _: -one, node.this, node.this)
        if kind == "Abs":
            return self._with(lambda one, _: abs(one), node.this, node.this)
        if kind in _ARITHMETIC:
            return self._with(_ARITHMETIC[kind], node.left, node.right)
        named = node.expression if _is_of_before(node) else node
        if type(named).__name__ == "Column" and _is_word(named):
            return self._number(named.sql().lower(), "", "")
        found = _aggregate_of(named)
        aggregate, argument = found or ("", named)
        is_column = type(argument).__name__ == "Column" and len(argument.parts) == 1
        if (found and is_column) or (aggregate == "count" and type(argument).__name__ == "Star"):
            name = f"{_BEFORE}." * (named is not node) + f"{aggregate}({argument.sql('spark')})"
            return self._number(name, aggregate, argument.name if is_column else "")
        raise self._refusal(node)

    def _compared(self, kind: str, left: Any, right: Any) -> bool | None:
        work = COMPARISONS[kind]
        found: bool | None = self._with(lambda one, two: work(_order(one), _order(two)), left, right)
        return found

    def _literal(self, text: str) -> Fraction:
        with suppress(InvalidOperation):  # of an exponent that no decimal can have
            number = Decimal(text)
            if abs(number.adjusted()) <= EXPONENT_MAX:  # before its digits are computed
                return Fraction(number)
        raise not_a_predicate(self._text, f"{text:.50} is too large or too small for a number.")

    def _with(self, work: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        sides = (self.value(left), self.value(right))
        try:
            return None if None in sides else work(*sides)
        except (ZeroDivisionError, OverflowError):  # one beside a double that is not finite
            return None

    def _refusal(self, node: Any) -> InvalidOption:
        return not_a_predicate(self._text, f"{node.sql('spark')!r} is not supported in a check of a change.")


class _Content:
    """The numbers of a stream's change: its counts, and aggregates of its rows before and after it."""

    def __init__(self, text: str, difference: StreamDifference, counts: Counts) -> None:
        self._text = text
        self._difference = difference
        self._counts = counts
        self.told: dict[str, Any] = {}
        """The numbers that the condition named, by its own words."""

    def number(self, name: str, aggregate: str, column: str) -> Any:
        """Return the value of a word, of an aggregate of a column, or (without one) of the number of rows."""
        if name not in self.told:
            is_before = name.startswith(f"{_BEFORE}.")
            table = self._difference.before if is_before else self._difference.after
            if name in _COUNTS:
                self.told[name] = Fraction(getattr(self._counts, name))
            elif not column:
                self.told[name] = Fraction(0 if table is None else live_row_count(table))
            else:
                self.told[name] = None if table is None else self._aggregate(aggregate, table, column)
        return self.told[name]

    def _aggregate(self, kind: str, table: Snapshot, column: str) -> Any:
        known = row_columns(table)
        if column not in known.names:
            if table is self._difference.before:
                return None
            raise MissingColumn(
                f"The check {self._text!r} names the column {column!r}, which the stream does not have.",
                cause=f"Its columns are {', '.join(known.names)}.",
                remedy="Correct the check; upper and lower case of names matter.",
                column=column,
            )
        type_ = known.field(column).type
        if kind != "count" and not any(test(type_) for test in _NUMBERS):
            raise not_a_predicate(self._text, f"{kind} needs numbers, and {column!r} has the type {type_}.")
        found = [_of_batch(kind, batch.column(0)) for batch in _live_batches(table, [column]) if len(batch)]
        count = sum(number for number, _ in found)
        values = [value for _, value in found if value is not None]
        if kind == "count":
            return Fraction(count)
        if not values:
            return None
        if kind in {"min", "max"}:
            return min(values, key=_order) if kind == "min" else max(values, key=_order)
        return sum(values) / count if kind == "avg" else sum(values)


def _of_batch(kind: str, column: pa.Array) -> tuple[int, Any]:
    """Return how many values a column has, and their sum, least or greatest one; exact, unless not finite."""
    if kind in {"sum", "avg"}:
        if pa.types.is_integer(column.type):
            column = column.cast(pa.decimal128(38, 0))
        elif pa.types.is_decimal(column.type):
            column = column.cast(pa.decimal256(76, column.type.scale))
        value = pc.sum(column).as_py()
    elif kind == "count":
        value = None
    else:
        value = pc.min_max(column)[kind].as_py()
        if kind == "max" and pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            value = math.nan  # the greatest number in SQL
    is_odd = isinstance(value, float) and not math.isfinite(value)
    return len(column) - column.null_count, value if is_odd or value is None else Fraction(value)


def _order(value: Any) -> tuple[bool, Any]:
    """Return what numbers compare by as in SQL: NaN equals NaN and is greater than all others."""
    is_nan = value != value  # noqa: PLR0124 - NaN
    return is_nan, 0 if is_nan else value


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Fraction):
        return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.6g}"
    return str(value)
