"""What becomes of each type that meets each other type: the matrix that the reference shows.

Its cells are decided by the rules that an update itself goes by, for two sets of values: the
smallest and largest ones that each type has, and a few that every number type can hold. Tests
carry each cell out; ``tools/write_reference.py`` writes the page.
"""  # noqa: INP001 - a script's, no package

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

import pyarrow as pa

from freezeframe.engine.frames.batch import check_batch
from freezeframe.errors import BadInput
from freezeframe.store.schema.schema_evolution import Evolution, SchemaRules, evolve, is_undecided

Policy = Literal["strict", "widen", "string"]
Place = Literal["value", "key"]
Size = Literal["extreme", "small"]
Fate = Literal["same", "taken", "widened", "text", "refused"]

POLICIES: tuple[Policy, ...] = get_args(Policy)
SIZES: tuple[Size, ...] = get_args(Size)
RULES = {
    "strict": SchemaRules(frozen=True),
    "widen": SchemaRules(),
    "string": SchemaRules(drift_to_text=True),
}


@dataclass(frozen=True, slots=True)
class SparkType:
    """A type by Spark's name, and distinct values, none of them null; ``small`` numbers fit every number."""

    name: str
    arrow: pa.DataType
    extreme: tuple[Any, ...]
    small: tuple[Any, ...] = ()

    def values(self, size: Size) -> tuple[Any, ...]:
        """Its values; a type that is no number has one set."""
        return (self.small or self.extreme) if size == "small" else self.extreme

    def column(self, size: Size) -> pa.ChunkedArray:
        """Its values as a column; two nulls for the type without values."""
        return pa.chunked_array([pa.array(self.values(size) or (None, None), self.arrow)])


@dataclass(frozen=True, slots=True)
class Cell:
    """What becomes of an incoming type that meets a stored one; ``kind`` is the column's type then."""

    stored: SparkType
    incoming: SparkType
    fate: Fate
    kind: pa.DataType | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the update is carried out, with every value exactly as it was."""
        return self.fate != "refused"


def _whole(name: str, kind: pa.DataType, bits: int) -> SparkType:
    return SparkType(name, kind, (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), (0, 1))


def _decimal(precision: int, scale: int) -> SparkType:
    most = Decimal((0, (9,) * precision, -scale))
    small = (Decimal(0), Decimal(1))
    kind = pa.decimal128(precision, scale)
    return SparkType(f"decimal({precision},{scale})", kind, (most, most.copy_negate()), small)


_PAIR = pa.struct([("a", pa.int64()), ("b", pa.string())])
_SINGLE = pa.struct([("a", pa.int32())])

TYPES: tuple[SparkType, ...] = (
    SparkType("boolean", pa.bool_(), (False, True)),
    _whole("byte", pa.int8(), 8),
    _whole("short", pa.int16(), 16),
    _whole("int", pa.int32(), 32),
    _whole("long", pa.int64(), 64),
    SparkType(
        "float", pa.float32(), (float.fromhex("0x1.99999ap-4"), float("nan"), float("-inf")), (0.0, 1.0)
    ),
    SparkType("double", pa.float64(), (0.1, float("nan"), 5e-324, 1.7976931348623157e308), (0.0, 1.0)),
    _decimal(9, 2),
    _decimal(18, 4),
    _decimal(20, 0),
    _decimal(38, 18),
    SparkType("string", pa.string(), ("007", "NA", "", "9007199254740993"), ("X9", "0")),
    SparkType("binary", pa.binary(), (b"", b"\x00\xff")),
    SparkType("date", pa.date32(), (dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    SparkType(
        "timestamp",
        pa.timestamp("us", "UTC"),
        (
            dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
        ),
    ),
    SparkType(
        "timestamp_ntz",
        pa.timestamp("us"),
        tuple(map(dt.datetime.fromisoformat, ("1900-01-01", "9999-12-31T23:59:59.999999"))),
    ),
    SparkType("array<int>", pa.list_(pa.int32()), ([], [1, None], [2**31 - 1])),
    SparkType("array<double>", pa.list_(pa.float64()), ([0.1, None], [1.7976931348623157e308])),
    SparkType("array<struct<a int>>", pa.list_(_SINGLE), ([{"a": 1}, None], [])),
    SparkType("map<string, int>", pa.map_(pa.string(), pa.int32()), ([("", 1), ("b c", None)], [])),
    SparkType("map<string, string>", pa.map_(pa.string(), pa.string()), ([("a", "007")], [])),
    SparkType("struct<a int>", _SINGLE, ({"a": 1}, {"a": None})),
    SparkType("struct<a long, b string>", _PAIR, ({"a": 2**53 + 1, "b": "NA"}, {"a": None, "b": ""})),
    SparkType("void", pa.null(), ()),
)


def cells(place: Place, policy: Policy, size: Size) -> Iterator[Cell]:
    """All cells, stored type by stored type, by the rules of an update."""
    decide = _key_cell if place == "key" else _value_cell
    for stored in TYPES:
        for incoming in TYPES:
            yield decide(stored, incoming, policy, size)


def _value_cell(stored: SparkType, incoming: SparkType, policy: Policy, size: Size) -> Cell:
    try:
        evolution = _evolved(stored, incoming, policy, size)
    except BadInput:
        return Cell(stored, incoming, "refused")
    return Cell(stored, incoming, _fate(stored, incoming, evolution), evolution.target.field("v").type)


def _key_cell(stored: SparkType, incoming: SparkType, policy: Policy, size: Size) -> Cell:
    try:
        for kind in (stored, incoming):
            check_batch(pa.table({"v": kind.column(size)}), "v")
        evolution = _evolved(stored, incoming, policy, size, key=("v",))
    except BadInput:
        return Cell(stored, incoming, "refused")
    return Cell(stored, incoming, _fate(stored, incoming, evolution), evolution.target.field("v").type)


def _evolved(
    stored: SparkType, incoming: SparkType, policy: Policy, size: Size, key: tuple[str, ...] = ()
) -> Evolution:
    columns = evolve(None, pa.table({"v": stored.column(size)})).target
    values = stored.values(size)
    ranges = {"v": (min(values), max(values))} if stored.arrow == pa.int64() else {}
    batch = pa.table({"v": incoming.column(size)})
    return evolve(columns, batch, key=key, ranges=ranges.get, rules=RULES[policy])


def _fate(stored: SparkType, incoming: SparkType, evolution: Evolution) -> Fate:
    field = evolution.target.field("v")
    if stored == incoming:
        return "same"
    if is_undecided(field) or not evolution.widened:
        return "taken"
    is_text = pa.types.is_string(field.type) and not pa.types.is_null(stored.arrow)
    return "text" if is_text else "widened"
