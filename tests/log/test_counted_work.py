"""What the log costs as it grows, counted: names listed, actions folded, rows looked at, bytes read."""

import math
import threading
import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.log.tables import TableBuilder, all_tombstones, file, paths

from freezeframe.clock import now_ms
from freezeframe.log.format.actions import Add, Remove
from freezeframe.log.primitives.listing import newest_checkpoint, sort_listing
from freezeframe.log.segments import checkpoint_columns, commit_content, replay
from freezeframe.log.segments.checkpoint import read_checkpoint_actions
from freezeframe.log.segments.replay import Heads
from freezeframe.log.segments.segment import LogSegment
from freezeframe.log.table.upkeep import write_checkpoint
from freezeframe.storage import MemoryStorage

SIZES = (50, 100, 200, 400)
EXPONENT_MAX = 1.1


class CountingStorage:
    """A storage that counts the names that were taken from its listings and the bytes that were read."""

    def __init__(self, inner):
        self._inner = inner
        self.names = self.bytes = 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def list_from(self, folder, start=""):
        for status in self._inner.list_from(folder, start):
            self.names += 1
            yield status

    def read(self, name, offset=0, length=None):
        found = self._inner.read(name, offset, length)
        self.bytes += len(found)
        return found


def exponent(counts):
    """The slope through the first and the last count on logarithmic scales."""
    return math.log(counts[-1] / counts[0]) / math.log(SIZES[-1] / SIZES[0])


@pytest.fixture
def folded(monkeypatch):
    """Counts the small actions that are folded into heads."""
    seen = [0]
    after = Heads.after

    def counted(self, actions):
        listed = list(actions)
        seen[0] += len(listed)
        return after(self, listed)

    monkeypatch.setattr(Heads, "after", counted)
    return seen


def test_opening_without_a_checkpoint_folds_each_action_a_few_times(folded):
    """Protocol and metadata in the first of n commits: the work grows as n."""
    counts = []
    for size in SIZES:
        table = TableBuilder().commits(size)
        folded[0] = 0
        table.log().current_snapshot.files  # noqa: B018 - it is what is counted
        counts.append(folded[0])
    assert exponent(counts) <= EXPONENT_MAX
    assert counts[-1] <= 4 * SIZES[-1]


def test_a_version_without_a_checkpoint_is_found_by_two_listings_of_what_leads_to_it():
    """However many commits follow it, and in windows of a thousand."""
    table = TableBuilder().commits(1_200)
    storage = CountingStorage(table.storage)
    table.storage = storage
    log = table.log()
    for version in (400, 1_100):
        storage.names = 0
        assert version == log.snapshot_at(version=version).version
        assert storage.names <= 2 * (version + 1) + 8


def test_a_version_with_a_checkpoint_is_found_by_its_neighbours():
    """Of a long log only the names between the window's start and the version are taken."""
    table = TableBuilder().commits(600).checkpoint(10)
    storage = CountingStorage(table.storage)
    table.storage = storage
    log = table.log()
    storage.names = 0
    assert log.snapshot_at(version=12).version == 12
    assert storage.names <= 24


@pytest.fixture
def keyed(monkeypatch):
    """Counts the rows whose keys are made."""
    seen = [0]
    file_keys = replay.file_keys

    def counted(table):
        seen[0] += table.num_rows
        return file_keys(table)

    monkeypatch.setattr(replay, "file_keys", counted)
    return seen


@pytest.mark.parametrize("tombstones", [100, 5_000])
def test_an_update_looks_at_no_tombstone_that_it_does_not_name(keyed, tombstones):
    """The rows looked at are those of the commit, however many files were removed before."""
    table = TableBuilder().create()
    table.commit(*[Remove(f"gone{n:08}.parquet", deletion_timestamp=now_ms()) for n in range(tombstones)])
    log = table.log()
    log.update().files  # noqa: B018 - so that the state is loaded
    table.commit(file("a-new-file-of-the-table"))
    keyed[0] = 0
    assert log.update().count == 1
    assert tombstones == log.current_snapshot.state.files.tombstones.num_rows
    assert keyed[0] <= 10


def test_a_tombstone_ends_when_its_file_is_added_again():
    """By its fingerprint, as all of them are found."""
    table = TableBuilder().create()
    table.commit(*[Remove(f"gone{n:08}.parquet", deletion_timestamp=now_ms()) for n in range(50)])
    log = table.log()
    log.update().files  # noqa: B018 - so that the state is loaded
    table.commit(Add("gone00000007.parquet", size=1, partition_values={"p": "a"}))
    assert log.update().files["path"].to_pylist() == ["gone00000007.parquet"]
    assert all_tombstones(log.current_snapshot).num_rows == 49
    assert not pc.any(pc.equal(all_tombstones(log.current_snapshot)["path"], "gone00000007.parquet")).as_py()


def test_updates_look_for_expired_tombstones_once_they_have_doubled(monkeypatch):
    """Of n updates that remove a file each, the rows looked at grow as n, and expired ones go."""
    looked = [0]
    younger_than = replay.younger_than

    def counted(deleted, oldest):
        looked[0] += len(deleted)
        return younger_than(deleted, oldest)

    monkeypatch.setattr(replay, "younger_than", counted)
    table = TableBuilder().commits(2)
    log = table.log()
    log.update().files  # noqa: B018 - so that the state is loaded
    for number in range(100):
        table.commit(Remove(f"old{number:08}.parquet", deletion_timestamp=now_ms() if number % 2 else 1))
        log.update()
    assert 50 <= log.current_snapshot.state.files.tombstones.num_rows <= 100
    assert looked[0] <= 4 * 100


