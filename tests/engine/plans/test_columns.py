"""Columns in another type as Spark casts them: the same as Arrow, whatever the session."""

import pyarrow as pa
import pytest
from pyspark.sql.connect import functions
from pyspark.sql.types import StringType, TimestampNTZType, TimestampType

from freezeframe.engine.plans.columns import fit_column
from freezeframe.store.schema.type_compatibility import cast_to

MOMENTS = [0, 1, -1, -500_000, 1_767_225_600_123_400, -62_135_596_800_000_000, 2**62, -(2**62), None]


def texts(session, zone, make, source):
    """What Spark makes of the moments in a session of that zone."""
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = session.createDataFrame([(item,) for item in MOMENTS], "n bigint")
        text = fit_column(make(functions.col("n")), source, StringType())
        return [row.t for row in rows.select(text.alias("t")).collect()]
    finally:
        session.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.spark
def test_a_time_has_one_text(spark_session):
    """With and without a zone, also a far one: that of Arrow."""
    numbers = pa.chunked_array([pa.array(MOMENTS, pa.int64())])
    local = cast_to(numbers.cast(pa.timestamp("us")), pa.string()).to_pylist()
    instants = cast_to(numbers.cast(pa.timestamp("us", "UTC")), pa.string()).to_pylist()

    def local_time(number):
        return functions.timestamp_micros(number).cast("timestamp_ntz")

    assert local == texts(spark_session, "UTC", local_time, TimestampNTZType())
    for zone in ("UTC", "America/New_York"):
        assert instants == texts(spark_session, zone, functions.timestamp_micros, TimestampType())
