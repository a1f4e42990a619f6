"""Columns of every type that a stream keeps, with the values that other tools change, for generated tests.

A value is plain Python, as ``pyarrow.Table.to_pylist`` gives it, so that an oracle of dictionaries
can hold it and no frame library has a say in it.
"""

import datetime as dt
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from tools.type_matrix import TYPES

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


# Every type that is taken, alone and nested, for frames that are read and given back.


def _extremes():
    return {
        kind.name: (kind.arrow, [value for value in kind.extreme if value == value])  # noqa: PLR0124 - no NaN
        for kind in TYPES
        if not (pa.types.is_nested(kind.arrow) or pa.types.is_null(kind.arrow))
    }


NESTINGS = {
    "list": (pa.list_, lambda values: [[*values, None], [], None]),
    "list of list": (
        lambda kind: pa.list_(pa.list_(kind)),
        lambda values: [[values, [], None], [], None],
    ),
    "struct": (
        lambda kind: pa.struct([("v", kind), ("n", pa.int32())]),
        lambda values: [{"v": values[0], "n": 1}, {"v": None, "n": None}, None],
    ),
    "list of struct": (
        lambda kind: pa.list_(pa.struct([("v", kind)])),
        lambda values: [[{"v": values[-1]}, {"v": None}, None], [], None],
    ),
    "map value": (
        lambda kind: pa.map_(pa.string(), kind),
        lambda values: [[("k", values[0]), ("", None)], [], None],
    ),
    "map key": (
        lambda kind: pa.map_(kind, pa.string()),
        lambda values: [[(value, "x") for value in values], [], None],
    ),
    "map of both": (lambda kind: pa.map_(kind, kind), lambda values: [[(values[-1], values[0])], [], None]),
    "list of map": (
        lambda kind: pa.list_(pa.map_(kind, kind)),
        lambda values: [[[(values[0], None)], [], None], [], None],
    ),
}
ENCODED = {
    "uint8": pa.array([0, 255, None], pa.uint8()),
    "uint16": pa.array([0, 2**16 - 1, None], pa.uint16()),
    "uint32": pa.array([0, 2**32 - 1, None], pa.uint32()),
    "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "half": pa.array([0.5, -0.0, None], pa.float16()),
    "large text": pa.array(["007", "", None], pa.large_string()),
    "text view": pa.array(["007", "", None], pa.string_view()),
    "large binary": pa.array([b"\xff", b"", None], pa.large_binary()),
    "binary view": pa.array([b"\xff", b"", None], pa.binary_view()),
    "fixed binary": pa.array([b"abc", b"\x00\x00\x00", None], pa.binary(3)),
    "date64": pa.array([0, 86_400_000, None], pa.date64()),
    **{
        f"time in {unit}": pa.array([0, 1_000_000_000, None], pa.timestamp(unit))
        for unit in ("s", "ms", "us", "ns")
    },
    "time in Tokyo": pa.array([0, 1, None], pa.timestamp("us", "Asia/Tokyo")),
    "decimal32": pa.array([Decimal("1.10"), None, None], pa.decimal32(9, 2)),
    "decimal64": pa.array([Decimal("1.10"), None, None], pa.decimal64(18, 2)),
    "decimal256": pa.array([Decimal("1.10"), None, None], pa.decimal256(50, 2)),
    "hundreds": pa.array([Decimal(100), None, None], pa.decimal128(3, -2)),
    "categories": pa.array(["b", "a", None]).dictionary_encode(),
    "runs": pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([7, None])),
    "uuid": pa.array([b"\x00" * 16, b"\xff" * 16, None], pa.uuid()),
    "json": pa.array(['{"a":1}', "[]", None], pa.json_()),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, None], pa.int8())),
    "large list": pa.array([[1, None], [], None], pa.large_list(pa.uint8())),
    "fixed list": pa.array([[1, 2], [None, 3], None], pa.list_(pa.int16(), 2)),
    "list view": pa.array([[1, None], [], None], pa.list_view(pa.int8())),
    "list of categories": pa.array([["a", None], [], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    "nothing": pa.nulls(3),
    "lists of nothing": pa.array([[], [None], None], pa.list_(pa.null())),
}
NOT_KEPT = {
    "time of day": pa.array([1, 2, None], pa.time32("s")),
    "long time of day": pa.array([1, 2, None], pa.time64("ns")),
    "duration": pa.array([1, 2, None], pa.duration("us")),
    "months": pa.array([(1, 2, 3), None, None], pa.month_day_nano_interval()),
    "nanoseconds": pa.array([1, 2, None], pa.timestamp("ns")),
    "50 digits": pa.array([Decimal(10) ** 45, None, None], pa.decimal256(50, 0)),
    "list of times of day": pa.array([[1], [], None], pa.list_(pa.time32("s"))),
    "union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]
    ),
}


def every_type():
    """Columns of three rows by name: each stored type alone and nested, and what Arrow has beyond."""
    columns = {}
    for name, (kind, values) in _extremes().items():
        columns[name] = pa.array([values[0], values[-1], None], kind)
        for nesting, (nest, fill) in NESTINGS.items():
            columns[f"{nesting} {name}"] = pa.array(fill(values), nest(kind))
    return columns | ENCODED


# Cells of Python objects, each of which is kept alone or refused by name.
CELLS = (
    *(True, 2, 2**53 + 1, 2**70, 0.5, 1e300, "a", "007", b"\xff", bytearray(b"x"), memoryview(b"y")),
    *(Decimal("1.10"), Decimal("1e-30"), Decimal(10**37), Decimal("Infinity"), Decimal("sNaN")),
    *(np.bool_(1), np.int8(1), np.uint64(2**63), np.float16(0.5), np.float32(0.1), np.float64(1.5)),
    *(
        np.str_("n"),
        np.datetime64("2026-01-01"),
        np.datetime64("2026-01-01", "us"),
        np.datetime64("2026", "Y"),
    ),
    *(np.timedelta64(1, "s"), np.complex64(1), np.void(b"1"), dt.date(2026, 1, 1), MOMENTS[3]),
    *(MOMENTS[3].replace(tzinfo=dt.UTC), dt.time(1), dt.timedelta(1), uuid.UUID(int=7)),
    *({"a": 1}, {"a": "x"}, {"b": None}, {}, {1: 2}, [1], [0.5], ["x"], [], [None], (1, 2), [("k", 1)]),
    *([("k", "v")], {1, 2}, object, 1j, np.array([1, 2]), np.array([0.5]), np.array(["a"], object)),
    *(np.zeros((2, 2)), np.array(1), np.array(["2026-01-01"], "datetime64[ns]"), range(2)),
)
