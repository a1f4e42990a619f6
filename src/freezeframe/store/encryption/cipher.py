"""Encryption of sealed files: AES-256-GCM in chunks, bound to tenant, version and path.

    magic line | version id, 16 bytes | piece | piece | …

A piece is up to 1 MiB of plaintext and its tag. The key of a file is derived from the tenant's data
key and the random version id, so no two versions share one and the nonce can be a plain counter: it
holds the piece's number and whether it is the last, so that pieces cannot be swapped, left out or
cut off. How it is used: ``docs/how-to/files-and-secrets.md``.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from freezeframe.errors import CorruptData
from freezeframe.identifiers import FilePath

PIECE_BYTES = 1024 * 1024
_MAGIC = b"FREEZEFRAME-SEAL-1\n"
_VERSION_ID_BYTES = 16
_TAG_BYTES = 16
_COUNTER_BYTES = 11
_INFO = b"freezeframe sealed file 1"


def seal(content: Iterable[bytes], data_key: bytes, tenant: str, path: FilePath) -> Iterator[bytes]:
    """Encrypt ``content`` in chunks; two encryptions of the same bytes differ."""
    version_id = secrets.token_bytes(_VERSION_ID_BYTES)
    cipher, context = _cipher(data_key, version_id), _context(tenant, version_id, path)
    yield _MAGIC + version_id
    waiting = b""
    number = 0
    for piece in _split(content, PIECE_BYTES):
        if number:
            yield cipher.encrypt(_nonce(number - 1, is_last=False), waiting, context)
        waiting = piece
        number += 1
    yield cipher.encrypt(_nonce(max(number - 1, 0), is_last=True), waiting, context)


def unseal(sealed: Iterable[bytes], data_key: bytes, tenant: str, path: FilePath) -> Iterator[bytes]:
    """Decrypt a sealed file; each chunk is authenticated before it is returned."""
    pieces = _split(sealed, PIECE_BYTES + _TAG_BYTES, len(_MAGIC) + _VERSION_ID_BYTES)
    head = next(pieces, b"")
    if not head.startswith(_MAGIC) or len(head) != len(_MAGIC) + _VERSION_ID_BYTES:
        raise _broken(path, "It does not begin as sealed files do.")
    version_id = head[len(_MAGIC) :]
    cipher, context = _cipher(data_key, version_id), _context(tenant, version_id, path)
    waiting, number = next(pieces, b""), 0
    try:
        for piece in pieces:
            yield cipher.decrypt(_nonce(number, is_last=False), waiting, context)
            waiting, number = piece, number + 1
        yield cipher.decrypt(_nonce(number, is_last=True), waiting, context)
    except InvalidTag:
        raise _broken(
            path, "It was changed, cut off, or sealed for another tenant, path or data key."
        ) from None


def wrap(secret: bytes, key: bytes, context: str) -> bytes:
    """Encrypt ``secret`` with ``key``, bound to ``context``: nonce and ciphertext."""
    nonce = secrets.token_bytes(12)
    return nonce + AESGCM(key).encrypt(nonce, secret, context.encode())


def unwrap(wrapped: bytes, key: bytes, context: str) -> bytes | None:
    """Decrypt a wrapped secret; None for a wrong key, context or damaged bytes."""
    try:
        return AESGCM(key).decrypt(wrapped[:12], wrapped[12:], context.encode())
    except (InvalidTag, ValueError):
        return None


def _split(content: Iterable[bytes], size: int, first: int | None = None) -> Iterator[bytes]:
    """The same bytes in chunks of ``size`` (``first``: size of the first chunk); the last may be shorter."""
    held = bytearray()
    wanted = size if first is None else first
    for chunk in content:
        held += chunk
        while len(held) >= wanted:
            yield bytes(held[:wanted])
            del held[:wanted]
            wanted = size
    if held:
        yield bytes(held)


def _cipher(data_key: bytes, version_id: bytes) -> AESGCM:
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=version_id, info=_INFO).derive(data_key))


def _context(tenant: str, version_id: bytes, path: FilePath) -> bytes:
    return json.dumps([tenant, version_id.hex(), str(path)]).encode()


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(_COUNTER_BYTES, "big") + (b"\1" if is_last else b"\0")


def _broken(path: FilePath, cause: str) -> CorruptData:
    return CorruptData(
        f"The sealed file {str(path)!r} cannot be opened.",
        cause=cause,
        remedy="Restore an older version of it, or the tenant's directory from a backup.",
        path=str(path),
    )
