"""Short fingerprints of many texts, to find those that may be equal.

Looking for files that are added twice among a million paths with a hash table of texts costs
more time and memory than parsing them. Sixty-four bits made of the text's last eighty bytes, its
first sixteen and its length are enough to say for nearly all of them that they are alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.primitives.arrow_numbers import Ints, to_flags

_WORD_BYTES = 8
_WORDS_FROM_END = 10
_COMPARED_MAX = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)

Words = npt.NDArray[np.uint64]


def fingerprints(texts: pa.ChunkedArray) -> Words:
    """Sixty-four bits per text: equal texts have equal ones, others nearly always have not."""
    parts = [_fingerprints(chunk) for chunk in texts.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def find_repeated(marks: Words) -> Ints:
    """The rows whose fingerprint is also another row's."""
    ordered = np.sort(marks)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    return rows_with(marks, twice)


def rows_with(marks: Words, wanted: Words) -> Ints:
    """The rows whose fingerprint is one of ``wanted``."""
    wanted = np.unique(wanted)
    if len(wanted) <= _COMPARED_MAX:
        found = np.zeros(len(marks), dtype=np.bool_)
        for one in wanted:
            found |= marks == one
        return np.flatnonzero(found)
    table, values = (
        pa.Array.from_buffers(pa.uint64(), len(one), [None, pa.py_buffer(one)])
        for one in (np.ascontiguousarray(marks), wanted)
    )
    return np.flatnonzero(to_flags(pc.is_in(table, value_set=values)))


def _fingerprints(chunk: pa.StringArray) -> Words:
    """Sixty-four bits per text; texts shorter than a word all have the same."""
    marks = np.zeros(len(chunk), dtype=np.uint64)
    _, offsets_buffer, data = chunk.buffers()
    if data is None or len(chunk) == 0 or data.size < _WORD_BYTES:
        return marks
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32, count=len(chunk) + 1, offset=4 * chunk.offset)
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    long = ends - starts >= _WORD_BYTES
    starts, ends = starts[long], ends[long]
    # Every position of the bytes as the word that begins there: a view, nothing is copied.
    words: Words = np.ndarray(shape=(data.size - _WORD_BYTES + 1,), dtype="<u8", buffer=data, strides=(1,))
    mark = words[starts] ^ (ends - starts).astype(np.uint64)
    mark = mark * _MIX ^ words[np.minimum(starts + _WORD_BYTES, ends - _WORD_BYTES)]
    for number in range(1, _WORDS_FROM_END + 1):
        mark *= _MIX
        mark ^= mark >> _SHIFT
        mark ^= words[np.maximum(starts, ends - number * _WORD_BYTES)]
    marks[long] = mark * _MIX
    return marks
