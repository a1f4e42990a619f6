"""SnapshotManagement: updating, staleness, the background thread, fallback and what is logged."""

import logging
import threading
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from tests.log.tables import TableBuilder, file, paths

from freezeframe.errors import CorruptLog, InvalidOption, StorageUnavailable, VersionNotFound
from freezeframe.log import SnapshotManagement
from freezeframe.log.format.actions import Metadata, Protocol, Remove
from freezeframe.log.primitives.listing import LOOKED_UP_COMMITS_MAX
from freezeframe.log.primitives.paths import checkpoint_name, commit_name
from freezeframe.log.segments.management import THREADS_MAX, to_ms
from freezeframe.log.table.upkeep import write_checkpoint
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import Fault, FaultyStorage, Way


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now=1_000_000):
        self.now = now

    def __call__(self):
        return self.now


class Gate(FaultyStorage):
    """A storage whose listings wait until the gate is opened."""

    def __init__(self, inner):
        super().__init__(inner)
        self.open = threading.Event()
        self.open.set()
        self.waiting = threading.Event()

    def list_from(self, folder, start=""):
        self.waiting.set()
        assert self.open.wait(10)
        return super().list_from(folder, start)


def gated(**options):
    table = TableBuilder(MemoryStorage()).commits(3)
    gate = Gate(table.storage)
    clock = Clock()
    return table, gate, clock, TableBuilder(gate).log(clock=clock, **options)


def listings(storage):
    return sum(call.verb == "list_from" for call in storage.calls)


def test_a_delta_log_is_a_snapshot_management():
    """The seed's own check."""
    log = TableBuilder().commits(1).log()
    assert isinstance(log, SnapshotManagement)
    assert log.update(staleness_acceptable=False).version == 0


@pytest.mark.parametrize("names", [[], ["foo", "notdelta.parquet", "_last_checkpoint"]])
def test_b001_no_log_is_version_minus_one(names):
    """A missing or foreign folder is a table that does not exist yet, not an error."""
    table = TableBuilder()
    for name in names:
        table.raw(name, b"x")
    snapshot = table.log().current_snapshot
    assert (
        snapshot.version,
        snapshot.exists,
        snapshot.count,
        snapshot.transactions,
        snapshot.delta_schema["fields"],
    ) == (-1, False, 0, {}, [])


def test_b001_a_table_that_is_deleted_becomes_version_minus_one_and_can_come_back():
    """Update follows the folder: gone, and made anew."""
    table = TableBuilder().commits(2)
    log = table.log()
    table.delete(*map(commit_name, range(2)))
    assert log.update().version == -1
    TableBuilder(table.storage).commits(1)
    assert log.update().version == 0


def test_b003_listing_starts_at_the_hint_and_later_at_the_checkpoint():
    """Neither opening nor updating lists what lies before the checkpoint."""

    class Starts(MemoryStorage):
        def __init__(self):
            super().__init__()
            self.starts = []

        def list_from(self, folder, start=""):
            self.starts.append(start)
            return super().list_from(folder, start)

    table = TableBuilder(Starts()).commits(12).checkpoint(10).hint(10)
    log = table.log()
    table.commit(file("new"))
    log.update()
    assert [f"{10:020d}"] * 2 == table.storage.starts


def test_b015_a_hint_beyond_the_log_means_listing_from_zero():
    """The table was made anew while an old hint stayed."""
    assert TableBuilder().commits(3).hint(30).log().current_snapshot.version == 2


def test_b016_a_hinted_checkpoint_that_is_not_there_costs_only_a_fallback():
    """The previous complete checkpoint is taken; without any way back the error names the version."""
    table = TableBuilder().commits(13).checkpoint(5).hint(10)
    assert table.log().current_snapshot.segment.checkpoint_version == 5
    table.delete(checkpoint_name(5))
    table.delete(*map(commit_name, range(10)))
    with pytest.raises(CorruptLog, match="checkpoint version: 10") as caught:
        table.log()
    assert caught.value.error_code == "DELTA_MISSING_PART_FILES"


