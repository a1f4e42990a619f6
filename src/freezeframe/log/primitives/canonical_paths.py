"""Canonical paths of data files, so that a remove matches its add (behaviour 54).

Paths in the log are URIs. They are compared as normalised by Hadoop's ``Path``, as Spark does: segments
``.`` and ``..`` are resolved, doubled slashes become one, and an absolute path without a scheme becomes
a ``file:`` URI. Percent escapes are decoded, as the protocol has it (section "Add File and Remove File"),
and only the necessary ones restored; Spark compares them as they are written.
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
_SLASH, _DOT = ord("/"), ord(".")


def canonical_path(path: str) -> str:
    """The path in the spelling of Delta's Spark reader."""
    match = _SCHEME.fullmatch(path)
    scheme, rest = (match[1], match[2]) if match else (None, path)
    authority = ""
    if rest.startswith("//"):
        authority, slash, below = rest[2:].partition("/")
        rest = slash + below
    rest = _TO_ESCAPE.sub(_escape, _resolved(unquote(rest)))
    if scheme is None and rest.startswith("/"):
        scheme = "file"
    elif scheme is None and _SCHEME.fullmatch(rest):
        rest = rest.replace(":", "%3A", 1)  # else its first segment would be a scheme
    head = f"{scheme}:" if scheme else ""
    return f"{head}//{authority}{rest}" if authority else f"{head}{rest}"


def _resolved(path: str) -> str:
    """The path without empty, ``.`` and ``..`` segments; one that climbs above its start keeps those."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif segment not in ("", ".") and (segment != ".." or not path.startswith("/")):
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return ("/" if path.startswith("/") else "") + "/".join(kept) + end


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
    dots = used == _DOT
    if (slashes[:-1] & dots[1:]).any():
        return True
    first = offsets[:-1][offsets[:-1] < offsets[-1]] - offsets[0]
    return bool((slashes | dots)[first].any())


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
