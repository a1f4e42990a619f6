"""The Spark format ``freezeframe``: what its options mean, and what a write does.

``engine.data_source`` has the classes that Spark calls. Option names are those of Delta and Spark.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.configuration import is_bucket
from freezeframe.errors import BadInput, ConflictError, FreezeframeError, InvalidOption, MissingColumn
from freezeframe.identifiers import StreamName
from freezeframe.log.delta_log import CHANGE_COLUMNS
from freezeframe.log.scan.sql_predicate import parse_condition
from freezeframe.script.current_job import job_folder
from freezeframe.script.spark_reads import TENANT, Piece, Place, ReadPlan, StreamPlan, Target, flag, point
from freezeframe.script.tenants import shared_engine
from freezeframe.settings import load_settings
from freezeframe.storage import Storage
from freezeframe.storage.location import path_text
from freezeframe.store.change_feed import last_table
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
_ONLY_STREAM = ("maxVersionsPerTrigger", "ignoreDeletes")
_STREAM = (*_PLACES, *_FEED[:2], *_ONLY_STREAM)
_READ = (
    *_PLACES,
    "versionAsOf",
    "timestampAsOf",
    *_FEED,
    "ignoreCorruptFiles",
    "badRecordsPath",
    *_ONLY_STREAM,
)
_FUNCTIONS = ("user", "current_time")
"""Functions that Spark calls without parentheses, and that look like columns."""
_WRITE = (*_PLACES, "key", "replaceWhere", "nulls", "jobId", "message")
_KEPT_BYTES = 64 * 1024 * 1024
"""A task's rows are kept as files of about so many bytes in memory."""


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One write of a frame: its tasks keep their rows beside the tenant's blobs, its end commits them."""

    target: Target
    schema: pa.Schema
    key: tuple[str, ...] | None
    update: UpdateOptions
    job_id: str | None
    message: str
    write_id: str

    def write(self, batches: Iterator[pa.RecordBatch]) -> tuple[str, ...]:
        """Keep a task's rows; return the names of the files."""
        tenant, names, held = self._open(), list[str](), list[pa.RecordBatch]()

        def keep() -> None:
            buffer = io.BytesIO()
            pq.write_table(in_schema(pa.Table.from_batches(held), self.schema), buffer, compression="zstd")
            names.append(f"{BLOBS_FOLDER}/{self.write_id}/{uuid.uuid4().hex}.parquet")
            tenant.scope.storage.put_if_absent(names[-1], buffer.getvalue())
            held.clear()

        lease = self._held_lease(tenant)
        try:
            for batch in batches:
                held.append(batch)
                if sum(item.nbytes for item in held) >= _KEPT_BYTES:
                    keep()
            if held:
                keep()
        finally:
            lease.stop()  # it stays until the commit
        return tuple(names)

    def commit(self, files: Sequence[str]) -> None:
        """Commit the rows of all tasks as one update, and remove the files."""
        tenant = self._open()
        lease = self._held_lease(tenant)
        try:
            rows = pa.RecordBatchReader.from_batches(self.schema, self._batches(tenant.scope.storage, files))
            with tenant.job(self.job_id, message=self.message) as job:
                job.require(self._require_not_revoked)
                job.stream(self.target.stream).update(rows, self.key, **self.update)
        finally:
            self._remove(tenant.scope.storage, files)
            lease.release()

    def abort(self, files: Sequence[str]) -> None:
        """Remove the files of a write that failed."""
        storage = self._open().scope.storage
        self._remove(storage, files)
        storage.delete(lease_file(self.write_id))

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
        return self.target.place.store.tenant(self.target.names[0])

    def _held_lease(self, tenant: Tenant) -> Lease:
        scope = tenant.scope
        lease = Lease(scope.storage, self.write_id, self.job_id, scope.settings.lease_heartbeat_seconds)
        lease.hold()
        return lease

    def _batches(self, storage: Storage, files: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for name in files:
            try:
                content = storage.read(name)
            except FileNotFoundError as error:
                raise ConflictError(
                    "Rows of this write were removed before its commit.",
                    cause="gc took it for dead: none of its tasks gave a sign of life for long.",
                    remedy="Write the frame again.",
                ) from error
            for batch in pq.ParquetFile(pa.BufferReader(content)).iter_batches():
                yield from in_schema(batch, self.schema).to_batches()

    def _remove(self, storage: Storage, files: Sequence[str]) -> None:
        for name in files:
            with suppress(FreezeframeError, FileNotFoundError):  # gc removes what is left
                storage.delete(name, durable=False)
        with suppress(FreezeframeError):
            storage.prune(f"{BLOBS_FOLDER}/{self.write_id}")


@dataclass(frozen=True, slots=True)
class Format:
    """The format as it is registered with a session: its options mean streams of one store."""

    place: Place

    def on_server(self, address: str) -> Format:
        """Return the format for workers of a server of ours: what they need Spark for they ask it."""
        settings = self.place.settings.model_copy(update={"spark": address} if address else {})
        return Format(dataclasses.replace(self.place, settings=settings))

    def read_plan(self, options: Mapping[str, str]) -> ReadPlan:
        """Return what a query reads; the errors are those of ``Stream.read`` and ``Stream.changes``."""
        given = _known(options, _READ)
        target = Target.parse(self.place, given)
        stream, has_changes = StreamName(target.stream), flag(given, "readChangeFeed")
        pinned = next((name for name in ("versionAsOf", "timestampAsOf") if name in given), "")
        if has_changes and pinned:
            raise InvalidOption(
                f"{pinned} and readChangeFeed cannot be used together.",
                remedy="Pass startingVersion and endingVersion for changes.",
            )
        text = given.get("versionAsOf", given.get("endingVersion"))
        version = None if text is None else point(text)

        def look(name: str, tenant: Tenant) -> tuple[int, pa.Schema, Piece | None] | None:
            state = tenant.scope.state(version, given.get("timestampAsOf"))
            is_there = has_changes or target.stream in state.streams
            snapshot = last_table(tenant.scope, stream, state) if is_there else None
            if snapshot is None and not target.is_fleet:
                tenant.scope.snapshot(stream, state)  # which says what is not there
            if snapshot is None:
                return None
            return state.version, row_columns(snapshot), None if has_changes else target.rows(name, snapshot)

        found = target.of_each(look)
        starting = given.get("startingVersion", "latest")
        is_open = has_changes and starting == "latest"  # as a stream of changes begins
        refused = [*["readChangeFeed"] * is_open, *_ONLY_STREAM, *_FEED[1:] * (not has_changes)]
        columns = {name: schema for name, (_, schema, _) in found.items()}
        return ReadPlan(
            target,
            target.schema(columns, has_changes=has_changes),
            [piece for _, _, piece in found.values() if piece is not None],
            {name: reached for name, (reached, _, _) in found.items()},
            starting if has_changes else None,
            next((name for name in refused if name in given), ""),
        )

    def stream_plan(self, options: Mapping[str, str]) -> StreamPlan:
        """Return what a streaming query reads."""
        given = _known(options, _STREAM)
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
        given = _known(options, _WRITE)
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
        if "nulls" in given:
            update["nulls"] = given["nulls"]  # type: ignore[typeddict-item]  # checked below
        tenant = target.place.store.tenant(target.names[0])
        stream = tenant.stream(target.stream)
        is_stored = stream.stream_version >= 0
        stored = stream.key if is_stored else ()
        if where is not None:
            update["replace_where"] = where
            _require_window(where, [*(stream.columns if is_stored else ()), *schema.names])
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
        job_id, message = given.get("jobId"), given.get("message", "")
        with tenant.job(job_id, message=message, dry_run=True):  # which says what is wrong with them
            columns = pa.schema([(item.name, item.type) for item in schema])
        return WritePlan(target, columns, key, update, job_id, message, uuid.uuid4().hex)


def _require_window(where: str, columns: Sequence[str]) -> None:
    """Refuse a condition that Spark could not read, or that names other columns, in any case."""
    from sqlglot import exp  # noqa: PLC0415 - lazy: a tenth of a second

    tree, known = parse_condition(where), {name.casefold() for name in (*columns, *_FUNCTIONS)}
    named = [column.parts[0].name for column in tree.find_all(exp.Column)]
    if tree.find(exp.Lambda, exp.Query) is None:  # what these name looks like columns of the stream
        absent = [name for name in named if name.casefold() not in known]
        problem = "replaceWhere names a column {} that neither the stream nor the frame has."
        MissingColumn.refuse(absent, list(dict.fromkeys(columns)), problem)


def _known(options: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """Return the options by the names as they are known; Spark has them in any case."""
    spelled = {name.lower(): name for name in known}
    for name in options:
        if name.lower() not in spelled:
            raise InvalidOption(
                f"The format freezeframe has no option {name!r} here.",
                cause=f"The options are: {', '.join(known[1:])}.",
                remedy="Correct its name, or leave it out; it would change nothing.",
                option=name,
            )
    return {spelled[name.lower()]: value for name, value in options.items()}


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
    register_format(session, Format(place))
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
    is_in_reach = not place.is_bucket or is_bucket(load_settings())
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
