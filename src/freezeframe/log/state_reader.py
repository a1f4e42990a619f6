"""Reading the files of a segment into state: the rim between storage and pure replay."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from freezeframe.errors import CorruptLog
from freezeframe.log.action_columns import FileActions
from freezeframe.log.actions import Metadata
from freezeframe.log.checkpoint import physical_partition_names, read_checkpoint, read_checkpoint_actions
from freezeframe.log.checksum import Checksum, read_checksum
from freezeframe.log.commit_content import CommitContent, parse_file_actions, read_content
from freezeframe.log.paths import LogFile
from freezeframe.log.replay import FileState, StateRebuilder
from freezeframe.log.segment import LogSegment
from freezeframe.log.table_state import Heads, TableState
from freezeframe.storage import Storage

BATCH_BYTES = 16 << 20
KEPT_BYTES = 8 << 20

_log = logging.getLogger(__name__)


class StateReader:
    """Reads heads and state of segments in one log folder."""

    def __init__(
        self, storage: Storage, folder: str, rebuilder: StateRebuilder, *, use_checksum: bool = True
    ) -> None:
        self.storage = storage
        self.folder = folder
        self._rebuilder = rebuilder
        self._use_checksum = use_checksum
        self._kept: OrderedDict[LogFile, CommitContent] = OrderedDict()

    def heads(self, segment: LogSegment) -> Heads:
        """The protocol and metadata of the segment, from as few files as possible (behaviour 57).

        The newest commit is always read: an empty or torn one is found at once. Transactions
        and domains in the answer are those of the files that were read, not all.

        Raises:
            CorruptLog: a file that was read is damaged.
        """
        checksum = self.checksum(segment)
        newest = self._content(segment, segment.last_commit) if segment.last_commit else None
        collected: list[CommitContent] = []
        base = Heads.empty()
        protocol = metadata = False
        for file in reversed(segment.deltas):
            if checksum is not None and segment.checksum and segment.checksum.version >= file.version:
                return _over(Heads(checksum.protocol, checksum.metadata, {}, {}), collected, newest)
            content = newest if newest and file == segment.last_commit else self._content(segment, file)
            collected.append(content.without_files())
            protocol = protocol or any(action.KEY == "protocol" for action in content.actions)
            metadata = metadata or any(action.KEY == "metaData" for action in content.actions)
            if protocol and metadata:
                return _over(base, collected, newest)
        if segment.checkpoint is not None:
            if checksum is not None and segment.checksum:
                base = Heads(checksum.protocol, checksum.metadata, {}, {})
            else:
                actions = read_checkpoint_actions(self.storage, self.folder, segment.checkpoint)
                base = base.after(actions)
        return _over(base, collected, newest)

    def checksum(self, segment: LogSegment) -> Checksum | None:
        """The segment's checksum if it can be trusted with protocol and metadata."""
        if not self._use_checksum or segment.checksum is None:
            return None
        floor = -1 if segment.checkpoint is None else segment.checkpoint.version
        if segment.checksum.version < floor:
            return None
        found = read_checksum(self.storage, segment.path(segment.checksum))
        if found is None or found.protocol is None or found.metadata is None:
            return None
        return found

    def state(self, segment: LogSegment) -> TableState:
        """The whole state of the segment.

        Raises:
            CorruptLog: a file is damaged; ``CHECKPOINT_DAMAGED`` if it belongs to the checkpoint.
        """
        before = TableState(Heads.empty(), FileState.empty())
        if segment.checkpoint is not None:
            content = read_checkpoint(self.storage, self.folder, segment.checkpoint)
            heads = Heads.empty().after(content.actions)
            before = TableState(heads, FileState.of(content.files, content.tombstones))
        return self.advance(before, segment, segment.deltas)

    def advance(self, before: TableState, segment: LogSegment, files: Sequence[LogFile]) -> TableState:
        """The state after the commits ``files`` (ascending) on top of ``before``."""
        heads = before.heads
        batches: list[FileActions] = []
        for contents, partitions in self._batches(segment, files, heads.metadata):
            for content in contents:
                heads = heads.after(content.actions)
            batches.append(parse_file_actions(contents, partitions))
            del contents, content
        self._kept.clear()
        return TableState(heads, self._rebuilder.rebuild(before.files, FileActions.joined(batches)))

    def _batches(
        self, segment: LogSegment, files: Iterable[LogFile], metadata: Metadata | None
    ) -> Iterator[tuple[list[CommitContent], tuple[str, ...]]]:
        """Commits with the same partition columns together: a thousand small ones are parsed at once."""
        contents: list[CommitContent] = []
        partitions = () if metadata is None else physical_partition_names(metadata)
        size = 0
        for file in files:
            content = self._content(segment, file)
            latest = [action for action in content.actions if isinstance(action, Metadata)]
            names = physical_partition_names(latest[-1]) if latest else partitions
            if contents and (names != partitions or size + content.size > BATCH_BYTES):
                yield contents, partitions
                contents, size = [], 0
            contents.append(content)
            partitions = names
            size += content.size
            del content  # so that its bytes go when the batch does
        if contents:
            yield contents, partitions

    def _content(self, segment: LogSegment, file: LogFile) -> CommitContent:
        kept = self._kept.get(file)
        if kept is not None:
            return kept
        name = segment.path(file)
        try:
            content = read_content(file.name, self.storage.read(name))
        except FileNotFoundError as error:
            raise CorruptLog(
                f"The commit {name} is gone.",
                cause="It was listed and then deleted, by log retention or by hand.",
                remedy="Update and read again.",
                code="DELTA_LOG_FILE_NOT_FOUND",
                file=name,
            ) from error
        # Finding the protocol and building the state look at the same small commits: read once.
        if file.size + sum(one.size for one in self._kept) <= KEPT_BYTES:
            self._kept[file] = content
        return content


def _over(base: Heads, newest_first: Sequence[CommitContent], newest: CommitContent | None) -> Heads:
    heads = base
    for content in reversed(newest_first):
        heads = heads.after(content.actions)
    if not newest_first and newest is not None:
        info = Heads.empty().after(newest.actions).commit_info
        heads = Heads(heads.protocol, heads.metadata, heads.transactions, heads.domains, info)
    return heads
