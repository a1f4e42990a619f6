"""``read_snapshots`` and ``snapshot_records``: gluestick's names over freezeframe's streams."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.frames import text_dtype, to_frame, to_pandas, with_nullable
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import BadInput, ConflictError, InvalidOption, MissingColumn, SchemaDriftError
from freezeframe.script.adoption import adopt, export_adopted, leave
from freezeframe.script.snapshots import Directory, get_snapshot, update_snapshot
from freezeframe.script.tenants import open_tenant
from freezeframe.script.types.written_values import exact_values
from freezeframe.store import Stream
from freezeframe.store.model.update_options import Update, update_from
from freezeframe.store.schema.schema_evolution import evolve
from freezeframe.store.table.reader import with_columns


def with_read_options(rows: pa.Table, options: Mapping[str, Any]) -> pd.DataFrame:
    """Convert to pandas with ``usecols``, ``dtype``, ``dtype_backend``, ``parse_dates`` and ``index_col``.

    Raises:
        MissingColumn: an option names a column that is not there.
        InvalidOption: a value does not fit the requested ``dtype``, or is no date.
    """
    frame = to_frame(rows, "pandas", options.get("dtype_backend"))
    usecols = options.get("usecols")
    if usecols is not None:
        frame = frame[_select_columns(frame, usecols)]
    try:
        frame = _with_types(frame, options.get("dtype"), rows)
        for name in _date_columns(frame, options.get("parse_dates")):
            frame = frame.assign(**{name: pd.to_datetime(frame[name])})
    except (ValueError, TypeError) as error:
        raise InvalidOption(
            "The snapshot's rows do not fit the requested types.",
            cause=str(error),
            remedy="Leave dtype and parse_dates out: stored values have types.",
        ) from error
    index = options.get("index_col")
    if index is None or index is False:
        return frame
    columns = [index] if isinstance(index, str | int) else list(index)
    names = [frame.columns[column] if isinstance(column, int) else column for column in columns]
    return frame.set_index(_require_columns(frame, "index_col", names))


def _with_types(frame: pd.DataFrame, dtype: Any, rows: pa.Table) -> pd.DataFrame:
    if dtype is None:
        return frame
    if not isinstance(dtype, Mapping):
        dtype = dict.fromkeys(frame.columns, dtype)
    wanted = {name: kind for name, kind in dtype.items() if name in frame}
    # As text, integers beside missing ones have no ".0", and what is missing stays so (str would say "nan").
    as_text = [name for name, kind in wanted.items() if kind in (str, "str")]
    exact = to_pandas(rows.select(as_text), "numpy_nullable").astype("string").astype(object)
    texts = {name: exact[name].where(exact[name].notna(), np.nan).astype(text_dtype()) for name in as_text}
    others = {name: kind for name, kind in wanted.items() if name not in texts}
    return frame.assign(**texts).astype(others)


def _select_columns(frame: pd.DataFrame, usecols: Any) -> list[str]:
    if callable(usecols):
        return [name for name in frame.columns if usecols(name)]
    chosen = {frame.columns[usecol] if isinstance(usecol, int) else usecol for usecol in usecols}
    _require_columns(frame, "usecols", sorted(chosen))
    # As in read_csv, the order is that of the columns.
    return [name for name in frame.columns if name in chosen]


def _date_columns(frame: pd.DataFrame, parse_dates: Any) -> list[str]:
    if not parse_dates or parse_dates is True:
        return []
    columns = [frame.columns[date] if isinstance(date, int) else date for date in parse_dates]
    return _require_columns(frame, "parse_dates", columns)


def _require_columns(frame: pd.DataFrame, option: str, names: list[str]) -> list[str]:
    problem = f"{option} names the column {{}}, which the snapshot does not have."
    MissingColumn.refuse(names, list(frame.columns), problem, "Name one of them.")
    return names


Key = str | list[str]

_TRIES_MAX = 5


def read_snapshots(stream: str, snapshot_dir: Directory, **kwargs: Any) -> pd.DataFrame | None:
    """Return the stream's rows as pandas, or None if there is no such snapshot.

    Of pandas' ``read_csv`` options, ``usecols``, ``dtype``, ``dtype_backend``, ``parse_dates`` and
    ``index_col`` are applied to the rows; options about a file's text have nothing to do and are
    ignored, as gluestick does with a Parquet snapshot.

    Raises:
        InvalidName: no stream can have that name.
        UnreadableInput: an existing snapshot file is damaged.
        MissingColumn: an option names a column that is not there.
    """
    rows = get_snapshot(snapshot_dir, stream, as_="arrow")
    return None if rows is None else with_read_options(rows, kwargs)


def snapshot_records(
    stream_data: pd.DataFrame | None,
    stream: str,
    snapshot_dir: Directory,
    pk: Key = "id",
    just_new: bool = False,  # noqa: FBT001, FBT002 - gluestick's signature
    use_csv: bool = False,  # noqa: FBT001, FBT002
    coerce_types: bool = False,  # noqa: FBT001, FBT002
    localize_datetime_types: bool = False,  # noqa: FBT001, FBT002
    overwrite: bool = False,  # noqa: FBT001, FBT002
    **kwargs: Any,
) -> pd.DataFrame | None:
    """Bring the rows into the snapshot and return its whole content after that.

    A row replaces the one with its key wholly: what it lacks is missing afterwards. The change is
    committed whole or not at all; of rows that share a key the last one counts.

    Args:
        stream_data: the rows; None reads the snapshot and changes nothing.
        stream: the stream's name.
        snapshot_dir: the tenant's directory.
        pk: the key column or columns; a missing key value equals a missing one.
        just_new: true returns ``stream_data`` as it is.
        use_csv: which file is left beside the stream for scripts that open it: ``{stream}.snapshot.csv``,
            else ``{stream}.snapshot.parquet``. What is read afterwards does not depend on it.
        coerce_types: where the types of a stored column and of the rows do not go together, the
            stored values take the type of the rows, if each is exact in it.
        localize_datetime_types: stored times without a zone are UTC, where the rows have a zone.
        overwrite: the rows are the whole new content; they need no key.
        kwargs: as for ``read_snapshots``.

    Returns:
        The snapshot sorted by key; ``stream_data`` itself for the first write, and for ``just_new`` and
        ``overwrite``.

    Raises:
        BadInput: the rows cannot be taken (no key column, a type that does not fit); nothing changed.
        InvalidOption: the stream has another key.
        ConflictError: others kept changing the stream.
    """
    if stream_data is None:
        return None if just_new or overwrite else read_snapshots(stream, snapshot_dir, **kwargs)
    given = Rows(stream_data)
    if given.library != "pandas":
        raise BadInput(
            "gluestick's functions take pandas frames.",
            remedy="Use freezeframe.update_snapshot for Arrow and Spark frames.",
        )
    key = [pk] if isinstance(pk, str) else list(pk)
    if overwrite:
        _overwrite(snapshot_dir, stream, given, key)
        leave(snapshot_dir, open_tenant(snapshot_dir).stream(stream), as_csv=use_csv)
        return stream_data
    # A key of whole floats is no nullable column that the script has given.
    batch = Rows(with_whole_keys(stream_data, key), given.nullable).to_arrow()
    known = open_tenant(snapshot_dir).stream(stream)
    adopt(snapshot_dir, known, update_from(key=key, nulls="overwrite", null_keys="match"), Rows(batch))
    is_first = known.stream_version < 0
    for tries_left in reversed(range(_TRIES_MAX)):
        try:
            if known.stream_version >= 0:
                _prepare(known, batch, key, coerce=coerce_types, localize=localize_datetime_types)
                # A column that a batch lacks keeps its stored values; gluestick replaces the whole row.
                for name in [name for name in known.schema.names if name not in batch.column_names]:
                    batch = batch.append_column(name, pa.nulls(len(batch)))
            break
        except ConflictError:
            if not tries_left:
                raise
    merged = update_snapshot(snapshot_dir, stream, key, batch, nulls="overwrite", null_keys="match")
    leave(snapshot_dir, known, as_csv=use_csv)
    if just_new or is_first:
        return stream_data
    # gluestick gives integers and booleans a nullable type when it coerces.
    kinds = zip(stream_data.columns, stream_data.dtypes if coerce_types else (), strict=False)
    coerced = {name for name, kind in kinds if isinstance(kind, np.dtype) and kind.kind in "biu"}
    return with_read_options(with_nullable(merged, coerced), kwargs)


def with_whole_keys(frame: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Return the frame with key columns of floats as integers, where all of them are whole.

    Pandas turns integers into floats beside a missing value, and a key has one type.
    """
    whole = {
        name: frame[name].astype("Int64")
        for name in key
        if name in frame.columns
        and pd.api.types.is_float_dtype(frame[name].dtype)
        and (frame[name].dropna() % 1 == 0).all()
        and (frame[name].dropna().abs() <= _EXACT_MAX).all()
    }
    return frame.assign(**whole) if whole else frame


