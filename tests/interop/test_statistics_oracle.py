"""Extreme values written by Delta on Spark: no predicate ever loses a row to statistics, of whatever form.

Predicates are asked by us with and without skipping, and by Spark before and after our checkpoint.
"""

import json
import math
import random
import shutil
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.examples import by_turns

from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.schema import arrow_type
from freezeframe.log.table.upkeep import write_checkpoint
from freezeframe.storage import LocalStorage

pytestmark = pytest.mark.spark

FORMS = {"json": ("true", "false"), "struct": ("false", "true"), "both": ("true", "true")}
ROWS, FILE_ROWS = 36, 2
LAST_US = 253_402_300_799_999_999  # the last moment of the year 9999
TIMES = [
    0,
    1,
    999,
    1_000,
    -1,
    1_700_000_000_123_456,
    LAST_US,
    LAST_US + 1,
    9 * LAST_US,
    -62_135_596_800_000_000,
]
TINY, WIDE = Decimal("1e-10"), Decimal("9999999999999999999999999999.9999999999")
VALUES = {
    "n": ("long", [0, -1, 2**63 - 1, -(2**63), 2**53 + 1, 2**53]),
    "a.b": ("integer", [0, 7, -7, 2**31 - 1]),
    "x": ("double", [math.nan, -0.0, 0.0, math.inf, -math.inf, 1e300, 5e-324, 0.1, -5.0]),
    "f": ("float", [math.nan, -0.0, math.inf, 0.10000000149011612, 16777216.0, -3.0]),
    "t": (
        "string",
        [
            *("", "a", "a" * 40, "a" * 31 + "\U0001f600" * 3, "\U0010ffff" * 40, "\uffff" * 33),
            *("\u00e9" * 40, 'q"\\\n\x01', "\x7f" * 40, "\ue000" * 32 + "b", "\ud7ff" * 33),
        ],
    ),
    "d": ("date", [0, 1, -1, 19_000, 2_932_896, 2_932_897, 10_000_000, -719_162]),
    "m": ("timestamp", TIMES),
    "l": ("timestamp_ntz", TIMES),
    "w": (
        "decimal(38,10)",
        [WIDE, WIDE.copy_negate(), TINY, -TINY, Decimal(0), Decimal("12345678901234567.89")],
    ),
    "e": ("decimal(18,2)", [Decimal("12345678901234.56"), Decimal("-0.01"), Decimal("9999999999999999.99")]),
}
ASKED = {
    "=": lambda column, value: column == value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    "!=": lambda column, value: column != value,
    "not >=": lambda column, value: ~(column >= value),
}


def array(kind, values):
    """The values in the Arrow type of a Delta type; dates and times are given as counts."""
    target = arrow_type(kind)
    if kind in ("date", "timestamp", "timestamp_ntz"):
        whole = pa.array(values, pa.int32() if kind == "date" else pa.int64())
        return whole.cast(target)
    return pa.array(values, pa.float64() if kind == "float" else target).cast(target)


def literal(kind, value):
    """A value as SQL, without any text form that could be read in two ways."""
    match kind:
        case "string":
            return f"decode(unhex('{value.encode().hex()}'), 'UTF-8')"
        case "date":
            return f"date_from_unix_date({value})"
        case "timestamp":
            return f"timestamp_micros({value}BD)" if abs(value) > 2**62 else f"timestamp_micros({value})"
        case "timestamp_ntz":
            return f"CAST(timestamp_micros({value}) AS TIMESTAMP_NTZ)"
        case "long" | "integer":
            return f"CAST('{value}' AS {'BIGINT' if kind == 'long' else 'INT'})"
        case _:
            return f"CAST('{value}' AS {kind})"


def rows(chance):
    """Rows of random values that lie close together now and then, so that files can be told apart."""
    columns = {"id": pa.array(range(ROWS), pa.int64())}
    for name, (kind, values) in VALUES.items():
        drawn = [chance.choice([*values, None]) for _ in range(ROWS)]
        for at in range(0, ROWS, FILE_ROWS):
            if chance.random() < 0.6:
                drawn[at : at + FILE_ROWS] = [drawn[at]] * FILE_ROWS
        columns[name] = array(kind, drawn)
    inner = pa.StructArray.from_arrays([columns["n"], columns["w"]], names=["n", "w.v"])
    return pa.table({**columns, "s": inner})


