"""Log compaction: one file in place of a range of commits, for readers only.

The commits are not deleted (protocol, section "Log Compaction Files"; behaviours 21 to 25).
"""

from __future__ import annotations

import logging

import pyarrow as pa

from freezeframe.errors import InvalidOption
from freezeframe.log.actions.action_columns import to_adds, to_removes
from freezeframe.log.actions.actions import Action, Metadata, to_json_line
from freezeframe.log.checkpoints.checkpoint import physical_partition_names
from freezeframe.log.commits.commit_content import parse_file_actions, read_content
from freezeframe.log.primitives.paths import commit_name, compacted_name
from freezeframe.log.replay.replay import last_actions
from freezeframe.log.replay.table_state import Heads
from freezeframe.storage.base import Storage

_log = logging.getLogger(__name__)


def compact_log(storage: Storage, folder: str, start: int, end: int) -> str | None:
    """Write ``<start>.<end>.compacted.json`` in the log ``folder``, and return its name.

    Returns None, without a file, where the commits hold no such actions (a vacuum's notes), because
    readers take an empty file for a truncated one.

    The file holds the last action on each file, removes included, and the last protocol, metadata,
    transaction and domain of each name, removed domains included, without commitInfo.

    Raises:
        InvalidOption: the range holds fewer than two versions.
        FileNotFoundError: a commit of the range is missing.
        CorruptLog: a commit is damaged.
        StorageUnavailable: nothing was written.
    """
    if not 0 <= start < end:
        raise InvalidOption(
            f"Versions {start} to {end} cannot be compacted.",
            cause="A compacted file replaces two or more commits.",
            remedy="Give a first version and a later last one.",
        )
    names = [_path(folder, commit_name(version)) for version in range(start, end + 1)]
    contents = [read_content(name, storage.read(name)) for name in names]
    heads = Heads.empty()
    for content in contents:
        heads = heads.after(content.actions)
    adds, removes = last_actions(parse_file_actions(contents, _partitions(heads.metadata)))
    small: list[Action | None] = [heads.protocol, heads.metadata]
    lines: list[Action] = [action for action in small if action is not None]
    lines += [*heads.transactions.values(), *heads.domains.values()]
    lines += [*to_adds(_without_change(adds)), *to_removes(_without_change(removes))]
    if not lines:
        return None
    name = compacted_name(start, end)
    text = "".join(f"{to_json_line(action)}\n" for action in lines)
    try:
        storage.put_if_absent(_path(folder, name), text.encode())
    except FileExistsError:
        _log.debug("Versions %s to %s are compacted already", start, end)
    return name


def _partitions(metadata: Metadata | None) -> tuple[str, ...]:
    return () if metadata is None else physical_partition_names(metadata)


def _without_change(files: pa.Table) -> pa.Table:
    # The combined actions are state, not a change for streaming readers.
    index = files.schema.get_field_index("data_change")
    flags = pa.array([False] * files.num_rows, pa.bool_())
    return files.set_column(index, files.schema.field(index), flags)


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