def test_b017_a_fallback_segment_ignores_compacted_files_and_is_checked():
    """What replaces a missing checkpoint is made of plain commits without a gap."""
    table = TableBuilder().commits(13).checkpoint(5).compact(6, 9).hint(10)
    segment = table.log().current_snapshot.segment
    assert ((), list(range(6, 13))) == (segment.compacted, [commit.version for commit in segment.commits])


def test_b019_a_commit_that_was_replaced_makes_a_new_snapshot():
    """Same name, other time: another table lies there now."""
    table = TableBuilder().create().commit(file("old"))
    log = table.log()
    before = log.current_snapshot
    assert paths(before) == ["old"]
    TableBuilder(table.storage).create().commit(file("new-one"))
    after = log.update()
    assert before is not after
    assert paths(after) == ["new-one"]


def test_b039_an_update_without_news_gives_the_same_object_and_a_newer_time():
    """Nothing new: nothing is made; only the timestamp moves, and never back."""
    clock = Clock()
    log = TableBuilder().commits(3).log(clock=clock)
    before = log.current_snapshot
    clock.now += 5
    assert log.update() is before
    assert clock.now == log.last_update_timestamp
    clock.now -= 100
    assert log.update() is before
    assert clock.now + 100 == log.last_update_timestamp


def test_b040_a_new_snapshot_uncaches_the_old_one_which_stays_readable():
    """The old state is let go of when the new snapshot is installed, and read again if asked."""
    table = TableBuilder().commits(3)
    log = table.log()
    old = log.current_snapshot
    expected = paths(old)
    table.commit(file("new"))
    new = log.update()
    assert (old.is_loaded, new.is_loaded) == (False, True)
    assert paths(old) == expected


def test_b042_an_update_that_is_recent_enough_needs_no_listing():
    """`check_if_updated_since` at or before the last update: the storage is not asked."""
    clock = Clock()
    storage = FaultyStorage(TableBuilder().commits(2).storage)
    log = TableBuilder(storage).log(clock=clock)
    before = listings(storage)
    assert log.update(check_if_updated_since=clock.now) is log.current_snapshot
    assert before == listings(storage)
    log.update(check_if_updated_since=clock.now + 1)
    assert before + 1 == listings(storage)


def test_b043_with_a_limit_of_zero_every_update_is_synchronous():
    """The default: no snapshot is ever fresh enough."""
    table = TableBuilder().commits(2)
    log = table.log()
    assert log.is_snapshot_stale
    table.commit(file("new"))
    assert log.update(staleness_acceptable=True).version == 2


def test_b043_a_fresh_snapshot_is_given_at_once_and_updated_in_the_background():
    """Within the limit the caller does not wait; one thread brings the news."""
    table, gate, _, log = gated(staleness_limit_ms=1000)
    table.commit(file("new"))
    gate.open.clear()
    gate.waiting.clear()
    assert log.update(staleness_acceptable=True).version == 2
    assert gate.waiting.wait(10)
    gate.open.set()
    log._async_update.result(10)
    assert log.current_snapshot.version == 3


def test_b043_at_most_one_background_update_is_under_way():
    """However many callers accept a stale snapshot, one listing runs."""
    _, gate, _, log = gated(staleness_limit_ms=1000)
    before = listings(gate)
    gate.open.clear()
    for _ in range(20):
        log.update(staleness_acceptable=True)
    gate.open.set()
    log._async_update.result(10)
    assert before + 1 == listings(gate)


@pytest.mark.parametrize(("age", "stale"), [(0, False), (999, False), (1000, True), (5000, True)])
def test_b043_at_least_the_limit_old_is_stale(age, stale):
    """The seed's rule: exactly the limit is stale."""
    clock = Clock()
    log = TableBuilder().commits(1).log(clock=clock, staleness_limit_ms=1000)
    clock.now += age
    assert stale is log.is_snapshot_stale


