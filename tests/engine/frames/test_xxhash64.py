"""XXH64 of whole columns."""

import numpy as np
import pytest

from freezeframe.engine.frames.xxhash64 import hash_bytes, hash_longs

MASK = 2**64 - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def rotated(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK


def round_of(lane, word):
    return rotated((lane + word * P2) & MASK, 31) * P1 & MASK


def one_by_one(text, seed=42):
    """XXH64 as its specification has it, a byte string at a time."""
    place, size = 0, len(text)
    if size >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while size - place >= 32:
            for lane in range(4):
                lanes[lane] = round_of(lanes[lane], int.from_bytes(text[place : place + 8], "little"))
                place += 8
        found = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
        for lane in lanes:
            found = ((found ^ round_of(0, lane)) * P1 + P4) & MASK
    else:
        found = (seed + P5) & MASK
    found = (found + size) & MASK
    while size - place >= 8:
        found ^= round_of(0, int.from_bytes(text[place : place + 8], "little"))
        found = (rotated(found, 27) * P1 + P4) & MASK
        place += 8
    if size - place >= 4:
        found ^= int.from_bytes(text[place : place + 4], "little") * P1 & MASK
        found = (rotated(found, 23) * P2 + P3) & MASK
        place += 4
    for byte in text[place:]:
        found = rotated(found ^ byte * P5 & MASK, 11) * P1 & MASK
    found = (found ^ found >> 33) * P2 & MASK
    found = (found ^ found >> 29) * P3 & MASK
    return found ^ found >> 32


def hashed(texts):
    data = np.frombuffer(b"".join(texts), np.uint8)
    lengths = np.array([len(text) for text in texts], np.int64)
    return hash_bytes(data, np.cumsum(lengths) - lengths, lengths).tolist()


def test_the_specification_is_followed():
    """Published hashes, with seed 0, come out of the oracle of the tests below."""
    assert one_by_one(b"", seed=0) == 0xEF46DB3751D8E999
    assert one_by_one(b"abc", seed=0) == 0x44BC2CF5AD770999


@pytest.mark.parametrize("step", [1, 7])
def test_texts_of_every_length(step):
    """Each length from 0 to 200 takes its own way through words, halves, bytes and stripes."""
    source = np.random.default_rng(1)
    texts = [source.bytes(length) for length in range(0, 200, step) for _ in range(3)]
    source.shuffle(texts)

    assert hashed(texts) == [one_by_one(text) for text in texts]


def test_texts_of_one_length():
    """A column of keys, all of the same length."""
    texts = [b"00Q%09d" % number for number in range(1000)]

    assert hashed(texts) == [one_by_one(text) for text in texts]


def test_no_text_at_all():
    """A column without rows."""
    assert hashed([]) == []


def test_integers_are_hashed_by_their_eight_bytes():
    """Whatever their sign."""
    values = np.array([0, 1, -1, 2**63 - 1, -(2**63)], np.int64)
    expected = [one_by_one(int(value).to_bytes(8, "little", signed=True)) for value in values]

    assert hash_longs(values.view(np.uint64)).tolist() == expected
