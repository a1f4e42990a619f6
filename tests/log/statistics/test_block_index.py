"""Files chosen by the block are the files chosen one by one."""

import json
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from freezeframe.log.format.action_columns import FILE_SCHEMA
from freezeframe.log.format.conversion import PartitionColumns
from freezeframe.log.scan import block_index
from freezeframe.log.scan.block_index import Skipper
from freezeframe.log.scan.data_skipping import columns_of

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
