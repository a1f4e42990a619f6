"""Parquet files of the old calendar, as Spark 2 and Spark in the mode LEGACY leave them."""

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq

UTC = "UTC"
INSTANT = pa.timestamp("us", UTC)
# 1 January of the year 1, and the last day of the Julian calendar, in days of the hybrid calendar.
FIRST_DAY, LAST_DAY = -719_164, -141_428
DAY_US = 86_400_000_000


def write_old(file, columns, version="2.4.8", zone=UTC, legacy=(), **options):
    """Write columns whose values count in the old calendar, with the footer that says so."""
    said = {
        "org.apache.spark.version": version,
        "org.apache.spark.timeZone": zone,
        **{f"org.apache.spark.legacy{name}": "" for name in legacy},
    }
    metadata = {name: value for name, value in said.items() if value is not None}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), file, **options)
    return file


def days(*numbers):
    """Days of the old calendar."""
    return pa.array(numbers, pa.int32()).view(pa.date32())


def times(*numbers, kind=INSTANT):
    """Microseconds of the old calendar."""
    return pa.array(numbers, pa.int64()).view(kind)


OLD = {
    "id": pa.array([1, 2]),
    "d": days(FIRST_DAY, LAST_DAY),
    "t": times(FIRST_DAY * DAY_US, LAST_DAY * DAY_US),
}
NEW = {
    "id": [1, 2],
    "d": [dt.date(1, 1, 1), dt.date(1582, 10, 4)],
    "t": [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(1582, 10, 4, tzinfo=dt.UTC)],
}
