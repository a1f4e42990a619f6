"""Types of CSV columns."""

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.script.types.written_values import (
    INTEGER,
    NAIVE_TIMESTAMP,
    SAFE_DIGITS,
    UTC_TIMESTAMP,
    all_match,
    cast_or_none,
    digits,
    exact_values,
    naive_as_utc,
    written_values,
)
from freezeframe.store.schema.schema_evolution import is_undecided

# A column is typed only if its texts can be written again, letter by letter, from the typed values and one
# convention that holds for the whole column: ``True`` or ``true``; numbers as short as they can be
# (``10.5``, ``100``; or ``10.5``, ``100.0``, as Python writes them), or all with the same number of digits
# behind the point (``10.50``, ``9.00``). "007", "1.10" beside "1.9", "1e5", "+33", "-0", " 1", "NA" and
# "null" therefore leave the column as text, and so do dates and times, as pandas has them; ``DATES`` reads
# those where they are wanted.

_BOOLEANS = (r"^(?:True|False)$", r"^(?:true|false)$", r"^(?:TRUE|FALSE)$")
DECIMAL_DIGITS = 38
_DOUBLE_DIGITS = SAFE_DIGITS[pa.float64()]
_PLAIN_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$"
# As ``repr`` writes floats below 1e-4 and from 1e16 on; "1e5" and "1e-5" are no floats of Python's.
_PYTHON_EXPONENT = (
    r"^-?[1-9](?:\.[0-9]*[1-9])?e(?:-(?:0[5-9]|[1-9][0-9]{1,2})|\+(?:1[6-9]|[2-9][0-9]|[1-9][0-9]{2}))$"
)
_DOUBLE_SCALE_MAX = 290  # a number with more digits behind the point could be smaller than any double

Read = Callable[[pa.ChunkedArray], pa.ChunkedArray | None]
"""A way to read text: the values, or None if a single one is not exact."""

Left = tuple[int, ...] | None
"""Which ways of a rule read all values so far, by their places in it; None before the first value."""

Made = tuple[int, pa.ChunkedArray | None] | None
"""The first way that reads a piece, and the values, where it took them to find out."""


@dataclass(frozen=True, slots=True)
class NumberShape:
    """How the plain decimal numbers of a column are written.

    ``whole_digits`` is the largest number of digits before the point; ``scale_min`` and ``scale_max`` are
    the numbers of digits behind it. ``is_short``: no fraction ends with a zero. ``is_pointed``: each value
    has a point, and only ``.0`` ends with a zero. ``is_double``: each value has at most 15 significant
    digits. ``has_minus_zero``: a value is a zero with a sign.
    """

    whole_digits: int
    scale_min: int
    scale_max: int
    is_short: bool
    is_pointed: bool
    is_double: bool
    has_minus_zero: bool


