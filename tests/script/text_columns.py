"""Columns of text, and what each becomes: inferred, or in a type that is known."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa

from freezeframe.script.types.written_values import NAIVE_TIMESTAMP, UTC_TIMESTAMP

UTC = pa.timestamp("us", tz="UTC")
NAIVE = pa.timestamp("us")

TYPED = (
    (["1", "-2", None, "0"], pa.int64()),
    (["9223372036854775807", "9007199254740993"], pa.int64()),
    (["1.5", "2"], pa.float64()),
    (["1.5", "2.0"], pa.float64()),
    (["0.1"], pa.float64()),
    (["True", "False", None], pa.bool_()),
    (["true", "false"], pa.bool_()),
    (["TRUE", "FALSE"], pa.bool_()),
    (["10.5", "100", "0.25"], pa.float64()),
    (["10.50", "9.00", "100.00"], pa.float64()),
    (["1.10", "2.30", None], pa.float64()),
    (["1.50"], pa.float64()),
    (["1.0", "2.25", "-0.5"], pa.float64()),
    (["-0.25", "-12", "0"], pa.float64()),
    (["123456789012345", "0.5"], pa.float64()),
    (["0.000000000000000000123456789012345"], pa.float64()),
    (["0." + "0" * 45 + "1"], pa.float64()),
    (["9999999999999.99", "1.50"], pa.float64()),
    (["12345678901234567890"], pa.decimal128(38, 0)),
    (["9223372036854775808", "-1", None], pa.decimal128(38, 0)),
    (["9" * 38], pa.decimal128(38, 0)),
    (["9007199254740993.5"], pa.decimal128(38, 1)),
    (["1234567890123456.78", "1.50"], pa.decimal128(38, 2)),
    (["0.1234567890123456", "1", "0.5"], pa.decimal128(38, 16)),
    (["0.1234567890123456", "1.0"], pa.decimal128(38, 16)),
    (["1.5000000000000000000"], pa.decimal128(38, 19)),
    (["12345678901234567890", "0.5"], pa.decimal128(38, 1)),
    ([None, None], pa.null()),
    ([], pa.null()),
)

KEPT = (
    ["1", "007"],
    ["1e5"],
    ["+33612345678"],
    ["1.10", "1.9"],
    ["100", "10.50"],
    ["10.50", "100"],
    ["1.5", "2", "2.0"],
    ["1.0", "2.50"],
    ["10.500", "10.50"],
    ["9" * 39],
    ["0." + "0" * 40 + "10"],
    ["12345678901234567890", "0." + "1" * 19],
    ["-0"],
    ["-0.0"],
    ["1.5", "-0.0"],
    ["-0", "0"],
    ["1", "01"],
    ["1."],
    ["1,5"],
    [" 1"],
    ["1\n"],
    [".5"],
    ["1", ""],
    ["True", "true"],
    ["True", "FALSE"],
    ["true", "1"],
    ["2020-01-01", "0001-12-31"],
    ["2020-01-01T00:00:00.000000Z"],
    ["2020-01-01 00:00:00"],
    ["20200101T000000"],
    ["yes", "no"],
    ["NA"],
    ["null"],
    ["None"],
    ["nan", "1.5"],
    ["inf"],
    ["2020-02-30"],
    ["0000-01-01"],
    ["0-00-00"],
    ["2020-01-01T00:00:00-0800"],
    ["2020-01-01T00:00:00Z", "2020-01-01 00:00:00Z"],
    ["2020-01-01T00:00:00.1Z", "2020-01-01T00:00:00.10Z"],
    ["2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00.000000+00:00"],
    ["2020-01-01T00:00:00.123456789Z"],
    ["2020-01-01T24:00:00Z"],
    ['{"a": 1}'],
    ["\uff11"],
)

MOMENTS = (
    ["2020-01-01", None],
    ["2020-01-01 00:00:00", "2020-01-01T00:00:00.5"],
    ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00-0800"],
    ["2020-01-01", "2020-01-01 00:00:00"],
    ["2020-02-30"],
    ["20200101"],
    [None],
)
"""Columns in which dates and times are wanted."""

EXACT = (
    (["1.0", "-2", None], pa.int64(), [1, -2, None]),
    (["1.50", "1e5", "-0.25"], pa.float64(), [1.5, 100000.0, -0.25]),
    (["0e5"], pa.float64(), [0.0]),
    (["0.30000000000000004"], pa.float64(), [0.30000000000000004]),
    (["5.111095156218326e-06"], pa.float64(), [5.111095156218326e-06]),
    (
        ["1.2345678901234567E+30", "-12345678901234567000.0"],
        pa.float64(),
        [1.2345678901234567e30, -12345678901234567000.0],
    ),
    (["1.50"], pa.decimal128(10, 1), [Decimal("1.5")]),
    (["True", "false", None, "TRUE"], pa.bool_(), [True, False, None, True]),
    (["2020-02-29"], pa.date32(), [dt.date(2020, 2, 29)]),
    (
        ["2020-01-01T00:00:00-0800", "2020-01-01 00:00:00.5Z"],
        UTC_TIMESTAMP,
        [
            dt.datetime(2020, 1, 1, 8, tzinfo=dt.UTC),
            dt.datetime(2020, 1, 1, 0, 0, 0, 500000, tzinfo=dt.UTC),
        ],
    ),
    (["007", "1e5"], pa.string(), ["007", "1e5"]),
    ([None, None], pa.list_(pa.int8()), [None, None]),
)

PAIR = pa.struct([("n", pa.int64()), ("d", pa.decimal128(20, 2))])
LISTS = pa.list_(pa.list_(pa.date32()))
MAP = pa.map_(pa.string(), pa.float64())
NUMBERED = pa.map_(pa.int64(), pa.bool_())

# What an export writes for values that text has no value for.
WRITTEN = (
    (["NaN", "-inf", "Infinity", "1.5", None], pa.float64(), [math.nan, -math.inf, math.inf, 1.5, None]),
    (["NaN", "0.1"], pa.float32(), [math.nan, 0.10000000149011612]),
    (["", "AP8=", None], pa.binary(), [b"", b"\x00\xff", None]),
    (
        ['[["2026-01-02", null], null, []]', "[]", None],
        LISTS,
        [[[dt.date(2026, 1, 2), None], None, []], [], None],
    ),
    (
        ['{"n": 9007199254740993, "d": 9007199254740993.25}', "{}", '{"d": "0.10"}', None],
        PAIR,
        [
            {"n": 2**53 + 1, "d": Decimal("9007199254740993.25")},
            {"n": None, "d": None},
            {"n": None, "d": Decimal("0.10")},
            None,
        ],
    ),
    (
        ['{"a": 1, "b": "NaN"}', '[["a", null]]', "{}", "[]"],
        MAP,
        [[("a", 1.0), ("b", math.nan)], [("a", None)], [], []],
    ),
    (
        ["[[1, true], [2, null]]", '{"3": false}', None],
        NUMBERED,
        [[(1, True), (2, None)], [(3, False)], None],
    ),
)
NOT_WRITTEN = (
    (["nan"], pa.float64()),
    (["AP8"], pa.binary()),
    (["[1", "[]"], pa.list_(pa.int64())),
    (["null"], pa.list_(pa.int64())),
    (["[1.5]"], pa.list_(pa.int64())),
    (["[true]"], pa.list_(pa.int64())),
    (["[1]"], pa.list_(pa.string())),
    (["[NaN]"], pa.list_(pa.float64())),
    (["{}"], pa.list_(pa.int64())),
    (['{"x": 1}'], PAIR),
    (['{"n": 1, "n": 2}'], PAIR),
    (['{"n": [1]}'], PAIR),
    (['{"d": 0.105}'], PAIR),
    (["[1]"], PAIR),
    (['[["a"]]'], MAP),
    (["[[null, 1]]"], MAP),
    (['[["a", 1, 2]]'], MAP),
    (["[" * 100_000], pa.list_(pa.int64())),
)

INEXACT = (
    (["1", "007"], pa.int64()),
    (["1.5"], pa.int64()),
    (["9223372036854775808"], pa.int64()),
    (["300"], pa.int8()),
    (["9007199254740993"], pa.float64()),
    (["1e400"], pa.float64()),
    (["5.1110951562183261e-06"], pa.float64()),
    (["1e-400"], pa.float64()),
    (["nan"], pa.float64()),
    (["1.55"], pa.decimal128(10, 1)),
    (["1"], pa.bool_()),
    (["2020-02-30"], pa.date32()),
    (["2020-01-01T00:00:00"], UTC_TIMESTAMP),
    (["2020-01-01T00:00:00Z"], NAIVE_TIMESTAMP),
    (["2020-01-01T00:00:00.123456789Z"], UTC_TIMESTAMP),
    (["9999-12-31T23:59:59-0800"], UTC_TIMESTAMP),
    ([""], pa.int64()),
    (["a"], pa.binary()),
)