def test_b043_past_the_limit_the_caller_waits_for_the_update():
    """A stale snapshot is not given, even where staleness is acceptable."""
    table, _, clock, log = gated(staleness_limit_ms=1000)
    table.commit(file("new"))
    clock.now += 1000
    assert log.update(staleness_acceptable=True).version == 3


def test_b043_a_background_update_that_fails_is_logged_and_the_next_one_runs(caplog):
    """Nobody waits for it, so nobody sees the error but the log."""
    table = TableBuilder().commits(2)
    log = table.log(staleness_limit_ms=10**9)
    log.storage = FaultyStorage(table.storage, [Fault(0, Way.FAIL_BEFORE, "list_from")])
    log.update(staleness_acceptable=True)
    log._async_update.result(10)
    assert "asynchronous update" in caplog.text
    table.commit(file("new"))
    log.update(staleness_acceptable=True)
    log._async_update.result(10)
    assert log.current_snapshot.version == 2


def test_b043_an_upgrade_that_a_background_update_meets_is_logged(caplog):
    """A table that its protocol makes unreadable is no error of the thread: it reaches the log file."""
    table = TableBuilder().commits(2)
    log = table.log(staleness_limit_ms=10**9)
    table.commit(Protocol(3, 7, ("fromTheFuture",), ("fromTheFuture",)))
    log.update(staleness_acceptable=True)
    log._async_update.result(10)
    assert "fromTheFuture" in caplog.text


def test_b043_many_logs_share_a_few_threads():
    """Sixty logs that update in the background have the threads of one pool."""
    tables = [TableBuilder().commits(2) for _ in range(60)]
    logs = [table.log(staleness_limit_ms=10**9) for table in tables]
    for table, log in zip(tables, logs, strict=True):
        table.commit(file("new"))
        log.update(staleness_acceptable=True)
    for log in logs:
        log._async_update.result(10)
    assert {2} == {log.current_snapshot.version for log in logs}
    updating = [item for item in threading.enumerate() if item.name.startswith("freezeframe-state-update")]
    assert 1 <= len(updating) <= THREADS_MAX


def test_b044_try_update_gives_the_current_snapshot_while_another_updates():
    """Whoever finds the lock taken does not wait."""
    table, gate, _, log = gated()
    table.commit(file("new"))
    gate.open.clear()
    gate.waiting.clear()
    other = threading.Thread(target=log.update)
    other.start()
    assert gate.waiting.wait(10)
    assert log.try_update().version == 2
    gate.open.set()
    other.join(10)
    assert log.try_update().version == 3


def test_b046_a_failed_update_leaves_snapshot_and_time_as_they_were():
    """Neither a storage that fails nor a damaged commit moves anything."""
    clock = Clock()
    table = TableBuilder().commits(2)
    log = table.log(clock=clock)
    before, time = log.current_snapshot, log.last_update_timestamp
    clock.now += 10
    log.storage = FaultyStorage(table.storage, [Fault(0, Way.FAIL_BEFORE, "list_from")])
    with pytest.raises(StorageUnavailable):
        log.update()
    table.raw(commit_name(2), b'{"add":{"path":"torn')
    with pytest.raises(CorruptLog):
        log.update()
    assert (before, time) == (log.current_snapshot, log.last_update_timestamp)


def test_b047_an_update_picks_up_a_newer_checkpoint():
    """The new segment has the checkpoint and only the commits after it."""
    table = TableBuilder().commits(9)
    log = table.log()
    assert log.current_snapshot.count == 8
    table.commits(15).checkpoint(10)
    segment = log.update().segment
    assert (segment.checkpoint_version, [commit.version for commit in segment.commits]) == (
        10,
        [11, 12, 13, 14],
    )
    assert table.live() == paths(log.current_snapshot)


def test_b047_an_update_past_a_new_checkpoint_does_not_read_it():
    """What is known plus what is new is enough: the cost of an update is what is new."""
    table = TableBuilder().commits(9)
    storage = FaultyStorage(table.storage)
    log = TableBuilder(storage).log()
    assert log.current_snapshot.count
    table.commits(15).checkpoint(10)
    assert table.live() == paths(log.update())
    assert not [call for call in storage.calls if "checkpoint.parquet" in call.name]