Style = Callable[[NumberShape], bool]
"""A way to write numbers: whether a column's are written so."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a column of text; with ``fits`` it reads the numbers whose shape fits."""

    kind: pa.DataType
    read: Read
    fits: Style | None = None


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """What a column of text becomes: the first of ``ways`` that reads every value, else text.

    Whether a way reads a column is decided value by value, so a column may be looked at in pieces, in any
    order and by several processes, whose findings ``both`` joins.
    """

    ways: tuple[Reading, ...]
    kind_without_values: pa.DataType

    def whole(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return all values of the column."""
        left, made = self.narrow(text)
        values = self.read(text, left, made)
        assert values is not None  # noqa: S101 - these are the values that were seen
        return values

    def narrow(self, text: pa.ChunkedArray, before: Left = None) -> tuple[Left, Made]:
        """Return the possible types after one more piece of the column, and its values in the first one."""
        if text.null_count == len(text):
            return before, None
        among = self._possible(pc.drop_null(text)[0].as_py()) if before is None else before
        left: list[int] = []
        made: Made = None
        for index, column in self._readings(text, among):
            made = made if left else (index, column)
            left.append(index)
        return tuple(left), made

    def kind(self, left: Left) -> pa.DataType:
        """Return the type of the column, once all of its pieces have been seen."""
        if left is None:
            return self.kind_without_values
        return self.ways[left[0]].kind if left else pa.string()

    def read(self, text: pa.ChunkedArray, left: Left, made: Made = None) -> pa.ChunkedArray | None:
        """Return a piece in the type of the whole column; None if the piece was not among those seen.

        ``made`` is what ``narrow`` made of the piece, if that is known.
        """
        if text.null_count == len(text):
            return pa.chunked_array([pa.nulls(len(text), self.kind(left))])
        if not left:
            return None if left is None else text
        known = [made] if made is not None and made[0] == left[0] else self._readings(text, left[:1])
        for index, column in known:
            return self.ways[index].read(text) if column is None else column
        return None

    def _possible(self, first: str) -> tuple[int, ...]:
        one = pa.chunked_array([[first]], pa.string())
        return tuple(index for index, _ in self._readings(one, range(len(self.ways))))

    def _readings(
        self, text: pa.ChunkedArray, among: Iterable[int]
    ) -> Iterator[tuple[int, pa.ChunkedArray | None]]:
        """Yield the ways that read the text, with its values, or None where the shape of numbers decided."""
        shape: NumberShape | None = None
        is_known = False
        for index in among:
            way = self.ways[index]
            if way.fits is None:
                column = way.read(text)
                if column is not None:
                    if way.read is _integer:
                        shape, is_known = _shape_of_integers(column), True
                    yield index, column
                continue
            if not is_known:
                shape, is_known = number_shape(text), True
            if shape is not None and way.fits(shape):
                yield index, None


def both(one: Left, other: Left) -> Left:
    """Return the possible types after the pieces that either has seen."""
    if one is None or other is None:
        return one if other is None else other
    return tuple(index for index in one if index in other)


def number_shape(text: pa.ChunkedArray) -> NumberShape | None:
    """Return how the numbers of a column are written; None if a value is no plain decimal number.

    Numbers with the exponent of a Python float (``1e-05``, ``1e+16``) count as written in full.
    """
    if not all_match(text, _PLAIN_NUMBER):
        has_exponent = pc.match_substring_regex(text, _PYTHON_EXPONENT)
        if pc.any(has_exponent, min_count=0).as_py():
            plain = [f"{Decimal(number):f}" for number in text.filter(has_exponent).to_pylist()]
            column, mask = text.combine_chunks(), has_exponent.combine_chunks()
            text = pa.chunked_array([pc.replace_with_mask(column, mask, pa.array(plain, pa.string()))])
        if not all_match(text, _PLAIN_NUMBER):
            return None
    point, length = pc.find_substring(text, "."), pc.binary_length(text)
    is_fraction, is_negative = pc.greater_equal(point, 0), pc.starts_with(text, "-")
    scale = pc.if_else(is_fraction, pc.subtract(pc.subtract(length, point), 1), 0)
    whole = pc.subtract(pc.if_else(is_fraction, point, length), is_negative.cast(pa.int32()))
    scales = pc.min_max(scale).as_py()
    ends_with_zero = pc.and_(is_fraction, pc.ends_with(text, "0"))
    is_short = not pc.any(ends_with_zero).as_py()
    return NumberShape(
        pc.max(whole).as_py(),
        scales["min"],
        scales["max"],
        is_short=is_short,
        is_pointed=scales["min"] > 0
        and (is_short or not pc.any(pc.and_(ends_with_zero, pc.greater(scale, 1))).as_py()),
        is_double=scales["max"] <= _DOUBLE_SCALE_MAX and not _has_more_digits(text, length),
        has_minus_zero=_has_minus_zero(text, is_negative),
    )


def _shape_of_integers(numbers: pa.ChunkedArray) -> NumberShape:
    ends = pc.min_max(numbers).as_py()
    count = len(str(max(-ends["min"], ends["max"])))
    is_double = count <= _DOUBLE_DIGITS
    return NumberShape(
        count, 0, 0, is_short=True, is_pointed=False, is_double=is_double, has_minus_zero=False
    )


def _has_more_digits(text: pa.ChunkedArray, length: pa.ChunkedArray) -> bool:
    if pc.max(length).as_py() <= _DOUBLE_DIGITS:
        return False
    long = text.filter(pc.greater(length, _DOUBLE_DIGITS))
    return bool(pc.max(pc.binary_length(digits(long))).as_py() > _DOUBLE_DIGITS)


def _has_minus_zero(text: pa.ChunkedArray, is_negative: pa.ChunkedArray) -> bool:
    if not pc.any(is_negative).as_py():
        return False
    return bool(pc.any(pc.match_substring_regex(text.filter(is_negative), r"^-[0.]*$")).as_py())


def _boolean(text: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray | None:
    return exact_values(text, pa.bool_()) if all_match(text, pattern) else None


def _integer(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return cast_or_none(text, pa.int64()) if all_match(text, INTEGER) else None


def _number(kind: pa.DataType, fits: Style) -> Reading:
    return Reading(kind, functools.partial(cast_or_none, kind=kind), fits)


def _is_number(shape: NumberShape) -> bool:
    return not shape.has_minus_zero


def _is_whole(shape: NumberShape) -> bool:
    return _is_number(shape) and shape.scale_max == 0 and shape.whole_digits <= DECIMAL_DIGITS


def _is_short(shape: NumberShape) -> bool:
    return _is_number(shape) and shape.is_short


def _is_pointed(shape: NumberShape) -> bool:
    return _is_number(shape) and shape.is_pointed


def _is_even(shape: NumberShape, scale: int) -> bool:
    return _is_number(shape) and shape.scale_min == shape.scale_max == scale


def _fits_double(shape: NumberShape, style: Style) -> bool:
    return shape.is_double and style(shape)


def _fits_decimal(shape: NumberShape, style: Style, scale: int) -> bool:
    return style(shape) and shape.scale_max <= scale and shape.whole_digits + scale <= DECIMAL_DIGITS


def _numbers() -> Iterator[Reading]:
    """Yield the types of numbers; which of them are left says how the numbers seen so far are written."""
    scales = range(1, DECIMAL_DIGITS)
    even: dict[int, Style] = {scale: functools.partial(_is_even, scale=scale) for scale in scales}
    yield _number(pa.decimal128(DECIMAL_DIGITS, 0), _is_whole)
    styles: tuple[Style, ...] = (_is_short, _is_pointed, *even.values())
    for style in styles:
        yield _number(pa.float64(), functools.partial(_fits_double, style=style))
    for scale in scales:
        for style in (_is_short, _is_pointed, even[scale]):
            fits = functools.partial(_fits_decimal, style=style, scale=scale)
            yield _number(pa.decimal128(DECIMAL_DIGITS, scale), fits)


NUMBERS_AS_TEXT = Reading(pa.string(), lambda text: text, fits=lambda _: True)
"""Of a column of plain numbers that no type holds as they are written."""

INFERENCE = ColumnRule(
    (
        *(Reading(pa.bool_(), functools.partial(_boolean, pattern=pattern)) for pattern in _BOOLEANS),
        Reading(pa.int64(), _integer),
        *_numbers(),
        NUMBERS_AS_TEXT,
    ),
    pa.null(),
)
"""Of a column of which nothing is known: ``bool``, ``int64``, ``double``, ``decimal``, text.

A column of nulls has the type ``null``."""

DATES = tuple(
    Reading(kind, functools.partial(exact_values, kind=kind))
    for kind in (pa.date32(), NAIVE_TIMESTAMP, UTC_TIMESTAMP)
)
"""The ways to read dates and times, of ISO 8601: a time with a zone is an instant in UTC."""


_LONGEST_INTEGER = pa.decimal128(38, 0)


@dataclass(frozen=True, slots=True)
class KnownTypes:
    """What is known of a stream's columns, in this order.

    ``stored`` are the stream's own types, ``declared`` those of a catalog, ``requested`` those that the
    caller names, each of which must hold every value. Dates and times are looked for in the columns that
    ``dates`` names, in all for true. The columns ``texts`` stay text. ``stream`` is named in remarks.
    """

    stored: pa.Schema | None = None
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)
    requested: Mapping[str, pa.DataType] = field(default_factory=dict)
    dates: bool | frozenset[str] = False
    texts: Container[str] = frozenset()
    stream: str = ""

    def rule(self, name: str, otherwise: tuple[Reading, ...] = INFERENCE.ways) -> ColumnRule:
        """Return how a column of text is read. A type is used only if every value is exact in it.

        Args:
            name: the column.
            otherwise: the ways for values that are not exact in a stored type, or of no known one.
        """
        if name in self.texts:
            return ColumnRule((), pa.string())
        kind = self._stored_type(name)
        if kind is None and name in self.declared:
            return declared_rule(self.declared[name])
        further = self._further(name, otherwise)
        if kind is None:
            return further
        # Values that do not fit the stored type are kept as read: the update then
        # refuses or widens, and names the rows.
        wider = _wider_numbers(kind) if otherwise is INFERENCE.ways else ()
        return ColumnRule((exact_reading(kind), *wider, *further.ways), kind)

    def is_required(self, name: str) -> bool:
        """Return whether a column must have the requested type."""
        is_known = name in self.declared or name in self.texts or self._stored_type(name) is not None
        return name in self.requested and not is_known

    def table(self, text: pa.Table) -> pa.Table:
        """Return the columns in the known types, others as inferred."""
        return pa.table({name: self.rule(name).whole(text.column(name)) for name in text.column_names})

    def _stored_type(self, name: str) -> pa.DataType | None:
        index = -1 if self.stored is None else self.stored.get_field_index(name)
        if self.stored is None or index < 0:
            return None
        known = self.stored.field(index)
        return None if is_undecided(known) or pa.types.is_null(known.type) else known.type

    def _further(self, name: str, otherwise: tuple[Reading, ...]) -> ColumnRule:
        if name in self.requested:
            kind = self.requested[name]
            return ColumnRule(_exact_readings(kind), kind)
        if self.dates is True or (self.dates and name in self.dates):
            return ColumnRule((*DATES, *otherwise), INFERENCE.kind_without_values)
        return ColumnRule(otherwise, INFERENCE.kind_without_values)


NOTHING_KNOWN = KnownTypes()


def _wider_numbers(stored: pa.DataType) -> Iterator[Reading]:
    """Yield ways to read numbers, however they are written, for a column that is stored as a number."""
    if pa.types.is_integer(stored):
        yield Reading(pa.int64(), _integer)
        yield _number(pa.float64(), functools.partial(_fits_double, style=_is_number))
    elif pa.types.is_decimal(stored):
        for scale in range(1, DECIMAL_DIGITS):
            fits = functools.partial(_fits_decimal, style=_is_number, scale=scale)
            yield _number(pa.decimal128(DECIMAL_DIGITS, scale), fits)


def declared_rule(kind: pa.DataType) -> ColumnRule:
    """Return how a column of a declared type is read; integers of more than 64 bits are decimals."""
    ways = _exact_readings(kind)
    if pa.types.is_integer(kind):
        ways = (*ways, exact_reading(_LONGEST_INTEGER))
    return ColumnRule(ways, kind)


def _exact_readings(kind: pa.DataType) -> tuple[Reading, ...]:
    naive = (Reading(kind, naive_as_utc),) if kind == UTC_TIMESTAMP else ()
    return (exact_reading(kind), *naive)


def exact_reading(kind: pa.DataType) -> Reading:
    """Return the way to read text as values of a type, each of them exact."""
    return Reading(kind, functools.partial(written_values, kind=kind))
