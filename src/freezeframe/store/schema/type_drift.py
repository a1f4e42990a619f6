"""A batch's column beside the stored one, and the error where no type holds both (pure)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.python_values import python_values
from freezeframe.errors import SchemaDriftError
from freezeframe.store.schema.comparison import exact_cast
from freezeframe.store.schema.type_compatibility import (
    IntegerTexts,
    Range,
    has_exact_text,
    integer_texts,
    widens,
)

_SHOWN_MAX = 3
_LOOKED_AT_MAX = 10_000

Pieces = Callable[[], Iterable[pa.ChunkedArray]]


@dataclass(frozen=True, slots=True)
class ColumnMeeting:
    """A stored column (``field``, and the range of its values where it is known) and the batch's.

    ``pieces`` gives the batch's values where they are not in ``column`` (``in_memory`` is false then);
    None: nobody knows them, and the types alone decide.
    """

    field: pa.Field
    column: pa.ChunkedArray
    in_memory: bool
    stored_range: Range | None = None
    is_key: bool = False
    pieces: Pieces | None = None

    @property
    def stored(self) -> pa.DataType:
        """The stored type."""
        return self.field.type

    @property
    def incoming(self) -> pa.DataType:
        """The type of the batch's values."""
        return self.column.type

    def fits(self, kind: pa.DataType) -> bool:
        """Whether every value of the batch is exact in ``kind``, as far as can be known."""
        if self.in_memory:
            return exact_cast(self.column, kind) is not None
        if self.pieces is not None and pa.types.is_string(self.incoming) and pa.types.is_date(kind):
            return all(exact_cast(piece, kind) is not None for piece in self.pieces())
        return widens(self.incoming, kind)

    def texts(self) -> IntegerTexts | None:
        """The classification of the batch's texts as integers; None where the values are unknown."""
        pieces = self._pieces()
        return None if pieces is None else integer_texts(pieces)

    def first_values(self) -> Iterator[tuple[int, Any]]:
        """The batch's first values (of its first piece, where it is not in memory) and their rows."""
        for piece in itertools.islice(self._pieces() or (), 1):
            for row in range(min(len(piece), _LOOKED_AT_MAX)):
                if piece[row].is_valid:
                    yield row, piece.slice(row, 1)

    def error(self) -> SchemaDriftError:
        """The columns have no type in common: why, which values show it, and what can be done."""
        rows, cause, remedy = self._text_key() or self._misfit()
        shown = ", ".join(
            f"row {row['row']}: {row['value']}" if "row" in row else row["value"] for row in rows
        )
        kind = "key column" if self.is_key else "column"
        return SchemaDriftError(
            f"The {kind} {self.field.name!r} is stored as {self.stored}, but the batch has {self.incoming}.",
            cause=f"{cause} ({shown or 'see the types'}).",
            remedy=remedy,
            column=self.field.name,
            stored=str(self.stored),
            incoming=str(self.incoming),
            rows=rows,
        )

    def _pieces(self) -> Iterable[pa.ChunkedArray] | None:
        return (self.column,) if self.in_memory else None if self.pieces is None else self.pieces()

    def _rows(self, found: Iterable[tuple[int, Any]]) -> list[dict[str, Any]]:
        """Rows for an error message; a Spark frame's rows have no order, so they have no number."""
        named = (
            {"row": row, "value": repr(python_values(cell)[0])}
            for row, cell in itertools.islice(found, _SHOWN_MAX)
        )
        return list(map(self._without_row_number, named))

    def _without_row_number(self, row: dict[str, Any]) -> dict[str, Any]:
        return row if self.in_memory else {"value": row["value"]}

    def _text_key(self) -> tuple[list[dict[str, Any]], str, str] | None:
        """Explanation for a key with text on one side and integers on the other."""
        if not self.is_key:
            return None
        if pa.types.is_string(self.stored) and pa.types.is_integer(self.incoming):
            cause = "A number does not say how its text was written: 7 may be stored as '007'"
            remedy = (
                "Read the column as text, as the source has it (pandas: dtype=str); or, if the numbers' own "
                "digits are the keys, pass on_drift='string'."
            )
            return self._rows(self.first_values()), cause, remedy
        texts = (
            self.texts() if pa.types.is_integer(self.stored) and pa.types.is_string(self.incoming) else None
        )
        if texts is None:
            return None
        if texts.doubtful:
            cause = "Texts that may be meant as stored numbers would become keys beside them"
            remedy = (
                "Cast the column to whole numbers if they are meant; or, if they are other keys, pass "
                "on_drift='string': the key becomes text, its numbers as they print."
            )
            return list(map(self._without_row_number, texts.doubtful)), cause, remedy
        cause = "All values are whole numbers, so nothing asks for the key to become text"
        remedy = (
            f"Cast the column to {self.stored} before the update; or pass on_drift='string', and the key "
            "becomes text, its numbers as they print."
        )
        return self._rows(self.first_values()), cause, remedy

    def _misfit(self) -> tuple[list[dict[str, Any]], str, str]:
        values, again = itertools.tee(self.first_values())
        # Where each value alone could be converted, the kinds differ and the first values show how.
        rows = self._rows(
            (row, one) for row, one in values if exact_cast(one, self.stored) is None
        ) or self._rows(again)
        remedy = f"Cast the column to {self.stored} before the update"
        if has_exact_text(self.stored) and has_exact_text(self.incoming):
            remedy += ", or pass on_drift='string' to keep both as text"
        remedy += "; freezeframe stream retype changes the stored type where no value is lost."
        return rows, "The values would not be the same in the stored type", remedy


def frozen_error(added: Sequence[str], widened: Sequence[str]) -> SchemaDriftError:
    """The error for added or widened columns under a frozen schema."""
    named = [*(f"{name!r} is new" for name in added), *(f"{name!r} needs another type" for name in widened)]
    return SchemaDriftError(
        "The columns of the batch are not those of the stream.",
        cause=f"{'; '.join(named)}, and schema='frozen' allows neither.",
        remedy="Leave the columns out or cast them, or pass schema='evolve'.",
        added=list(added),
        widened=list(widened),
    )
