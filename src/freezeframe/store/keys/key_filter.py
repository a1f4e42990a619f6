"""A Bloom filter of the keys whose rows a commit changed, stored in its ``commitInfo`` (pure).

It spares a row's history the commits that left the row as it was: their files are not opened. One key in
a hundred passes it by chance.
"""

from __future__ import annotations

import base64
import binascii

import numpy as np
import pyarrow as pa

from freezeframe.engine.frames.batch import comparable_key
from freezeframe.engine.frames.row_hash import row_hashes
from freezeframe.engine.frames.xxhash64 import Hashes

KEYS_MAX = 10_000
"""A commit of more changed keys has no filter, which would be longer than the rest of it."""
BITS_PER_KEY = 10
HASHES = 7
_LOWER_HALF = np.uint64(0xFFFFFFFF)


def key_filter(keys: pa.Table) -> str:
    """The filter of keys in the types of the stream's key; empty for none, or for more than ``KEYS_MAX``."""
    if not 0 < len(keys) <= KEYS_MAX:
        return ""
    size = -(-len(keys) * BITS_PER_KEY // 8) * 8
    bits = np.zeros(size, np.bool_)
    bits[_places(key_hashes(keys), size)] = True
    return base64.b64encode(np.packbits(bits).tobytes()).decode()


def key_hashes(keys: pa.Table) -> Hashes:
    """The hashes of keys by which a filter knows them."""
    if not len(keys):
        return np.empty(0, np.uint64)
    comparable = pa.table({name: comparable_key(keys[name]) for name in keys.column_names})
    return np.concatenate([*row_hashes(comparable)])


def excludes(text: str, hashes: Hashes) -> bool:
    """Whether no key of ``hashes`` is in a filter; never true without keys or a filter."""
    try:
        held = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
    except (binascii.Error, ValueError):
        return False
    if not len(held) or not len(hashes):
        return False
    places = _places(hashes, 8 * len(held))
    bits = held[places >> np.uint64(3)] << (places & np.uint64(7)).astype(np.uint8) & 0x80
    return not bits.all(axis=1).any()


def _places(hashes: Hashes, size: int) -> Hashes:
    """The bits of each key, ``HASHES`` in a row: two halves of its hash, combined (double hashing)."""
    first, second = hashes & _LOWER_HALF, hashes >> np.uint64(32) | np.uint64(1)
    steps = np.arange(HASHES, dtype=np.uint64)
    places: Hashes = (first[:, np.newaxis] + steps * second[:, np.newaxis]) % np.uint64(size)
    return places
