"""Which of many texts may be equal, told by a few bytes of each.

Looking for files that are added twice among a million paths with a hash table of texts costs
more time and memory than parsing them. Sixty-four bits made of the text's last bytes, its
first ones and its length are enough to say for nearly all of them that they are alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freezeframe.log.arrow_numbers import Bools

_WORD_BYTES = 8
_WORDS_FROM_END = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)

Words = npt.NDArray[np.uint64]


def shared_fingerprints(texts: pa.ChunkedArray) -> Bools:
    """A flag per text: whether its fingerprint is also another's. Equal texts are always flagged."""
    parts = [_fingerprints(chunk) for chunk in texts.chunks]
    marks = np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)
    ordered = np.sort(marks)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if len(repeated) == 0:
        return np.zeros(len(marks), dtype=np.bool_)
    return np.isin(marks, repeated)


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
    for number in range(1, _WORDS_FROM_END + 1):
        mark *= _MIX
        mark ^= mark >> _SHIFT
        mark ^= words[np.maximum(starts, ends - number * _WORD_BYTES)]
    marks[long] = mark * _MIX
    return marks