_EXACT_MAX = 2**53


def _overwrite(directory: Directory, stream: str, given: Rows, key: list[str]) -> None:
    rows = with_whole_keys(given.frame, key)
    # A report often has no such column, or repeats it: all its rows count, and none has a key.
    identifies = set(key) <= set(rows.columns) and not (
        rows[key].isna().to_numpy().any() or rows.duplicated(key).any()
    )
    update = Update(key=tuple(key) if identifies else (), mode="overwrite", sets_key=True)
    known = open_tenant(directory).stream(stream)
    batch = Rows(rows, given.nullable)
    adopt(directory, known, update, batch)
    known.apply(batch, update)
    export_adopted(directory, known)


def _prepare(known: Stream, batch: pa.Table, key: list[str], *, coerce: bool, localize: bool) -> None:
    """Give the stored rows the key, and the types if asked, that the update needs."""
    version = known.stream_version
    needs_key = not known.key
    stored = known.schema
    names = _misfits(stored, batch, key) if (coerce or localize) and len(batch) else []
    if not (needs_key or names):
        return
    table = known.read(stream_version=version, as_="arrow")
    held = dict(zip(table.column_names, table.columns, strict=True))
    kinds = {field.name: field.type for field in batch.schema}
    table = with_columns(
        table,
        {
            name: _retype(held[name], kinds[name], coerce=coerce, localize=localize, name=name)
            for name in names
        },
    )
    new_key = tuple(key) if needs_key else known.key
    # If another writer commits now, the update raises ConflictError and is retried.
    update = Update(key=new_key, mode="overwrite", null_keys="match", expected_version=version)
    known.apply(Rows(table), update)