def test_many_updates_leave_few_chunks():
    """A state that was brought up to date two hundred times reads as one that was read at once."""
    table = TableBuilder().commits(2)
    log = table.log()
    log.update().files  # noqa: B018 - so that the state is loaded
    for number in range(200):
        table.commit(file(f"late{number}"), Remove(f"old{number:08}.parquet", deletion_timestamp=now_ms()))
        log.update()
    state = log.current_snapshot.state.files
    most = max(table["path"].num_chunks for table in (state.recent, state.tombstones))
    assert most <= replay.CHUNKS_MAX + 1
    assert table.live() == paths(log.current_snapshot)


def test_history_is_read_side_by_side_where_a_read_is_a_request():
    """Sixteen commits are under way at once; alone, each would wait for the others for ever."""

    class Together(CountingStorage):
        barrier = None

        def read(self, name, offset=0, length=None):
            if self.barrier is not None:
                self.barrier.wait(20)
            return super().read(name, offset, length)

    table = TableBuilder().commits(16)
    storage = table.storage = Together(table.storage)
    log = table.log()
    storage.barrier = threading.Barrier(16)
    assert list(range(15, -1, -1)) == [entry.version for entry in log.history()]


def test_segment_deltas_replace_covered_commits_once():
    """Compacted files stand for their commits, wherever they are."""
    table = TableBuilder().commits(40).compact(3, 9).compact(20, 22)
    segment = table.log().current_snapshot.segment
    assert isinstance(segment, LogSegment)
    assert len(segment.deltas) == 40 - 7 - 3 + 2
    assert [file.meaning.start for file in segment.deltas] == sorted(
        {*range(40)} - {*range(4, 10)} - {21, 22}
    )


@pytest.mark.parametrize("commits", [4, 15, 30])
def test_a_table_in_a_bucket_opens_in_three_requests_in_sequence(commits):
    """The hint, a listing, and then all that its state needs at once, however many commits follow."""

    class Together(CountingStorage):
        barrier = None

        def read(self, name, offset=0, length=None):
            if self.barrier is not None and not name.endswith("_last_checkpoint"):
                self.barrier.wait(20)
            return super().read(name, offset, length)

    table = TableBuilder().commits(commits).checkpoint(2).hint(2)
    storage = table.storage = Together(table.storage)
    calls = []
    listed = storage.list_from
    storage.list_from = lambda *place: calls.append(place) or listed(*place)
    storage.barrier = threading.Barrier(commits - 3 + 1)
    snapshot = table.log().current_snapshot
    assert len(calls) == 1
    assert table.live() == paths(snapshot)


def test_the_small_actions_of_a_large_checkpoint_are_read_by_ranges():
    """A bucket sends the columns that hold them and the footer, not the files of the table."""
    table = TableBuilder(MemoryStorage()).create()
    table.commit(
        *[
            Add(f"{uuid.uuid4()}.parquet", size=1, partition_values={"p": uuid.uuid4().hex})
            for _ in range(15_000)
        ]
    )
    log = table.log()
    write_checkpoint(log.update())
    found = newest_checkpoint(sort_listing(log.list_from(0)).checkpoint_files)
    storage = CountingStorage(table.storage)
    assert len(read_checkpoint_actions(storage, table.folder, found)) == 2
    assert found.size > 1 << 20
    assert storage.bytes < found.size / 5


def test_statistics_kept_as_structs_are_converted_by_column(monkeypatch):
    """Work is in proportion to the pieces, however many files are in one."""
    seen = [0]
    texts = checkpoint_columns._texts

    def counted(*given):
        seen[0] += 1
        return texts(*given)

    monkeypatch.setattr(checkpoint_columns, "_texts", counted)
    monkeypatch.setattr(checkpoint_columns, "_TEXT_ROWS", 50)
    counts = []
    for size in SIZES:
        seen[0] = 0
        one = {"numRecords": 1, "minValues": {"a": 1, "b": "x"}}
        found = checkpoint_columns.statistics_texts(pa.chunked_array([pa.array([one] * size)]))
        assert found[-1].as_py() == '{"numRecords":1,"minValues":{"a":1,"b":"x"}}'
        counts.append(seen[0])
    assert exponent(counts) <= EXPONENT_MAX
    assert counts[0] == 5 * SIZES[0] / 50


def test_the_sample_of_a_long_log_does_not_grow_with_its_commits(monkeypatch):
    """What fields file actions have is told by lines of some commits, however many there are."""
    noted = []
    monkeypatch.setattr(commit_content, "_SAMPLED_BYTES", 1)
    monkeypatch.setattr(commit_content, "_note_fields", lambda line, _: noted.append(line))
    for commits in (50, 400, 800):
        lines = [
            b'{"add":{"path":"%d","partitionValues":{},"size":1}}\n' % number for number in range(commits)
        ]
        contents = [commit_content.read_content(f"{number}.json", line) for number, line in enumerate(lines)]
        noted.clear()
        assert commits == len(commit_content.parse_file_actions(contents, []).adds)
        assert len(noted) <= 4 * 64
