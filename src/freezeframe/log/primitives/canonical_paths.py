"""Canonical paths of data files, so that a remove matches its add (behaviour 54).

Paths in the log are URIs. Delta compares them as normalised by Hadoop's ``Path``: percent escapes
are decoded and only the necessary ones restored, doubled slashes become one, and an absolute path
without a scheme becomes a ``file:`` URI.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(.*)", re.DOTALL)
# Characters that java.net.URI does not escape in a path, besides letters outside ASCII.
_TO_ESCAPE = re.compile(r"[^A-Za-z0-9_\-!.~'()*,;:$&+=/@\u00a1-\U0010ffff]")
_PLAIN = np.zeros(256, dtype=np.bool_)
for _byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.=/":
    _PLAIN[_byte] = True
_SLASH = ord("/")


def canonical_path(path: str) -> str:
    """The path in the spelling of Delta's Spark reader."""
    match = _SCHEME.fullmatch(path)
    scheme, rest = (match[1], match[2]) if match else (None, path)
    authority = ""
    if rest.startswith("//"):
        authority, slash, below = rest[2:].partition("/")
        rest = slash + below
    rest = re.sub(r"/{2,}", "/", rest)
    rest = _TO_ESCAPE.sub(_escape, unquote(rest))
    if scheme is None and rest.startswith("/"):
        scheme = "file"
    head = f"{scheme}:" if scheme else ""
    return f"{head}//{authority}{rest}" if authority else f"{head}{rest}"


def canonical_paths(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """All paths in canonical form; already canonical paths cost one scan of the bytes."""
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
    first = offsets[:-1][offsets[:-1] < offsets[-1]] - offsets[0]
    return bool(slashes[first].any())


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
