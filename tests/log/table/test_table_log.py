"""Versions and moments: times that ascend, in-commit timestamps, what can still be read."""

import os
from datetime import UTC, date, datetime, timedelta

import pytest
from tests.log.tables import TableBuilder, file

from freezeframe.errors import CorruptLog, VersionNotFound
from freezeframe.log.format.actions import CommitInfo, Metadata
from freezeframe.log.primitives.paths import checkpoint_name, commit_name
from freezeframe.log.segments.management import iso, to_ms
from freezeframe.storage import LocalStorage
from freezeframe.storage.memory import FaultyStorage

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(minutes):
    return START + timedelta(minutes=minutes)


@pytest.fixture
def aged(tmp_path):
    """A table on disk whose commits have the times that a test gives, in minutes after START."""

    def make(minutes):
        table = TableBuilder(LocalStorage(tmp_path), "t").commits(len(minutes))
        for version, minute in enumerate(minutes):
            moment = at(minute).timestamp()
            os.utime(tmp_path / "t" / "_delta_log" / commit_name(version), (moment, moment))
        return table

    return make


def own_times(minutes, enabled_at=0):
    """A table with in-commit timestamps from version ``enabled_at`` on."""
    table = TableBuilder()
    for version, minute in enumerate(minutes):
        fields = {"timestamp": 1}
        if version >= enabled_at:
            fields["inCommitTimestamp"] = to_ms(at(minute))
        info = CommitInfo(fields)
        if version == 0:
            table.commit(info, *TableBuilder().create().accounts[0].values())
        if version == enabled_at:
            keys = {"delta.enableInCommitTimestamps": "true"}
            if version:
                keys["delta.inCommitTimestampEnablementVersion"] = str(version)
                keys["delta.inCommitTimestampEnablementTimestamp"] = str(to_ms(at(minute)))
            metadata = Metadata("the-table", None, (), keys)
            if version:
                table.commit(info, metadata)
            else:
                table = TableBuilder().commit(
                    info, TableBuilder().create().accounts[0]["protocol", ""], metadata
                )
        elif version:
            table.commit(info, file(f"f{version}"))
    return table


def test_b068_versions_older_than_the_deleted_file_retention_can_be_refused(aged):
    """Where it is switched on: eight days old is refused, six days and the latest are not."""
    day = 24 * 60
    table = aged([0, 2 * day, 2 * day + 1])
    options = {"enforce_file_retention": True, "clock": lambda: to_ms(at(8 * day))}
    with pytest.raises(VersionNotFound) as caught:
        table.log(**options).snapshot_at(0)
    code = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
    assert code == caught.value.error_code
    assert [table.log(**options).snapshot_at(version).version for version in (1, 2)] == [1, 2]
    assert table.log().snapshot_at(0).version == 0


def test_b069_history_is_newest_first_and_clipped(aged):
    """Limit, start and end choose; an end beyond the latest version is the latest."""
    log = aged([0, 1, 2, 3]).log()
    versions = [entry.version for entry in log.history()]
    assert versions == [3, 2, 1, 0]
    assert [entry.version for entry in log.history(limit=2)] == [3, 2]
    assert [entry.version for entry in log.history(start=1, end=2)] == [2, 1]
    assert [entry.version for entry in log.history(start=3, end=99)] == [3]
    assert log.history(start=3, end=1) == []
    assert TableBuilder().log().history() == []
    newest = log.history(limit=1)[0].to_json()
    assert {"version": 3, "timestamp": iso(to_ms(at(3))), "operation": "WRITE"} == newest


def test_b069_a_cached_snapshot_that_is_new_enough_is_not_updated(aged):
    """An end that the current snapshot reaches needs no update."""
    log = aged([0, 1, 2]).log()
    time = log.last_update_timestamp
    log.history(end=2)
    assert time == log.last_update_timestamp


def test_b070_times_that_go_back_are_moved_forward(aged, caplog):
    """A commit is later than the one before it, by a millisecond if its clock says otherwise."""
    caplog.set_level("INFO")
    log = aged([10, 5, 5, 20]).log()
    first = to_ms(at(10))
    assert [to_ms(at(20)), first + 2, first + 1, first] == [entry.timestamp for entry in log.history()]
    assert "do not ascend" in caplog.text
    assert log.version_at(at(10) + timedelta(milliseconds=1)) == 1


def test_b071_a_moment_finds_the_version_that_was_current(aged):
    """Exactly a commit's time gives it, a time between two the earlier one; naive times are UTC."""
    log = aged([0, 10, 20]).log()
    assert [log.version_at(at(minute)) for minute in (0, 5, 10, 15, 20)] == [0, 0, 1, 1, 2]
    assert log.version_at(at(15).replace(tzinfo=None)) == 1
    assert log.snapshot_at(timestamp=at(15)).version == 1


def test_b071_before_the_first_and_after_the_last_commit(aged):
    """Both are refused by Delta's error classes, unless the caller allows them."""
    log = aged([0, 10]).log()
    with pytest.raises(VersionNotFound) as early:
        log.version_at(at(-1))
    with pytest.raises(VersionNotFound) as late:
        log.version_at(at(11))
    assert early.value.error_code == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    assert late.value.error_code == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    assert log.version_at(at(11), can_return_last_commit=True) == 1
    assert log.active_commit_at_time(at(-1), can_return_earliest_commit=True).version == 0


