"""LogSegment: the files that define one version of a table (or of another log of this shape).

The constructor checks the guarantees numbered in the class docstring, so every segment is usable.
``choose_segment`` selects the files; ``SnapshotManagement`` replaces a damaged checkpoint.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from freezeframe.errors import CorruptLog, VersionNotFound
from freezeframe.log.primitives.listing import (
    CheckpointFiles,
    Listing,
    choose_compacted,
    newest_checkpoint,
)
from freezeframe.log.primitives.paths import Kind, LogFile, commit_name, in_folder

EMPTY_VERSION = -1


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files that make ``version`` of the log in ``folder``; version -1 has none.

    Guarantees:
        1. ``commits`` are all commits after the checkpoint, ascending and without a gap.
        2. The first of them follows the checkpoint directly, or is version 0 without one.
        3. The last of them is ``version``; without any, the checkpoint is at ``version``.
        4. The checkpoint is complete and no file of it is empty.
        5. ``compacted`` files do not overlap and cover commits of this segment only.
        6. A version >= 0 comes with ``last_commit``, a commit file at or below ``version``.
        7. ``checksum`` is at or below ``version``, and ``state`` at it.

    Equality compares version, folder and the name, size and modification time of commits and
    checkpoint: a replaced commit makes a different segment; a new compacted
    file, checksum or state does not, since it changes no state.
    """

    folder: str
    version: int
    commits: tuple[LogFile, ...] = ()
    checkpoint: CheckpointFiles | None = None
    compacted: tuple[LogFile, ...] = field(default=(), compare=False)
    last_commit: LogFile | None = None
    checksum: LogFile | None = field(default=None, compare=False)
    state: LogFile | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.version == EMPTY_VERSION:
            has_files = self.commits or self.checkpoint or self.compacted or self.last_commit
            _require(not has_files, "version -1 has no files", self)
            return
        base = EMPTY_VERSION if self.checkpoint is None else self.checkpoint.version
        require_follows(self.commits, base)
        verify_delta_versions([file.version for file in self.commits])
        last = self.commits[-1].version if self.commits else base
        _require(last == self.version, "3: it ends at its version", self)
        _require(_is_whole(self.checkpoint), "4: the checkpoint is complete", self)
        _require(_is_disjoint(self.compacted, base, self.version), "5: compacted files fit", self)
        _require(
            self.last_commit is not None
            and self.last_commit.kind is Kind.COMMIT
            and self.last_commit.version <= self.version,
            "6: a commit file is there",
            self,
        )
        _require(self.checksum is None or self.checksum.version <= self.version, "7: checksum fits", self)
        _require(self.state is None or self.state.version == self.version, "7: state fits", self)

    def __str__(self) -> str:
        commits = f"{self.commits[0].version}-{self.commits[-1].version}" if self.commits else "none"
        return (
            f"LogSegment({self.folder}, version={self.version}, checkpoint={self.checkpoint_version}, "
            f"commits={commits})"
        )

    @classmethod
    def empty(cls, folder: str) -> LogSegment:
        """Return the segment of an empty log."""
        return cls(folder, EMPTY_VERSION)

    @property
    def checkpoint_version(self) -> int | None:
        """The checkpoint's version, or ``None`` without one."""
        return None if self.checkpoint is None else self.checkpoint.version

    @property
    def deltas(self) -> tuple[LogFile, ...]:
        """The files to replay after the checkpoint: compacted ones in place of the commits they cover."""
        if not self.compacted:
            return self.commits
        covered = {
            version for file in self.compacted for version in range(file.meaning.start, file.version + 1)
        }
        plain = [file for file in self.commits if file.version not in covered]
        return tuple(sorted((*plain, *self.compacted), key=lambda file: file.meaning.start))

    def path(self, file: LogFile) -> str:
        """Return the file's name in the storage."""
        return in_folder(self.folder, file.name)


def choose_segment(
    folder: str, listing: Listing, version_to_load: int | None = None, *, use_compacted: bool = True
) -> LogSegment:
    """Return the segment of the newest listed version, or of ``version_to_load``."""
    checkpoint = newest_checkpoint(listing.checkpoint_files)
    base = EMPTY_VERSION if checkpoint is None else checkpoint.version
    commits = tuple(file for file in listing.commits if file.version > base)
    if checkpoint is not None and not listing.commits:
        raise CorruptLog(
            f"Could not find any delta files for version {base}.",
            cause=f"The log {folder!r} has a checkpoint of it and no commit file.",
            remedy="Restore the commit files from a copy.",
            code="DELTA_LOG_FILE_NOT_FOUND",
        )
    version = commits[-1].version if commits else base
    verify_delta_versions([file.version for file in commits], version_to_load=version_to_load)
    require_follows(commits, base)
    if version_to_load is not None and version != version_to_load:
        raise version_missing(folder, version_to_load, version)
    if version == EMPTY_VERSION:
        return LogSegment.empty(folder)
    checksums = [file for file in listing.checksums if file.version <= version]
    return LogSegment(
        folder,
        version,
        commits=commits,
        checkpoint=checkpoint,
        compacted=choose_compacted(listing.compacted, base, version) if use_compacted else (),
        last_commit=listing.commits[-1] if listing.commits else None,
        checksum=checksums[-1] if checksums else None,
        state=next((file for file in listing.states if file.version == version), None),
    )


