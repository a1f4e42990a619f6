"""Dates and times of any writer's Parquet files, as Spark reads them."""

import datetime as dt
import itertools
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.old_calendar import DAY_US, FIRST_DAY, INSTANT, LAST_DAY, NEW, OLD, days, times, write_old

from freezeframe.log.primitives.foreign_parquet import Calendar, ForeignParquetFile

ZONES = ["UTC", "America/Los_Angeles", "Asia/Shanghai", "+02:00", "GMT+05:30", "GMT-7", "GMT+99", "Nowhere/X"]


@pytest.fixture
def file(tmp_path):
    """A path for a Parquet file."""
    return tmp_path / "file.parquet"


@pytest.mark.parametrize(
    ("metadata", "is_old", "is_old_int96"),
    [
        (None, False, False),
        ({}, False, False),
        ({"legacyDateTime": ""}, False, False),
        ({"version": "2.4.8"}, True, True),
        ({"version": "3.0.3"}, False, True),
        ({"version": "3.1.0"}, False, False),
        ({"version": "4.1.1", "legacyDateTime": ""}, True, False),
        ({"version": "4.1.1", "legacyINT96": ""}, False, True),
    ],
)
def test_the_footer_says_which_calendar_it_is(metadata, is_old, is_old_int96):
    """By the version of Spark, or by the marks of the mode LEGACY; without a version nothing is rebased."""
    said = metadata and {
        f"org.apache.spark.{name}".encode(): text.encode() for name, text in metadata.items()
    }

    assert Calendar.of(said) == Calendar(is_old=is_old, is_old_int96=is_old_int96, zone="UTC")


def test_old_dates_and_times_show_what_they_showed(file):
    """The year, month, day and time of day stay."""
    write_old(file, OLD)

    assert NEW == ForeignParquetFile(file).read().to_pydict()


def test_every_way_of_reading_gives_the_same_rows(file):
    """Batches, row groups and columns, and null values."""
    write_old(file, {**OLD, "n": days(None, FIRST_DAY)}, row_group_size=1)
    opened = ForeignParquetFile(file)
    table = opened.read()

    assert [None, dt.date(1, 1, 1)] == table["n"].to_pylist()
    assert table.equals(pa.Table.from_batches(opened.iter_batches(1)))
    assert table.equals(opened.read_row_groups([0, 1]))
    assert table.slice(1).equals(opened.read_row_group(1))
    assert table.select(["t", "d"]).equals(opened.read(columns=["t", "d"]).select(["t", "d"]))
    assert table.schema.equals(opened.schema_arrow)


def test_nested_dates_and_times_are_read_as_well(file):
    """In structs, lists and maps, null ones among them."""
    day, moment = days(FIRST_DAY)[0], times(FIRST_DAY * DAY_US)[0]
    kind = pa.struct(
        [("l", pa.list_(pa.date32())), ("m", pa.map_(pa.date32(), INSTANT)), ("f", pa.list_(pa.date32(), 1))]
    )
    value = pa.scalar({"l": [day, None], "m": [(day, moment)], "f": [day]}, kind)
    write_old(file, {"s": pa.array([None, value, {"l": None, "m": None, "f": None}], kind)})

    first, now = dt.date(1, 1, 1), dt.datetime(1, 1, 1, tzinfo=dt.UTC)
    assert [
        None,
        {"l": [first, None], "m": [(first, now)], "f": [first]},
        {"l": None, "m": None, "f": None},
    ] == ForeignParquetFile(file).read()["s"].to_pylist()


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_a_time_of_the_type_int96_is_an_instant(file, zone):
    """Whatever Arrow's own schema says of its zone, at any depth; nanoseconds are cut."""
    moments = pa.array([-1, 1_700_000_000_000_001_999, None], pa.timestamp("ns", zone))
    columns = {"t": moments, "l": pa.array([[item] for item in moments.to_pylist()], pa.list_(moments.type))}
    pq.write_table(pa.table(columns), file, use_deprecated_int96_timestamps=True)

    table = ForeignParquetFile(file).read()
    assert [-1, 1_700_000_000_000_001, None] == table["t"].cast(pa.int64()).to_pylist()
    assert INSTANT == table.schema.field("t").type == table.schema.field("l").type.value_type
    assert table["t"].to_pylist() == [one for (one,) in table["l"].to_pylist()]


def test_a_part_of_a_struct_is_read_as_in_the_whole(file):
    """Leaves are known by their paths, whichever of them are read."""
    kind = pa.struct([("n", pa.timestamp("us")), ("t", pa.timestamp("us")), ("d", pa.date32())])
    value = {"n": None, "t": times(FIRST_DAY * DAY_US, kind=kind.field("t").type)[0], "d": days(FIRST_DAY)[0]}
    columns = {"s": pa.array([pa.scalar(value, kind)]), "x": pa.array([1])}
    write_old(file, columns, use_deprecated_int96_timestamps=True)
    opened = ForeignParquetFile(file)

    whole, part = (opened.read(columns=names)["s"][0] for names in (["s"], ["s.d", "s.t"]))
    assert INSTANT == part["t"].type
    assert {name: whole[name] for name in ("t", "d")} == dict(part.items())
    assert [dt.date(1, 1, 1)] == opened.read(columns=["s.d"])["s"].combine_chunks().field("d").to_pylist()


def test_times_without_a_zone_and_later_ones_stay(file):
    """They are of no old writer, or the same in both calendars."""
    columns = {
        "n": times(FIRST_DAY * DAY_US, kind=pa.timestamp("us")),
        "d": days(LAST_DAY + 1),
        "t": times(0),
    }
    write_old(file, columns)

    assert pa.table(columns).equals(ForeignParquetFile(file).read())


@pytest.mark.spark
@pytest.mark.parametrize("int96", [False, True], ids=["INT64", "INT96"])
def test_spark_reads_the_same(tmp_path, spark_session, int96):
    """Ten thousand values of each calendar, zone and version of Spark."""
    chance = random.Random(7)
    numbers = [chance.randrange(-90_000_000_000, -2_208_000_000) * 1_000_000 + 123_456 for _ in range(1000)]
    edges = [FIRST_DAY, FIRST_DAY - 1, LAST_DAY, LAST_DAY + 1, -25_567, -25_568, -1_000_000]
    numbers += [day * DAY_US + shift for day in edges for shift in (-1, 0, 1, 25_200_000_000, 70_000_000_000)]
    moments = times(*numbers, kind=pa.timestamp("us", None if int96 else "UTC"))
    columns = {"d": days(*(number // DAY_US for number in numbers)), "t": moments}
    forms = [
        *itertools.product(ZONES, ["2.4.8"], [()]),
        *itertools.product(["Europe/Berlin"], ["3.0.1", "4.1.1", "10.0.0"], [(), ("DateTime",), ("INT96",)]),
    ]
    for number, (zone, version, legacy) in enumerate(forms):
        file = tmp_path / f"{number}.parquet"
        write_old(file, columns, version, zone, legacy, use_deprecated_int96_timestamps=int96)
        frame = spark_session.read.parquet(file.as_uri()).selectExpr("unix_date(d) d", "unix_micros(t) t")
        theirs, read = frame.toArrow(), ForeignParquetFile(file).read()

        assert theirs["d"].to_pylist() == read["d"].cast(pa.int32()).to_pylist()
        assert theirs["t"].to_pylist() == read["t"].cast(pa.int64()).to_pylist(), (zone, version, legacy)
