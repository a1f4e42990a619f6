"""Columns of JSON values: what is known of each, the values as JSON, and the type that they become."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

UTC = pa.timestamp("us", tz="UTC")
NAIVE = pa.timestamp("us")
CENTS = pa.decimal128(38, 2)
WIDE = pa.decimal128(38, 18)
OBJECT = pa.struct([("a", pa.int64())])

# (values as JSON text, None for a line without the column; the type; the values)
OWN = [
    ([None, "null"], pa.null(), [None, None]),
    (["true", None, "false"], pa.bool_(), [True, None, False]),
    (["1", "-9007199254740993", "0"], pa.int64(), [1, -(2**53) - 1, 0]),
    (["9223372036854775807", "-9223372036854775808"], pa.int64(), [2**63 - 1, -(2**63)]),
    (["9007199254740992", "0.5", "-9007199254740992"], pa.float64(), [2.0**53, 0.5, -(2.0**53)]),
    (["1", "1.0", "-0.0", "1e3"], pa.float64(), [1.0, 1.0, -0.0, 1000.0]),
    (["1", "-0", "1e3", "9E+18"], pa.int64(), [1, 0, 1000, 9 * 10**18]),
    (["0.30000000000000004", "1.10", "1e300", "5e-324"], pa.float64(), [0.1 + 0.2, 1.1, 1e300, 5e-324]),
    (["1", "9223372036854775808"], pa.decimal128(38, 0), [Decimal(1), Decimal(2**63)]),
    (["1234567890123456.789"], WIDE, [Decimal("1234567890123456.789")]),
    (["0.5", "9007199254740993"], WIDE, [Decimal("0.5"), Decimal(2**53 + 1)]),
    (["9007199254740993", "1e-7", "1.5e1"], WIDE, [Decimal(2**53 + 1), Decimal("1e-7"), Decimal(15)]),
    (["0.10000000000000000000000001"], pa.decimal128(38, 26), [Decimal("0.10000000000000000000000001")]),
    (
        ["1180591620717411303424", "0.25"],
        pa.decimal128(38, 2),
        [Decimal(2**70), Decimal("0.25")],
    ),
    (['"007"', '""', '"NaN"', '"é\\u00e9\\ud83d\\ude00\\n"'], pa.string(), ["007", "", "NaN", "éé😀\n"]),
    (['"2020-01-01"', '"2020-01-01T00:00:00Z"'], pa.string(), ["2020-01-01", "2020-01-01T00:00:00Z"]),
    (["[]", "[null]", "null", "[1]"], pa.list_(pa.int64()), [[], [None], None, [1]]),
    (["[1]", "[0.5]", "[9007199254740992]"], pa.list_(pa.float64()), [[1.0], [0.5], [2.0**53]]),
    (["[]", "null"], pa.list_(pa.null()), [[], None]),
    (
        ["[1, 0.1]", "[12345678901234567.25, null]"],
        pa.list_(WIDE),
        [[Decimal(1), Decimal("0.1")], [Decimal("12345678901234567.25"), None]],
    ),
    (
        ['{"a": 1}', "null", '{"b": [{"c": "x"}]}', '{"b": [{"d": true}], "a": null}'],
        pa.struct(
            [
                ("a", pa.int64()),
                ("b", pa.list_(pa.struct([("c", pa.string()), ("d", pa.bool_())]))),
            ]
        ),
        [
            {"a": 1, "b": None},
            None,
            {"a": None, "b": [{"c": "x", "d": None}]},
            {"a": None, "b": [{"c": None, "d": True}]},
        ],
    ),
]

# (values as JSON text, the type that is known, the type that they become, the values)
KNOWN = [
    (["null", None], pa.int64(), pa.int64(), [None, None]),
    (["1", "2.0", '"3"'], pa.int64(), pa.int64(), [1, 2, 3]),
    (["1", "2.5"], pa.int64(), pa.float64(), [1.0, 2.5]),
    (['"1"', '"007"'], pa.int64(), pa.string(), ["1", "007"]),
    (["true"], pa.int64(), pa.bool_(), [True]),
    (["127", "-128"], pa.int8(), pa.int8(), [127, -128]),
    (["128", "1"], pa.int8(), pa.int64(), [128, 1]),
    (["9007199254740993", "1"], pa.float64(), pa.int64(), [2**53 + 1, 1]),
    (["1", '"-Infinity"', "0.1"], pa.float64(), pa.float64(), [1.0, float("-inf"), 0.1]),
    (["0.1", "0.5", "16777216"], pa.float32(), pa.float32(), [0.10000000149011612, 0.5, 2.0**24]),
    (["16777217"], pa.float32(), pa.int64(), [2**24 + 1]),
    (
        ["9007199254740993", "0.5"],
        CENTS,
        CENTS,
        [Decimal("9007199254740993.00"), Decimal("0.50")],
    ),
    (
        ['"1.25"', "18446744073709551616"],
        CENTS,
        CENTS,
        [Decimal("1.25"), Decimal("18446744073709551616.00")],
    ),
    (
        ["0.30000000000000004"],
        pa.decimal128(38, 20),
        pa.decimal128(38, 20),
        [Decimal("0.30000000000000004")],
    ),
    (["0.30000000000000004"], CENTS, pa.float64(), [0.30000000000000004]),
    (["1234567890123456.789"], pa.float64(), WIDE, [Decimal("1234567890123456.789")]),
    (['"x"', '""'], pa.string(), pa.string(), ["x", ""]),
    (["7"], pa.string(), pa.int64(), [7]),
    (["true", "false"], pa.bool_(), pa.bool_(), [True, False]),
    (["1", "0"], pa.bool_(), pa.int64(), [1, 0]),
    (['"2020-02-29"'], pa.date32(), pa.date32(), [dt.date(2020, 2, 29)]),
    (['"2020-02-30"'], pa.date32(), pa.string(), ["2020-02-30"]),
    (['"2020-01-01T00:00:00Z"'], UTC, UTC, [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
    (['"2020-01-01 00:00:00.5"'], NAIVE, NAIVE, [dt.datetime.fromisoformat("2020-01-01 00:00:00.5")]),
    (['"aGk="', '""'], pa.binary(), pa.binary(), [b"hi", b""]),
    (['"a-b"'], pa.binary(), pa.string(), ["a-b"]),
    (["{}", '{"a": 2}'], OBJECT, OBJECT, [{"a": None}, {"a": 2}]),
    (['{"a": 1, "b": 2}'], OBJECT, pa.struct([("a", pa.int64()), ("b", pa.int64())]), [{"a": 1, "b": 2}]),
    (['{"a": 1.5}'], OBJECT, pa.struct([("a", pa.float64())]), [{"a": 1.5}]),
    (["[1, 2]"], pa.list_(pa.float64()), pa.list_(pa.float64()), [[1.0, 2.0]]),
    (["[1]"], pa.string(), pa.list_(pa.int64()), [[1]]),
    (
        ['{"on": "2020-02-29", "n": "1.5"}', "null", '{"n": 2}'],
        pa.struct([("on", pa.date32()), ("n", CENTS)]),
        pa.struct([("on", pa.date32()), ("n", CENTS)]),
        [
            {"on": dt.date(2020, 2, 29), "n": Decimal("1.50")},
            None,
            {"on": None, "n": Decimal("2.00")},
        ],
    ),
    (
        ['[["a", "2020-02-29"], ["b", null]]', "[]", "null"],
        pa.map_(pa.string(), pa.date32()),
        pa.map_(pa.string(), pa.date32()),
        [[("a", dt.date(2020, 2, 29)), ("b", None)], [], None],
    ),
]

# (lines before, the line that has another kind of value)
MIXED = [
    ('{"a": 1}', '{"a": "x"}'),
    ('{"a": 0.5}', '{"a": true}'),
    ('{"a": 1e300}', '{"a": 9007199254740993}'),
    ('{"a": 1e-30}', '{"a": 1180591620717411303424}'),
    ('{"a": 1}', '{"a": 123456789012345678901234567890123456789}'),
    ('{"a": {"b": 1}}', '{"a": {"b": []}}'),
    ('{"a": {"b": [0.5]}}', '{"a": {"b": [true]}}'),
    ('{"a": [1]}', '{"a": [[]]}'),
    ('{"a": null}', '{"a": [1, "x"]}'),
]
