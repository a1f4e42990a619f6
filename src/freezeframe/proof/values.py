"""Values of every type come back as they went in, or are refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random

import pyarrow as pa

from freezeframe.errors import FixTheRequest
from freezeframe.proof.task import Task
from freezeframe.store import Stream

PROMISE = "A value comes back exactly as it went in, or is refused; in a time zone, as the same instant."
_TEXTS = (
    "",
    "007",
    "NA",
    "None",
    "null",
    "nan",
    "a\nb",
    'say "hi"',
    "ü😀",
    " x ",
    "é",
    "e\u0301",
    "9" * 25,
    "\u0000",
)
_UTC = dt.UTC
_MOMENTS = tuple(
    dt.datetime.fromisoformat(text)
    for text in ("1900-01-01", "1969-12-31T23:59:59.999999", "2026-03-29T02:30", "9999-12-31T23:59:59.999999")
)
_COLUMNS: tuple[tuple[str, pa.DataType, tuple[object, ...]], ...] = (
    ("text", pa.string(), _TEXTS),
    ("large text", pa.large_string(), _TEXTS),
    ("bytes", pa.binary(), (b"", b"\x00", b"\xff\xfe", b"007")),
    ("boolean", pa.bool_(), (True, False)),
    *((f"int{bits}", pa.from_numpy_dtype(f"int{bits}"), (-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1))
      for bits in (8, 16, 32, 64)),
    *((f"uint{bits}", pa.from_numpy_dtype(f"uint{bits}"), (0, 1, 2**bits - 1)) for bits in (8, 16, 32, 64)),
    ("beyond float", pa.int64(), (2**53 + 1, -(2**53) - 1)),
    ("float", pa.float32(), (0.5, -1.5, 3.4028234663852886e38, float("inf"))),
    ("double", pa.float64(), (0.1, -0.0, 5e-324, 1.7976931348623157e308, float("-inf"))),
    ("decimal", pa.decimal128(38, 10), (Decimal("0.0000000001"), Decimal("9" * 28 + ".9999999999"))),
    ("money", pa.decimal128(12, 2), (Decimal("90.50"), Decimal("-0.01"))),
    ("date", pa.date32(), (dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31))),
    ("moment", pa.timestamp("us"), _MOMENTS),
    ("instant", pa.timestamp("us", "UTC"), tuple(one.replace(tzinfo=_UTC) for one in _MOMENTS)),
    ("list", pa.list_(pa.string()), ([], ["a", None], ["007"])),
    ("record", pa.struct([("a", pa.int64()), ("b c", pa.string())]), ({"a": 1, "b c": None},)),
    ("map", pa.map_(pa.string(), pa.int64()), ([("k", 1)], [])),
)  # fmt: skip
_NAMES = ("A/R Paid", "a.b", "größe", "x y", "select", "Id2", "😀", "tab\tname", "q?=&", "__v")


def run(task: Task) -> None:
    """See the module."""
    for place, random in task.rounds():
        for number, (kind, arrow, values) in enumerate(_COLUMNS):
            cells = [*values, None]
            random.shuffle(cells)
            column = _NAMES[number % len(_NAMES)]
            table = pa.table({"Id": [str(one) for one in range(len(cells))], column: pa.array(cells, arrow)})
            tenant = place.within(f"tenant-{number}").tenant()
            try:
                tenant.stream("Values").update(table, key="Id")
            except FixTheRequest:
                task.counts["values_refused"] += len(cells)
                continue
            _compare(task, place.within(f"tenant-{number}").tenant().stream("Values"), table, kind)
            _update_one(task, tenant.stream("Values"), table, random, kind)
            task.counts["values_kept"] += len(cells)


def _compare(task: Task, stream: Stream, table: pa.Table, kind: str) -> None:
    found = stream.read(as_="arrow").sort_by("Id").to_pylist()
    expected = table.sort_by("Id").to_pylist()
    for seen, put in zip(found, expected, strict=True):
        is_same = repr(seen) == repr(put) or (kind == "uint64" and seen == put)  # kept as a decimal
        task.require(is_same, f"{kind}: {put} came back as {seen}")


def _update_one(task: Task, stream: Stream, table: pa.Table, random: Random, kind: str) -> None:
    """Send one row again: nothing may change, and nothing is written."""
    row = table.slice(random.randrange(len(table)), 1)
    receipt = stream.update(row)
    task.require(not receipt.committed, f"{kind}: the same row again made a new version")
    _compare(task, stream, table, kind)
