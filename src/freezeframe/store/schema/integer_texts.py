"""Text that meets integers: which texts are integers, and in canonical form (pure).

``docs/decisions/0026`` says why the difference matters: "7" is the number 7, "X9" is none, and of "007",
"+7", " 7" and "7.0" nobody can know whether it is the 7 that is stored, or another key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

AS_PRINTED = r"^(?:0|-?[1-9][0-9]*)$"
_READS_AS_NUMBER = r"^\s*[+-]?[0-9]+(?:\.0*)?\s*$"
_LARGEST = str(2**63)
_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class IntegerTexts:
    """Classification of a text column by integers.

    ``has_text``: a value is not a printed integer. ``doubtful``: the first rows with texts that parse
    as an integer but differ from its printed form.
    """

    has_text: bool
    doubtful: tuple[dict[str, Any], ...]

    @property
    def needs_text(self) -> bool:
        """Whether the column must be text and no value is doubtful."""
        return self.has_text and not self.doubtful


def integer_texts(pieces: Iterable[pa.ChunkedArray]) -> IntegerTexts:
    """Classify the values of a text column, given in pieces."""
    has_text, row = False, 0
    doubtful: list[dict[str, Any]] = []
    for piece in pieces:
        is_printed = pc.match_substring_regex(piece, AS_PRINTED)
        is_number = pc.match_substring_regex(piece, _READS_AS_NUMBER)
        is_doubtful = pc.and_(is_number, pc.invert(is_printed))
        is_text = pc.or_(pc.invert(is_number), pc.and_(is_printed, _is_too_long(piece)))
        has_text = has_text or bool(pc.any(is_text, min_count=0).as_py())
        places = pc.indices_nonzero(is_doubtful).slice(0, _SHOWN_MAX - len(doubtful)).to_pylist()
        doubtful += [{"row": row + place, "value": repr(piece[place].as_py())} for place in places]
        row += len(piece)
    return IntegerTexts(has_text, tuple(doubtful))


def _is_too_long(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Mask of the printed integers beyond 64 bits."""
    digits = pc.utf8_ltrim(texts, "-")
    length = pc.utf8_length(digits)
    as_long = pc.and_(pc.equal(length, len(_LARGEST)), pc.greater_equal(digits, _LARGEST))
    return pc.or_(pc.greater(length, len(_LARGEST)), as_long)
