"""Content of a tenant's files: stored bytes, JSON, and the index of their paths."""

import bisect
import hashlib
import json
import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freezeframe.errors import CorruptData, InvalidName, InvalidOption, UnreadableInput
from freezeframe.identifiers import FilePath, fold_path, folders_of
from freezeframe.storage import Storage
from freezeframe.storage.local import FileIdentity, file_identity
from freezeframe.store.model.directory import blob_file

# A verified blob can be read in part for some minutes, as long as its file is unchanged. Remote storages have
# no file identity, so every read verifies.

_HOLDS_SECONDS = 600.0
_REMEMBERED_MAX = 10_000


class ProvedBlobs:
    """The verified files and the times of their verification. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._proved: dict[Path, tuple[FileIdentity, float]] = {}

    def holds(self, path: Path | None) -> bool:
        """Return whether the file was verified recently and is unchanged since."""
        if path is None:
            return False
        with self._lock:
            found = self._proved.get(path)
        return found is not None and found[1] > time.monotonic() and found[0] == file_identity(path)

    def note(self, path: Path | None, before: FileIdentity | None) -> None:
        """Record a verified file; ``before`` is its identity at the start of the read."""
        if path is None or before is None or before != file_identity(path):
            return
        with self._lock:
            if len(self._proved) >= _REMEMBERED_MAX:
                self._proved.clear()
            self._proved[path] = (before, time.monotonic() + _HOLDS_SECONDS)


# A blob belongs to the transaction that wrote it and is never shared, so gc cannot race a new reference.

CHUNK_BYTES = 4 * 1024 * 1024
_PROVED = ProvedBlobs()


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored blob: its name, the SHA-256 and the size of its bytes."""

    name: str
    sha256: str
    size: int


class Measured:
    """Iterator over chunks that hashes and counts the bytes it returns."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._hash = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._hash.update(chunk)
            self.size += len(chunk)
            yield chunk

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the bytes so far."""
        return self._hash.digest()


def write_blob(storage: Storage, write_id: str, content: Iterable[bytes]) -> Blob:
    """Write a new blob of the transaction; it is durable when this returns."""
    name = f"{write_id}/{uuid.uuid4().hex}"
    measured = Measured(content)
    storage.put_if_absent(blob_file(name), measured)
    return Blob(name, measured.digest.hex(), measured.size)


def read_blob(storage: Storage, blob: Blob) -> bytes:
    """Return all bytes of the blob, verified by their SHA-256."""
    try:
        content = storage.read(blob_file(blob.name))
    except FileNotFoundError:
        raise _damage_error(blob, "It is gone.") from None
    if hashlib.sha256(content).hexdigest() != blob.sha256:
        raise _damage_error(blob, f"Its SHA-256 is not {blob.sha256}.")
    return content


def blob_chunks(storage: Storage, blob: Blob) -> Iterator[bytes]:
    """Yield the bytes of the blob in chunks; the whole blob is verified before the first chunk."""
    _prove(storage, blob)
    measured = Measured(_chunks(storage, blob))
    yield from measured
    if measured.digest.hex() != blob.sha256:
        raise _damage_error(blob, "It changed while it was read.")


def blob_part(storage: Storage, blob: Blob, first: int, last: int) -> Iterator[bytes]:
    """Return the bytes from ``first`` to ``last``, both included, in chunks.

    The whole blob is verified before, unless that was done some minutes ago and its file is unchanged
    (see ``ProvedBlobs``).
    """
    path = storage.local_path(blob_file(blob.name))
    if not _PROVED.holds(path):
        before = None if path is None else file_identity(path)
        _prove(storage, blob)
        _PROVED.note(path, before)
    return _chunks(storage, blob, first, min(last + 1, blob.size))


def _prove(storage: Storage, blob: Blob) -> None:
    measured = Measured(_chunks(storage, blob))
    for _ in measured:
        continue
    if measured.digest.hex() != blob.sha256:
        raise _damage_error(blob, f"Its SHA-256 is not {blob.sha256}.")


