"""64-bit fingerprints of texts, to find candidates for duplicates.

A hash table of a million paths costs more time and memory than parsing them. A 64-bit hash of a
text's last eighty bytes, first sixteen bytes and length proves nearly all of them unique.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.primitives.arrow_numbers import Ints, to_flags

_WORD_BYTES = 8
_WORDS_FROM_END = 10
_SIEVED_MAX = 1024
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)

Words = npt.NDArray[np.uint64]


def fingerprints(texts: pa.ChunkedArray) -> Words:
    """64 bits per text: equal for equal texts, nearly always different for others."""
    parts = [_fingerprints(chunk) for chunk in texts.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def find_repeated(marks: Words) -> Ints:
    """The rows that share their fingerprint with another row."""
    ordered = np.sort(marks)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    return rows_with(marks, twice)


def rows_with(marks: Words, wanted: Words) -> Ints:
    """The rows with a fingerprint in ``wanted``."""
    wanted = np.unique(wanted)
    if len(wanted) <= _SIEVED_MAX:
        # A look at sixteen bits of each leaves few to compare; a hash of each takes ten times as long.
        sieve = np.zeros(1 << 16, dtype=np.bool_)
        sieve[_high_bits(wanted)] = True
        near = np.flatnonzero(sieve[_high_bits(marks)])
        return near[np.isin(marks[near], wanted)]
    table, values = (
        pa.Array.from_buffers(pa.uint64(), len(one), [None, pa.py_buffer(one)])
        for one in (np.ascontiguousarray(marks), wanted)
    )
    return np.flatnonzero(to_flags(pc.is_in(table, value_set=values)))


def _high_bits(words: Words) -> npt.NDArray[np.uint16]:
    return np.ascontiguousarray(words, dtype="<u8").view("<u2")[3::4]


def _fingerprints(chunk: pa.StringArray) -> Words:
    """64 bits per text; all texts shorter than a word share one fingerprint."""
    marks = np.zeros(len(chunk), dtype=np.uint64)
    _, offsets_buffer, data = chunk.buffers()
    if data is None or len(chunk) == 0 or data.size < _WORD_BYTES:
        return marks
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32, count=len(chunk) + 1, offset=4 * chunk.offset)
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    long = ends - starts >= _WORD_BYTES
    starts, ends = starts[long], ends[long]
    # A strided view of the word at every byte position, without a copy.
    words: Words = np.ndarray(shape=(data.size - _WORD_BYTES + 1,), dtype="<u8", buffer=data, strides=(1,))
    mark = words[starts] ^ (ends - starts).astype(np.uint64)
    mark = mark * _MIX ^ words[np.minimum(starts + _WORD_BYTES, ends - _WORD_BYTES)]
    for number in range(1, _WORDS_FROM_END + 1):
        mark *= _MIX
        mark ^= mark >> _SHIFT
        mark ^= words[np.maximum(starts, ends - number * _WORD_BYTES)]
    marks[long] = mark * _MIX
    return marks
