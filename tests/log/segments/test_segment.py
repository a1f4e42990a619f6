"""LogSegment: what its constructor guarantees, and when two segments are the same."""

import pytest
from tests.log.tables import TableBuilder, compacted_name, paths

from freezeframe.errors import CorruptLog, VersionNotFound
from freezeframe.log.primitives.listing import CheckpointFiles, Listing
from freezeframe.log.primitives.paths import (
    LogFile,
    checkpoint_part_name,
    checksum_name,
    commit_name,
    parse_name,
)
from freezeframe.log.segments.segment import (
    LogSegment,
    choose_segment,
    commits_since,
    missing_checkpoint,
    version_missing,
)


def listed(name, size=1, modified_ms=1):
    return LogFile(name, size, modified_ms, parse_name(name))


def commits(*versions):
    return tuple(listed(commit_name(version)) for version in versions)


def test_b010_without_commits_after_the_checkpoint_one_at_or_below_it_must_be_there():
    """A checkpoint alone is refused; with its own commit it is enough."""
    table = TableBuilder().commits(11).checkpoint(10)
    assert table.log().current_snapshot.segment.commits == ()
    table.delete(*map(commit_name, range(11)))
    with pytest.raises(CorruptLog, match="Could not find any delta files for version 10"):
        table.log()


def test_b011_the_missing_first_commit_is_named():
    """The error names the file that is missing."""
    table = TableBuilder().commits(5).delete(commit_name(0))
    with pytest.raises(CorruptLog, match=r"00000000000000000000\.json") as caught:
        table.log()
    assert caught.value.error_code == "DELTA_TRUNCATED_TRANSACTION_LOG"


def test_b012_gap_names_versions():
    """A gap names the versions on both sides and the version that was asked for."""
    table = TableBuilder().commits(5).delete(commit_name(2))
    with pytest.raises(CorruptLog, match="between versions 1 and 3") as caught:
        table.log()
    assert caught.value.error_code == "DELTA_VERSIONS_NOT_CONTIGUOUS"
    assert (caught.value.details["before"], caught.value.details["after"]) == (1, 3)


def test_b014_a_version_that_does_not_exist_is_refused():
    """Asked for more than there is, the answer says how far the log reaches."""
    listing = Listing(commits=commits(0, 1))
    with pytest.raises(VersionNotFound, match="non-existent version 15"):
        choose_segment("t", listing, 15)


def test_b018_equality_is_by_names_sizes_and_times():
    """The same names with another time are another segment; a checksum or compacted file is not."""
    one = LogSegment("t", 1, commits(0, 1), last_commit=commits(1)[0])
    same = LogSegment("t", 1, commits(0, 1), last_commit=commits(1)[0], checksum=listed(checksum_name(1)))
    newer = (commits(0)[0], listed(commit_name(1), modified_ms=2))
    assert one == same
    assert one != LogSegment("t", 1, newer, last_commit=newer[1])
    assert one != LogSegment("other", 1, commits(0, 1), last_commit=commits(1)[0])


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 1, "commits": commits(1), "last_commit": commits(1)[0]},
        {"version": 2, "commits": commits(0, 2), "last_commit": commits(2)[0]},
        {"version": 3, "commits": commits(0, 1), "last_commit": commits(1)[0]},
        {"version": 1, "commits": commits(0, 1)},
        {"version": 1, "commits": commits(0, 1), "last_commit": commits(2)[0]},
        {"version": -1, "commits": commits(0)},
        {
            "version": 2,
            "checkpoint": CheckpointFiles(2, (listed(checkpoint_part_name(2, 1, 2)),)),
            "last_commit": commits(2)[0],
        },
        {
            "version": 2,
            "commits": commits(0, 1, 2),
            "compacted": (listed(compacted_name(0, 1)), listed(compacted_name(1, 2))),
            "last_commit": commits(2)[0],
        },
    ],
    ids=[
        "no start",
        "gap",
        "wrong end",
        "no last",
        "last above",
        "empty with files",
        "part missing",
        "overlap",
    ],
)
def test_a_segment_that_breaks_a_guarantee_cannot_be_made(fields):
    """Each numbered guarantee of the docstring is checked."""
    with pytest.raises(CorruptLog):
        LogSegment("t", **fields)


def test_b021_compacted_files_stand_for_the_commits_they_cover():
    """The files to replay have the compacted one in the place of its commits."""
    table = TableBuilder().commits(6).compact(1, 3)
    segment = table.log().current_snapshot.segment
    names = [commit_name(0), compacted_name(1, 3), commit_name(4), commit_name(5)]
    assert names == [file.name for file in segment.deltas]
    assert table.live() == paths(table.log().current_snapshot)


def test_b022_a_hole_in_the_commits_fails_even_if_a_compacted_file_covers_it():
    """Compaction is never the only holder of a commit."""
    table = TableBuilder().commits(6).compact(1, 3).delete(commit_name(2))
    with pytest.raises(CorruptLog) as caught:
        table.log()
    assert caught.value.error_code == "DELTA_VERSIONS_NOT_CONTIGUOUS"


def test_b023_compacted_files_are_ignored_when_switched_off():
    """Spark's `minorCompaction.useForReads=false` reads plain commits."""
    table = TableBuilder().commits(6).compact(1, 3)
    assert table.log(use_compacted=False).current_snapshot.segment.compacted == ()


def test_b024_compacted_files_never_leave_a_version_out():
    """Whatever is compacted, the replayed files cover each version once."""
    table = TableBuilder().commits(9).compact(0, 1).compact(1, 2).compact(2, 5).compact(6, 9 - 1)
    covered = [
        version
        for file in table.log().current_snapshot.segment.deltas
        for version in range(file.meaning.start, file.version + 1)
    ]
    assert list(range(9)) == covered


def test_a_segment_continues_only_what_is_still_there():
    """A commit that was read before and is another one now belongs to another table."""
    before = LogSegment("t", 2, commits(0, 1, 2), last_commit=commits(2)[0])
    after = LogSegment("t", 3, commits(0, 1, 2, 3), last_commit=commits(3)[0])
    replaced = (commits(0)[0], listed(commit_name(1), size=9), *commits(2, 3))
    assert commits(3) == commits_since(before, Listing(commits=commits(0, 1, 2, 3)), after)
    assert commits_since(before, Listing(commits=replaced), after) is None


@pytest.mark.parametrize(
    ("error", "code", "problem", "cause", "remedy"),
    [
        (
            version_missing("t", 7, 3),
            "VERSION_NOT_FOUND",
            "version 7.",
            "'t' reaches version 3.",
            "`history()`",
        ),
        (
            version_missing("t", 0, -1),
            "VERSION_NOT_FOUND",
            "version 0.",
            "'t' holds no version.",
            "`history()`",
        ),
        (missing_checkpoint("t", 5), "MISSING_PART_FILES", "version: 5", "'t' names it", "from a copy."),
    ],
)
def test_errors_say_what_the_log_has(error, code, problem, cause, remedy):
    """Each names the version and the log, and what can be done."""
    assert error.error_code == f"DELTA_{code}"
    for text, part in ((error.problem, problem), (error.cause, cause), (error.remedy, remedy)):
        assert part in text
