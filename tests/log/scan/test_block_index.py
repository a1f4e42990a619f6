"""Files chosen by the block are the files chosen one by one."""

import datetime as dt
import json
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.log.format.action_columns import FILE_SCHEMA
from freezeframe.log.format.conversion import PartitionColumns
from freezeframe.log.scan import block_index
from freezeframe.log.scan.block_index import Skipper, column_bounds
from freezeframe.log.scan.data_skipping import columns_of, is_only_nulls, value_bounds

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("p", pa.string()), ("d", pa.date32())])
N, S, P, D = (pc.field(name) for name in SCHEMA.names)
NAMES = {"n": "col-n", "s": "s", "p": "p", "d": "d"}
PARTITION = PartitionColumns({"p": ("p", pa.string()), "d": ("d", pa.date32())})
DAY = pa.scalar("2026-05-01").cast(pa.date32())


def statistics(number, source):
    """Mostly in the order of n; some files have nothing but nulls in it, some say nothing at all."""
    match source.randrange(12):
        case 0:
            return None
        case 1:
            return json.dumps({"numRecords": 3, "nullCount": {"col-n": 3}})
        case _:
            return json.dumps(
                {
                    "numRecords": 9,
                    "minValues": {"col-n": number * 10, "s": f"{number % 7}"},
                    "maxValues": {"col-n": number * 10 + 9, "s": f"{number % 7 + 1}"},
                    "nullCount": {"col-n": 0, "s": 0},
                }
            )


def files(count, seed):
    source = random.Random(seed)
    rows = [
        {
            "path": f"f{number}",
            "size": 1,
            "partition_values": [
                ("p", source.choice(["a", "b", None])),
                ("d", f"2026-0{source.randrange(4, 7)}-01"),
            ],
            "stats": statistics(number, source),
        }
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=FILE_SCHEMA)


def skipper(where, **sizes):
    schema = pa.schema([SCHEMA.field(name) for name in columns_of(where, SCHEMA)])
    return Skipper(where, schema, NAMES, PARTITION, **sizes)


@pytest.mark.parametrize(
    "where",
    [
        N == 5_005,
        (N > 100) & (N < 320),
        N.is_null(),
        ~N.is_valid() | (S == "9"),
        (S > "6") & (P == "a"),
        P == "b",
        P.is_null() & (D == pc.scalar(DAY)),
        D != pc.scalar(DAY),
        pc.scalar(value=False),
        pc.scalar(value=True),
    ],
    ids=str,
)
def test_blocks_change_no_answer(where):
    """Bounds, nulls, partition values and constants: with blocks of eight the same files as without any."""
    table = files(300, seed=7)
    plain = skipper(where, block_files=8, blocks_from_files=10**9).mask(table)
    in_blocks = skipper(where, block_files=8, blocks_from_files=1).mask(table)
    assert in_blocks.tolist() == plain.tolist()


def test_few_files_of_many_are_looked_at():
    """The point of it: for one key of sixty thousand files only those of its block are asked about."""
    text = (
        '{{"numRecords":1,"minValues":{{"col-n":{0}}},"maxValues":{{"col-n":{0}}},"nullCount":{{"col-n":0}}}}'
    )
    rows = [{"path": f"f{n}", "size": 1, "stats": text.format(n)} for n in range(60_000)]
    table, one_key = pa.Table.from_pylist(rows, schema=FILE_SCHEMA), skipper(N == 31_000)
    assert block_index.BLOCK_FILES == one_key.by_block(table).sum()
    assert one_key.mask(table).nonzero()[0].tolist() == [31_000]


# Bounds read from many statistics at once are those read one by one.


CENTURIES = [dt.datetime(year, 1, 1) for year in (1900, 2100)]  # noqa: DTZ001 - a column may have no zone
DAYS = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)).map(dt.date.isoformat)
MOMENTS = st.datetimes(*CENTURIES).map(lambda moment: moment.isoformat(timespec="milliseconds"))
KINDS = {
    "text": (pa.string(), st.text(max_size=4)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "byte": (pa.int8(), st.integers(-128, 200)),
    "double": (pa.float64(), st.floats(allow_infinity=False) | st.integers(-9, 9)),
    "date": (pa.date32(), DAYS),
    "moment": (pa.timestamp("us", "UTC"), MOMENTS.map(lambda text: f"{text}Z")),
    "moment without a zone": (pa.timestamp("us"), MOMENTS),
    "decimal": (pa.decimal128(9, 2), st.integers(-999, 999)),
    "truth": (pa.bool_(), st.booleans()),
}
ODD = st.sampled_from(
    [None, "", " ", "{", "[]", "{}", '{"minValues":7}', '{"a":\n1}', '{"minValues":{"x":[]}}']
)


def texts(values):
    """Statistics as writers leave them: some groups missing, nulls among the bounds, other columns too."""
    group = st.fixed_dictionaries({}, optional={"x": values | st.none(), "y": st.integers()})
    counts = st.fixed_dictionaries({}, optional={"x": st.integers(0, 2)})
    whole = st.fixed_dictionaries(
        {},
        optional={
            "numRecords": st.integers(0, 2),
            "minValues": group,
            "maxValues": group,
            "nullCount": counts,
        },
    )
    return whole.map(json.dumps)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_bounds_read_at_once_are_those_read_one_by_one(kind, data):
    """For every type, well-formed statistics and odd ones: the same low, high and nothing-but-nulls."""
    arrow, values = KINDS[kind]
    mixed = st.lists(texts(values), max_size=6) | st.lists(
        texts(values | st.text(max_size=2)) | ODD, max_size=6
    )
    statistics = data.draw(mixed) * 9  # fewer texts than that are read one by one anyway
    field = pa.field("c", arrow)

    found = column_bounds(pa.chunked_array([pa.array(statistics, pa.string())]), field, "x")

    wanted = [value_bounds(field, "x", text) for text in statistics]
    assert [(low, high) for low, high in wanted] == [
        tuple(item if item.is_valid else None for item in pair)
        for pair in zip(found.low, found.high, strict=True)
    ]
    assert [is_only_nulls("x", text) for text in statistics] == found.only_nulls.tolist()


def test_no_files_have_no_bounds():
    """An empty table is no special case."""
    found = column_bounds(pa.chunked_array([], pa.string()), pa.field("c", pa.int64()), "c")
    assert 0 == len(found.low) == len(found.high) == len(found.only_nulls)
