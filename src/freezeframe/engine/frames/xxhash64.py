"""Spark's ``xxhash64`` (seed 42) of whole columns, with NumPy.

Source: the XXH64 specification; Spark's ``XxHash64Function``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

SEED = np.uint64(42)

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_WORD, _HALF, _STRIPE = 8, 4, 32
_LANE_ROTATIONS = (1, 7, 12, 18)
_LANE_SEEDS = tuple(np.uint64((42 + add) % 2**64) for add in (int(_P1) + int(_P2), int(_P2), 0, -int(_P1)))


def hash_longs(values: Hashes, seeds: Hashes | np.uint64 = SEED) -> Hashes:
    """The hash of each 64-bit value, given by its bits; one seed for all, or one for each."""
    hashes = np.empty(len(values), np.uint64)
    hashes[:] = seeds
    hashes += _P5 + np.uint64(_WORD)
    _add_word(hashes, values)
    _finish(hashes)
    return hashes


def hash_bytes(data: npt.NDArray[np.uint8], starts: Integers, lengths: Integers) -> Hashes:
    """The hash of the bytes ``data[start : start + length]`` for each start and length."""
    if not len(starts):
        return np.empty(0, np.uint64)
    words = _Words(data, int(starts.min()), int((starts + lengths).max()))
    if lengths.min() == lengths.max():
        return _same_length(words.at(starts), int(lengths[0]))
    found = np.empty(len(starts), np.uint64)
    order = np.argsort(lengths.astype(np.uint16) if lengths.max() < 2**16 else lengths, kind="stable")
    ordered = lengths[order]
    for first, last in itertools.pairwise([0, *(np.flatnonzero(np.diff(ordered)) + 1), len(order)]):
        rows = order[first:last]
        found[rows] = _same_length(words.at(starts[rows]), int(ordered[first]))
    return found


class _Words:
    """Bytes as 64-bit words from any place: gathered aligned, which NumPy does eight times as fast."""

    def __init__(self, data: npt.NDArray[np.uint8], first: int, end: int) -> None:
        self._first = first
        self._aligned = np.zeros((end - first) // _WORD + 2, np.dtype("<u8"))
        self._aligned.view(np.uint8)[: end - first] = data[first:end]

    def at(self, starts: Integers) -> Iterator[Hashes]:
        """The first word of each value, the second of each, and so on; undefined past the end of a value."""
        places = starts - self._first
        shifts = ((places & 7) << 3).astype(np.uint64)
        places >>= 3
        lower = self._aligned[places]
        while True:
            places += 1
            upper = self._aligned[np.minimum(places, len(self._aligned) - 1)]
            # A shift by 64 bits would lose the word.
            yield (lower >> shifts) | (upper << (np.uint64(64) - shifts))
            lower = upper


def _same_length(words: Iterator[Hashes], length: int) -> Hashes:
    if length >= _STRIPE:
        hashes = _stripes(words, length // _STRIPE)
    else:
        first = next(words)
        words = itertools.chain([first], words)
        hashes = np.full(len(first), SEED + _P5)
    hashes += np.uint64(length)
    left = length % _STRIPE
    while left >= _WORD:
        _add_word(hashes, next(words))
        left -= _WORD
    if left:
        _add_rest(hashes, next(words), left)
    _finish(hashes)
    return hashes


def _add_rest(hashes: Hashes, rest: Hashes, length: int) -> None:
    if length >= _HALF:
        hashes ^= (rest & np.uint64(0xFFFFFFFF)) * _P1
        hashes[:] = rotate_left(hashes, 23)
        hashes *= _P2
        hashes += _P3
    for place in range(length & _HALF, length):
        hashes ^= ((rest >> np.uint64(8 * place)) & np.uint64(0xFF)) * _P5
        hashes[:] = rotate_left(hashes, 11)
        hashes *= _P1


def _stripes(words: Iterator[Hashes], count: int) -> Hashes:
    """The hash state of the four lanes after the leading 32-byte stripes."""
    lanes: list[Hashes] = []
    for place, word in enumerate(itertools.islice(words, 4 * count)):
        if place < len(_LANE_SEEDS):
            lanes.append(np.full(len(word), _LANE_SEEDS[place]))
        lane = lanes[place % 4]
        lane += word * _P2
        lane[:] = rotate_left(lane, 31)
        lane *= _P1
    hashes = np.zeros(len(lanes[0]), np.uint64)
    for lane, rotation in zip(lanes, _LANE_ROTATIONS, strict=True):
        hashes += rotate_left(lane, rotation)
    for lane in lanes:
        hashes ^= rotate_left(lane * _P2, 31) * _P1
        hashes *= _P1
        hashes += _P4
    return hashes


def rotate_left(values: Hashes, bits: int) -> Hashes:
    """The values with their bits rotated to the left."""
    turned = values << np.uint64(bits)
    turned |= values >> np.uint64(64 - bits)
    return turned


def _add_word(hashes: Hashes, words: Hashes) -> None:
    mixed = rotate_left(words * _P2, 31)
    mixed *= _P1
    hashes ^= mixed
    hashes[:] = rotate_left(hashes, 27)
    hashes *= _P1
    hashes += _P4


def _finish(hashes: Hashes) -> None:
    hashes ^= hashes >> np.uint64(33)
    hashes *= _P2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _P3
    hashes ^= hashes >> np.uint64(32)
