"""Columns of every type that a stream keeps, with the values that other tools change, for generated tests.

A value is plain Python, as ``pyarrow.Table.to_pylist`` gives it, so that an oracle of dictionaries
can hold it and no frame library has a say in it.
"""

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal

import pyarrow as pa
from hypothesis import strategies as st

TEXTS = (
    "",
    "007",
    "7",
    "NA",
    "nan",
    "None",
    "null",
    "a\nb",
    'say "hi"',
    "ü😀",
    " x ",
    "0" * 20 + "1",
    "é",
    "e\u0301",
)
_EXACT = Context(prec=60)
MOMENTS = tuple(
    dt.datetime.fromisoformat(text)
    for text in (
        "1970-01-01",
        "1969-12-31T23:59:59.999999",
        "2026-03-29T02:30",
        "2026-10-25T02:30:00.000001",
        "1900-01-01",
        "9999-12-31T23:59:59.999999",
    )
)


@dataclass(frozen=True)
class Kind:
    """A type of column: its name in the tests, its Arrow type, its values (no null among them)."""

    name: str
    arrow: pa.DataType
    values: st.SearchStrategy
    may_be_key: bool = True


def _whole(bits):
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.sampled_from([low, -1, 0, 1, high]) | st.integers(low, high)


def _decimals(precision, scale):
    most = 10**precision - 1
    units = st.sampled_from([0, 1, -1, 10**scale, most, -most]) | st.integers(-most, most)
    return units.map(lambda unit: Decimal(unit).scaleb(-scale, _EXACT))


_TEXT = st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
_SINGLE = st.floats(width=32) | st.sampled_from(
    [0.0, -0.0, math.inf, -math.inf, math.nan, 0.10000000149011612]
)
_DOUBLE = st.floats() | st.sampled_from([0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, math.nan, 2.0**53])
_LONG = _whole(64) | st.sampled_from([2**53 + 1, -(2**53) - 1])
_DATE = st.sampled_from([dt.date(1970, 1, 1), dt.date(1582, 10, 4), dt.date(9999, 12, 31)]) | st.dates(
    dt.date(1, 1, 1)
)
_LOCAL = st.sampled_from(MOMENTS) | st.datetimes(MOMENTS[4])
_INSTANT = _LOCAL.map(lambda moment: moment.replace(tzinfo=dt.UTC))


def _or_null(values):
    return st.none() | values


def _listed(values):
    return st.lists(_or_null(values), max_size=3)


_PAIR = pa.struct([("a", pa.int64()), ("b c", pa.string())])
_PAIRS = st.fixed_dictionaries({"a": _or_null(_LONG), "b c": _or_null(_TEXT)})


KINDS = {
    kind.name: kind
    for kind in (
        Kind("text", pa.string(), _TEXT),
        Kind("long", pa.int64(), _LONG),
        Kind("int", pa.int32(), _whole(32)),
        Kind("short", pa.int16(), _whole(16)),
        Kind("byte", pa.int8(), _whole(8)),
        Kind("double", pa.float64(), _DOUBLE),
        Kind("float", pa.float32(), _SINGLE),
        Kind("boolean", pa.bool_(), st.booleans()),
        Kind("date", pa.date32(), _DATE),
        Kind("instant", pa.timestamp("us", "UTC"), _INSTANT),
        Kind("local time", pa.timestamp("us"), _LOCAL),
        Kind("money", pa.decimal128(9, 2), _decimals(9, 2)),
        Kind("big decimal", pa.decimal128(38, 18), _decimals(38, 18)),
        Kind("binary", pa.binary(), st.sampled_from([b"", b"\x00", b"\xff\xfe"]) | st.binary(max_size=4)),
        Kind("texts", pa.list_(pa.string()), _listed(_TEXT), may_be_key=False),
        Kind("doubles", pa.list_(pa.float64()), _listed(_DOUBLE), may_be_key=False),
        Kind("pair", _PAIR, _PAIRS, may_be_key=False),
        Kind("pairs", pa.list_(_PAIR), _listed(_PAIRS), may_be_key=False),
        Kind(
            "counts",
            pa.map_(pa.string(), pa.int64()),
            st.dictionaries(_TEXT, _or_null(_LONG), max_size=3).map(lambda found: list(found.items())),
            may_be_key=False,
        ),
    )
}


def cells(kind):
    """Values of the kind, nulls among them."""
    return _or_null(kind.values)


def key_form(value, kind):
    """The value of a key in such a form: there a zero has no sign."""
    return same_form(value + 0.0 if isinstance(value, float) else value, kind)


def same_form(value, kind):
    """The value in a form that is equal, and hashes alike, exactly where the value counts as the same.

    NaN is NaN, -0.0 is not 0.0, the entries of a map have no order.
    """
    if value is None:
        return None
    if pa.types.is_map(kind):
        entries = [(same_form(k, kind.key_type), same_form(v, kind.item_type)) for k, v in value]
        return tuple(sorted(entries, key=repr))
    if pa.types.is_struct(kind):
        assert isinstance(value, Mapping)
        return tuple((field.name, same_form(value.get(field.name), field.type)) for field in kind)
    if pa.types.is_list(kind):
        return tuple(same_form(item, kind.value_type) for item in value)
    if isinstance(value, float):
        return repr(value)
    return value
