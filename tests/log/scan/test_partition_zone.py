"""Partition values that are instants and name no zone: times of the zone that the options name."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.log.data_files import append, created

from freezeframe.log import DeltaLog, LogOptions

SCHEMA = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
MOMENT = datetime(2020, 7, 1, 0, 30, tzinfo=UTC)
THERE = LogOptions(time_zone=ZoneInfo("Europe/Berlin"))


@pytest.fixture
def table(tmp_path):
    """A table whose one file is of half past two by the clocks of Berlin, without naming a zone."""
    structs = {"delta.checkpoint.writeStatsAsStruct": "true"}
    log = created(tmp_path, SCHEMA, ["at"], structs)
    append(log, pa.table({"n": [1], "at": [MOMENT]}, SCHEMA))
    commit = tmp_path / "_delta_log" / f"{1:020}.json"
    _, text = commit.read_text().split("\n", 1)  # without the commit info and its digest of the rest
    assert "2020-07-01T00:30:00.000000Z" in text
    commit.write_text(text.replace("2020-07-01T00:30:00.000000Z", "2020-07-01 02:30:00"))
    DeltaLog.clear_cache()
    yield str(tmp_path)
    DeltaLog.clear_cache()


def test_rows_partitions_and_predicates_take_the_zone(table):
    """Read in the zone of the writer the moment is the one that it meant."""
    there = DeltaLog.open(table, options=THERE).snapshot
    assert there.to_arrow()["at"].to_pylist() == [MOMENT]
    assert there.partitions() == [{"at": MOMENT}]
    assert there.to_dataset().to_table()["at"].to_pylist() == [MOMENT]
    assert len(there.file_uris(pc.field("at") <= MOMENT)) == 1


def test_without_the_zone_it_is_utc(table):
    """Two hours later here."""
    here = DeltaLog.open(table).snapshot
    assert here.partitions() == [{"at": MOMENT.replace(hour=2)}]
    assert here.file_uris(pc.field("at") <= MOMENT) == []


def test_a_checkpoint_has_the_moment_that_was_meant(table, tmp_path):
    """Its typed partition values are instants in UTC."""
    DeltaLog.open(table, options=THERE).maintenance.checkpoint()
    [path] = tmp_path.glob("_delta_log/*.checkpoint.parquet")
    adds = [row for row in pq.read_table(path)["add"].to_pylist() if row]
    assert [add["partitionValues_parsed"]["at"] for add in adds] == [MOMENT]