def _misfits(stored: pa.Schema, batch: pa.Table, key: list[str]) -> list[str]:
    """Return the columns whose stored and new values have no type in common."""
    found, known = [], set(stored.names)
    for name in batch.column_names:
        if name in known:
            try:
                evolve(pa.schema([stored.field(name)]), batch.select([name]), key=key)
            except SchemaDriftError:
                found.append(name)
    return found


def _retype(
    column: pa.ChunkedArray, kind: pa.DataType, *, coerce: bool, localize: bool, name: str
) -> pa.ChunkedArray:
    has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
    if localize and has_zone and pa.types.is_timestamp(column.type):
        return pc.assume_timezone(column, "UTC")
    if not coerce:
        return column
    coerced = _coerce(column, kind)
    if coerced is None:
        raise SchemaDriftError(
            f"The stored column {name!r} of type {column.type} cannot be coerced to {kind}.",
            cause="At least one of its values would not be the same.",
            remedy="Cast the rows to the stored type, or replace the snapshot with overwrite=True.",
            column=name,
            stored=str(column.type),
            incoming=str(kind),
        )
    return coerced


def _coerce(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return the values in another type, or None if one of them would not come back the same."""
    if pa.types.is_string(column.type):
        return exact_values(column, kind)
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(kind):
        return None  # only one of them has a zone, so the times cannot be compared
    try:
        coerced = column.cast(kind)
        return coerced if coerced.cast(column.type).equals(column) else None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
