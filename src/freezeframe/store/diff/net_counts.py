"""Row counts of a version, equal to a comparison with the version before.

An update counts what becomes of every row while it merges or patches them. The counts of several updates
in one job add up if they changed different rows. Updates that may have changed the same row, and a
restoration, are counted by a comparison of what differs between the versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.batch import comparable_key
from freezeframe.engine.protocol.table_engine import MergeTask, Positions, TableEngine, Validity
from freezeframe.errors import CorruptData, InvalidOption
from freezeframe.log import Snapshot
from freezeframe.log.scan.data_files import file_uri
from freezeframe.store.diff.row_diff import differing_part
from freezeframe.store.diff.row_diff_pages import COUNTED_ROWS_MAX, Comparison
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.column_mapping import written_columns
from freezeframe.store.schema.comparison import compare_columns
from freezeframe.store.schema.system_columns import (
    DELETED,
    VALID_FROM,
    VALID_TO,
    read_system_columns,
    stored_key,
)
from freezeframe.store.schema.type_compatibility import open_columns
from freezeframe.store.table.data_files import deleted_positions
from freezeframe.store.table.reader import SnapshotPart, part_of, row_count


def compared_counts(before: Snapshot | None, after: Snapshot | None) -> Counts:
    """Row counts of the changes between two versions (None: the stream does not exist).

    Rows without a key that are too many to be compared whole all count as deleted and inserted, but for
    those of files that both versions have.
    """
    comparison = Comparison(before, after)
    return comparison.counts() if comparison.can_be_told else comparison.counts_of_files()


def net_counts(
    before: Snapshot,
    after: Snapshot,
    steps: Counts,
    engine: TableEngine | None = None,
    rows_max: int = COUNTED_ROWS_MAX,
) -> Counts:
    """The counts of the commit that leads from ``before`` to ``after``; ``steps`` are those of its steps.

    ``unchanged`` is theirs. The ``engine``, if there is one, compares more than ``rows_max`` rows. Where the
    rows cannot be compared (a file of ``before`` is damaged, which a restoration is to mend), all counts are
    theirs.
    """
    old, new = (None if item.version < 0 or was_dropped(item) else item for item in (before, after))
    if old is new is None:
        return Counts(unchanged=steps.unchanged)
    try:
        if old is None or new is None:
            inserted, deleted = (0 if item is None else row_count(item) for item in (new, old))
            return Counts(inserted, 0, steps.unchanged, deleted)
        found = _compared_by(engine, old, new, rows_max) if engine else compared_counts(old, new)
    except (CorruptData, InvalidOption):
        return steps
    return Counts(found.inserted, found.updated, steps.unchanged, found.deleted)


def _compared_by(engine: TableEngine, before: Snapshot, after: Snapshot, rows_max: int) -> Counts:
    """``compared_counts`` of two versions; the engine compares more than ``rows_max`` rows."""
    comparison = Comparison(before, after)
    was, own = read_system_columns(before.metadata), read_system_columns(after.metadata)
    if comparison.is_by_key:
        can_compare = own.has_history or not was.has_history
    else:
        can_compare = not (own.names or was.names)
    if comparison.rows_max <= rows_max or not can_compare:
        return compared_counts(before, after)
    compared = compare_columns(written_columns(before.schema), written_columns(after.schema))
    old, new = _differing_files(before, after)
    engine.require_shared(before.storage.uri(""))
    found = engine.merge(
        MergeTask(
            stored=_uris(before, old.files["path"].to_pylist()),
            stored_schema=open_columns(compared.stored),
            batch=_uris(before, new.files["path"].to_pylist()),
            batch_schema=open_columns(written_columns(after.schema)),
            target_schema=compared.target,
            key=(stored_key(after.metadata) or ()) if comparison.is_by_key else (),
            mode="overwrite",
            null_keys="match",
            write=False,
            flag=DELETED if own.flags_deleted else "",
            validity=Validity(VALID_FROM, VALID_TO, 0, 0) if own.has_history else None,
            deleted=_deleted(before, old),
            batch_deleted=_deleted(before, new),
            size_bytes=sum(pc.sum(part.files["size"]).as_py() or 0 for part in (old, new)),
        )
    )
    return Counts(found.inserted, found.updated, found.unchanged, found.deleted)


def _differing_files(before: Snapshot, after: Snapshot) -> tuple[SnapshotPart, SnapshotPart]:
    """The files of both that have a row which the other has not."""
    parts = (differing_part(before, after), differing_part(after, before))
    paths = pa.chunked_array([chunk for part in parts for chunk in part.snapshot.files["path"].chunks])
    old, new = (
        part_of(item, item.files.filter(pc.is_in(item.files["path"], paths))) for item in (before, after)
    )
    return old, new


def _uris(table: Snapshot, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(file_uri(table.storage, table.table, path) for path in paths)


def _deleted(table: Snapshot, part: SnapshotPart) -> dict[str, Positions]:
    found = deleted_positions(part, part.files)
    return dict(zip(_uris(table, found), found.values(), strict=True))


def share_no_key(changed: Sequence[pa.Table | None]) -> bool:
    """Whether no key is in two of the tables, each of which has every key once (None: nobody knows)."""
    tables = [keys for keys in changed if keys is not None]
    kinds = {keys.schema.remove_metadata() for keys in tables}
    if len(tables) < len(changed) or len(kinds) > 1 or any(map(pa.types.is_nested, tables[0].schema.types)):
        return False
    keys = pa.concat_tables(tables)
    names = [f"k{place}" for place in range(keys.num_columns)]
    comparable = pa.table(list(map(comparable_key, keys.columns)), names=names)
    return len(comparable.group_by(names).aggregate([])) == len(keys)


def was_dropped(snapshot: Snapshot) -> bool:
    """Whether the table belongs to a dropped stream: no rows and no key property."""
    return snapshot.version >= 0 and stored_key(snapshot.metadata) is None and not snapshot.count
