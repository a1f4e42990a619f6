"""Reads a segment's files into table state (I/O around the pure replay)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from freezeframe.errors import CorruptLog, StorageUnavailable
from freezeframe.log.format.action_columns import TOMBSTONE_SCHEMA, FileActions, no_rows, to_adds
from freezeframe.log.format.actions import Action, Add, CommitInfo, Metadata, Protocol, Remove, parse_line
from freezeframe.log.primitives.listing import CheckpointFiles
from freezeframe.log.primitives.paths import (
    Kind,
    LogFile,
    canonical_path,
    commit_name,
    in_folder,
    state_name,
)
from freezeframe.log.segments.checkpoint import (
    WHOLE_BYTES_MAX,
    WHOLE_FILE_BYTES_MAX,
    CheckpointContent,
    physical_partition_names,
    read_checkpoint,
    read_checkpoint_actions,
)
from freezeframe.log.segments.commit import OwnCommit, read_commit_info
from freezeframe.log.segments.commit_content import (
    DIGEST_KEY,
    KEPT_BYTES,
    CommitCache,
    CommitContent,
    parse_file_actions,
    read_content,
    read_contents,
    sign_content,
)
from freezeframe.log.segments.hint import read_checksum
from freezeframe.log.segments.replay import FileState, Heads, TableState, apply_actions, require_heads
from freezeframe.log.segments.segment import LogSegment
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import ReadAhead, is_local

BATCH_BYTES = 8 << 20
WINDOW_FILES_MAX = 64
STATE_FILES_MAX = 32
"""A table of up to so many files has its state beside its newest commit."""
_STATE_OF = "stateOf"
"""The field of a state's ``commitInfo`` with the ``commitInfo`` of the commit that it follows."""

DEFERRED_FROM_BYTES = 8 << 20
"""From this size on the statistics of a checkpoint are read on first use."""


