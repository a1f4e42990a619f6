"""Names of log files, and canonical paths of data files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from freezeframe.storage import FileStatus

# File names of a log folder: parsing and formatting.
#
# A name holds everything that segment selection needs (version, kind, part), so selection opens no
# file. Other names are ignored (Delta protocol, section "File Types").

LOG_FOLDER = "_delta_log"
SIDECAR_FOLDER = "_sidecars"
HINT_NAME = "_last_checkpoint"

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
# 00000000000000000007.json
_COMMIT = re.compile(r"(\d{20})\.json")
# 00000000000000000010.checkpoint.parquet
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
# 00000000000000000010.checkpoint.0000000001.0000000003.parquet
_PART = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
# 00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json (or .parquet)
_V2 = re.compile(rf"(\d{{20}})\.checkpoint\.{_UUID}\.(?:json|parquet)")
# 00000000000000000004.00000000000000000006.compacted.json
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
# 00000000000000000007.crc
_CHECKSUM = re.compile(r"(\d{20})\.crc")
# 00000000000000000007.state, which is ours
STATE_SUFFIX = ".state"
_STATE = re.compile(rf"(\d{{20}}){re.escape(STATE_SUFFIX)}")


class Kind(Enum):
    """Kind of a log file."""

    COMMIT = "commit"
    CHECKPOINT = "checkpoint"
    CHECKPOINT_PART = "checkpoint part"
    V2_CHECKPOINT = "v2 checkpoint"
    COMPACTED = "compacted"
    CHECKSUM = "checksum"
    STATE = "state"

    @property
    def is_checkpoint(self) -> bool:
        """Whether the file is a checkpoint or a part of one."""
        return self in _CHECKPOINT_KINDS


_CHECKPOINT_KINDS = frozenset({Kind.CHECKPOINT, Kind.CHECKPOINT_PART, Kind.V2_CHECKPOINT})


@dataclass(frozen=True, slots=True)
class LogName:
    """A parsed file name: ``version`` is the last version that the file covers, ``start`` the first."""

    kind: Kind
    version: int
    start: int
    part: int = 1
    parts: int = 1


@dataclass(frozen=True, slots=True)
class LogFile:
    """One listed file of the log: its name, size in bytes and modification time in ms."""

    name: str
    size: int
    modified_ms: int
    meaning: LogName

    @property
    def kind(self) -> Kind:
        """The kind of the file."""
        return self.meaning.kind

    @property
    def version(self) -> int:
        """The version of the file; the last one of a compacted file."""
        return self.meaning.version


@lru_cache(maxsize=65_536)
def parse_name(name: str) -> LogName | None:
    """Parse a file name; ``None`` for a name that is not part of a log."""
    if match := _COMMIT.fullmatch(name):
        return LogName(Kind.COMMIT, int(match[1]), int(match[1]))
    if match := _CHECKSUM.fullmatch(name):
        return LogName(Kind.CHECKSUM, int(match[1]), int(match[1]))
    if match := _STATE.fullmatch(name):
        return LogName(Kind.STATE, int(match[1]), int(match[1]))
    if match := _CHECKPOINT.fullmatch(name):
        return LogName(Kind.CHECKPOINT, int(match[1]), int(match[1]))
    if match := _PART.fullmatch(name):
        version, part, parts = int(match[1]), int(match[2]), int(match[3])
        return LogName(Kind.CHECKPOINT_PART, version, version, part, parts) if 1 <= part <= parts else None
    if match := _V2.fullmatch(name):
        return LogName(Kind.V2_CHECKPOINT, int(match[1]), int(match[1]))
    if match := _COMPACTED.fullmatch(name):
        start, end = int(match[1]), int(match[2])
        return LogName(Kind.COMPACTED, end, start) if start <= end else None
    return None


def log_file(status: FileStatus) -> LogFile | None:
    """Return the listed file with its parsed name; ``None`` for a name that is not part of a log."""
    meaning = parse_name(status.name)
    return None if meaning is None else LogFile(status.name, status.size, status.modified_ms, meaning)


def in_folder(folder: str, name: str) -> str:
    """Return the name of a file in a folder of a storage; the folder may be the root."""
    return f"{folder}/{name}" if folder else name


def version_prefix(version: int) -> str:
    """Return the twenty-digit prefix of every name of ``version``, at which a listing starts."""
    return f"{version:020d}"


def commit_name(version: int) -> str:
    """``00000000000000000007.json``."""
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """``00000000000000000010.checkpoint.parquet``."""
    return f"{version:020d}.checkpoint.parquet"


def checkpoint_part_name(version: int, part: int, parts: int) -> str:
    """``00000000000000000010.checkpoint.0000000001.0000000003.parquet``; parts count from 1."""
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def v2_checkpoint_name(version: int, unique_id: str, suffix: str) -> str:
    """``00000000000000000010.checkpoint.<uuid>.json``; ``suffix`` is ``json`` or ``parquet``."""
    return f"{version:020d}.checkpoint.{unique_id}.{suffix}"


def state_name(version: int) -> str:
    """``00000000000000000007.state``."""
    return f"{version:020d}{STATE_SUFFIX}"


def checksum_name(version: int) -> str:
    """``00000000000000000007.crc``."""
    return f"{version:020d}.crc"


# Canonical paths of data files, so that a remove matches its add (section "Add File and Remove File").
#
# Paths in the log are URIs. They are compared as normalised by Hadoop's ``Path``, as Spark does: segments
# ``.`` and ``..`` are resolved, doubled slashes become one, and an absolute path without a scheme becomes
# a ``file:`` URI. Percent escapes are decoded, as the protocol has it (section "Add File and Remove File"),
# and only the necessary ones restored; Spark compares them as they are written.

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(.*)", re.DOTALL)
# Characters that java.net.URI does not escape in a path, besides letters outside ASCII.
_TO_ESCAPE = re.compile(r"[^A-Za-z0-9_\-!.~'()*,;:$&+=/@\u00a1-\U0010ffff]")
_PLAIN = np.zeros(256, dtype=np.bool_)
for _byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.=/":
    _PLAIN[_byte] = True
_SLASH, _DOT = ord("/"), ord(".")


def canonical_path(path: str) -> str:
    """Return the path in the spelling of Delta's Spark reader."""
    match = SCHEME.fullmatch(path)
    scheme, rest = (match[1], match[2]) if match else (None, path)
    authority = ""
    if rest.startswith("//"):
        authority, slash, below = rest[2:].partition("/")
        rest = slash + below
    rest = _TO_ESCAPE.sub(_escape, _resolved(unquote(rest)))
    if scheme is None and rest.startswith("/"):
        scheme = "file"
    elif scheme is None and SCHEME.fullmatch(rest):
        rest = rest.replace(":", "%3A", 1)  # else its first segment would be a scheme
    head = f"{scheme}:" if scheme else ""
    return f"{head}//{authority}{rest}" if authority else f"{head}{rest}"


