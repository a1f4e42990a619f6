"""What queries of the Spark format read: rows of versions, changes between them, and streams of changes.

A path names a stream of one or of many tenants. Spark plans in one process and reads in others: everything
here is pickled, and a piece has all that a worker needs.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import itertools
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.untyped import spark_schema
from freezeframe.engine.protocol import DeferredEngine
from freezeframe.errors import (
    FreezeframeError,
    InvalidOption,
    ReportDamage,
    SchemaDriftError,
    StreamNotFound,
    VersionNotFound,
)
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.delta_log import CHANGE_COLUMNS
from freezeframe.log.scan.rows import SnapshotPart, files_matching, part_of
from freezeframe.script.tenants import spark_engine, storage_at
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.storage.location import local_directory
from freezeframe.storage.read_ahead import map_concurrently
from freezeframe.store.change_feed import (
    UPDATE_AFTER,
    changed_rows,
    changed_versions,
    deletes_rows,
    fitted,
    version_before,
    with_own_columns,
)
from freezeframe.store.diff.row_changes import CHANGE_TYPE, INSERT
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.type_compatibility import common_nested
from freezeframe.store.snapshot_store import Store
from freezeframe.store.table.reader import read_row_batches, row_columns
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenant_log.history import Point

TENANT = "_tenant"
_THREADS = 16
"""So many tenants of a bucket are looked at together."""
_Answer = TypeVar("_Answer")
_SECRET = ("service_", "master_key", "database_url", "notify_url")


def flag(options: Mapping[str, str], name: str) -> bool:
    """Return a switch, which is off without its option."""
    text = options.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise InvalidOption(f"{name} is true or false, not {options[name]!r}.", remedy="Pass one of them.")
    return text == "true"


def point(text: str) -> Point:
    """Return the version that an option names: a number, or else a tag or a moment."""
    return int(text) if text.strip().lstrip("-").isdecimal() else text


def _require_absolute(option: str, path: str) -> str:
    """Return the path of an option, a directory's if it is absolute, or a bucket's."""
    place = local_directory(path)
    if place is not None and not place.is_absolute():
        raise InvalidOption(
            f"The {option} {path!r} is a relative path.",
            cause="Spark's workers would take it from another folder than this program's.",
            remedy="Pass an absolute path; the store also by freezeframe.register(spark, root).",
            option=option,
        )
    return path


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
        fields = Settings.model_fields.items()
        hidden = {name: item.default for name, item in fields if name.startswith(_SECRET)}
        return cls(
            str(root or settings.root) if place is None else str(place.absolute()),
            environment or settings.environment,
            settings.model_copy(update=hidden),
        )

    @property
    def is_bucket(self) -> bool:
        """Whether the store is in a bucket."""
        return local_directory(self.root) is None

    @cached_property
    def store(self) -> Store:
        """The store, opened once in each process."""
        engine = DeferredEngine(lambda: spark_engine(self.settings))
        return Store(storage_at(self.root, self.settings), engine, self.settings, self.environment)

    def __reduce__(self) -> tuple[Any, ...]:
        return Place, (self.root, self.environment, self.settings)


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
class Target:
    """What a path names: a stream, and tenants by their ids or by a pattern. Workers read its pieces."""

    place: Place
    names: tuple[str, ...]
    stream: str
    report: str = ""
    """The folder to which damage is reported; without one it ends the query."""

    @classmethod
    def parse(cls, place: Place, options: Mapping[str, str]) -> Target:
        """Return what the option ``path`` names, in the store that the options name or that of ``place``."""
        path = options.get("path", "")
        tenants, _, stream = path.strip("/").rpartition("/")
        names = tuple(name.strip() for name in tenants.split(","))
        if not all(names) or not stream:
            raise InvalidOption(
                f"{path!r} does not name a tenant's stream." if path else "No stream is named.",
                cause="A path of this format is a tenant's id, a slash and a stream's name.",
                remedy='Pass it to load or save: "acme/Account", or "*/Account" for all tenants.',
            )
        report = options.get("badRecordsPath", "")
        if flag(options, "ignoreCorruptFiles") and not report:
            raise InvalidOption(
                "ignoreCorruptFiles needs badRecordsPath.",
                cause="Without a report nobody would know which tenants are left out.",
                remedy='Add option("badRecordsPath", a folder): it gets a JSON file for each of them.',
                option="ignoreCorruptFiles",
            )
        root = _require_absolute("root", options.get("root", place.root))
        named = dataclasses.replace(
            place, root=root, environment=options.get("environment", place.environment)
        )
        report = report and _require_absolute("badRecordsPath", report)
        return cls(named, names, str(StreamName(stream)), report)

    @property
    def is_fleet(self) -> bool:
        """Whether it can be of more than one tenant."""
        return len(self.names) > 1 or "*" in self.names[0]

    def of_each(self, ask: Callable[[str, Tenant], _Answer | None]) -> dict[str, _Answer]:
        """Return the answer of each tenant that has one, by id, in order; who is named must be there."""
        store = self.place.store

        def answer(tenant: str) -> _Answer | None:
            found = None  # also where it is damaged, and reported
            with self.errors_of(tenant):
                found = ask(tenant, store.tenant(tenant))
            return found  # noqa: RET504 - the context ends some errors

        names = [fnmatch.filter(store, name) if "*" in name else [name] for name in self.names]
        tenants = list(dict.fromkeys(itertools.chain.from_iterable(names)))
        found = map_concurrently(answer, tenants, _THREADS if self.place.is_bucket else 1)
        return {name: item for name, item in zip(tenants, found, strict=True) if item is not None}

    @contextmanager
    def errors_of(self, tenant: str) -> Iterator[None]:
        """Name the tenant in an error, where there are many; with a report damage is told there alone.

        The report has a file for each error, by its content: a task that runs again finds it.
        """
        try:
            yield
        except FreezeframeError as error:
            if self.report and self.is_fleet and isinstance(error, ReportDamage):
                told = {"tenant": tenant, "stream": self.stream, **error.to_json()}
                content = json.dumps(told, default=str).encode()
                name = f"{hashlib.sha256(content).hexdigest()[:32]}.json"
                with suppress(FileExistsError):
                    storage_at(self.report, self.place.settings).put_if_absent(name, content)
                return
            if self.is_fleet and "tenant" not in error.details:
                error.problem = f"Tenant {tenant!r}: {error.problem}"
                error.args = (error.problem,)
                error.details["tenant"] = tenant
            raise

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
        if not columns:
            raise StreamNotFound(
                f"No tenant has a stream {self.stream!r}.",
                cause=f"These tenants were looked at: {', '.join(self.names)}.",
                remedy="Check the name; upper and lower case matter.",
                stream=self.stream,
            )
        named = pa.schema([(name, kind) for name, (_, kind) in first.items()])
        changes = CHANGE_COLUMNS if has_changes else ()
        own = (*changes, *([pa.field(TENANT, pa.string())] if self.is_fleet else ()))
        return with_own_columns(spark_schema(named), own, self.stream)

    def rows(self, tenant: str, snapshot: Snapshot, **marks: Any) -> Piece:
        """Return all rows of a version as a piece that can be sent; ``marks`` are columns of all of them."""
        # The storage of a snapshot may hold commits in memory, and that of a bucket cannot be sent.
        storage = LocalStorage("/" if self.place.is_bucket else snapshot.storage.root)
        files = dataclasses.replace(part_of(snapshot, snapshot.files), storage=storage)
        return Piece(tenant, self.stream, snapshot.size, self._marks(tenant) | marks, files)

    def changes(
        self,
        name: str,
        tenant: Tenant,
        since: int,
        until: int,
        *,
        has_changes: bool = True,
        ignores_deletes: bool = False,
    ) -> Iterator[Piece]:
        """Yield the changes of each version after ``since`` that changed the stream, the oldest first."""
        stream, shows_deletes = StreamName(self.stream), has_changes or ignores_deletes
        for entry in changed_versions(tenant.scope, stream, since, until):
            counts = entry.streams.get(self.stream, Counts())
            if not shows_deletes and deletes_rows(tenant.scope, stream, entry):
                raise InvalidOption(
                    f"Version {entry.version} of the tenant {name!r} deletes rows of {self.stream!r}.",
                    cause="A stream of new and changed rows cannot show that.",
                    remedy="Read the changes (readChangeFeed), or leave deletions out (ignoreDeletes).",
                    tenant=name,
                    version=entry.version,
                )
            size = _ROW_BYTES * (counts.inserted + counts.updated + counts.deleted)
            yield Piece(name, self.stream, size, self._marks(name), None, entry.version, has_changes)

    def read(self, part: Sequence[Piece], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of pieces in the columns of ``schema``, in a worker."""
        for piece in part:
            batches = self._batches(piece, schema)
            with self.errors_of(piece.tenant):
                # What is left out because it is damaged is left out whole.
                yield from list(batches) if self.report else batches

    def _marks(self, tenant: str) -> dict[str, Any]:
        """Return the column that says whose the rows are."""
        return {TENANT: tenant} if self.is_fleet else {}

    def _batches(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for rows in self._tables(piece):
            table = rows
            for name, value in piece.constants.items():
                kind = pa.string() if name == TENANT else CHANGE_COLUMNS.field(name).type
                table = table.append_column(name, pa.repeat(pa.scalar(value, kind), len(table)))
            yield from fitted(table, schema, piece.version).to_batches()

    def _tables(self, piece: Piece) -> Iterator[pa.Table]:
        files = piece.files
        if files is None or self.place.is_bucket:
            scope = self.place.store.tenant(piece.tenant).scope
        if files is not None:
            files = dataclasses.replace(files, storage=scope.storage) if self.place.is_bucket else files
            yield from (pa.Table.from_batches([batch]) for batch in read_row_batches(files))
            return
        for rows in changed_rows(scope, StreamName(piece.stream), piece.version):
            is_shown = pc.is_in(rows[CHANGE_TYPE], pa.array([INSERT, UPDATE_AFTER]))
            yield rows if piece.is_whole else rows.filter(is_shown)


_TASKS = 32
"""Rows are dealt to so many tasks, if each gets ``_TASK_BYTES``; many small tenants share one."""
_TASK_BYTES = 4 * 1024 * 1024
_ROW_BYTES = 100
_PIECE_BYTES = 64 * 1024
"""What opening a file, or a version's changes, costs: as much as reading so many bytes."""


def dealt(pieces: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    """Return the pieces in lots of about equal size, in their order."""
    *starts, end = itertools.accumulate((piece.size + _PIECE_BYTES for piece in pieces), initial=0)
    lot_bytes = max(end // _TASKS, _TASK_BYTES)
    lots: dict[int, list[Piece]] = {}
    for piece, start in zip(pieces, starts, strict=True):
        lots.setdefault(start // lot_bytes, []).append(piece)
    return list(map(tuple, lots.values()))


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What a query reads: the rows of each tenant at one version, or its changes up to one.

    Changes are looked for when a query is planned, not when its columns are asked for. A stream asks for
    these too, whenever it starts, and the version with which it began need not be kept until then.
    """

    target: Target
    schema: pa.Schema
    pieces: Sequence[Piece]
    until: Mapping[str, int]
    """The version of each tenant of which the columns are."""
    starting: str | None = None
    """The version from which on changes are read; without it rows are."""
    refused: str = ""
    """An option that only a streaming query knows; it asks for the same columns."""
    conditions: Sequence[tuple[str, str, Any]] = ()

    def narrowed(self, conditions: Sequence[tuple[str, str, Any]]) -> ReadPlan:
        """Return the plan without tenants and files in which no row can meet the conditions."""
        return dataclasses.replace(self, conditions=conditions)

    def parts(self) -> list[tuple[Piece, ...]]:
        """Return the pieces of each task."""
        if self.refused:
            raise InvalidOption(
                f"This query cannot have the option {self.refused} alone.",
                cause="It belongs to a stream, or to changes from a version on.",
                remedy="Changes have readChangeFeed and startingVersion; a stream is read by readStream.",
                option=self.refused,
            )
        pieces = self.pieces if self.starting is None else self._changes(self.starting)
        for name, comparison, value in self.conditions:
            if name == TENANT and comparison in {"eq", "in"}:
                wanted = {value} if comparison == "eq" else set(value)
                pieces = [piece for piece in pieces if piece.tenant in wanted]
        return dealt([part for piece in pieces for part in piece.split(self._where(piece))])

    def _changes(self, starting: str) -> list[Piece]:
        def pieces(name: str, tenant: Tenant) -> list[Piece]:
            if name not in self.until:
                return []
            since = version_before(tenant.scope, point(starting))
            return list(self.target.changes(name, tenant, since, self.until[name]))

        return [piece for found in self.target.of_each(pieces).values() for piece in found]

    def _where(self, piece: Piece) -> pc.Expression | None:
        """Return the conditions that the statistics of the piece's files can tell something about."""
        found, columns = None, pa.schema([]) if piece.files is None else row_columns(piece.files)
        for name, comparison, value in self.conditions:
            if name not in columns.names or name not in self.schema.names:
                continue
            # Spark compares floats as it does, and a value of another type means another column.
            kind, shown = columns.field(name).type, self.schema.field(name).type
            is_integer = pa.types.is_integer(kind) and pa.types.is_integer(shown)
            if is_integer or (kind == shown and (pa.types.is_string(kind) or pa.types.is_date(kind))):
                with suppress(pa.ArrowException, TypeError, ValueError):  # another type excludes nothing
                    is_one = comparison != "in"
                    values = pa.array([value] if is_one else value, kind)
                    field = pc.field(name)
                    condition = (
                        getattr(operator, comparison)(field, values[0]) if is_one else field.isin(values)
                    )
                    found = condition if found is None else found & condition
        return found


Offset = Mapping[str, Sequence[Any]]
"""Of each tenant the version up to which all is read, and the folder, another one where it is made anew.

After -1 come the changes from version 0 on. A tenant that is not in it begins with all its rows. A third item
is the version after which the offset's own batch begins (None: with all rows): Spark asks for the first
offset again if the first batch was not finished, and by then there are other versions and tenants.
"""


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What a streaming query reads: the changes of the versions between two offsets."""

    target: Target
    starting: str | None
    versions_max: int | None
    has_changes: bool
    ignores_deletes: bool
    until: Offset | None = None
    """The versions with which the query ends."""

    def first(self) -> dict[str, Sequence[Any]]:
        """Return the offset before the first version that is read; an empty one: all rows come first."""
        starting = self.starting
        if starting is None:
            return {}

        def before(_: str, tenant: Tenant) -> Sequence[Any]:
            is_now = starting == "latest"
            since = tenant.version if is_now else version_before(tenant.scope, point(starting))
            return [since, tenant.context.guard.folder, since]

        return self.target.of_each(before)

    def newest(self, start: Offset | None, versions_max: int | None) -> dict[str, Sequence[Any]]:
        """Return the newest version of each tenant, at most so many behind ``start`` (None: unknown)."""
        read, until = _checked(start or {}), self.until

        def reached(name: str, tenant: Tenant) -> Sequence[Any] | None:
            newest, folder = tenant.version, tenant.context.guard.folder
            if until is not None:
                newest = min(newest, until[name][0]) if name in until else -1
            if name not in read:
                if until is not None and name not in until:
                    return None
                return [newest, folder, *([] if start is None else [None])]
            since, _, *begun = read[name]
            _require_continued(name, tenant, since, read[name])
            if newest <= since:
                return read[name]
            newest = newest if versions_max is None else min(newest, since + versions_max)
            return [newest, folder, *(begun if begun == [since] else [])]

        return self.target.of_each(reached)

    def ended(self) -> StreamPlan:
        """Return the plan of a query that ends with the versions of now."""
        return dataclasses.replace(self, until=self.newest(None, None))

    def parts(self, start: Offset, end: Offset, schema: pa.Schema) -> list[tuple[Piece, ...]]:
        """Return the pieces of each task, for a query that knows the columns of ``schema``."""
        before, after = _checked(start), _checked(end)

        def pieces(name: str, tenant: Tenant) -> Sequence[Piece]:
            if name not in after:
                return ()
            since, (until, _, *begun) = None, after[name]
            if name in before:
                since, _, *first = before[name]
                since = begun[0] if begun and first == [since] else since
                _require_continued(name, tenant, until, before[name])
            _require_continued(name, tenant, until, after[name])
            if until < 0 or since == until:
                return ()
            if since is None:
                found = self._whole(name, tenant.at(until))
            else:
                words = {"has_changes": self.has_changes, "ignores_deletes": self.ignores_deletes}
                found = list(self.target.changes(name, tenant, since, until, **words))
            # Each version: a column can have come with one and gone with a later one.
            for version in [until] if since is None else [piece.version for piece in found]:
                self._require_known(name, tenant, version, schema)
            return found

        return dealt([piece for found in self.target.of_each(pieces).values() for piece in found])

    def _whole(self, name: str, view: Tenant) -> list[Piece]:
        """Return all rows of a tenant's version, as rows that it inserted."""
        if self.target.stream not in view.streams():
            return []
        told = zip(CHANGE_COLUMNS.names, (INSERT, view.version, view.timestamp), strict=True)
        marks = dict(told) if self.has_changes else {}
        return [self.target.rows(name, view.stream(self.target.stream).snapshot(), **marks)]

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
                remedy="Start the query again: it goes on from its checkpoint, with the column. One that the "
                f"stream has no longer is named to readStream.schema: version {version} has it.",
                column=field.name,
                tenant=name,
            )


def _checked(offset: Any) -> Offset:
    """Refuse an offset of a form that this version does not write."""
    items = list(offset.values()) if isinstance(offset, Mapping) else [None]
    kinds = [[type(part) for part in item] if isinstance(item, list) else [] for item in items]
    if not all(kind[:2] == [int, str] and kind[2:] in ([], [int], [type(None)]) for kind in kinds):
        raise InvalidOption(
            f"The checkpoint's offset cannot be read: {offset!r}.",
            cause="Another version of freezeframe wrote it, or the query read another format.",
            remedy="Start the query anew, with another checkpoint.",
        )
    found: Offset = offset
    return found


def _require_continued(name: str, tenant: Tenant, since: int, read: Sequence[Any]) -> None:
    """Refuse to go on in a tenant whose versions are others than those that were read."""
    if read[1] != tenant.context.guard.folder or tenant.version < since:
        raise VersionNotFound(
            f"The version {since} of the tenant {name!r} that the query has read is no longer there.",
            cause=f"It was deleted and made again, or a backup was put back; its newest version is "
            f"{tenant.version}.",
            remedy="Start the query anew, with another checkpoint.",
            tenant=name,
        )
