"""The Spark format ``freezeframe``: what its options mean, and what a write does.

``engine.data_source`` has the classes that Spark calls. Option names are those of Delta and Spark.
"""

from __future__ import annotations

import dataclasses
import io
import json
import operator
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freezeframe.engine.configuration import is_bucket
from freezeframe.errors import BadInput, ConflictError, FreezeframeError, InvalidOption, MissingColumn
from freezeframe.identifiers import StreamName
from freezeframe.log.delta_log import CHANGE_COLUMNS
from freezeframe.script.current_job import job_folder
from freezeframe.script.spark_reads import (
    TENANT,
    Piece,
    PieceReader,
    Place,
    StreamPlan,
    Target,
    all_rows,
    changed_pieces,
    dealt,
    flag,
    known_options,
    point,
)
from freezeframe.script.tenants import shared_engine
from freezeframe.settings import load_settings
from freezeframe.storage import Storage
from freezeframe.storage.location import local_directory, path_text
from freezeframe.store.change_feed import last_table, version_before
from freezeframe.store.model.directory import BLOBS_FOLDER, JOB_FILE, lease_file
from freezeframe.store.model.update_options import UpdateOptions, require_possible
from freezeframe.store.table.reader import in_schema, row_columns
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenant_log.lease import Lease
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.changes import Changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLACES = ("path", "root", "environment")
_FEED = ("readChangeFeed", "startingVersion", "endingVersion")
_READ = (*_PLACES, "versionAsOf", "timestampAsOf", *_FEED, "ignoreCorruptFiles", "badRecordsPath")
_STREAM = (*_PLACES, "readChangeFeed", "startingVersion", "maxVersionsPerTrigger", "ignoreDeletes")
_WRITE = (*_PLACES, "key", "replaceWhere", "nulls", "jobId", "message")
_KEPT_BYTES = 64 * 1024 * 1024
"""A task's rows are kept as files of about so many bytes in memory."""


@dataclass(frozen=True, slots=True)
class Feed:
    """The changes from a version on, of each tenant up to the version of which the columns are.

    They are looked for when a query is planned, not when its columns are asked for: a stream asks for these
    as well, whenever it starts, and the version with which it began need not be kept until then.
    """

    target: Target
    starting: str
    until: Mapping[str, int]

    def pieces(self) -> list[Piece]:
        """Return the changes of each version."""

        def pieces(name: str, tenant: Tenant) -> Sequence[Piece]:
            if name not in self.until:
                return ()
            since = version_before(tenant.scope, point(self.starting))
            return list(changed_pieces(name, tenant, self.target, (since, self.until[name])))

        return [piece for found in self.target.of_each(pieces).values() for piece in found]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What a query reads: the rows of each tenant at one version, or its changes between two."""

    schema: pa.Schema
    reader: PieceReader
    pieces: Sequence[Piece]
    stream_options: tuple[str, ...]
    """Options that only a streaming query knows; it asks for the same columns."""
    feed: Feed | None = None
    conditions: tuple[tuple[str, str, Any], ...] = ()

    def narrowed(self, conditions: Sequence[tuple[str, str, Any]]) -> ReadPlan:
        """Return the plan without tenants and files in which no row can meet the conditions."""
        return dataclasses.replace(self, conditions=tuple(conditions))

    def parts(self) -> list[tuple[Piece, ...]]:
        """Return the pieces of each task."""
        if self.stream_options:
            name = self.stream_options[0]
            raise InvalidOption(
                f"This query cannot have the option {name} alone.",
                cause="It belongs to a stream, or to changes from a version on.",
                remedy="Changes have readChangeFeed and startingVersion; a stream is read by readStream.",
                option=name,
            )
        pieces = self.pieces if self.feed is None else self.feed.pieces()
        for name, comparison, value in self.conditions:
            if name == TENANT and comparison in {"=", "in"}:
                wanted = {value} if comparison == "=" else set(value)
                pieces = [piece for piece in pieces if piece.tenant in wanted]
        return dealt([part for piece in pieces for part in piece.split(self._where(piece))])

    def _where(self, piece: Piece) -> pc.Expression | None:
        """Return the conditions that the statistics of the piece's files can tell something about."""
        if piece.files is None:
            return None
        found = None
        for name, comparison, value in self.conditions:
            columns = row_columns(piece.files)
            if name not in columns.names or name not in self.schema.names:
                continue
            # Spark compares floats as it does, and a value of another type means another column.
            kind, shown = columns.field(name).type, self.schema.field(name).type
            is_integer = pa.types.is_integer(kind) and pa.types.is_integer(shown)
            if not is_integer and (kind != shown or not (pa.types.is_string(kind) or pa.types.is_date(kind))):
                continue
            condition = _expression(pc.field(name), comparison, value, kind)
            if condition is not None:
                found = condition if found is None else found & condition
        return found