class StateReader:
    """Reads heads and state of segments in one log folder."""

    def __init__(self, storage: Storage, folder: str, *, use_checksum: bool = True) -> None:
        self.storage = storage
        self.folder = folder
        self._use_checksum = use_checksum
        self.own_commit = OwnCommit()
        self._kept = CommitCache()
        self._ahead = ReadAhead(storage)
        self._kept_checkpoint: tuple[CheckpointFiles, CheckpointContent] | None = None

    def heads(self, segment: LogSegment, *, with_state: bool) -> tuple[Heads, TableState | None]:
        """Return the protocol and metadata of the segment, from as few files as possible.

        From a remote storage these files are read side by side, and those of the state with them where it
        is expected next (``with_state``).

        Where this requires reading every large commit from the first on, the whole state is built in
        the same pass and returned too.

        The newest commit is always read, to detect an empty or truncated one at once. The returned
        transactions and domains are those of the files read, not all. Where the state was kept beside the
        newest commit, it is returned, and nothing else is read.
        """
        files = [file for file in (segment.checksum, segment.last_commit) if file is not None]
        if with_state:
            parts = () if segment.checkpoint is None else segment.checkpoint.files
            files += [file for file in (*segment.deltas, *parts) if file not in files]
        self._ahead.forget()
        self._ahead.fetch([(segment.path(file), file.size) for file in files if file.size <= WHOLE_BYTES_MAX])
        newest = self._newest_actions(segment)
        if (stored := self._stored_state(segment, newest)) is not None:
            self._kept.clear()
            return stored.heads, stored
        checksum = self.checksum(segment)
        later: list[Sequence[Action]] = []
        kinds: set[type[Action]] = set()
        unread = sum(file.size for file in segment.deltas)
        if checksum is None and segment.checkpoint is None and unread > KEPT_BYTES:
            known = Heads.empty().after(newest)
            if known.protocol is None or known.metadata is None:
                state = self.state(segment)
                return state.heads, state
        for file in reversed(segment.deltas):
            if checksum is not None and checksum[0] >= file.version:
                # The newest commit was read in any case; a checksum of its version may be of one before it.
                return _over(checksum[1], later or [newest], newest), None
            actions = newest if file == segment.last_commit else self._actions(segment, file)
            later.append(actions)
            kinds.update(type(action) for action in actions)
            if {Protocol, Metadata} <= kinds:
                return _over(Heads.empty(), later, newest), None
        if checksum is not None:
            return _over(checksum[1], later, newest), None
        base = Heads.empty()
        if segment.checkpoint is not None:
            base = base.after(self._checkpoint_actions(segment.checkpoint))
        return _over(base, later, newest), None

    def _stored_state(self, segment: LogSegment, newest: Sequence[Action]) -> TableState | None:
        """Return the state beside the newest commit; None without one, or if it is damaged or another's."""
        info = Heads.empty().after(newest).commit_info
        if segment.state is None or segment.checksum is not None or info is None:
            return None
        try:
            content = read_content(segment.state.name, self.storage.read(segment.path(segment.state)))
            heads = Heads.empty().after(content.actions)
            kept = {} if heads.commit_info is None else heads.commit_info.fields
            if DIGEST_KEY not in kept or kept.get(_STATE_OF) != info.fields:
                return None
            adds = parse_file_actions([content], ()).adds
        except (FileNotFoundError, CorruptLog, StorageUnavailable):
            return None
        files = replace(FileState.of(adds, no_rows(TOMBSTONE_SCHEMA)), lacks_tombstones=True)
        return TableState(replace(heads, commit_info=info), files)

    def keep_state(self, version: int, before: TableState, content: bytes) -> None:
        """Write the state that a commit leaves beside it, so that the next process need not replay the log.

        It is derived and not durable: what a power loss leaves of it has another digest. It lacks the
        tombstones, which only checkpoints need. Only a small table on a local disk has one. The one before
        is deleted.
        """
        if not is_local(self.storage):
            return
        text = _state_after(version, before, content)
        name = in_folder(self.folder, state_name(version))
        if text is not None:
            self.storage.replace(name, text, durable=False)
            commit = self.storage.local_path(in_folder(self.folder, commit_name(version)))
            if commit is None or not commit.exists():  # deleted meanwhile, by an erasure for example
                self.storage.delete(name, durable=False)
        self.storage.delete(in_folder(self.folder, state_name(version - 1)), durable=False)

    def _checkpoint_actions(self, checkpoint: CheckpointFiles) -> tuple[Action, ...]:
        """Return the small actions of a checkpoint; a small file is read whole and cached for the state."""
        has_sidecars = checkpoint.files[0].kind is Kind.V2_CHECKPOINT
        size_max = WHOLE_FILE_BYTES_MAX if is_local(self.storage) else KEPT_BYTES
        if has_sidecars or sum(file.size for file in checkpoint.files) > size_max:
            return read_checkpoint_actions(self._ahead, self.folder, checkpoint)
        content = read_checkpoint(self._ahead, self.folder, checkpoint)
        self._kept_checkpoint = (checkpoint, content)
        return content.actions

    def _newest_actions(self, segment: LogSegment) -> tuple[Action, ...]:
        """Return small actions of the newest commit; only its commit info where a checkpoint covers it."""
        file = segment.last_commit
        if file is None:
            return ()
        if segment.commits or file.size == 0:
            return self._actions(segment, file)
        info = read_commit_info(self._ahead, self.folder, file.version)
        return () if info is None else (info,)

    def checksum(self, segment: LogSegment) -> tuple[int, Heads] | None:
        """Return (version, heads) of the segment's checksum, if it has protocol and metadata; else None."""
        file = segment.checksum
        if not self._use_checksum or file is None or file.version < (segment.checkpoint_version or 0):
            return None
        found = read_checksum(self._ahead, segment.path(file))
        if found is None or found.protocol is None or found.metadata is None:
            return None
        return file.version, Heads(found.protocol, found.metadata, {}, {})

    def state(
        self, segment: LogSegment, oldest_tombstone: int | None = None, *, complete: bool = False
    ) -> TableState:
        """Return whole state of the segment, without checkpoint tombstones up to ``oldest_tombstone`` (ms).

        The statistics in a large checkpoint are read on first use, unless ``complete``.
        """
        before = TableState(Heads.empty(), FileState.empty())
        if segment.checkpoint is not None:
            kept, self._kept_checkpoint = self._kept_checkpoint, None
            content = (
                kept[1]
                if kept is not None and kept[0] == segment.checkpoint
                else read_checkpoint(
                    self._ahead,
                    self.folder,
                    segment.checkpoint,
                    oldest_tombstone,
                    deferred_from=None if complete else DEFERRED_FROM_BYTES,
                )
            )
            heads = Heads.empty().after(content.actions)
            files = FileState.of_checkpoint(content.files, content.tombstones, content.deferred)
            before = TableState(heads, files)
        return self.advance(before, segment, segment.deltas)

    def advance(self, before: TableState, segment: LogSegment, files: Sequence[LogFile]) -> TableState:
        """Return the state after the commits ``files`` (ascending) on top of ``before``."""
        heads = before.heads
        batches: list[FileActions] = []
        small: list[Action] = []
        newest: Sequence[Action] = ()
        for contents, partitions in self._batches(segment, files, heads.metadata):
            for content in contents:
                small += content.actions
                newest = content.actions
            batches.append(parse_file_actions(contents, partitions))
            del contents, content
        self._kept.clear()
        self._ahead.forget()
        if batches:
            heads = _fold_heads(heads, small, newest)
        return TableState(heads, apply_actions(before.files, FileActions.concat(batches)))

    def _batches(
        self, segment: LogSegment, files: Sequence[LogFile], metadata: Metadata | None
    ) -> Iterator[tuple[list[CommitContent], tuple[str, ...]]]:
        """Group commits with the same partition columns, to parse a thousand small ones in one batch."""
        contents: list[CommitContent] = []
        partitions = () if metadata is None else physical_partition_names(metadata)
        size = 0
        for file in self._files_ahead(segment, files):
            for content in self._contents(segment, file):
                latest = [action for action in content.actions if isinstance(action, Metadata)]
                names = physical_partition_names(latest[-1]) if latest else partitions
                if contents and (names != partitions or size + content.size > BATCH_BYTES):
                    yield contents, partitions
                    contents, size = [], 0
                contents.append(content)
                partitions = names
                size += content.size
                del content  # so that its bytes are freed with the batch
        if contents:
            yield contents, partitions

    def _files_ahead(self, segment: LogSegment, files: Sequence[LogFile]) -> Iterator[LogFile]:
        """Yield the files one by one, those of a remote storage fetched some at a time."""
        window: list[LogFile] = []
        size = 0
        for file in files:
            if window and (len(window) == WINDOW_FILES_MAX or size + file.size > BATCH_BYTES):
                yield from self._fetched(segment, window)
                window, size = [], 0
            window.append(file)
            size += file.size
        yield from self._fetched(segment, window)

    def _fetched(self, segment: LogSegment, window: Sequence[LogFile]) -> Sequence[LogFile]:
        unread = [file for file in window if self._kept.get(file) is None and not self.own_commit.is_of(file)]
        self._ahead.fetch([(segment.path(file), file.size) for file in unread])
        return window

    def _actions(self, segment: LogSegment, file: LogFile) -> tuple[Action, ...]:
        return tuple(action for content in self._contents(segment, file) for action in content.actions)

    def _contents(self, segment: LogSegment, file: LogFile) -> Iterator[CommitContent]:
        kept = self._kept.get(file)
        if kept is not None:
            yield from kept
            return
        name = segment.path(file)
        own = self.own_commit.take(file)
        keep = self._kept.has_room(file)
        found: list[CommitContent] = []
        try:
            for content in read_contents(
                lambda offset, length: (
                    self._ahead.read(name, offset, length) if own is None else own[offset : offset + length]
                ),
                file.name,
                file.size,
            ):
                if keep:
                    found.append(content)
                yield content
                del content
        except FileNotFoundError as error:
            raise CorruptLog(
                f"The commit {name} is gone.",
                cause="It was listed and then deleted, by log retention or by hand.",
                remedy="Update and read again.",
                code="DELTA_LOG_FILE_NOT_FOUND",
                file=name,
            ) from error
        if keep:
            self._kept.keep(file, found)


