"""Predicates as SQL text, as in Spark's ``filter``: ``"City = 'Bern' AND Amount > 10"``.

SQLGlot parses the text. Comparisons of columns with values and with each other, ``in``, ``between``,
``like``, ``is null``, ``and``, ``or`` and ``not`` become an Arrow expression; functions do not. As in Spark
NaN is the greatest number, and equals itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache, reduce
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import InvalidOption, MissingColumn, TypeMismatch

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}
_MIRRORED = {"LT": "GT", "LTE": "GTE", "GT": "LT", "GTE": "LTE"}

_MOMENTS = ("date", "timestamp", "timestamptz", "timestampntz")
EXPONENT_MAX = 400  # the greatest double has 309 digits
# What a part of a predicate may consist of.
_PARTS = frozenset({"this", "expression", "expressions", "low", "high", "negate", "table"})


def parse_predicate(text: str, schema: pa.Schema) -> pc.Expression:
    """Return the predicate; a row matches where it is true, and neither false nor null."""
    return predicate_of(parse_condition(text), text, schema)


def predicate_of(node: Any, text: str, schema: pa.Schema) -> pc.Expression:
    """Return the predicate of a parsed condition; ``text`` is for messages."""
    try:
        return _Translation(text, schema).predicate(node)
    except RecursionError as error:
        raise _too_deep(text) from error


def parse_condition(text: str) -> Any:
    """Return a condition as SQLGlot's tree, whatever it names."""
    import sqlglot  # noqa: PLC0415 - lazy: a tenth of a second
    from sqlglot.errors import ParseError, SqlglotError  # noqa: PLC0415 - as above

    try:
        return sqlglot.parse_one(text, read=_dialect(), into=sqlglot.exp.Condition)
    except RecursionError as error:
        raise _too_deep(text) from error
    except SqlglotError as error:
        found = error.errors if isinstance(error, ParseError) else []
        where = f"at character {found[0]['col']}" if found else "for a quote or sign that is not closed"
        cause = f"It cannot be read as SQL {where}." if text.strip() else "It is empty."
        raise not_a_predicate(text, cause) from error


@cache
def _dialect() -> Any:
    """Return the SQL of Spark 4, in which a quote in a text may be written twice."""
    from sqlglot.dialects.spark import Spark  # noqa: PLC0415 - lazy, as above

    class Spark4(Spark):
        class Tokenizer(Spark.Tokenizer):
            STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    return Spark4


