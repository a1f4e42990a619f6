"""Few rows of a Spark frame come as an Arrow table; all else is left to files."""

import pyarrow as pa
import pytest

from freezeframe.engine.plans import small_frames as subject
from freezeframe.engine.plans.small_frames import small_rows
from freezeframe.engine.plans.write_batch import batch_schema
from freezeframe.engine.protocol.table_engine import WriteTask

pytestmark = pytest.mark.spark


def small(frame, *key):
    task = WriteTask("nowhere", key=key)
    return small_rows(frame, task, batch_schema(frame, task))


def test_few_rows_are_a_table_in_the_types_that_files_would_have(spark_session):
    """Instants are in UTC whatever the session's clock says, and nothing is written."""
    frame = spark_session.sql(
        "select 7 as Id, 'a' as Name, timestamp'2026-01-01 12:00:00Z' as At, 1.50bd as Amount,"
        " timestamp_ntz'2026-01-01 12:00:00' as Local, array(1, null) as Tags, null as Nothing"
    )
    found = small(frame, "Id")

    kinds = {field.name: str(field.type) for field in found.schema}
    assert ("timestamp[us, tz=UTC]", "timestamp[us]", "decimal128(3, 2)") == tuple(
        kinds[name] for name in ("At", "Local", "Amount")
    )
    assert "null" == kinds["Nothing"]
    row = found.to_pylist()[0]
    assert ("2026-01-01 12:00:00+00:00", [1, None]) == (str(row["At"]), row["Tags"])


@pytest.mark.parametrize(
    "query",
    [
        "select 1 as Id union all select 1",
        "select cast(null as int) as Id",
        "select 1d as Id",
        "select 1 as Id, cast(x'ff' as string) as Name",
    ],
    ids=["keys that repeat", "a key that is missing", "a key of floating point", "text that is not UTF-8"],
)
def test_rows_that_need_a_decision_are_left_to_files(spark_session, query):
    """What is done with such rows is said in one place, however many they are."""
    assert small(spark_session.sql(query), "Id") is None


def test_many_rows_are_left_to_files(spark_session, monkeypatch):
    """By the estimate before they are asked for; where it is wrong, as soon as they are too many."""
    assert small(spark_session.range(10_000_000)) is None
    monkeypatch.setattr(subject, "ROWS_MAX", 100)
    assert 100 == len(small(spark_session.range(100)))
    assert small(spark_session.range(101)) is None
    assert small(spark_session.sql("select explode(sequence(1, 1000000)) as Id")) is None


def test_a_frame_of_no_rows_is_a_table_of_none(spark_session):
    """Its columns and types are there."""
    found = small(spark_session.range(0), "id")

    assert (0, pa.int64()) == (len(found), found.schema.field("id").type)