def _state_after(version: int, before: TableState, content: bytes) -> bytes | None:
    """Return the content of the state after a commit; None of a table that has too many files for one."""
    if len(content) > KEPT_BYTES or before.files.count - content.count(b'{"remove":') > STATE_FILES_MAX:
        return None
    if before.files.count > 32 * STATE_FILES_MAX:  # to parse so many takes longer than to read the log once
        return None
    live = {_key(add): add for add in to_adds(before.files.files)}
    actions = [action for line in content.splitlines() if (action := parse_line(line)) is not None]
    for action in actions:
        if isinstance(action, Add | Remove):
            live.pop(_key(action), None)
        if isinstance(action, Add):
            live[_key(action)] = replace(action, data_change=False)
    heads = before.heads.after(actions)
    if len(live) > STATE_FILES_MAX or heads.commit_info is None:
        return None
    domains = (domain for domain in heads.domains.values() if not domain.removed)
    small: list[Action] = [*require_heads(heads, version), *heads.transactions.values(), *domains]
    info = CommitInfo({_STATE_OF: heads.commit_info.to_json()})
    return sign_content(info, (*small, *live.values()))


def _key(action: Add | Remove) -> tuple[str, str | None]:
    """Return the logical file of an action, as ``file_keys`` tells files apart."""
    vector = action.deletion_vector
    return canonical_path(action.path), None if vector is None else vector.unique_id


def _over(base: Heads, newest_first: Sequence[Sequence[Action]], newest: Sequence[Action]) -> Heads:
    """Return the heads of ``base`` after the commits, with the commit info of the newest one."""
    return _fold_heads(base, (action for actions in reversed(newest_first) for action in actions), newest)


def _fold_heads(base: Heads, actions: Iterable[Action], newest: Sequence[Action]) -> Heads:
    """Return the heads after all actions, in one pass, with the commit info of the newest commit."""
    return replace(base.after(actions), commit_info=Heads.empty().after(newest).commit_info)