class _Translation:
    """The translation of one text, for columns of a schema."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema

    def predicate(self, node: Any) -> pc.Expression:
        """Return a node that is true or false."""
        if any(value for name, value in node.args.items() if name not in _PARTS):
            raise not_a_predicate(self._text, f"{node.sql('spark')!r} is not supported.")
        found = self._positive(node)
        return ~found if node.args.get("negate") else found

    def _positive(self, node: Any) -> pc.Expression:
        kind = type(node).__name__
        if kind == "Paren":
            return self.predicate(node.this)
        if kind == "Not":
            return ~self.predicate(node.this)
        if kind in {"And", "Or"}:
            join = operator.and_ if kind == "And" else operator.or_
            return join(self.predicate(node.left), self.predicate(node.right))
        if kind in COMPARISONS:
            return self._comparison(kind, node.left, node.right)
        if kind == "Between":
            low = self._comparison("GTE", node.this, node.args["low"])
            return low & self._comparison("LTE", node.this, node.args["high"])
        if kind == "In" and node.expressions:
            return reduce(
                operator.or_, (self._comparison("EQ", node.this, value) for value in node.expressions)
            )
        if kind == "Is" and type(node.expression).__name__ == "Null":
            return self._column(node.this)[0].is_null()
        if kind == "Like" and _is_literal(node.expression):
            return pc.match_like(self._column(node.this)[0], node.expression.name)
        if kind == "Column":
            return self._boolean(node)
        raise not_a_predicate(self._text, f"{node.sql('spark')!r} is not supported.")

    def _boolean(self, node: Any) -> pc.Expression:
        """Return a column that is a condition by itself."""
        column, type_ = self._column(node)
        if pa.types.is_boolean(type_):
            return column
        if pa.types.is_null(type_):  # no row has a value yet, so none is true and none false
            return column.cast(pa.bool_())
        name = node.sql("spark")
        raise TypeMismatch(
            f"The column {name} is no condition.",
            cause=f"It is of type {type_}, not boolean.",
            remedy=f"Compare it with a value, or write {name} IS NOT NULL.",
        )

    def _comparison(self, kind: str, left: Any, right: Any) -> pc.Expression:
        if type(left).__name__ != "Column" and type(right).__name__ == "Column":
            left, right, kind = right, left, _MIRRORED.get(kind, kind)
        column, type_ = self._column(left)
        if type(right).__name__ == "Column":
            other, others_type = self._column(right)
            is_floating = pa.types.is_floating(type_) or pa.types.is_floating(others_type)
            return (_with_nan if is_floating else _plain)(kind, column, other)
        value = self._value(right, left.sql("spark"), type_)
        if not pa.types.is_floating(type_) or not value.is_valid:
            return _plain(kind, column, value)
        if math.isnan(value.as_py()):
            return _with_nan(kind, column, pc.scalar(value))
        found = _plain(kind, column, value)
        return found | column.is_nan() if kind in {"GT", "GTE"} else found

    def _column(self, node: Any) -> tuple[pc.Expression, pa.DataType]:
        """Return a column or a field of a struct, and its type."""
        if type(node).__name__ != "Column":
            is_function = any(kind.__name__ == "Func" for kind in type(node).__mro__)
            what = "a function or an expression, which conditions cannot have" if is_function else "no column"
            raise not_a_predicate(self._text, f"{node.sql('spark')!r} is {what}.")
        names = [part.name for part in node.parts]
        fields, type_ = {item.name: item.type for item in self._schema}, None
        for name in names:
            if name not in fields:
                raise MissingColumn(
                    f"There is no column {'.'.join(names)!r}.",
                    cause=f"The columns are {', '.join(self._schema.names)}.",
                    remedy=f"If it is a text, put it in single quotes: '{names[0]}'. "
                    "Upper and lower case of names matter.",
                    column=".".join(names),
                )
            type_ = fields[name]
            fields = {item.name: item.type for item in type_} if pa.types.is_struct(type_) else {}
        return pc.field(*names), type_

    def _value(self, node: Any, column: str, type_: pa.DataType) -> pa.Scalar:
        """Return a literal in the type of the column that it is compared with."""
        sign, literal = ("-", node.this) if type(node).__name__ == "Neg" else ("", node)
        if type(literal).__name__ == "Cast" and _is_literal(literal.this) and literal.is_type(*_MOMENTS):
            literal = literal.this  # DATE '2026-01-01'
        kind = type(literal).__name__
        if kind == "Null" or pa.types.is_null(type_):
            return pa.scalar(None, type_)
        try:
            if kind == "Boolean" and pa.types.is_boolean(type_):
                return pa.scalar(literal.this)
            if kind == "HexString" and pa.types.is_binary(type_):
                return pa.scalar(bytes.fromhex(literal.name), type_)
            if _is_literal(literal) and not sign:
                # A time without a zone, or a day alone, is in UTC.
                if pa.types.is_timestamp(type_) and type_.tz is not None:
                    try:
                        return pa.scalar(literal.name).cast(pa.timestamp(type_.unit)).cast(type_)
                    except pa.ArrowException:
                        pass  # it has a zone
                return pa.scalar(literal.name).cast(type_)
            if kind == "Literal" and any(
                test(type_) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
            ):
                return _number(Decimal(sign + literal.name), type_)
        except (pa.ArrowException, ArithmeticError, ValueError) as error:
            raise self._wrong_value(node, column, type_) from error
        raise self._wrong_value(node, column, type_)

    def _wrong_value(self, node: Any, column: str, type_: pa.DataType) -> TypeMismatch:
        return TypeMismatch(
            f"{node.sql('spark')} cannot be compared with the column {column}.",
            cause=f"The column is of type {type_}.",
            remedy="Write text, dates and times in single quotes, numbers without; a quote in a text is ''.",
        )


def _plain(kind: str, left: pc.Expression, right: Any) -> pc.Expression:
    return COMPARISONS[kind](left, right)


def _with_nan(kind: str, left: pc.Expression, right: pc.Expression) -> pc.Expression:
    """Compare as Spark does: NaN equals NaN and is greater than all other numbers; null where one is null.

    For Arrow NaN is unequal to itself, and neither less nor greater than a number.
    """
    if kind in {"LT", "LTE"}:
        return _with_nan(_MIRRORED[kind], right, left)
    if kind == "NEQ":
        return ~_with_nan("EQ", left, right)
    is_number, left_is_nan, right_is_nan = right == right, left != left, right != right  # noqa: PLR0124 - NaN
    matching = {"GT": is_number, "GTE": is_number | right_is_nan, "EQ": right_is_nan}
    return _plain(kind, left, right) | (left_is_nan & matching[kind])


def _number(value: Decimal, type_: pa.DataType) -> pa.Scalar:
    """Return a number that compares with the column as it is: 1.5 is no whole number, and not cut to one."""
    if value.adjusted() > EXPONENT_MAX:
        raise OverflowError  # before its digits are computed
    is_fraction = value != value.to_integral_value()
    if pa.types.is_floating(type_) or (pa.types.is_integer(type_) and is_fraction):
        return pa.scalar(float(value))
    return pa.scalar(int(value) if pa.types.is_integer(type_) else value)


def _is_literal(node: Any) -> bool:
    return type(node).__name__ == "Literal" and node.is_string


def _too_deep(text: str) -> InvalidOption:
    return not_a_predicate(text, "It has too many conditions, or is nested too deeply.")


def not_a_predicate(text: str, cause: str) -> InvalidOption:
    """Return the error for a text that is no condition."""
    return InvalidOption(
        f"{text!r:.200} is not a predicate.",
        cause=cause,
        remedy="""Write SQL such as "City = 'Bern' AND Amount > 10"; names with spaces, and words of SQL """
        "as names, stand in backticks.",
    )
