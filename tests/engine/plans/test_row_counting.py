"""Counts of rows that are written, whether Spark tells them in time or not."""

import pytest
from pyspark.sql.connect.functions import col, count, count_if, lit

from freezeframe.engine.plans.write_batch import Counting

pytestmark = pytest.mark.spark


@pytest.fixture
def counting(spark_session):
    return Counting(
        spark_session.range(10),
        rows=count(lit(1)),
        even=count_if(col("id") % 2 == 0),
        none=count_if(lit(False)),
    )


def test_counts_are_known_after_the_write(counting, bench):
    """What was written was counted, and a count of nothing is zero."""
    counting.frame().write.parquet(bench.new())
    assert counting.counts() == {"rows": 10, "even": 5, "none": 0}


def test_counts_that_spark_did_not_tell_are_asked_for(counting):
    """A busy server answers without them; a frame that was observed and not written has none either."""
    counting.frame()
    assert counting.counts() == {"rows": 10, "even": 5, "none": 0}


def test_a_frame_without_rows_counts_zero(spark_session, bench):
    """A plan that Spark saw to be empty observes nothing."""
    nothing = Counting(spark_session.range(10).where(lit(False)), rows=count(lit(1)))
    nothing.frame().write.parquet(bench.new())
    assert nothing.counts() == {"rows": 0}
