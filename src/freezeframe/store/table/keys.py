"""Keys of stored rows: as numbers and values, pruned by statistics, scanned in files."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from freezeframe.engine.frames.equality import comparable_key
from freezeframe.errors import BadInput, InvalidOption
from freezeframe.log import Snapshot
from freezeframe.log.primitives.arrow import Bools
from freezeframe.log.scan import rows
from freezeframe.log.scan.block_index import ColumnBounds, column_bounds
from freezeframe.log.scan.rows import ReadableSnapshot
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import is_local, map_concurrently, processors
from freezeframe.store.schema.columns import arrow_columns, physical_names
from freezeframe.store.schema.type_compatibility import cast_to, exact_cast
from freezeframe.store.table.reader import deleted_positions

_Numbers = npt.NDArray[np.int64]
_Item = TypeVar("_Item")


class KeyNumbers:
    """The distinct keys of a batch; the number of a key is its row.

    Equal is what is equal to Spark as well: NaN to NaN, 0.0 to -0.0, and null to null.
    """

    def __init__(self, keys: pa.Table) -> None:
        self.count = len(keys)
        columns = [comparable_key(column) for column in keys.columns]
        self._values = columns
        self._pairs: list[pa.Array] = []
        """For each column after the first: the pairs that keys have of the number so far and its own."""
        if len(columns) == 1:
            return
        self._values = [pc.unique(column) for column in columns]
        _, numbers = _intersect(columns[0], self._values[0])
        for column, values in zip(columns[1:], self._values[1:], strict=True):
            _, own = _intersect(column, values)
            pairs = _pairs(numbers, own, values)
            self._pairs.append(pc.unique(pairs))
            _, numbers = _intersect(pairs, self._pairs[-1])
        # Unique values keep their order of appearance, so the keys' own numbers are 0, 1, 2 and so on.

    def found_in(self, rows: pa.Table) -> tuple[_Numbers, _Numbers]:
        """(ascending indexes of the rows with one of the keys, the number of each row's key).

        ``rows`` have the key's columns, in the order of the keys.
        """
        at, numbers = _intersect(rows.column(0), self._values[0])
        for column, values, known_pairs in zip(rows.columns[1:], self._values[1:], self._pairs, strict=True):
            here, own = _intersect(column.take(pa.array(at)), values)
            there, paired = _intersect(_pairs(numbers[here], own, values), known_pairs)
            at, numbers = at[here][there], paired
        return at, numbers


def _pairs(numbers: _Numbers, own: _Numbers, values: pa.Array) -> pa.Array:
    """One number per pair: both parts are less than the number of keys, so 64 bits suffice."""
    return pa.array(numbers * len(values) + own)


def _intersect(column: Any, values: pa.Array) -> tuple[_Numbers, _Numbers]:
    """(indexes of the column's values found in ``values``, their indexes in ``values``)."""
    # One call for all chunks, since each call builds a hash table of the values.
    found = pc.index_in(comparable_key(column.cast(values.type)), value_set=values)
    at = pc.indices_nonzero(pc.is_valid(found)).to_numpy().astype(np.int64)
    return at, found.drop_null().to_numpy().astype(np.int64)


def may_hold(
    statistics: pa.ChunkedArray | Sequence[str | None],
    keys: pa.Table,
    stored: pa.Schema,
    names: Mapping[str, str],
) -> list[bool]:
    """Return whether each file may hold one of the keys, by the JSON text of its statistics.

    ``stored`` has the types in which the files hold the key's columns, ``names`` their names there.
    A file without usable statistics may hold anything.
    """
    texts = (
        statistics
        if isinstance(statistics, pa.ChunkedArray)
        else pa.chunked_array([pa.array(statistics, pa.string())])
    )
    held = np.ones(len(texts), np.bool_)
    for name in keys.column_names:
        column = keys[name]
        # Bounds exclude nulls and NaN, and another type may sort its values differently.
        if column.null_count or kinds.is_floating(column.type) or column.type != stored.field(name).type:
            continue
        bounds = column_bounds(texts, stored.field(name), names[name])
        held &= _meet(column.combine_chunks(), bounds)
    found: list[bool] = held.tolist()
    return found


def _meet(values: pa.Array, bounds: ColumnBounds) -> Bools:
    """Mask of the files with one of the ``values`` within their bounds."""
    if not len(values):
        return np.zeros(len(bounds.low), np.bool_)
    # Most files are before or after all keys, or around the first or last one, as comparisons decide. Those
    # that begin and end between two keys are searched: mostly some of the keys suffice to find one within.
    first, last = pc.min_max(values).values()
    near = ~_true(pc.greater(bounds.low, last)) & ~_true(pc.less(bounds.high, first))
    inner = near & _true(pc.greater(bounds.low, first)) & _true(pc.less(bounds.high, last))
    for some in (values[:: len(values) // _SAMPLED_KEYS + 1], values):
        if not inner.any():
            break
        in_order = some.take(pc.sort_indices(some))
        at = np.flatnonzero(inner)
        low, high = (end.take(pa.array(at)) for end in (bounds.low, bounds.high))
        within = _count_before(in_order, low, pc.less) < _count_before(in_order, high, pc.less_equal)
        inner[at[within]] = False
    return near & ~inner


_SAMPLED_KEYS = 2_000


def _true(flags: pa.ChunkedArray) -> Bools:
    found: Bools = pc.fill_null(flags, False).to_numpy()  # noqa: FBT003 - Arrow's signature
    return found


def _count_before(
    values: pa.Array,
    bounds: pa.ChunkedArray,
    is_before: Callable[[pa.Array, pa.ChunkedArray], pa.ChunkedArray],
) -> npt.NDArray[np.int64]:
    """Return the number of sorted ``values`` before each bound, by a vectorised binary search."""
    low = np.zeros(len(bounds), np.int64)
    high = np.full(len(bounds), len(values), np.int64)
    for _ in range(len(values).bit_length()):
        middle = (low + high) // 2
        is_open = low < high
        at = values.take(pa.array(np.minimum(middle, len(values) - 1)))
        before = _true(is_before(at, bounds))
        low = np.where(is_open & before, middle + 1, low)
        high = np.where(is_open & ~before, middle, high)
    return low


# The scan of a file is a function of values, so it runs as a thread of this process, or as a task of Spark
# in a Python worker. Source: ``docs/decisions/0024`` and ``docs/decisions/0034``.

PIECE_ROWS = 1 << 18
"""At least so many rows are looked up at once, and four times as many as there are keys: each piece takes a
hash table of the keys, so fewer would cost more tables and more would need more memory."""

THREADS_MAX = 8

REQUESTS_MAX = 16
"""So many files of a distant storage are read side by side: they are waited for, which takes no processor."""

PART_ROWS_MIN = 1 << 18
"""A file of twice as many rows is read in several parts, side by side."""

FOUND = pa.schema([("file", pa.int32()), ("row", pa.int64()), ("place", pa.int64())])
_SENT = pa.schema([("file", pa.int16()), ("row", pa.int32()), ("place", pa.int32())])
"""What a task of Spark answers, where its numbers fit: Java takes a while to pass on megabytes."""


def files_with(snapshot: ReadableSnapshot, keys: pa.Table) -> pa.Table:
    """Return the rows of ``snapshot.files`` whose files may hold one of the keys by their statistics."""
    files, schema = snapshot.files, snapshot.delta_schema
    held = may_hold(files["stats"], keys, arrow_columns(schema), physical_names(schema))
    return files.filter(pa.array(held, pa.bool_()))


def scan(
    snapshot: ReadableSnapshot, files: pa.Table, keys: pa.Table, piece_rows: int = PIECE_ROWS
) -> pa.Table:
    """Locate distinct ``keys`` in ``files`` (rows of ``snapshot.files``).

    The columns are those of ``TableEngine.find``: the file's number, the row's position in the file, deleted
    rows included, and the key's row. Memory is that of the keys and of ``piece_rows`` stored ones a thread.
    """
    numbers = KeyNumbers(keys)
    threads = threads_of(snapshot.storage)
    dealt = shares(_parts(snapshot, files, keys.column_names, snapshot.storage), threads, _rows)
    found = map_concurrently(lambda share: _scan_parts(share, numbers, piece_rows), dealt, threads)
    return pa.concat_tables(found) if found else FOUND.empty_table()


def threads_of(storage: Storage) -> int:
    """Return how many files of a storage are read side by side."""
    return min(THREADS_MAX, processors()) if is_local(storage) else REQUESTS_MAX


def positions_of(snapshot: Snapshot, keys: pa.Table) -> dict[str, _Numbers]:
    """Return the positions of the live rows with one of some distinct keys, by file, ascending."""
    files = files_with(snapshot, keys)
    if not len(files):
        return {}
    found, gone = scan(snapshot, files, keys), deleted_positions(snapshot, files)
    file, row = found["file"].to_numpy(), found["row"].to_numpy()
    nothing = np.empty(0, np.int64)
    return {
        path: alive
        for number, path in enumerate(files["path"].to_pylist())
        if len(alive := np.setdiff1d(row[file == number], gone.get(path, nothing)))
    }


def scan_tasks(
    snapshot: ReadableSnapshot, files: pa.Table, columns: Sequence[str], storage: Storage, keys_file: str
) -> list[Callable[[], pa.Table]]:
    """Calls that can be sent to other processes; their answers together, in ``FOUND``, are that of ``scan``.

    ``keys_file`` is a Parquet file in ``storage`` of the keys, which are the stream's ``columns``. There is a
    call for each processor, so that it reads the keys once.
    """
    dealt = shares(_parts(snapshot, files, columns, storage), processors(), _rows)
    return [functools.partial(_scan_for_file, share, storage, keys_file) for share in dealt]


@dataclass(frozen=True, slots=True)
class _Part:
    """A run of row groups of a file, as a unit of work for any process."""

    file: int
    rows: int
    read: Callable[[], tuple[int, Iterator[pa.RecordBatch]]]


def _rows(part: _Part) -> int:
    return part.rows


def _parts(
    snapshot: ReadableSnapshot, files: pa.Table, columns: Sequence[str], storage: Storage
) -> list[_Part]:
    found = []
    for number, (count, read) in enumerate(rows.whole_files(snapshot, files, columns, storage)):
        parts = parts_of(count)
        found += [
            _Part(number, count // parts, functools.partial(read, (part, parts))) for part in range(parts)
        ]
    return found


def parts_of(rows: int) -> int:
    """Return the number of parts in which a file of so many rows is read, side by side."""
    return max(1, min(processors(), rows // PART_ROWS_MIN))


def shares(parts: Iterable[_Item], count: int, size: Callable[[_Item], int]) -> list[list[_Item]]:
    """Return at most ``count`` groups of parts, none of them empty, of about the same size together."""
    found, sizes = [list[_Item]() for _ in range(count)], [0] * count
    for part in sorted(parts, key=lambda item: -size(item)):
        least = sizes.index(min(sizes))
        found[least].append(part)
        sizes[least] += size(part)
    return list(filter(None, found))


def _scan_for_file(parts: Sequence[_Part], storage: Storage, keys_file: str) -> pa.Table:
    keys = pq.read_table(storage.local_path(keys_file) or pa.BufferReader(storage.read(keys_file)))
    return sent(_scan_parts(parts, KeyNumbers(keys)))


def sent(found: pa.Table) -> pa.Table:
    """Return what was found in half as many bytes, unless a number is too large for them."""
    with contextlib.suppress(pa.ArrowInvalid):
        return found.cast(_SENT)
    return found


def _scan_parts(parts: Sequence[_Part], numbers: KeyNumbers, piece_rows: int = PIECE_ROWS) -> pa.Table:
    pieces = _pieces(parts, max(piece_rows, 4 * numbers.count))
    return pa.Table.from_batches([_found(piece, numbers) for piece in pieces], FOUND)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Adjacent rows of a file, from position ``begin`` on."""

    file: int
    begin: int
    rows: pa.RecordBatch


def _pieces(parts: Iterable[_Part], rows_min: int) -> Iterator[list[_Batch]]:
    """Yield the rows of the parts, joined to pieces of the size of one look-up."""
    held: list[_Batch] = []
    for part in parts:
        begin, batches = part.read()
        for batch in batches:
            held.append(_Batch(part.file, begin, batch))
            begin += batch.num_rows
            if sum(item.rows.num_rows for item in held) >= rows_min:
                yield held
                held = []
    if held:
        yield held


def _found(piece: Sequence[_Batch], numbers: KeyNumbers) -> pa.RecordBatch:
    """Return where the rows with one of the keys are."""
    at, key = numbers.found_in(pa.Table.from_batches([batch.rows for batch in piece]))
    begins = np.cumsum([0, *(batch.rows.num_rows for batch in piece)])[:-1]
    batch = np.searchsorted(begins, at, side="right") - 1
    file = np.array([item.file for item in piece], np.int32)[batch]
    row = at - begins[batch] + np.array([item.begin for item in piece])[batch]
    return pa.RecordBatch.from_arrays([pa.array(file), pa.array(row), pa.array(key)], schema=FOUND)


def rows_with_keys(snapshot: ReadableSnapshot, names: Sequence[str], keys: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of a table that have one of the keys, with some of its columns and its whole past."""
    there = keys_as(keys, arrow_columns(snapshot.delta_schema))
    wanted = KeyNumbers(there)
    for batch in rows.read_batches(rows.part_of(snapshot, files_with(snapshot, there)), names):
        table = pa.Table.from_batches([batch])
        found, _ = wanted.found_in(table.select(keys.column_names))
        if len(found):
            yield table.take(pa.array(found))


def keys_as(keys: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return the keys cast to the types of ``columns``, without keys that these types cannot hold."""
    kinds = [columns.field(name).type for name in keys.column_names]
    # The key -0.0 is the integer 0, and another text.
    columns_of_keys = [
        column if pa.types.is_string(kind) else comparable_key(column)
        for column, kind in zip(keys.columns, kinds, strict=True)
    ]
    keys = pa.table(columns_of_keys, keys.column_names)
    keeps = np.ones(len(keys), np.bool_)
    for column, kind in zip(keys.columns, kinds, strict=True):
        if column.type != kind and exact_cast(column, kind) is None:
            keeps &= [exact_cast(column.slice(row, 1), kind) is not None for row in range(len(column))]
    kept = keys.filter(pa.array(keeps))
    cast = [cast_to(column, kind) for column, kind in zip(kept.columns, kinds, strict=True)]
    return pa.table(cast, names=keys.column_names)


def key_of_row(columns: pa.Schema, key: Sequence[str], value: Any) -> pa.Table:
    """Return the key of one row as a table: ``value`` is one, a sequence of them, or values by name."""
    if not key:
        raise InvalidOption(
            "The stream has no key, so single rows cannot be identified.",
            remedy="Compare two versions of the whole stream instead.",
        )
    if isinstance(value, Mapping):
        values = [value[name] for name in key] if set(value) == set(key) else None
    else:
        whole = value if isinstance(value, list | tuple) else (value,)
        values = list(whole) if len(whole) == len(key) else None
    try:
        if values is not None:
            cells = zip(key, values, strict=True)
            return pa.table({name: pa.array([value], columns.field(name).type) for name, value in cells})
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    raise BadInput(
        f"{value!r} is not a key of the stream.",
        cause=f"Its key has the columns {', '.join(f'{name} ({columns.field(name).type})' for name in key)}.",
        remedy="Pass one value of its type for each of them.",
    )
