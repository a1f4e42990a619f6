"""How files of rows are read, whatever their format and wherever the rows go."""

import itertools
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from freezeframe.script.formats.input_parts import PART_BYTES, InputPart
from freezeframe.script.types.typed_columns import NOTHING_KNOWN, KnownTypes

_ROWS = 100_000


class RowFormat(ABC):
    """Files of a format: divided into parts, surveyed, and read in the types that all parts need together.

    Rows in memory, batches of a file of any size and Spark's tasks all come from ``tables``. A survey is what
    the values of a part say of its columns; ``joined`` makes of those of all parts what ``tables`` takes.
    """

    is_surveyed: ClassVar[bool] = True
    """False: files say their types, and a survey only shows that a part can be reached."""

    @abstractmethod
    def parts(self, file: Path, part_bytes: int = PART_BYTES) -> Sequence[InputPart]:
        """Divide a file into parts of about so many bytes."""

    @abstractmethod
    def survey(self, part: InputPart, known: KnownTypes, *, keeps: bool = False) -> Any:
        """Survey a part; with ``keeps``, of a whole file, the rows stay in memory, and are read once."""

    @abstractmethod
    def joined(self, parts: Sequence[InputPart], surveys: Sequence[Any], known: KnownTypes) -> Any:
        """Join what was found in all parts of a stream; refuses values that no type holds."""

    @abstractmethod
    def schema(self, joined: Any, known: KnownTypes) -> pa.Schema:
        """Return the columns and their types."""

    @abstractmethod
    def tables(self, part: InputPart, survey: Any, joined: Any, known: KnownTypes) -> Iterator[pa.Table]:
        """Yield the rows of a part in these columns; one that the part lacks is NULL."""

    def line(self, part: InputPart, row: int) -> int | None:  # noqa: ARG002 - of files with lines
        """Return the line of the file, from 1, on which a row of a part begins; None: it has no lines."""
        return None

    def whole(self, files: Sequence[Path], known: KnownTypes = NOTHING_KNOWN) -> pa.Table:
        """Return the rows of all files, in their order."""
        schema, tables = self._read(files, known, keeps=True)
        return pa.concat_tables([schema.empty_table(), *tables])

    def streamed(self, file: Path, known: KnownTypes = NOTHING_KNOWN) -> pa.RecordBatchReader:
        """Return the rows of a file that may be larger than memory; its types are known before the first."""
        schema, tables = self._read([file], known, keeps=False)
        batches = itertools.chain.from_iterable(table.to_batches(_ROWS) for table in tables)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _read(
        self, files: Sequence[Path], known: KnownTypes, *, keeps: bool
    ) -> tuple[pa.Schema, Iterator[pa.Table]]:
        parts = [part for file in files for part in self.parts(file, sys.maxsize)]
        surveys = [self.survey(part, known, keeps=keeps) for part in parts]
        joined = self.joined(parts, surveys, known)
        found = zip(parts, surveys, strict=True)
        tables = (table for part, survey in found for table in self.tables(part, survey, joined, known))
        return self.schema(joined, known), tables
