"""DeltaLog.for_table: one log per table, however it is spelled."""

import os
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.log.tables import TableBuilder, file

from freezeframe.errors import InvalidOption
from freezeframe.log import DeltaLog, LogOptions
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.base import OverlayStorage


@pytest.fixture(autouse=True)
def _empty_cache():
    DeltaLog.clear_cache()
    yield
    DeltaLog.clear_cache()


@pytest.fixture
def table(tmp_path):
    return TableBuilder(LocalStorage(tmp_path), "t").commits(2)


def test_b049_all_spellings_of_a_path_are_one_log(table, tmp_path):
    """A path, a string, a trailing slash, a file: URI, a link and a storage with a folder."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "t")
    log = DeltaLog.for_table(tmp_path / "t")
    spellings = [
        str(tmp_path / "t"),
        f"{tmp_path}/t/",
        f"file:{tmp_path}/t",
        f"file://{tmp_path}/t",
        f"{tmp_path}/../{tmp_path.name}/t",
        os.path.relpath(tmp_path / "t"),
        link,
    ]
    assert all(DeltaLog.for_table(spelling) is log for spelling in spellings)
    assert DeltaLog.for_table(LocalStorage(tmp_path), "t") is log


def test_b049_other_storages_are_known_by_themselves(table):
    """An overlay calls itself like the storage below it; its logs are its own all the same."""
    inner = MemoryStorage()
    TableBuilder(inner).commits(2)
    new = TableBuilder(MemoryStorage()).commits(3)
    name = "t/_delta_log/00000000000000000002.json"
    overlay = OverlayStorage(inner, {name: new.storage.read(name)}, 1)
    assert DeltaLog.for_table(inner, "t").current_snapshot.version == 1
    assert DeltaLog.for_table(overlay, "t").current_snapshot.version == 2
    assert DeltaLog.for_table(inner, "t") is DeltaLog.for_table(inner, "/t/")


def test_b041_a_cached_log_is_not_updated_by_asking(table, tmp_path):
    """`for_table` gives what is known, `for_table_with_snapshot` what is true."""
    DeltaLog.for_table(tmp_path / "t")
    table.commit(file("new"))
    assert DeltaLog.for_table(tmp_path / "t").current_snapshot.version == 1
    log, snapshot = DeltaLog.for_table_with_snapshot(tmp_path / "t")
    assert (2, log.current_snapshot) == (snapshot.version, snapshot)


def test_b049_the_cache_can_be_cleared_and_a_table_forgotten(table, tmp_path):
    """After that the log is opened again."""
    log = DeltaLog.for_table(tmp_path / "t")
    DeltaLog.invalidate_cache(str(tmp_path / "t"))
    second = DeltaLog.for_table(tmp_path / "t")
    DeltaLog.clear_cache()
    assert len({id(item) for item in (log, second, DeltaLog.for_table(tmp_path / "t"))}) == 3


def test_b049_the_cache_is_limited_in_size_and_time(tmp_path, monkeypatch):
    """The least recently used log goes first; one that was not used for the retention goes too."""
    monkeypatch.setattr(DeltaLog, "cache_size", 2)
    for name in "abc":
        TableBuilder(LocalStorage(tmp_path), name).commits(1)
    first = DeltaLog.for_table(tmp_path / "a")
    second = DeltaLog.for_table(tmp_path / "b")
    assert DeltaLog.for_table(tmp_path / "a") is first
    DeltaLog.for_table(tmp_path / "c")
    assert DeltaLog.for_table(tmp_path / "a") is first
    assert DeltaLog.for_table(tmp_path / "b") is not second
    monkeypatch.setattr(DeltaLog, "cache_retention_seconds", -1.0)
    assert DeltaLog.for_table(tmp_path / "a") is not first


def test_another_kind_of_object_store_needs_a_storage():
    """A URL of a scheme that is not opened needs a storage; the error says so."""
    with pytest.raises(InvalidOption, match="gs://bucket/t"):
        DeltaLog.for_table("gs://bucket/t")


@pytest.mark.parametrize(
    "options",
    [
        {"staleness_limit_ms": 5},
        {"spark.databricks.delta.stalenessLimit": "5ms"},
        {"staleness_limit_ms": "5"},
    ],
)
def test_the_staleness_limit_goes_by_our_name_and_by_sparks(options):
    """Both names set the same limit, as number or text."""
    assert LogOptions.from_mapping(options).staleness_limit_ms == 5


@pytest.mark.parametrize(
    ("name", "hours"),
    [("UTC", 0), ("Asia/Tokyo", 9), ("+05:30", 5.5), ("-01:00", -1), (ZoneInfo("Asia/Tokyo"), 9)],
)
def test_the_zone_of_times_without_one_goes_by_our_name_and_by_sparks(name, hours):
    """A name of the machine's list, an offset or Python's own object."""
    for option in ("time_zone", "spark.sql.session.timeZone"):
        zone = LogOptions.from_mapping({option: name}).time_zone
        assert datetime(2020, 1, 1, tzinfo=zone).utcoffset() == timedelta(hours=hours)


def test_options_that_cannot_be_are_refused():
    """A negative limit, a text that is not a number, an unknown name; Spark's other names are passed over."""
    zones = [{"time_zone": zone} for zone in ("Europe/Nowhere", "", "/etc/passwd", 5, "+99:99")]
    for wrong in ({"staleness_limit_ms": -1}, {"staleness_limit_ms": "soon"}, {"unknown": 1}, *zones):
        with pytest.raises(InvalidOption):
            LogOptions.from_mapping(wrong)
    assert LogOptions() == LogOptions.from_mapping({"spark.sql.shuffle.partitions": "5"})
    assert not LogOptions.from_mapping(
        {"spark.databricks.delta.deltaLog.minorCompaction.useForReads": "false"}
    ).use_compacted


def test_a_log_says_where_it_is(table, tmp_path):
    """For messages and for people at a prompt."""
    assert str(Path(tmp_path) / "t") in repr(DeltaLog.for_table(tmp_path / "t"))


def test_a_table_with_very_many_files_is_a_warning(caplog):
    """The threshold is Spark's; 0 switches it off."""
    table = TableBuilder().commits(6)
    assert table.log(files_warning_threshold=3).current_snapshot.count == 5
    assert "has 5 files" in caplog.text
    caplog.clear()
    assert table.log(files_warning_threshold=0).current_snapshot.count == 5
    assert caplog.text == ""