def test_b048_a_changed_table_id_is_a_warning(caplog):
    """Another table at the same place is followed, and said."""
    table = TableBuilder().commits(2)
    log = table.log()
    table.commit(Metadata("another-id"))
    assert log.update().metadata.id == "another-id"
    assert "changed from the-table to another-id" in caplog.text


def test_b067_a_version_by_number():
    """The current version is the same object, an older one costs no update, a newer one is refused."""
    table = TableBuilder().commits(14).checkpoint(5).checkpoint(10)
    log = table.log()
    time = log.last_update_timestamp
    assert log.snapshot_at(13) is log.current_snapshot
    for version in range(14):
        found = log.snapshot_at(version)
        assert (version, table.live(version)) == (found.version, paths(found))
    assert log.snapshot_at(5).segment.checkpoint_version == 5
    assert time == log.last_update_timestamp
    table.commit(file("new"))
    assert log.snapshot_at(14).version == 14
    with pytest.raises(VersionNotFound, match="non-existent version 99"):
        log.snapshot_at(99)


@pytest.mark.parametrize("arguments", [{}, {"version": -1}, {"version": 1, "timestamp": 2}])
def test_b067_one_of_version_and_timestamp_is_given(arguments):
    """Neither, both or a negative version is the caller's mistake."""
    log = TableBuilder().commits(2).log()
    with pytest.raises(InvalidOption):
        log.snapshot_at(**arguments)


def test_b050_an_update_keeps_the_segment_or_extends_it():
    """Nothing new: the same segment; a new commit: the old files and the new one."""
    table = TableBuilder().commits(13).checkpoint(10)
    log = table.log()
    before = log.current_snapshot.segment
    assert log.update().segment is before
    table.commit(file("new"))
    after = log.update().segment
    assert (before.checkpoint, before.commits) == (after.checkpoint, after.commits[:-1])


def test_b045_whoever_installs_a_snapshot_holds_the_lock():
    """A writer's `replace_snapshot` waits for an update that is under way, and the time never goes back."""
    table, gate, clock, log = gated()
    newer = TableBuilder(table.storage).log().snapshot_at(1)
    gate.open.clear()
    gate.waiting.clear()
    other = threading.Thread(target=log.update)
    other.start()
    assert gate.waiting.wait(10)
    writer = threading.Thread(target=log.replace_snapshot, args=(newer, clock.now - 5))
    writer.start()
    writer.join(0.05)
    assert writer.is_alive()
    gate.open.set()
    writer.join(10)
    assert (newer, clock.now) == (log.current_snapshot, log.last_update_timestamp)


def test_the_seeds_messages_are_logged(caplog):
    """INFO says what is loaded and what became current, in the seed's words."""
    caplog.set_level(logging.INFO, "freezeframe.log")
    table = TableBuilder().commits(12).checkpoint(10)
    log = table.log()
    table.commit(file("new"))
    log.update()
    said = [record.getMessage() for record in caplog.records]
    assert "Loading version 11 starting from checkpoint version 10" in said
    assert any(text.startswith("Returning initial snapshot Snapshot(path=") for text in said)
    assert "Loading version 12 starting from checkpoint version 10" in said
    updated = [text for text in said if text.startswith("Updated snapshot to Snapshot(path=")]
    assert "version=12" in updated[0]
    caplog.clear()
    TableBuilder().commits(2).log()
    assert "Loading version 1" in [record.getMessage() for record in caplog.records]


def test_messages_cost_nothing_when_nobody_listens(caplog):
    """A snapshot is not turned into text, nor its state loaded, for a message that is not shown."""
    caplog.set_level(logging.WARNING, "freezeframe.log")
    snapshot = TableBuilder().commits(3).log().current_snapshot
    assert not snapshot.is_loaded
    assert "version=2" in repr(snapshot)
    assert not snapshot.is_loaded


