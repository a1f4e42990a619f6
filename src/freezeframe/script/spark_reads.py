"""What queries of the Spark format read: rows of versions, changes between them, and streams of changes.

A path names a stream of one or of many tenants. Spark plans in one process and reads in others: everything
here is pickled, and a piece has all that a worker needs.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.untyped import spark_schema
from freezeframe.engine.protocol import DeferredEngine, TableEngine
from freezeframe.errors import InvalidOption, SchemaDriftError, StreamNotFound, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.scan.rows import SnapshotPart, files_matching, part_of
from freezeframe.script.tenants import storage_at
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.storage.location import local_directory
from freezeframe.storage.read_ahead import is_local
from freezeframe.store.diff.row_changes import BEFORE, CHANGE_TYPE, DELETE, INSERT, UPDATE
from freezeframe.store.schema.type_compatibility import common_nested
from freezeframe.store.snapshot_store import Store
from freezeframe.store.table.reader import in_schema, read_row_batches, row_columns
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenant_log.history import Point
from freezeframe.store.tenant_log.state import TenantState

TENANT, VERSION, MOMENT = "_tenant", "_commit_version", "_commit_timestamp"
CHANGE_COLUMNS = pa.schema(
    [(CHANGE_TYPE, pa.string()), (VERSION, pa.int64()), (MOMENT, pa.timestamp("us", "UTC"))]
)
_BEFORE_UPDATE, _AFTER_UPDATE = "update_preimage", "update_postimage"
_SECRET = ("service_", "master_key", "database_url", "notify_url")


def known_options(options: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
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


def flag(options: Mapping[str, str], name: str) -> bool:
    """Return a switch, which is off without its option."""
    text = options.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise InvalidOption(f"{name} is true or false, not {options[name]!r}.", remedy="Pass one of them.")
    return text == "true"


def point(text: str) -> Point:
    """Return the version that an option names: a number, or else a tag or a moment."""
    return int(text) if text.strip().lstrip("-").isdecimal() else text


@dataclass(frozen=True)
class Place:
    """A store as any process opens it: its root, the environment, and the settings but for secrets."""

    root: str
    environment: str
    settings: Settings

    @classmethod
    def of(cls, settings: Settings, root: str | None = None, environment: str | None = None) -> Place:
        """Return the place that the settings name, or another one; a directory from this process's folder."""
        place = local_directory(root or settings.root)
        hidden = {
            name: item.default for name, item in Settings.model_fields.items() if name.startswith(_SECRET)
        }
        return cls(
            str(root or settings.root) if place is None else str(place.absolute()),
            environment or settings.environment,
            settings.model_copy(update=hidden),
        )

    def named(self, options: Mapping[str, str]) -> Place:
        """Return the place that a query's options name in place of this one."""
        root = options.get("root", self.root)
        place = local_directory(root)
        if place is not None and not place.is_absolute():
            raise InvalidOption(
                f"The root {root!r} is a relative path.",
                cause="Spark's workers would take it from another folder than this program's.",
                remedy="Pass an absolute path, or register the store: freezeframe.register(spark, root).",
            )
        return dataclasses.replace(self, root=root, environment=options.get("environment", self.environment))

    def with_spark(self, address: str) -> Place:
        """Return the place for workers of a server of ours: what they need Spark for they ask it."""
        settings = self.settings.model_copy(update={"spark": address}) if address else self.settings
        return dataclasses.replace(self, settings=settings)

    @cached_property
    def store(self) -> Store:
        """The store, opened once in each process."""
        return Store(storage_at(self.root, self.settings), self._engine(), self.settings, self.environment)

    def __reduce__(self) -> tuple[Any, ...]:
        return Place, (self.root, self.environment, self.settings)

    def _engine(self) -> TableEngine:
        def make() -> TableEngine:
            from freezeframe.engine.spark import SparkEngine  # noqa: PLC0415 - reading needs none

            return SparkEngine(self.settings)

        return DeferredEngine(make)


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a stream, and tenants by their ids or by a pattern."""

    place: Place
    names: tuple[str, ...]
    stream: str

    @classmethod
    def parse(cls, place: Place, options: Mapping[str, str]) -> Target:
        """Return what the option ``path`` names."""
        path = options.get("path", "")
        tenants, _, stream = path.strip("/").rpartition("/")
        if not tenants or not stream:
            raise InvalidOption(
                f"{path!r} does not name a tenant's stream." if path else "No stream is named.",
                cause="A path of this format is a tenant's id, a slash and a stream's name.",
                remedy='Pass it to load or save: "acme/Account", or "*/Account" for all tenants.',
            )
        names = tuple(name.strip() for name in tenants.split(","))
        return cls(place.named(options), names, str(StreamName(stream)))

    @property
    def is_fleet(self) -> bool:
        """Whether it can be of more than one tenant."""
        return len(self.names) > 1 or "*" in self.names[0]

    def tenants(self) -> dict[str, Tenant]:
        """Return the tenants by id, in order; one that is named must be there."""
        store, found = self.place.store, {}
        for name in self.names:
            for known in fnmatch.filter(store, name) if "*" in name else [name]:
                found[known] = store.tenant(known)
        return found

    def schema(self, columns: Mapping[str, pa.Schema], *, has_changes: bool) -> pa.Schema:
        """Return the columns of all tenants: each with the type that holds the values of all."""
        first: dict[str, tuple[str, pa.DataType]] = {}
        for tenant, schema in columns.items():
            for field in schema:
                known, kind = first.get(field.name, (tenant, field.type))
                common = common_nested(kind, field.type)
                if common is None:
                    raise SchemaDriftError(
                        f"The column {field.name!r} of {self.stream!r} has no type for all tenants.",
                        cause=f"It is {kind} of {known!r} and {field.type} of {tenant!r}.",
                        remedy="Name tenants whose types go together, or change one: `stream retype`.",
                        column=field.name,
                    )
                first[field.name] = (known if common == kind else tenant, common)
        own = [
            *(CHANGE_COLUMNS if has_changes else ()),
            *([pa.field(TENANT, pa.string())] if self.is_fleet else ()),
        ]
        taken = next((item.name for item in own if item.name in first), None)
        if taken is not None:
            raise InvalidOption(
                f"The stream {self.stream!r} has a column {taken!r} of its own.",
                cause="The format adds a column of this name.",
                remedy="Rename the stream's column.",
                column=taken,
            )
        named = pa.schema([(name, kind) for name, (_, kind) in first.items()])
        return pa.schema([*spark_schema(named), *own])

    def not_found(self) -> StreamNotFound:
        """Return the error where no tenant has the stream."""
        return StreamNotFound(
            f"No tenant has a stream {self.stream!r}.",
            cause=f"These tenants were looked at: {', '.join(self.names)}.",
            remedy="Check the name; upper and lower case matter.",
            stream=self.stream,
        )


_TASKS = 32
"""Rows are dealt to so many tasks, if each gets ``_TASK_BYTES``; many small tenants share one."""
_TASK_BYTES = 4 * 1024 * 1024
_ROW_BYTES = 100
_PIECE_BYTES = 64 * 1024
"""What opening a file, or a version's changes, costs: as much as reading so many bytes."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows for a task: those of some files of a version, or the changes of a version.

    ``constants`` are the columns that are equal in all rows; ``is_whole`` is false where a stream shows new
    and changed rows alone.
    """

    tenant: str
    stream: str
    size: int
    constants: Mapping[str, Any]
    files: SnapshotPart | None = None
    version: int = -1
    is_whole: bool = True
    is_in_bucket: bool = False

    def split(self, where: pc.Expression | None) -> Iterator[Piece]:
        """Yield the files one by one, without those in which no row can match."""
        if self.files is None:
            yield self
            return
        files = self.files.files if where is None else files_matching(self.files, where)
        for number, size in enumerate(files["size"].to_pylist()):
            # A slice would be sent with all files.
            yield dataclasses.replace(self, files=part_of(self.files, files.take([number])), size=size)


@dataclass(frozen=True, slots=True)
class PieceReader:
    """Reads pieces in Spark's workers."""

    place: Place

    def read(self, part: Sequence[Piece], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of pieces in the columns of ``schema``."""
        for piece in part:
            for table in self._tables(piece):
                columns = dict(zip(table.column_names, table.columns, strict=True))
                for name, value in piece.constants.items():
                    kind = pa.string() if name == TENANT else CHANGE_COLUMNS.field(name).type
                    columns[name] = pa.repeat(pa.scalar(value, kind), len(table))
                yield from in_schema(pa.table(columns), schema).to_batches()

    def _tables(self, piece: Piece) -> Iterator[pa.Table]:
        files, version = piece.files, piece.version
        if files is None:
            stream = self.place.store.tenant(piece.tenant).stream(piece.stream)
            changes = stream.changes(version - 1 if version else None, version, as_="arrow")
            yield from _feed(changes, is_whole=piece.is_whole)
            return
        if piece.is_in_bucket:
            tenant = self.place.store.tenant(piece.tenant)
            files = dataclasses.replace(files, storage=tenant.scope.storage)
        for batch in read_row_batches(files):
            yield pa.Table.from_batches([batch])


def _feed(changes: pa.Table, *, is_whole: bool) -> Iterator[pa.Table]:
    """Yield the changes of a version as Delta's change feed has them: an update as two rows.

    Without ``is_whole`` only new and changed rows are given.
    """
    is_update = pc.equal(changes[CHANGE_TYPE], UPDATE)
    others, updated = changes.filter(pc.invert(is_update)), changes.filter(is_update)
    yield others if is_whole else others.filter(pc.equal(others[CHANGE_TYPE], INSERT))
    kind = changes.schema.get_field_index(CHANGE_TYPE)
    if is_whole and len(updated):
        before = pa.Table.from_struct_array(updated[BEFORE].combine_chunks())
        yield before.append_column(CHANGE_TYPE, pa.repeat(_BEFORE_UPDATE, len(before)))
    yield updated.set_column(kind, CHANGE_TYPE, pa.repeat(_AFTER_UPDATE, len(updated)))


def all_rows(tenant: str, stream: str, snapshot: Snapshot, **constants: Any) -> Piece:
    """Return all rows of a version as a piece that can be sent."""
    # The storage of a snapshot may hold commits in memory, and that of a bucket cannot be sent.
    is_here = is_local(snapshot.storage)
    storage = LocalStorage(snapshot.storage.root if is_here else "/")
    files = dataclasses.replace(part_of(snapshot, snapshot.files), storage=storage)
    return Piece(tenant, stream, snapshot.size, constants, files, is_in_bucket=not is_here)


def _dealt(pieces: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    """Return the pieces in lots of about equal size, in their order."""
    whole = sum(piece.size + _PIECE_BYTES for piece in pieces)
    lot_bytes = max(whole // _TASKS, _TASK_BYTES)
    lots: list[list[Piece]] = []
    size = lot_bytes
    for piece in pieces:
        if size >= lot_bytes:
            lots.append([])
            size = 0
        lots[-1].append(piece)
        size += piece.size + _PIECE_BYTES
    return list(map(tuple, lots))


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What a query reads: the rows of each tenant at one version, or its changes between two."""

    schema: pa.Schema
    reader: PieceReader
    pieces: tuple[Piece, ...]
    stream_options: tuple[str, ...]
    """Options that only a streaming query knows; it asks for the same columns."""
    conditions: tuple[tuple[str, str, Any], ...] = ()

    def narrowed(self, conditions: Sequence[tuple[str, str, Any]]) -> ReadPlan:
        """Return the plan without tenants that the conditions exclude; files go when the parts are made."""
        pieces = self.pieces
        for name, comparison, value in conditions:
            if name == TENANT and comparison in {"=", "in"}:
                wanted = {value} if comparison == "=" else set(value)
                pieces = tuple(piece for piece in pieces if piece.tenant in wanted)
        return dataclasses.replace(self, pieces=pieces, conditions=tuple(conditions))

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
        return _dealt([part for piece in self.pieces for part in piece.split(self._where(piece))])

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


def _expression(field: pc.Expression, comparison: str, value: Any, kind: pa.DataType) -> pc.Expression | None:
    compare: dict[str, Callable[[], pc.Expression]] = {
        "=": lambda: field == pa.scalar(value, kind),
        "in": lambda: field.isin(pa.array(value, kind)),
        ">": lambda: field > pa.scalar(value, kind),
        ">=": lambda: field >= pa.scalar(value, kind),
        "<": lambda: field < pa.scalar(value, kind),
        "<=": lambda: field <= pa.scalar(value, kind),
    }
    try:
        return compare[comparison]() if comparison in compare else None
    except (pa.ArrowException, TypeError, ValueError):
        return None  # it excludes nothing


Offset = Mapping[str, Sequence[Any]]
"""Of each tenant the version up to which all is read, and the folder, another one where it is made anew.

After -1 come the changes from version 0 on. A tenant that is not in it begins with all its rows.
"""


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What a streaming query reads: the changes of the versions between two offsets."""

    target: Target
    starting: str | None
    versions_max: int | None
    has_changes: bool
    ignores_deletes: bool

    @property
    def reader(self) -> PieceReader:
        """The reader of its pieces."""
        return PieceReader(self.target.place)

    def first(self) -> dict[str, Sequence[Any]]:
        """Return the offset before the first version that is read; an empty one: all rows come first."""
        if self.starting is None:
            return {}
        return {
            name: _reached(
                tenant,
                tenant.version
                if self.starting == "latest"
                else tenant.scope.state(point(self.starting)).version - 1,
            )
            for name, tenant in self.target.tenants().items()
        }

    def newest(self, start: Offset, versions_max: int | None) -> dict[str, Sequence[Any]]:
        """Return the newest version of each tenant, at most so many behind ``start``."""
        found = {}
        for name, tenant in self.target.tenants().items():
            newest = tenant.version
            if name in start:
                since, _ = start[name]
                _require_continued(name, start[name], _reached(tenant, newest))
                newest = newest if versions_max is None else min(newest, since + versions_max)
            elif newest < 0:
                continue  # it has no rows yet
            found[name] = _reached(tenant, newest)
        return found

    def parts(self, start: Offset, end: Offset, schema: pa.Schema) -> list[tuple[Piece, ...]]:
        """Return the pieces of each task, for a query that knows the columns of ``schema``."""
        tenants, pieces = self.target.tenants(), list[Piece]()
        for name, (until, _) in end.items():
            if name not in tenants:
                continue
            tenant, since = tenants[name], start[name][0] if name in start else None
            if name in start:
                _require_continued(name, start[name], end[name])
            _require_continued(name, end[name], _reached(tenant, tenant.version))
            if since != until:
                self._require_known(name, tenant, until, schema)
                pieces += self._pieces(name, tenant, since, until)
        return _dealt(pieces)

    def _require_known(self, name: str, tenant: Tenant, version: int, schema: pa.Schema) -> None:
        """Refuse columns, and types of columns, that came after the query had begun."""
        stream = tenant.stream(self.target.stream)
        try:
            columns = spark_schema(row_columns(stream.snapshot(version=version)))
        except StreamNotFound:
            return
        for field in columns:
            known = schema.field(field.name).type if field.name in schema.names else None
            if known is not None and common_nested(known, field.type) == known:
                continue
            raise SchemaDriftError(
                f"The stream {self.target.stream!r} of {name!r} has a new column {field.name!r}."
                if known is None
                else f"The column {field.name!r} of {self.target.stream!r} of {name!r} has another type.",
                cause="The query began without it."
                if known is None
                else f"The query began with {known}; it is {field.type} now.",
                remedy="Start the query again: it goes on from its checkpoint, with the column.",
                column=field.name,
                tenant=name,
            )

    def _pieces(self, name: str, tenant: Tenant, since: int | None, until: int) -> Iterator[Piece]:
        if since is None:
            view = tenant.at(until)
            if self.target.stream in view.streams():
                marks = shared_columns(name, self.target, INSERT, until, view, has_changes=self.has_changes)
                yield all_rows(name, self.target.stream, view.stream(self.target.stream).snapshot(), **marks)
            return
        shown = {"has_changes": self.has_changes, "ignores_deletes": self.ignores_deletes}
        yield from changed_versions(name, tenant, self.target, (since, until), **shown)


def _reached(tenant: Tenant, version: int) -> Sequence[Any]:
    return [version, tenant.context.guard.folder]


def _require_continued(name: str, before: Sequence[Any], after: Sequence[Any]) -> None:
    """Refuse to go on in a tenant whose versions are others than those that were read."""
    (since, folder), (newest, now) = before, after
    if folder != now or newest < since:
        raise VersionNotFound(
            f"The version {since} of the tenant {name!r} that the query has read is no longer there.",
            cause=f"It was deleted and made again, or a backup was put back; its newest version is {newest}.",
            remedy="Start the query anew, with another checkpoint.",
            tenant=name,
        )


def last_version_with(tenant: Tenant, stream: str, state: TenantState) -> int | None:
    """Return the newest version up to a state that has a stream; None: there is none that is kept."""
    if stream in state.streams:
        return state.version
    if stream not in state.dropped:
        return None
    entries = tenant.history(until=state.version)
    before = next((item.version - 1 for item in entries if stream in item.streams_dropped), -1)
    return before if tenant.scope.state().is_listed(before) else None


def changed_versions(
    name: str,
    tenant: Tenant,
    target: Target,
    between: tuple[int, int],
    *,
    has_changes: bool = True,
    ignores_deletes: bool = False,
) -> Iterator[Piece]:
    """Yield the changes of each version after the first that changed the stream, the oldest first."""
    state, (since, until) = tenant.scope.state(), between
    # A tagged version below the floor is listed, those between are not.
    if since != until and max(since, 0) < state.floor:
        raise VersionNotFound(
            f"The changes after version {since} of the tenant {name!r} are no longer kept.",
            cause=f"Its retention or an erasure deleted them; versions from {state.floor} on are kept.",
            remedy=f"Read the rows of now, and from startingVersion={state.floor + 1} on their changes; "
            "a stream begins anew with another checkpoint.",
            tenant=name,
            version=since,
        )
    newer = itertools.takewhile(lambda entry: entry.version > since, tenant.history(until=until))
    for entry in reversed(list(newer)):
        counts, is_dropped = entry.streams.get(target.stream), target.stream in entry.streams_dropped
        if counts is None and not is_dropped:
            continue
        if (is_dropped or (counts and counts.deleted)) and not (has_changes or ignores_deletes):
            raise InvalidOption(
                f"Version {entry.version} of the tenant {name!r} deletes rows of {target.stream!r}.",
                cause="A stream of new and changed rows cannot show that.",
                remedy="Read the changes (readChangeFeed), or leave deletions out (ignoreDeletes).",
                tenant=name,
                version=entry.version,
            )
        kind = DELETE if is_dropped else None
        marks = shared_columns(name, target, kind, entry.version, entry, has_changes=has_changes)
        if counts is not None and not is_dropped:
            rows = counts.inserted + counts.updated + counts.deleted
            yield Piece(name, target.stream, rows * _ROW_BYTES, marks, None, entry.version, has_changes)
        elif has_changes:
            gone = tenant.at(entry.version - 1).stream(target.stream).snapshot()
            yield all_rows(name, target.stream, gone, **marks)


def shared_columns(
    name: str, target: Target, kind: str | None, version: int, made: Any, *, has_changes: bool
) -> dict[str, Any]:
    """Return the columns that all rows of a version share; ``made`` has its time."""
    marks: dict[str, Any] = {TENANT: name} if target.is_fleet else {}
    if has_changes:
        marks |= {VERSION: version, MOMENT: made.timestamp, **({CHANGE_TYPE: kind} if kind else {})}
    return marks
