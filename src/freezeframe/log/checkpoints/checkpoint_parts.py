"""Writes a multi-part classic checkpoint: one file per part, valid only when all parts exist.

Parts of two writers must not be mixed, because each writer splits the state differently. The first
part is therefore created first, by put-if-absent: its creator writes the other parts too, and other
writers skip that set of names. A crashed writer leaves an incomplete set, which readers ignore and
log cleanup deletes; the next writer uses a set with one part more.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from freezeframe.errors import OutcomeUnknown, StorageUnavailable
from freezeframe.log.primitives.listing import complete_checkpoints, list_log, sort_listing
from freezeframe.log.primitives.paths import checkpoint_part_name
from freezeframe.storage.base import Storage

WRITERS_MAX = 2
SETS_MAX = 8


def write_parts(
    storage: Storage, folder: str, version: int, least: int, content: Callable[[int, int], bytes]
) -> tuple[int, int]:
    """Write a checkpoint of at least ``least`` parts (2 or more): (number of parts, total bytes).

    ``content(part, parts)`` returns the bytes of a part, counted from 1; several threads call it.
    A checkpoint of the same version completed by another writer counts as this one, with 0 bytes.

    Raises:
        StorageUnavailable: readers ignore the incomplete checkpoint; try again.
    """
    for parts in range(least, least + SETS_MAX):
        first = content(1, parts)
        if not _is_ours(storage, _name(folder, version, 1, parts), first):
            if _is_complete(storage, folder, version, parts):
                return parts, 0
            continue

        def put(part: int, parts: int = parts) -> int:
            found = content(part, parts)
            _create(storage, _name(folder, version, part, parts), found)
            return len(found)

        with ThreadPoolExecutor(min(WRITERS_MAX, parts), "freezeframe-checkpoint") as pool:
            return parts, len(first) + sum(pool.map(put, range(2, parts + 1)))
    raise StorageUnavailable(
        f"The checkpoint of version {version} of {folder!r} could not be written.",
        cause=f"{SETS_MAX} writers began it and did not end it.",
        remedy="The next version that is due gets one; the log's cleanup removes what they left.",
    )


def _is_ours(storage: Storage, name: str, content: bytes) -> bool:
    try:
        storage.put_if_absent(name, content)
    except FileExistsError:
        return False
    except OutcomeUnknown:
        return False  # ownership is uncertain; a set with other names is certain to be ours
    return True


def _create(storage: Storage, name: str, content: bytes) -> None:
    try:
        storage.put_if_absent(name, content)
    except FileExistsError as error:
        raise StorageUnavailable(
            f"The checkpoint's part {name!r} is there already.",
            cause="A writer that does not create the first part first is at the same checkpoint.",
            remedy="Delete the checkpoint's parts: they may be of two writers.",
        ) from error


def _is_complete(storage: Storage, folder: str, version: int, parts: int) -> bool:
    listed = sort_listing(list_log(storage, folder, version), version).checkpoint_files
    return any(len(one.files) == parts for one in complete_checkpoints(listed) if one.version == version)


def _name(folder: str, version: int, part: int, parts: int) -> str:
    name = checkpoint_part_name(version, part, parts)
    return f"{folder}/{name}" if folder else name