def test_b072_the_earliest_version_that_can_be_made_again(aged):
    """Version 0, or the first complete checkpoint with all commits after it."""
    table = aged(range(8))
    log = table.log()
    assert log.earliest_version() == 0
    table.checkpoint(3).checkpoint(5)
    table.delete(*map(commit_name, range(2)))
    assert (log.earliest_version(), log.earliest_version(must_be_recreatable=False)) == (3, 2)
    with pytest.raises(VersionNotFound, match="versions 3 to 7") as caught:
        log.check_version_exists(2)
    assert caught.value.error_code == "DELTA_VERSION_NOT_FOUND"
    assert log.check_version_exists(3) is None
    with pytest.raises(VersionNotFound, match="non-existent version 8"):
        log.check_version_exists(8)


def test_b072_nothing_left_to_make_a_version_of(aged):
    """No commits, or commits without a beginning, each with Delta's error class."""
    table = aged(range(4))
    log = table.log()
    table.delete(commit_name(0))
    with pytest.raises(VersionNotFound) as caught:
        log.earliest_version()
    assert caught.value.error_code == "DELTA_NO_RECREATABLE_HISTORY_FOUND"
    table.delete(*map(commit_name, range(1, 4)))
    with pytest.raises(VersionNotFound) as caught:
        log.earliest_version()
    assert caught.value.error_code == "DELTA_NO_COMMITS_FOUND"


def test_b072_an_incomplete_checkpoint_is_no_beginning(aged):
    """A damaged name list does not count."""
    table = aged(range(6)).checkpoint(3).checkpoint(4)
    table.raw(checkpoint_name(3), b"")
    table.delete(*map(commit_name, range(3)))
    assert table.log().earliest_version() == 4


def test_b074_in_commit_timestamps_decide_where_they_are_on():
    """The commits' own times count, whatever the files say."""
    log = own_times([0, 10, 20, 30]).log()
    assert [log.version_at(at(minute)) for minute in (0, 10, 19, 20, 30)] == [0, 1, 1, 2, 3]
    assert to_ms(at(30)) == log.current_snapshot.timestamp
    assert [to_ms(at(minute)) for minute in (30, 20, 10, 0)] == [entry.timestamp for entry in log.history()]


def test_b074_before_they_were_enabled_the_files_times_count():
    """A moment before the enablement is looked up among older versions only."""
    log = own_times([0, 1, 10_000_000, 10_000_010], enabled_at=2).log()
    assert log.version_at(at(10_000_005)) == 2
    older = log.active_commit_at_time(at(9_999_999), can_return_last_commit=True)
    assert older.version == 1


def test_b074_only_a_few_commits_are_read_to_find_a_moment():
    """The search halves: sixty-four versions, a handful of reads."""
    table = own_times(range(64))
    storage = FaultyStorage(table.storage)
    log = TableBuilder(storage).log()
    before = sum(call.verb == "read" for call in storage.calls)
    assert log.version_at(at(40)) == 40
    assert sum(call.verb == "read" for call in storage.calls) - before <= 8


@pytest.mark.parametrize(
    ("info", "code"),
    [(CommitInfo({"timestamp": 1}), "DELTA_MISSING_COMMIT_TIMESTAMP"), (None, "DELTA_MISSING_COMMIT_INFO")],
)
def test_b074_a_version_without_its_time_is_damage(info, code):
    """In-commit timestamps are on and the newest commit has none: the table is read, its time refused."""
    table = own_times([0, 1])
    table.commit(info or CommitInfo({}), file("late"))
    if info is None:
        table.raw(commit_name(2), b'{"add":{"path":"late","partitionValues":{},"size":1}}\n')
    snapshot = table.log().current_snapshot
    assert "late" in snapshot.files["path"].to_pylist()
    with pytest.raises(CorruptLog) as caught:
        snapshot.timestamp  # noqa: B018 - it is what refuses
    assert code == caught.value.error_code


def test_a_streams_starting_version_is_the_first_at_or_after_a_moment(aged):
    """The seed's getStartingVersion: exactly a commit's time gives it, between two the later one."""
    log = aged([0, 10, 20]).log()
    assert [log.starting_version(at(minute)) for minute in (-5, 0, 5, 10, 15)] == [0, 0, 1, 1, 2]
    with pytest.raises(VersionNotFound):
        log.starting_version(at(25))
    assert log.starting_version(at(25), can_return_next_version=True) == 3


def test_a_stream_does_not_start_where_commits_are_gone(aged, tmp_path):
    """What changed between the moment and the first commit that is left is not known."""
    log = aged([0, 10, 20]).log()
    log.maintenance.checkpoint()
    (tmp_path / "t" / "_delta_log" / commit_name(0)).unlink()

    with pytest.raises(VersionNotFound, match="before the earliest version"):
        log.starting_version(at(5))
    assert log.starting_version(at(10)) == 1


@pytest.mark.parametrize(
    ("moment", "minutes"),
    [
        ("2024-01-02T03:04:00Z", 0),
        ("2024-01-02 04:04:00+01:00", 0),
        (datetime(2024, 1, 2, 3, 4), 0),  # noqa: DTZ001 - without a zone, which is UTC
        ("2024-01-02", -184),
        (date(2024, 1, 2), -184),
        (1_704_164_640_000, 0),
    ],
)
def test_a_moment_is_a_datetime_a_day_text_or_milliseconds(moment, minutes):
    """Without a zone it is in UTC, and a day begins at midnight."""
    assert to_ms(moment) == 1_704_164_640_000 + minutes * 60_000