_COMPARE = {"=": operator.eq, ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def _expression(field: pc.Expression, comparison: str, value: Any, kind: pa.DataType) -> pc.Expression | None:
    with suppress(pa.ArrowException, TypeError, ValueError):  # another type excludes nothing
        if comparison == "in":
            return field.isin(pa.array(value, kind))
        if comparison in _COMPARE:
            return _COMPARE[comparison](field, pa.scalar(value, kind))
    return None


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One write of a frame: its tasks keep their rows beside the tenant's blobs, its end commits them."""

    place: Place
    tenant: str
    stream: str
    schema: pa.Schema
    key: tuple[str, ...] | None
    update: UpdateOptions
    job_id: str | None
    message: str
    write_id: str

    def write(self, batches: Iterator[pa.RecordBatch]) -> tuple[str, ...]:
        """Keep a task's rows; return the names of the files."""
        storage, names = self._open().scope.storage, []
        lease = self._lease()
        lease.hold()
        try:
            held: list[pa.RecordBatch] = []
            for batch in batches:
                held.append(batch)
                if sum(item.nbytes for item in held) >= _KEPT_BYTES:
                    names.append(self._keep(storage, held))
                    held = []
            if held:
                names.append(self._keep(storage, held))
        finally:
            lease.stop()  # it stays until the commit
        return tuple(names)

    def commit(self, files: Sequence[str]) -> None:
        """Commit the rows of all tasks as one update, and remove the files."""
        tenant, lease = self._open(), self._lease()
        lease.hold()
        try:
            rows = pa.RecordBatchReader.from_batches(self.schema, self._batches(tenant, files))
            with tenant.job(self.job_id, message=self.message) as job:
                job.require(self._require_not_revoked)
                job.stream(self.stream).update(rows, self.key, **self.update)
        finally:
            self._remove(tenant, files)
            lease.release()

    def abort(self, files: Sequence[str]) -> None:
        """Remove the files of a write that failed."""
        tenant = self._open()
        self._remove(tenant, files)
        tenant.scope.storage.delete(lease_file(self.write_id))

    def _require_not_revoked(self, state: TenantState, _: Changes) -> None:
        """Refuse rows that the tasks read before an erasure: they may have what it erased."""
        if self.write_id in state.revoked:
            raise ConflictError(
                "This write was ended while its tasks ran; nothing of it was written.",
                cause="An erasure of the tenant's rows ends every write that runs beside it, and gc one that "
                "gave no sign of life for long.",
                remedy="Write the frame again.",
            )

    def _open(self) -> Tenant:
        return self.place.store.tenant(self.tenant)

    def _lease(self) -> Lease:
        tenant = self._open()
        seconds = tenant.scope.settings.lease_heartbeat_seconds
        return Lease(tenant.scope.storage, self.write_id, self.job_id, seconds)

    def _keep(self, storage: Storage, held: Sequence[pa.RecordBatch]) -> str:
        name, buffer = f"{BLOBS_FOLDER}/{self.write_id}/{uuid.uuid4().hex}.parquet", io.BytesIO()
        pq.write_table(in_schema(pa.Table.from_batches(held), self.schema), buffer, compression="zstd")
        storage.put_if_absent(name, buffer.getvalue())
        return name

    def _batches(self, tenant: Tenant, files: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for name in files:
            try:
                content = tenant.scope.storage.read(name)
            except FileNotFoundError as error:
                raise ConflictError(
                    "Rows of this write were removed before its commit.",
                    cause="gc took it for dead: none of its tasks gave a sign of life for long.",
                    remedy="Write the frame again.",
                ) from error
            for batch in pq.ParquetFile(pa.BufferReader(content)).iter_batches():
                yield from in_schema(batch, self.schema).to_batches()

    def _remove(self, tenant: Tenant, files: Sequence[str]) -> None:
        storage = tenant.scope.storage
        for name in files:
            with suppress(FreezeframeError, FileNotFoundError):  # gc removes what is left
                storage.delete(name, durable=False)
        with suppress(FreezeframeError):
            storage.prune(f"{BLOBS_FOLDER}/{self.write_id}")


@dataclass(frozen=True, slots=True)
class Format:
    """The format as it is registered with a session: its options mean streams of one store."""

    place: Place

    def read_plan(self, options: Mapping[str, str]) -> ReadPlan:
        """Return what a query reads; the errors are those of ``Stream.read`` and ``Stream.changes``."""
        given = known_options(options, tuple(dict.fromkeys((*_READ, *_STREAM))))
        target = Target.parse(self.place, given)
        has_changes = flag(given, "readChangeFeed")
        pinned = [name for name in ("versionAsOf", "timestampAsOf") if name in given]
        if has_changes and pinned:
            raise InvalidOption(
                f"{pinned[0]} and readChangeFeed cannot be used together.",
                remedy="Pass startingVersion and endingVersion for changes.",
            )
        found = target.of_each(
            lambda name, tenant: _of_tenant(name, tenant, target, given, has_changes=has_changes)
        )
        columns = {name: known for name, (known, _, _) in found.items() if known is not None}
        if not columns:
            raise target.not_found()
        only = ("maxVersionsPerTrigger", "ignoreDeletes", *(() if has_changes else _FEED[1:]))
        starting = given.get("startingVersion", "latest")
        is_of_stream = has_changes and starting == "latest"
        until = {name: version for name, (known, _, version) in found.items() if known is not None}
        return ReadPlan(
            target.schema(columns, has_changes=has_changes),
            PieceReader(target),
            [piece for _, piece, _ in found.values() if piece is not None],
            ("readChangeFeed",) if is_of_stream else tuple(name for name in only if name in given),
            Feed(target, starting, until) if has_changes else None,
        )

    def stream_plan(self, options: Mapping[str, str]) -> StreamPlan:
        """Return what a streaming query reads."""
        given = known_options(options, _STREAM)
        text = given.get("maxVersionsPerTrigger", "0")
        if not text.isdecimal() or given.get("maxVersionsPerTrigger") == "0":
            raise InvalidOption(f"maxVersionsPerTrigger cannot be {text!r}.", remedy="Pass a whole number.")
        return StreamPlan(
            Target.parse(self.place, given),
            given.get("startingVersion"),
            int(text) or None,
            flag(given, "readChangeFeed"),
            flag(given, "ignoreDeletes"),
        )

    def write_plan(self, options: Mapping[str, str], schema: pa.Schema, *, is_overwrite: bool) -> WritePlan:
        """Return the write of a frame of these columns; it is refused before it is computed."""
        given = known_options(options, _WRITE)
        target = Target.parse(self.place, given)
        if target.is_fleet:
            raise InvalidOption(
                "A frame is written to one stream of one tenant.",
                remedy="Write the rows of each tenant to its own path.",
            )
        key = tuple(name.strip() for name in given["key"].split(",")) if "key" in given else None
        where = given.get("replaceWhere")
        if where is not None and not is_overwrite:
            raise InvalidOption("replaceWhere goes with mode overwrite.", remedy='Call mode("overwrite").')
        update: UpdateOptions = {"override": True} if is_overwrite and where is None else {}
        if where is not None:
            update["replace_where"] = where
        if "nulls" in given:
            update["nulls"] = given["nulls"]  # type: ignore[typeddict-item]  # checked below
        stream = target.place.store.tenant(target.names[0]).stream(target.stream)
        stored = stream.key if stream.stream_version >= 0 else ()
        if key is None and not is_overwrite and not stored:
            raise InvalidOption(
                f"An append to {target.stream!r} needs a key.",
                cause="The stream has none: rows that come again could not be told from new ones.",
                remedy='Pass option("key", "Id"); several columns are separated by commas.',
            )
        if key and stored and set(key) != set(stored) and not update.get("override"):
            raise InvalidOption(
                f"The stream cannot be updated by the key {list(key)}.",
                cause=f"It was made with the key {list(stored)}.",
                remedy="Leave the option key out, or replace the stream's content by mode overwrite.",
            )
        taken = next((name for name in schema.names if name in {TENANT, *CHANGE_COLUMNS.names}), None)
        if taken is not None:
            raise BadInput(
                f"A frame cannot be written with a column {taken!r}.",
                cause="The format adds a column of this name to what is read of many tenants or of changes.",
                remedy=f"Leave it out: frame.drop({taken!r}), or rename it.",
                column=taken,
            )
        MissingColumn.refuse(key or stored, schema.names, "The frame has no column {} of the key.")
        require_possible(key, update)
        columns = pa.schema([(item.name, item.type) for item in schema])
        return WritePlan(
            target.place,
            target.names[0],
            target.stream,
            columns,
            key,
            update,
            given.get("jobId"),
            given.get("message", ""),
            uuid.uuid4().hex,
        )


def _of_tenant(
    name: str, tenant: Tenant, target: Target, given: Mapping[str, str], *, has_changes: bool
) -> tuple[pa.Schema | None, Piece | None, int]:
    """Return the columns of one tenant of a query, its rows, and its version; None where there are none."""
    until = point(given["endingVersion"]) if "endingVersion" in given else None
    version = point(given["versionAsOf"]) if "versionAsOf" in given else until
    state, stream = tenant.scope.state(version, given.get("timestampAsOf")), StreamName(target.stream)
    is_there = has_changes or target.stream in state.streams
    snapshot = last_table(tenant.scope, stream, state) if is_there else None
    if snapshot is None and not target.is_fleet:
        tenant.stream(stream).snapshot(version=state.version if state.version >= 0 else None)
    if snapshot is None:
        return None, None, state.version
    rows = None if has_changes else all_rows(name, target, snapshot)
    return row_columns(snapshot), rows, state.version


_registered: WeakKeyDictionary[Any, Place] = WeakKeyDictionary()


def register(
    session: Any, root: str | os.PathLike[str] | None = None, environment: str | None = None
) -> None:
    """Make the format ``freezeframe`` known to a Spark session, classic or Connect.

    Its paths are of the store at ``root`` (without it: a job's own, or that of the settings), or of the one
    that a query's option ``root`` names. Spark's workers need this package. The session's setting
    ``spark.sql.python.filterPushdown.enabled`` is switched on.
    """
    from freezeframe.engine.data_source import register_format  # noqa: PLC0415 - it loads PySpark

    place = _place(root, environment)
    register_format(session, lambda address: Format(place.with_spark(address)))
    _registered[session] = place


def spark() -> SparkSession:
    """Return the one Spark session of this process, classic or Connect.

    ``SparkSession.builder.getOrCreate()`` returns it as well, and frames of the library belong to it. Where
    there is none, it is made where the setting ``spark`` says that Spark is, becomes the default one, and
    knows the format ``freezeframe``; a session of the caller's own is left as it is (``register``).

    Raises:
        SetupError, EngineUnavailable: Spark cannot be started or reached.
    """
    session: SparkSession = shared_engine().session
    from freezeframe.engine.process_session import is_made_here  # noqa: PLC0415 - it loads PySpark

    if session not in _registered and is_made_here(session):
        register(session)
    return session


def read(
    path: str,
    *,
    root: str | os.PathLike[str] | None = None,
    environment: str | None = None,
    **options: Any,
) -> DataFrame:
    """Return a lazy Spark frame of what a path of the format names, such as ``"acme/Account"``.

    ``options`` are the format's (``versionAsOf=3``). The rows of one stream are read by Spark's own reader of
    Parquet, all else by the format.

    Raises:
        TenantNotFound, StreamNotFound, VersionNotFound: something that is named is not there.
        InvalidOption: an option is unknown, or goes with another.
    """
    given = {
        name: str(item).lower() if isinstance(item, bool) else str(item) for name, item in options.items()
    }
    place = _place(root, environment)
    target = Target.parse(place, {"path": path})
    at = {"versionAsOf": "version", "timestampAsOf": "as_of"}
    # Spark itself reads a bucket where its server was started with a store in one.
    is_in_reach = local_directory(place.root) is not None or is_bucket(load_settings())
    if not target.is_fleet and given.keys() <= at.keys() and is_in_reach:
        tenant = target.place.store.tenant(target.names[0])
        points: Any = {
            at[name]: point(text) if name == "versionAsOf" else text for name, text in given.items()
        }
        rows: DataFrame = tenant.stream(target.stream).read(as_="spark", **points)
        return rows
    given |= {"root": place.root, "environment": place.environment}
    session = spark()
    if session not in _registered:
        register(session, root, environment)
    from freezeframe.engine.spark_errors import raised_errors  # noqa: PLC0415 - it loads PySpark

    with raised_errors():  # a session of the caller's own does not know them
        frame = session.read.format("freezeframe").options(**given).load(path)
        frame.schema  # noqa: B018 - Spark asks for the columns, so that an error comes from here
    return frame


def _place(root: str | os.PathLike[str] | None, environment: str | None) -> Place:
    folder = job_folder()
    if root is None and folder is not None:
        job = json.loads((folder / JOB_FILE).read_text(encoding="utf-8"))
        root, environment = job.get("root"), environment or job.get("environment")
    return Place.of(load_settings(), None if root is None else path_text(root), environment)