def verify_delta_versions(versions: Sequence[int], *, version_to_load: int | None = None) -> None:
    """Check that versions ascend without gap (section "Delta Log Entries")."""
    for before, after in itertools.pairwise(versions):
        if after != before + 1:
            shown = ", ".join(str(version) for version in versions)
            wanted = -1 if version_to_load is None else version_to_load
            raise CorruptLog(
                f"Versions ({shown}) are not contiguous. A gap in the delta log between versions {before}"
                f" and {after} was detected while trying to load version {wanted}.",
                cause="Commit files were deleted or doubled by hand.",
                remedy="Restore them from a copy.",
                code="DELTA_VERSIONS_NOT_CONTIGUOUS",
                before=before,
                after=after,
            )


def require_follows(commits: Sequence[LogFile], base: int) -> None:
    """Check that the first commit is the one after ``base`` (protocol, section "Delta Log Entries")."""
    if commits and commits[0].version != base + 1:
        raise CorruptLog(
            f"{commit_name(base + 1)}: the log begins at version {commits[0].version}, so the state "
            f"of version {commits[-1].version} cannot be computed.",
            cause="Commits were deleted by hand or by log retention, and no complete checkpoint covers them.",
            remedy="Restore the file or a checkpoint from a copy.",
            code="DELTA_TRUNCATED_TRANSACTION_LOG",
            missing=commit_name(base + 1),
        )


def version_missing(folder: str, wanted: int, latest: int) -> VersionNotFound:
    """Return the error for a version that the log does not reach."""
    return VersionNotFound(
        f"Trying to load a non-existent version {wanted}.",
        cause=f"The log {folder!r} reaches version {latest}."
        if latest >= 0
        else f"The log {folder!r} holds no version.",
        remedy="Read a version that exists; `history()` lists them.",
        code="DELTA_VERSION_NOT_FOUND",
        version=wanted,
        latest=latest,
    )


def commits_since(previous: LogSegment, listing: Listing, segment: LogSegment) -> tuple[LogFile, ...] | None:
    """Return the commits from ``previous`` to ``segment``; ``None`` if ``segment`` does not continue it."""
    if previous.version == EMPTY_VERSION or previous.version > segment.version:
        return None
    by_version = {file.version: file for file in listing.commits}
    known = {file.version: file for file in previous.commits}
    if any(by_version.get(version, file) != file for version, file in known.items()):
        return None  # a commit already read was replaced: another table is in this folder now
    if by_version.get(previous.version) != previous.last_commit:
        return None
    wanted = range(previous.version + 1, segment.version + 1)
    if any(version not in by_version for version in wanted):
        return None
    return tuple(by_version[version] for version in wanted)


def missing_checkpoint(folder: str, version: int) -> CorruptLog:
    """Return the error for a hinted checkpoint that is missing without an alternative."""
    return CorruptLog(
        f"Couldn't find all part files of the checkpoint version: {version}",
        cause=f"The hint of the log {folder!r} names it, and what is left does not reach back to version 0.",
        remedy="Restore the checkpoint files from a copy.",
        code="DELTA_MISSING_PART_FILES",
    )


def _is_whole(checkpoint: CheckpointFiles | None) -> bool:
    if checkpoint is None:
        return True
    parts = [file.meaning.part for file in checkpoint.files]
    complete = parts == list(range(1, checkpoint.files[0].meaning.parts + 1))
    return complete and all(file.size > 0 for file in checkpoint.files)


def _is_disjoint(compacted: Sequence[LogFile], base: int, version: int) -> bool:
    highest = base
    for file in compacted:
        if file.meaning.start <= highest or file.version > version:
            return False
        highest = file.version
    return True


def _require(holds: bool, guarantee: str, segment: LogSegment) -> None:  # noqa: FBT001 - read as a claim
    if not holds:
        raise CorruptLog(
            f"The files of version {segment.version} of the log {segment.folder!r} do not form a segment.",
            cause=f"Guarantee not met: {guarantee}.",
            remedy="Restore the log from a copy.",
        )
