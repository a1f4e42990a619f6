"""The stored rows of an upsert's candidate files: of a few they are read once, of many as they are asked for.

A small stream's update looks for keys, compares cells and writes the file anew: three times the same file
would be opened, planned for and parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.scan import rows
from freezeframe.observation import observe
from freezeframe.store.keys.key_scan import find_in
from freezeframe.store.table.data_files import deleted_positions, live_files
from freezeframe.store.updates.key_lookup import search
from freezeframe.store.updates.result import EngineName, UpdateContext

_HELD_BYTES_MAX = 1 << 20
_HELD_ROWS_MAX = 1 << 16

_Numbers = npt.NDArray[np.int64]


class CandidateRows:
    """Rows of ``files`` (rows of ``snapshot.files`` that may hold a key of the batch).

    Raises:
        CorruptData: a stored file is missing or damaged; by each of the methods too.
    """

    def __init__(self, context: UpdateContext, files: pa.Table) -> None:
        self._context = context
        self._files = files
        self.deleted: Mapping[str, _Numbers] = deleted_positions(context.snapshot, files)
        """The positions of deleted rows, by path; of files without any there is none."""
        self._held = rows.read_files(context.snapshot, files) if self._are_few() else {}

    def _are_few(self) -> bool:
        # The row counts of many files are parsed only where they are searched.
        if not self._files.num_rows or pc.sum(self._files["size"]).as_py() > _HELD_BYTES_MAX:
            return False
        rows_max = min(_HELD_ROWS_MAX, self._context.place.rule.searched_rows_max)  # beyond it Spark searches
        return sum(file.rows for file in live_files(self._files)) <= rows_max

    def find(self, keys: pa.Table) -> tuple[pa.Table, EngineName]:
        """Where the keys are, as ``TableEngine.find``, and who looked."""
        if not self._held:
            return search(self._context, self._files, keys)
        with observe("find"):
            return find_in(list(self._held.values()), keys), "process"

    def at(self, positions: Mapping[str, _Numbers], names: Sequence[str]) -> pa.Table:
        """Columns of the rows at some positions of files, by path, in that order."""
        if not self._held:
            return rows.read_at(self._context.snapshot, positions, names)
        columns = list(names)
        return pa.concat_tables(
            [self._held[path].select(columns).take(pa.array(one)) for path, one in positions.items()]
        )

    def without(self, positions: Mapping[str, _Numbers]) -> Iterator[pa.Table | pa.RecordBatch]:
        """The live rows of some of the stream's files, by path, but those at the given positions."""
        others = {path: one for path, one in positions.items() if path not in self._held}
        if others:
            yield from rows.read_without(self._context.snapshot, others)
        for path, one in positions.items():
            if path in self._held:
                stays = np.ones(len(self._held[path]), np.bool_)
                stays[one] = False
                stays[self.deleted.get(path, one)] = False
                yield self._held[path].filter(pa.array(stays))