def test_get_log_segment_from_without_a_hint_lists_everything():
    """The seed's getLogSegmentFrom takes what the hint says, or nothing."""
    log = TableBuilder().commits(12).checkpoint(10).log()
    assert log.log_segment_from(None) == log.log_segment_from(log.last_checkpoint())


def test_list_from_gives_names_in_order_from_a_version():
    """The seed's listFrom."""
    log = TableBuilder().commits(4).log()
    assert [commit_name(2), commit_name(3)] == [status.name for status in log.list_from(2)]


def test_a_commit_and_its_update_follow_each_other_in_many_threads():
    """Readers never see a version go back while others update."""
    table = TableBuilder().commits(2)
    log = table.log()
    seen = {number: [] for number in range(4)}

    def watch(number):
        for _ in range(60):
            seen[number].append(log.update().version)

    threads = [threading.Thread(target=watch, args=(number,)) for number in seen]
    for thread in threads:
        thread.start()
    for number in range(30):
        table.commit(file(f"n{number}"), Remove(f"n{number - 1}", 1))
    for thread in threads:
        thread.join(30)
    assert all(versions == sorted(versions) for versions in seen.values())
    assert table.live() == paths(log.update())


def test_a_protocol_that_is_not_known_is_refused_on_update_too():
    """The table is upgraded while we watch: the update refuses it, the old snapshot stays."""
    table = TableBuilder().commits(2)
    log = table.log()
    table.commit(Protocol(3, 7, ("fromTheFuture",), ("fromTheFuture",)))
    with pytest.raises(Exception, match="fromTheFuture"):
        log.update()
    assert log.current_snapshot.version == 1


class ListedStorage(LocalStorage):
    """Counts its listings."""

    listings = 0

    def list_from(self, folder, start=""):
        self.listings += 1
        return super().list_from(folder, start)


def test_an_update_on_a_disk_lists_the_folder_only_where_more_than_commits_may_be_new(tmp_path):
    """Commits are looked up by name; a checkpoint, a changed file and a long run of commits are listed."""
    storage = ListedStorage(tmp_path)
    table = TableBuilder(storage).commits(3)
    log = table.log()

    def updated():
        before = storage.listings
        snapshot = log.update()
        return snapshot.version, snapshot.count, storage.listings - before

    assert [updated(), updated()] == [(2, 2, 1), (2, 2, 0)]
    table.commits(5)
    assert updated() == (4, 4, 0)
    assert updated() == (4, 4, 1)  # something else may have been written beside the commits
    write_checkpoint(log.current_snapshot)
    assert (*updated(), log.current_snapshot.segment.checkpoint_version) == (4, 4, 1, 4)
    assert [updated()[2], updated()[2]] == [1, 0]  # from the checkpoint on, then not again
    table.commits(6 + LOOKED_UP_COMMITS_MAX)
    assert updated() == (5 + LOOKED_UP_COMMITS_MAX, 5 + LOOKED_UP_COMMITS_MAX, 1)
    newest = next(tmp_path.glob(f"**/{commit_name(log.current_snapshot.version)}"))
    newest.write_bytes(newest.read_bytes() + b"\n")
    assert updated()[2] >= 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, 5),
        (date(1970, 1, 2), 86_400_000),
        (datetime(1970, 1, 2, 1, tzinfo=UTC), 90_000_000),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (datetime(1970, 1, 1, 0, 0, 1, 5_000), 1_005),  # noqa: DTZ001 - without a zone it is in UTC
        ("1970-01-02T01:00:00Z", 90_000_000),
        ("1970-01-02", 86_400_000),
    ],
)
def test_a_moment_is_named_in_many_ways(given, expected):
    """Without a zone it is in UTC, and a day is its first moment."""
    assert to_ms(given) == expected


@pytest.mark.parametrize("given", [True, "noon", None, 1.5])
def test_what_is_no_moment_is_refused(given):
    with pytest.raises(InvalidOption, match=r"not a valid timestamp.*Pass a datetime"):
        to_ms(given)
