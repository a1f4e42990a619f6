"""What transformation scripts call: ``get_snapshot``, ``update_snapshot``, and ``snapshot_views`` for SQL.

The verbs' names, parameters and meaning are those of hotglue's "Snapshots" page; where that page's own
code loses data, the difference is named in ``docs/reference/semantics.md``. A directory given here
is one tenant's store, and every call is a job of one change. A snapshot file that hotglue or
gluestick left there is taken over on first use (``adoption``).
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

import pyarrow as pa

from freezeframe.engine.frames.frames import DtypeBackend, Library, require_library
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import MissingColumn, StreamNotFound, VersionNotFound
from freezeframe.script.adoption import adopt, as_frame, export_adopted, pending_adoption, preview
from freezeframe.script.tenants import open_tenant, tenant_directory
from freezeframe.store.model.directory import FORMAT_FILE, is_working_copy
from freezeframe.store.model.update_options import FurtherOptions, Names, update_from
from freezeframe.store.stream import Stream
from freezeframe.store.table.reader import moment
from freezeframe.store.tenant_log.history import Point, require_one_version

Directory = str | os.PathLike[str]


def get_snapshot(
    snapshot_dir: Directory,
    stream: str,
    version: Point | None = None,
    as_of: datetime | str | None = None,
    columns: Sequence[str] | None = None,
    where: Any = None,
    as_: Library = "pandas",
    *,
    dtype_backend: DtypeBackend | None = None,
    stream_version: int | None = None,
    tenant_version: int | None = None,
    history: bool = False,
) -> Any:
    """Return the stream's rows, or None if the tenant has no such stream.

    Args:
        snapshot_dir: the tenant's directory; one that does not exist holds no streams.
        stream: the stream's name, for example ``"Account"``, or ``"Account@qbo"`` for one of a flow.
        version: the version of the tenant to read, by its number, a tag or a moment; now without it. A tenant
            without a version has no streams: in its first job the answer is None, whatever is asked for.
        as_of: a moment (ISO text or a datetime; without a zone it is UTC).
        columns: the columns to read, in this order.
        where: SQL text (``"City = 'Bern'"``), ``pyarrow.compute`` expression or ``[("City", "=", "Bern")]``.
        as_: ``"pandas"``, ``"arrow"``, ``"polars"``, or ``"spark"`` (lazy).
        dtype_backend: which types the columns of a pandas frame have, as in pandas: ``"numpy_nullable"``,
            ``"pyarrow"``, or ``"numpy"``, its ordinary ones; without it the setting of that name.
        stream_version: a version of the stream's own, which counts the changes of this stream alone.
        tenant_version: the same as ``version``.
        history: true gives the rows of the past as well, with ``_valid_from`` and ``_valid_to``,
            of a stream that is updated with ``history="scd2"``.

    Raises:
        InvalidOption: the stream keeps no history, or more than one version or moment is given.
        InvalidName: the name cannot be a stream's.
        VersionNotFound: there is no such version, or none at that moment.
    """
    snapshot_dir = tenant_directory(snapshot_dir)
    tenant = open_tenant(snapshot_dir)
    known = tenant.stream(stream)
    moments = (version, as_of, stream_version, tenant_version)
    if not history and all(moment is None for moment in moments):
        adoption = pending_adoption(snapshot_dir, known)
        if adoption is not None:
            require_library(as_, dtype_backend)
            return as_frame(adoption.view(), columns, where, as_, dtype_backend)
    try:
        return known.read(
            version=version,
            as_of=as_of,
            stream_version=stream_version,
            tenant_version=tenant_version,
            columns=columns,
            where=where,
            history=history,
            as_=as_,
            dtype_backend=dtype_backend,
        )
    except StreamNotFound:
        return None
    except VersionNotFound:
        if tenant.version < 0:  # the tenant was never written, so it has no streams
            return None
        raise


def update_snapshot(
    snapshot_dir: Directory,
    stream: str,
    key: Names | None,
    data_df: Any,
    persist: bool = True,  # noqa: FBT001, FBT002 - the seed's signature
    override: bool = False,  # noqa: FBT001, FBT002
    drop_column: Names | None = None,
    sort_columns: Names | None = None,
    drop_duplicates: bool = True,  # noqa: FBT001, FBT002
    *,
    dtype_backend: DtypeBackend | None = None,
    **options: Unpack[FurtherOptions],
) -> Any:
    """Bring new and changed rows into a stream and return its whole content after that.

    A row whose key is new is inserted; a known key's row takes the new values, cell by cell: a
    null keeps the old value, and so does a column that ``data_df`` lacks. The change is committed
    whole or not at all, whatever happens meanwhile.

    Args:
        snapshot_dir: the tenant's directory; it is made if need be.
        stream: the stream's name.
        key: the column, or columns, that identify a row; None only with ``override`` or
            ``replace_where``.
        data_df: the rows, as a pandas, Polars, Arrow or Spark frame.
        persist: false returns the merge without writing anything.
        override: the rows replace the whole content, columns and types included.
        drop_column: columns that leave the result and the stream; unknown ones are ignored.
        sort_columns: what the returned frame is sorted by; by key without it. One that is nowhere is refused.
        drop_duplicates: of rows that share a key the last one counts; false makes them an error.
        dtype_backend: which types the columns of the returned pandas frame have, as of ``get_snapshot``.
        options: those of ``FurtherOptions`` (``docs/reference/semantics.md``, "Options"): ``mode``,
            ``deletes``, ``max_delete_ratio``, ``history``, ``replace_where``, ``nulls``, ``null_keys``,
            ``order_by``, ``schema``, ``on_drift``.

    Returns:
        A frame of the kind of ``data_df``, sorted.

    Raises:
        BadInput: the rows cannot be taken (missing column, null key, drift …); nothing was written.
        TooManyDeletions: with ``mode="full"``: more rows would be deleted than may be.
        InvalidName, InvalidOption: the call itself is wrong.
        ConflictError: others kept changing the stream at the same time.
    """
    update = update_from(
        key, override=override, drop_column=drop_column, drop_duplicates=drop_duplicates, **options
    )
    order = (sort_columns,) if isinstance(sort_columns, str) else tuple(sort_columns or ())
    snapshot_dir = tenant_directory(snapshot_dir)
    known = open_tenant(snapshot_dir).stream(stream)
    rows = Rows(data_df)
    require_library(rows.library, dtype_backend)
    if not persist:
        return preview(snapshot_dir, known, rows, update, order, dtype_backend)
    adopt(snapshot_dir, known, update, rows)
    _require_sortable(order, rows, known)
    content = known.update_and_read(rows, update, order, dtype_backend)
    export_adopted(snapshot_dir, known)
    return content


def _require_sortable(order: Sequence[str], rows: Rows, stream: Stream) -> None:
    """Refuse a column to sort by that neither the rows nor the stream have, before anything is written."""
    is_arrow = rows.library == "arrow"
    if not order or (is_arrow and not isinstance(rows.frame, pa.Table | pa.RecordBatch)):
        return  # an object that gives its rows once tells no names before
    stored = stream.schema.names if stream.stream_version >= 0 else []
    names = [*stored, *(rows.frame.schema.names if is_arrow else rows.frame.columns)]
    MissingColumn.refuse(order, names, "There is no column {} to sort by.")


def stored_schemas(snapshot_dir: Directory) -> dict[str, pa.Schema]:
    """Return the columns of every stream in a tenant's directory, by stream name; empty if it is none yet."""
    snapshot_dir = tenant_directory(snapshot_dir)
    if not (snapshot_dir / FORMAT_FILE).is_file() and not is_working_copy(snapshot_dir):
        return {}
    tenant = open_tenant(snapshot_dir)
    return {name: tenant.stream(name).schema for name in tenant.streams()}


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def snapshot_views(
    snapshot_dir: Directory,
    version: Point | None = None,
    as_of: datetime | str | None = None,
    *,
    prefix: str = "",
    streams: Collection[str] | None = None,
) -> dict[str, str]:
    """Make each stream a temporary view of the process's Spark session, with the rows of ``get_snapshot``.

    The views show one version of the tenant. Rows that are updated later are seen after the next call,
    which replaces the views.

    Args:
        snapshot_dir: the tenant's directory; one that does not exist holds no streams.
        version: the version of the tenant to read, by its number, a tag or a moment; now without it.
        as_of: a moment (ISO text or a datetime; without a zone it is UTC).
        prefix: what each view's name begins with, before the name of the stream.
        streams: the streams to take; without it, all.

    Returns:
        By stream, the view's name as SQL and ``spark.table`` take it: in backquotes, such as
        ```Account@qbo```, where it is not a plain identifier.

    Raises:
        StreamNotFound: one of ``streams`` is not there.
        VersionNotFound: there is no such version, or none at that moment.
        InvalidOption: both a version and a moment are given.
    """
    require_one_version({"version": version, "as_of": as_of})
    snapshot_dir = tenant_directory(snapshot_dir)
    tenant, at = open_tenant(snapshot_dir), version if as_of is None else moment(as_of)
    is_now, frames = at is None, dict[str, Any]()
    if is_now and tenant.version >= 0 and not is_working_copy(snapshot_dir):
        at = tenant.version  # one version for all streams, whoever commits meanwhile
    # All are read before the first view is made: an error replaces none.
    for name in tenant.streams(at) if streams is None else streams:
        stream = tenant.stream(name)
        found = pending_adoption(snapshot_dir, stream) if is_now else None
        frames[name] = (
            stream.read(version=at, as_="spark")
            if found is None
            else as_frame(found.view(), None, None, "spark")
        )
    return make_views(frames, prefix)


def make_views(frames: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Make Spark frames views of their session; return the name of each as SQL takes it."""
    views = {name: sql_name(f"{prefix}{name}") for name in frames}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(views[name])
    return views


def sql_name(name: str) -> str:
    """Return a stream's name as SQL takes it: in backquotes if it is not a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"