def _resolved(path: str) -> str:
    """Return path without empty, ``.`` and ``..`` segments; one that climbs above its start keeps those."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif segment not in ("", ".") and (segment != ".." or not path.startswith("/")):
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return ("/" if path.startswith("/") else "") + "/".join(kept) + end


def canonical_paths(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return all paths in canonical form; already canonical paths cost one scan of the bytes."""
    return pa.chunked_array([_canonical_chunk(chunk) for chunk in paths.chunks], type=pa.string())


def _canonical_chunk(chunk: pa.StringArray) -> pa.StringArray:
    if not _may_differ(chunk):
        return chunk
    rows = [path if path is None else canonical_path(path) for path in chunk.to_pylist()]
    builder = pa.lib.StringBuilder()
    builder.append_values(rows)
    return builder.finish()


def _may_differ(chunk: pa.StringArray) -> bool:
    if len(chunk) == 0 or chunk.null_count == len(chunk):
        return False
    _, offsets_buffer, data = chunk.buffers()
    if data is None:
        return False
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32, count=len(chunk) + 1, offset=4 * chunk.offset)
    used = np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]]
    if not _PLAIN[used].all():
        return True
    slashes = used == _SLASH
    if (slashes[1:] & slashes[:-1]).any():
        return True
    dots = used == _DOT
    if (slashes[:-1] & dots[1:]).any():
        return True
    first = offsets[:-1][offsets[:-1] < offsets[-1]] - offsets[0]
    return bool((slashes | dots)[first].any())


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