def _chunks(storage: Storage, blob: Blob, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    offset, behind = start, blob.size if end is None else end
    while offset < behind:
        try:
            chunk = storage.read(blob_file(blob.name), offset, min(CHUNK_BYTES, behind - offset))
        except FileNotFoundError:
            raise _damage_error(blob, "It is gone.") from None
        if not chunk:
            raise _damage_error(blob, f"It ends after {offset} of {blob.size} bytes.")
        offset += len(chunk)
        yield chunk


def _damage_error(blob: Blob, cause: str) -> CorruptData:
    return CorruptData(
        f"The stored bytes of a file ({blob_file(blob.name)}) are damaged.",
        cause=cause,
        remedy="Restore an older version of the file, or the tenant's directory from a backup.",
        blob=blob.name,
    )


def to_json_bytes(value: Any) -> bytes:
    """Return the value as indented UTF-8 JSON with a line feed at the end."""
    _require_text_keys(value)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidOption(
            "The value cannot be written as JSON.",
            cause=f"{error}.",
            remedy="Pass objects, lists, text, finite numbers, true, false and null only.",
        ) from error


def from_json_bytes(content: bytes, path: str) -> Any:
    """Return the value in a file's bytes."""
    try:
        return json.loads(content, object_pairs_hook=distinct_members, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        # The message has the position of a JSON error but no content: the file may be a secret.
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UnreadableInput(
            f"The file {path!r} is not JSON.",
            cause=f"It cannot be parsed{where}.",
            remedy="Read it as bytes and write it again as JSON.",
            path=path,
        ) from None


def merge_patch(target: Any, patch: Any) -> Any:
    """Return ``target`` after the merge patch ``patch``; neither is changed (RFC 7396, section 2)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def _require_text_keys(value: Any) -> None:
    # Python would silently turn 1 and "1" into the same key.
    if isinstance(value, dict):
        odd = [name for name in value if not isinstance(name, str)]
        if odd:
            raise InvalidOption(
                f"The value cannot be written as JSON: the key {odd[0]!r} is not text.",
                remedy="Use texts as keys.",
            )
        for item in value.values():
            _require_text_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _require_text_keys(item)


def distinct_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object of which no member is given twice; the error does not name it."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("A member is there twice")
    return found


def refuse_constant(text: str) -> Any:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(f"{text} is not JSON")


# A state is immutable, so its paths are sorted once; the orders of the last few states are cached.

_KEPT_MAX = 64
_AFTER_SLASH = chr(ord("/") + 1)
_lock = threading.Lock()
_kept: OrderedDict[int, tuple[Mapping[str, Any], Sequence[str]]] = OrderedDict()


def sorted_paths(files: Mapping[str, Any]) -> Sequence[str]:
    """Return the sorted keys of an immutable mapping; the orders of the last few mappings are cached."""
    with _lock:
        found = _kept.get(id(files))
        if found is not None and found[0] is files:
            _kept.move_to_end(id(files))
            return found[1]
    paths = sorted(files)
    with _lock:
        _kept[id(files)] = (files, paths)  # referenced, so that its id() is not reused
        while len(_kept) > _KEPT_MAX:
            _kept.popitem(last=False)
    return paths


def paths_in(files: Mapping[str, Any], within: str, after: str = "", *, recursive: bool) -> Iterator[str]:
    """Yield the paths that start with ``within`` (empty, or a folder with its slash) and follow ``after``.

    Without ``recursive`` folders below are skipped, each in one step.
    """
    paths = sorted_paths(files)
    index = max(bisect.bisect_left(paths, within), bisect.bisect_right(paths, after))
    while index < len(paths) and paths[index].startswith(within):
        below = paths[index].find("/", len(within))
        if recursive or below < 0:
            yield paths[index]
            index += 1
        else:
            index = bisect.bisect_left(paths, paths[index][:below] + _AFTER_SLASH, index)


def folders_in(files: Mapping[str, Any], within: str, *, recursive: bool) -> Iterator[str]:
    """Return the distinct folders directly in ``within``, or all below it; sorted unless ``recursive``."""
    paths = sorted_paths(files)
    index, seen = bisect.bisect_left(paths, within), ""
    while index < len(paths) and paths[index].startswith(within):
        path = paths[index]
        below = path.find("/", len(within))
        if below < 0:
            index += 1
        elif recursive:
            while below >= 0:
                if not seen.startswith(path[: below + 1]):
                    yield path[:below]
                below = path.find("/", below + 1)
            seen, index = path, index + 1
        else:
            yield path[:below]
            index = bisect.bisect_left(paths, path[:below] + _AFTER_SLASH, index)


# Some file systems treat ``a`` and ``A`` as one file, and no path is both a file and a folder. A job's files
# must fit into its working copy on any disk.


class FileNames:
    """Index of file paths for case-insensitive conflicts; not thread-safe.

    It is kept during a job and for the next job (``SpareNames``), so that each file costs the same.
    """

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths: set[str] = set()
        self._files: dict[str, str] = {}
        self._folders: dict[str, Counter[str]] = {}
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Add a path that ``require`` accepted."""
        if path in self._paths:
            return
        self._paths.add(path)
        self._files[fold_path(path)] = path
        for folder in folders_of(path):
            self._folders.setdefault(fold_path(folder), Counter())[folder] += 1

    def remove(self, path: str) -> None:
        """Remove a path, and the folders that become empty."""
        if path not in self._paths:
            return
        self._paths.remove(path)
        if self._files[fold_path(path)] == path:
            del self._files[fold_path(path)]
        for folder in folders_of(path):
            spellings = self._folders[fold_path(folder)]
            spellings[folder] -= 1
            if not spellings[folder]:
                del spellings[folder]
            if not spellings:
                del self._folders[fold_path(folder)]

    def become(self, paths: AbstractSet[str]) -> None:
        """Change the index to these paths, in time proportional to the difference."""
        for path in self._paths - paths:
            self.remove(path)
        for path in paths - self._paths:
            self.add(path)

    def require(self, path: FilePath) -> None:
        """Refuse a path that conflicts with a path in the index."""
        _require_same(path, self._files.get(path.case_folded, str(path)), str(path))
        if path.case_folded in self._folders:
            raise _conflict_error(
                path, f"There is a folder of that name, {self._folder(path.case_folded)!r}."
            )
        for folder in path.folders:
            if fold_path(folder) in self._files:
                cause = f"{self._files[fold_path(folder)]!r} is a file, so it cannot be a folder."
                raise _conflict_error(path, cause)
            if fold_path(folder) in self._folders:
                _require_same(path, self._folder(fold_path(folder)), folder)

    def _folder(self, folder: str) -> str:
        return next(iter(self._folders[folder]))


class SpareNames:
    """Thread-safe pool with the path index of a tenant's last job, for reuse by the next one.

    A new index visits each file, which is expensive for a job that writes a single file.
    """

    def __init__(self) -> None:
        self._spare: list[FileNames] = []

    def take(self, paths: AbstractSet[str]) -> FileNames:
        """Return an index of ``paths``, for exclusive use until it is returned."""
        try:
            names = self._spare.pop()  # by a single thread, without a lock
        except IndexError:
            names = FileNames()
        names.become(paths)
        return names

    def give_back(self, names: FileNames) -> None:
        """Return an index to the pool, in any state."""
        self._spare[:] = [names]


def _require_same(path: FilePath, found: str, wanted: str) -> None:
    if found != wanted:
        raise _conflict_error(
            path, f"It differs from {found!r} only by case, which some file systems ignore."
        )


def _conflict_error(path: FilePath, cause: str) -> InvalidName:
    return InvalidName(
        f"The file {str(path)!r} cannot be kept.",
        cause=cause,
        remedy="Use the existing name, or another one.",
        name=str(path),
    )
