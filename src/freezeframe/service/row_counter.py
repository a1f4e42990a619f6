"""An engine for a service without Spark: it counts how a stream's new whole content differs from the old.

Loading and overriding a stream needs no more of an engine than that. What moves stored rows (an upsert, a
window, a full extract) is refused here: it belongs into a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freezeframe.engine.base import NOTHING, FindTask, Landed, LandTask, MergeResult, MergeTask, Positions
from freezeframe.errors import CorruptData, InvalidOption
from freezeframe.script.row_hashes import table_hashes
from freezeframe.storage import Storage


class RowCounter:
    """Counts an override by key or by whole rows, in this process; the limit of bytes is the caller's."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def merge(self, task: MergeTask) -> MergeResult:
        """See ``TableEngine.merge``; of an overwrite that writes nothing.

        Raises:
            InvalidOption: it is anything else.
            CorruptData: a stored file is missing or damaged.
        """
        if task.mode != "overwrite" or task.write or task.validity is not None:
            _refuse()
        names = [field["name"] for field in task.target_schema["fields"]]
        old = self._rows(task.stored, names, task.deleted)
        new = self._rows(task.batch, names, NOTHING)
        if not task.key:
            return _counted_whole(old, new)
        return _counted_by_key(old, new, list(task.key))

    def find(self, task: FindTask) -> pa.Table:
        """Refused: an upsert looks for rows."""
        _refuse(task)

    def find_all(self, tasks: Sequence[FindTask]) -> tuple[pa.Table, ...]:
        """Refused: an upsert looks for rows."""
        _refuse(tasks)

    def count_found(self, task: FindTask) -> tuple[int, ...]:
        """Refused: an upsert looks for rows."""
        _refuse(task)

    def land(self, frame: Any, task: LandTask) -> Landed:
        """Refused: there are no Spark frames here."""
        _refuse(frame, task)

    def condense(
        self,
        checkpoint: Sequence[str],
        commits: Sequence[str],
        output: str,
        *,
        parts: int,
        removed_after_ms: int | None = None,
    ) -> tuple[str, ...]:
        """Refused: a log that is too large for one process is condensed by the command."""
        _refuse(checkpoint, commits, output, parts, removed_after_ms)

    def read(
        self, files: tuple[str, ...], schema: Mapping[str, Any], deleted: Mapping[str, Positions] = NOTHING
    ) -> Any:
        """Refused: there are no Spark frames here."""
        _refuse(files, schema, deleted)

    def require_shared(self, folder: str) -> None:
        """The engine is this process: it sees what the process sees."""

    def close(self) -> None:
        """Nothing is held."""

    def _rows(self, files: Sequence[str], names: list[str], deleted: Mapping[str, Positions]) -> pa.Table:
        tables = [self._file(file, deleted.get(file)) for file in files]
        columns = {}
        joined = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
        for name in names:
            there = name in joined.column_names
            columns[name] = joined.column(name) if there else pa.nulls(len(joined))
        return pa.table(columns)

    def _file(self, file: str, gone: Positions | None) -> pa.Table:
        name = self._name(file)
        try:
            table = pq.read_table(pa.BufferReader(self._storage.read(name)), coerce_int96_timestamp_unit="us")
        except (FileNotFoundError, pa.ArrowException) as error:
            raise CorruptData(
                f"The file {name!r} cannot be read.",
                cause=f"{type(error).__name__}.",
                remedy="Restore it from a backup, or restore another version.",
            ) from error
        if gone is None:
            return table
        return table.filter(pc.invert(pc.is_in(pa.array(range(len(table))), pa.array(gone))))

    def _name(self, file: str) -> str:
        return file.removeprefix(self._storage.uri("")).lstrip("/")


def _counted_whole(old: pa.Table, new: pa.Table) -> MergeResult:
    before, after = Counter(table_hashes(old)), Counter(table_hashes(new))
    same = (before & after).total()
    return MergeResult(after.total() - same, 0, same, before.total() - same)


def _counted_by_key(old: pa.Table, new: pa.Table, key: list[str]) -> MergeResult:
    before = dict(zip(table_hashes(old.select(key)), table_hashes(old), strict=True))
    after = dict(zip(table_hashes(new.select(key)), table_hashes(new), strict=True))
    both = before.keys() & after.keys()
    updated = sum(before[one] != after[one] for one in both)
    return MergeResult(len(after) - len(both), updated, len(both) - updated, len(before) - len(both))


def _refuse(*_: object) -> NoReturn:
    raise InvalidOption(
        "This update moves stored rows, which the service does not do itself.",
        cause="It runs without Spark.",
        remedy="Import the rows as a job, or replace the whole content.",
    )
