"""Columns with extreme values for random updates, and their cells in a form that can be compared exactly.

Dates and times are numbers since 1970, so that far ones are values like others; the rest is as
``to_pylist`` gives it.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from freezeframe.store.schema.type_compatibility import has_exact_text

_EXACT = Context(prec=60)
DAYS = {
    -(2**31): "-5877641-06-23",
    -53_375_996: "-144169-06-28",
    -800_000: "-0221-09-04",
    -719_528: "0000-01-01",
    -719_163: "0000-12-31",
    -719_162: "0001-01-01",
    -1: "1969-12-31",
    0: "1970-01-01",
    20_454: "2026-01-01",
    2_932_896: "9999-12-31",
    2_932_897: "+10000-01-01",
    53_375_995: "+148108-07-06",
    2**31 - 1: "+5881580-07-11",
}
"""Days since 1970, each with its text."""
_MOMENTS = [0, -1, 1_767_225_600_000_000, -62_135_596_800_000_000, 2**62, -(2**62)]
_DOUBLES = [0.0, -0.0, 0.1, 0.5, 5.0, math.nan, math.inf, -math.inf, 2.0**53, 5e-324]
_SINGLES = [0.0, -0.0, 0.5, 5.0, math.nan, math.inf, float(np.float32(0.1))]
_TEXTS = ["", "007", "7", "NA", "nan", "ü😀", "a\nb", "-0.0", "5", "1", "true", "1970-01-01", "5.00"]
_PAIR = pa.struct([("a", pa.int64()), ("b", pa.float64())])


def _whole(bits):
    return [0, 1, 5, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]


def _decimals(digits, scale):
    units = (0, 1, -1, 5 * 10**scale, 10**digits - 1, 1 - 10**digits)
    return [Decimal(unit).scaleb(-scale, _EXACT) for unit in units]


@dataclass(frozen=True)
class Kind:
    """A type as it comes, the type that a stream keeps it in, and values of it."""

    came: pa.DataType
    stored: pa.DataType
    pool: list
    may_be_key: bool = True


def _kind(stored, pool, came=None, *, may_be_key=True):
    return Kind(came or stored, stored, pool, may_be_key)


KINDS = [
    _kind(pa.string(), _TEXTS),
    _kind(pa.string(), _TEXTS, pa.large_string()),
    _kind(pa.string(), _TEXTS, pa.string_view()),
    _kind(pa.string(), _TEXTS, pa.dictionary(pa.int32(), pa.string())),
    *(_kind(kind, _whole(kind.bit_width)) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    _kind(pa.decimal128(20, 0), [Decimal(element) for element in (2**64 - 1, 2**63, 2**63 + 5)], pa.uint64()),
    # More often than others: the signs of zeros, NaN and roundings are theirs.
    *(_kind(pa.float64(), _DOUBLES) for _ in range(4)),
    *(_kind(pa.float32(), _SINGLES) for _ in range(2)),
    _kind(pa.bool_(), [True, False]),
    _kind(pa.date32(), list(DAYS)),
    _kind(pa.timestamp("us"), _MOMENTS),
    _kind(pa.timestamp("us", "UTC"), _MOMENTS),
    *(_kind(pa.decimal128(*size), _decimals(*size)) for size in ((9, 2), (38, 18), (38, 0))),
    _kind(pa.binary(), [b"", b"\x00", b"\xff\xfe"]),
    _kind(pa.list_(pa.float64()), [[], [-0.0], [0.0], [math.nan, None]], may_be_key=False),
    _kind(pa.list_(pa.float32()), [[], [-0.0], [0.5]], may_be_key=False),
    _kind(pa.list_(pa.date32()), [[2_932_897], [0, None], []], may_be_key=False),
    _kind(_PAIR, [{"a": 1, "b": -0.0}, {"a": None, "b": 0.0}, {"a": 1, "b": 0.0}], may_be_key=False),
    _kind(
        pa.map_(pa.string(), pa.float64()),
        [[], [("a", -0.0)], [("a", 0.0), ("b", None)], [("b", None), ("a", 0.0)]],
        may_be_key=False,
    ),
]
_LEAVES = [
    (pa.string(), ["", "007", "ü"]),
    (pa.int64(), [0, 2**63 - 1]),
    (pa.float64(), [0.0, -0.0, math.nan]),
    (pa.bool_(), [True, False]),
    (pa.binary(), [b"", b"\xff"]),
    (pa.decimal128(9, 2), _decimals(9, 2)),
]


def nested_kind(random):
    """A list, struct or map of random depth, with values that have nothing at some depth."""
    kind = _nested(random, random.randint(1, 3))
    return _kind(kind, [_nested_cell(random, kind) for _ in range(5)], may_be_key=False)


def _nested(random, depth):
    if not depth:
        return random.choice(_LEAVES)[0]
    form, inner = random.choice(["list", "list", "map", "struct"]), _nested(random, depth - 1)
    if form == "list":
        return pa.list_(inner)
    if form == "map":
        return pa.map_(pa.string(), inner)
    return pa.struct([("a", inner), ("b c", _nested(random, random.randrange(depth)))])


def _nested_cell(random, kind, empty=0.3):
    def inner(part):
        return None if random.random() < empty else _nested_cell(random, part, empty)

    if pa.types.is_struct(kind):
        return {part.name: inner(part.type) for part in kind}
    if not pa.types.is_nested(kind):
        return random.choice(dict(_LEAVES)[kind])
    count = 0 if random.random() < empty else random.randint(1, 2)
    if pa.types.is_map(kind):
        return [(name, inner(kind.item_type)) for name in ("", "k")[:count]]
    return [inner(kind.value_type) for _ in range(count)]


KEY_KINDS = [kind for kind in KINDS if kind.may_be_key]
TEXT_KINDS = [kind for kind in KINDS if pa.types.is_string(kind.stored)]
TOLD_KINDS = [kind for kind in KINDS if has_exact_text(kind.stored) and kind not in TEXT_KINDS]


# Cells in and out of Arrow


def _numbered(kind):
    """The type in which cells of a kind are held: times are numbers."""
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.list_(_numbered(kind.value_type)) if pa.types.is_list(kind) else kind


def column_of(cells, kind):
    """The cells as they come, in the type in which they come."""
    if kind.came == pa.uint64() and any(cell is not None for cell in cells):
        return pa.array([None if cell is None else int(cell) for cell in cells], pa.uint64())
    plain = pa.array(cells, _numbered(kind.stored)).cast(kind.stored)
    if isinstance(kind.came, pa.DictionaryType):
        return plain.dictionary_encode()
    return plain if kind.came in (kind.stored, pa.uint64()) else plain.cast(kind.came)


def cells_of(column):
    """The cells of a stored column."""
    return column.cast(_numbered(column.type)).to_pylist()


def rows_of(table):
    """The rows of a table as dictionaries of cells."""
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*map(cells_of, table.columns), strict=True)]


def exact(value, kind):
    """The value in a form that is equal exactly where it is in two types that can be compared."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return tuple(exact(item, kind.value_type) for item in value)
    if pa.types.is_struct(kind):
        return tuple((part.name, exact(value[part.name], part.type)) for part in kind)
    if pa.types.is_map(kind):
        return tuple(sorted(((key, exact(item, kind.item_type)) for key, item in value), key=repr))
    if pa.types.is_date(kind):
        return Fraction(value * 86_400_000_000)
    if isinstance(value, float):
        return Fraction(value) if math.isfinite(value) and repr(value) != "-0.0" else repr(value)
    return Fraction(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


def as_text(value, kind):
    """The one text of a value of the types that have one."""
    if pa.types.is_date(kind):
        return DAYS[value]
    if pa.types.is_timestamp(kind):
        day, rest = divmod(value, 86_400_000_000)
        clock = str(np.datetime64(rest, "us")).partition("T")[2].removesuffix(".000000")
        return f"{DAYS[day]} {clock}{'' if kind.tz is None else '+00:00'}"
    if pa.types.is_boolean(kind):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)