def predicates(chance, count):
    """(our expression, Spark's text, whether both mean the same)."""
    for _ in range(count):
        name = chance.choice(list(VALUES))
        kind, values = VALUES[name]
        value, how = chance.choice(values), chance.choice([*ASKED, "is null"])
        inside = name == "n" and chance.random() < 0.5
        column = pc.field("s", "n") if inside else pc.field(name)
        place = "s.n" if inside else f"`{name}`"
        if how == "is null":
            yield column.is_null(), f"{place} IS NULL", True
            continue
        [scalar] = array(kind, [value])
        sql = (
            f"NOT ({place} >= {literal(kind, value)})"
            if how == "not >="
            else f"{place} {how} {literal(kind, value)}"
        )
        # Spark sorts NaN above all numbers and takes it for itself; Arrow follows IEEE 754.
        yield ASKED[how](column, pc.scalar(scalar)), sql, kind not in ("double", "float")


def spark_answers(session, path, asked):
    """For each predicate the ids that Spark finds, all asked at once, each with its own skipping."""
    parts = [f"SELECT {at} AS q, id FROM delta.`{path}` WHERE {sql}" for at, (_, sql, _) in enumerate(asked)]
    found = [[] for _ in asked]
    for row in session.sql(" UNION ALL ".join(parts)).collect():
        found[row["q"]].append(row["id"])
    return [sorted(ids) for ids in found]


@pytest.fixture
def session(delta_session):
    """Spark as it writes by default: times in INT96; its zone is UTC, for NTZ values come from moments."""
    options = {"spark.sql.parquet.outputTimestampType": "INT96", "spark.sql.session.timeZone": "UTC"}
    before = {name: delta_session.conf.get(name) for name in options}
    for name, value in options.items():
        delta_session.conf.set(name, value)
    yield delta_session
    for name, value in before.items():
        delta_session.conf.set(name, value)


def written(session, root, chance, form):
    """A table written by Spark, one commit and its checkpoint, statistics in the form asked for."""
    source, path = root / "rows.parquet", root / "t"
    pq.write_table(rows(chance), source)
    as_json, as_struct = FORMS[form]
    (
        session.read.parquet(str(source))
        .coalesce(1)
        .write.format("delta")
        .option("maxRecordsPerFile", FILE_ROWS)
        .option("delta.checkpointInterval", "1")
        .option("delta.checkpoint.writeStatsAsJson", as_json)
        .option("delta.checkpoint.writeStatsAsStruct", as_struct)
        .save(str(path))
    )
    session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('note' = 'a commit that is checkpointed')")
    return path


def check(session, root, seed, form, count, asked_of_spark):
    chance = random.Random(f"{form} {seed}")
    path = written(session, root, chance, form)
    asked = list(predicates(chance, count))
    snapshot = DeltaLog(LocalStorage(root), "t").current_snapshot
    assert snapshot.segment.checkpoint_version == snapshot.version
    whole = snapshot.to_arrow()
    right = [sorted(whole.filter(where)["id"].to_pylist()) for where, _, _ in asked]
    ours = [sorted(snapshot.to_arrow(["id"], where)["id"].to_pylist()) for where, _, _ in asked]
    sql = [text for _, text, _ in asked]
    assert dict(zip(sql, right, strict=True)) == dict(zip(sql, ours, strict=True))
    asked, right, sql = asked[:asked_of_spark], right[:asked_of_spark], sql[:asked_of_spark]
    theirs = spark_answers(session, path, asked)
    same = [at for at, (_, _, is_same) in enumerate(asked) if is_same]
    assert {sql[at]: right[at] for at in same} == {sql[at]: theirs[at] for at in same}
    later = spark_answers(session, with_our_checkpoint(root, snapshot), asked)
    assert dict(zip(sql, theirs, strict=True)) == dict(zip(sql, later, strict=True))


def with_our_checkpoint(root, snapshot):
    """A copy of the table in which our checkpoint takes the place of Spark's."""
    copy = root / "copy"
    shutil.copytree(root / "t", copy)
    log = copy / "_delta_log"
    read = DeltaLog(LocalStorage(root), "copy").current_snapshot
    assert read.files.num_rows == snapshot.count
    for file in [
        *log.glob("*.checkpoint*"),
        *log.glob("_last_checkpoint*"),
        *log.glob(".*"),
        *log.glob("*.crc"),
    ]:
        file.unlink(missing_ok=True)
    write_checkpoint(read)
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == snapshot.version
    (log / f"{0:020d}.json").unlink()  # so that nothing but the checkpoint tells of the files
    return copy


@pytest.mark.sampled
@pytest.mark.parametrize("form", by_turns(FORMS, 2))
def test_no_row_is_lost_to_statistics(session, tmp_path, form):
    """Some predicates over one table of each form; a few of them are asked of Spark, which takes longest."""
    check(session, tmp_path, 1, form, 40, 3)


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(2, 22))
def test_no_row_is_lost_to_statistics_at_length(session, tmp_path, seed, form):
    """Many predicates over many tables."""
    check(session, tmp_path, seed, form, 400, 40)
