"""Columns of text, and what each becomes: inferred, or in a type that is known."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from freezeframe.script.text_values import NAIVE_TIMESTAMP, UTC_TIMESTAMP

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
    (["2020-01-01", "0001-12-31"], pa.date32()),
    (["2020-01-01T00:00:00.000000Z"], UTC),
    (["2020-01-01 00:00:00+00:00", None], UTC),
    (["2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00.123456+00:00"], UTC),
    (["2020-01-01 00:00:00"], NAIVE),
    ([None, None], pa.null()),
    ([], pa.null()),
)

KEPT = (
    ["1", "007"],
    ["1e5"],
    ["+33612345678"],
    ["1.50"],
    ["1.5", "2", "2.0"],
    ["12345678901234567890"],
    ["9223372036854775808"],
    ["9007199254740993.5"],
    ["-0"],
    ["-0.0"],
    [" 1"],
    ["1\n"],
    [".5"],
    ["1", ""],
    ["True", "true"],
    ["TRUE"],
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

EXACT = (
    (["1.0", "-2", None], pa.int64(), [1, -2, None]),
    (["1.50", "1e5", "-0.25"], pa.float64(), [1.5, 100000.0, -0.25]),
    (["0e5"], pa.float64(), [0.0]),
    (["0.30000000000000004"], pa.float64(), [0.30000000000000004]),
    (["1.50"], pa.decimal128(10, 1), [Decimal("1.5")]),
    (["True", "false", None], pa.bool_(), [True, False, None]),
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

INEXACT = (
    (["1", "007"], pa.int64()),
    (["1.5"], pa.int64()),
    (["9223372036854775808"], pa.int64()),
    (["300"], pa.int8()),
    (["9007199254740993"], pa.float64()),
    (["1e400"], pa.float64()),
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
