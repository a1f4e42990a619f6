"""Delivery of rows to another system, row by row: what is pending, and what the target answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.clock import moment, now_ms
from freezeframe.engine.frames.frames import DtypeBackend, Library, require_library, to_frame
from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import (
    BadInput,
    ConflictError,
    InvalidOption,
    MissingColumn,
    ReportDamage,
    StreamNotFound,
    VersionNotFound,
)
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.store.diff.delivery_state import (
    ACCEPTED,
    ACCEPTED_HASH,
    ANSWER,
    ANSWERED_AT,
    COMMIT_VERSION,
    DELETE,
    ERROR,
    INSERT,
    REJECTED,
    RETRY,
    ROW_HASH,
    STATUS,
    TARGET_ID,
    UPDATE,
    Settled,
    changed_keys,
    delivery_states,
    differing_rows,
    hashes_alike,
    is_state,
    join_keys,
    note_of,
    require_deliverable,
    rows_with,
    settled_in,
    split_name,
    state_name,
)
from freezeframe.store.diff.row_changes import CHANGE_TYPE
from freezeframe.store.model.json_fields import JsonFields
from freezeframe.store.model.receipt import Counts, Receipt
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.columns import arrow_columns, stored_key
from freezeframe.store.schema.type_compatibility import exact_cast
from freezeframe.store.stream import Stream
from freezeframe.store.table.keys import KeyNumbers, key_of_row
from freezeframe.store.table.reader import read_rows, spark_rows
from freezeframe.store.tenant_log.roll_forward import require_no_case_twin
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.commit import revoked_error
from freezeframe.store.transaction.scope import Scope
from freezeframe.store.transaction.transaction import Transaction

_CHANGES = (INSERT, UPDATE, DELETE)
LISTED_ROWS = 100
_GONE = (VersionNotFound, ReportDamage)
"""What a version raises that retention or an erasure deleted; damage of now is found by reading all rows."""


@dataclass(frozen=True, slots=True)
class UndeliveredRow(JsonFields):
    """A row that the target refused as it is, or that the target has and the stream has not.

    ``change`` is ``insert``, ``update_postimage`` or ``delete``; a refusal has ``error`` and ``answered_at``.
    """

    key: Mapping[str, Any]
    change: str
    target_id: str | None
    is_rejected: bool
    error: str | None
    answered_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryReport(JsonFields):
    """What a target has of a stream: how many rows it accepted, what is pending, and what it refused.

    ``rows`` are the first rows that it refused, or that it has and the stream has not, by key; ``is_whole``
    is false where there are more.
    """

    stream: str
    target: str
    state: str
    accepted: int
    rejected: int
    pending: Counts
    rows: tuple[UndeliveredRow, ...]
    is_whole: bool


@dataclass(slots=True)
class Delivery:
    """The delivery of a tenant's rows to one target; ``Tenant.delivery`` makes it.

    Rows are sent at least once: what was accepted in a job that failed afterwards, or was never answered, is
    pending again. The state of each stream is the stream ``{stream}.delivery.{target}`` of the tenant.
    """

    scope: Scope
    target: str
    _settled: dict[str, Settled] = field(default_factory=dict)

    def __post_init__(self) -> None:
        state_name(StreamName("stream"), self.target)

    def pending(
        self, stream: str, as_: Library = "pandas", *, dtype_backend: DtypeBackend | None = None
    ) -> Any:
        """Return the rows that are not what the target accepted last, in the order of the key.

        They have the stream's columns, and those of Spark's change data: ``_change_type`` (``insert``,
        ``update_postimage``, or ``delete``: then the key alone has values) and ``_commit_version``, the
        version of the tenant that they are of (of a stream that the job changed: the one that the job makes);
        with ``_target_id``, the id that the target gave, and ``_row_hash``. Give these columns back to
        ``accept`` and ``reject``. A row that the target rejected is pending again when it has changed, or
        after ``retry``.

        Args:
            stream: the stream's name.
            as_: ``"pandas"``, ``"arrow"``, ``"polars"`` or ``"spark"``. The pending rows are held in memory.
            dtype_backend: as of ``Stream.read``.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: it has no key, or another one than its rows were delivered by.
        """
        require_library(as_, dtype_backend)
        name = StreamName(stream)
        self.scope.note_read(name)
        differing = self.scope.reading(lambda: self._differing(name))
        found = differing.filter(pc.is_null(differing[STATUS])).drop_columns([STATUS, ERROR, ANSWERED_AT])
        if as_ == "spark":
            return spark_rows(found, self.scope.context.engine.session)
        default = self.scope.settings.dtype_backend if as_ == "pandas" else None
        return to_frame(found, as_, dtype_backend, default)

    def accept(self, stream: str, frame: Any) -> Receipt:
        """Keep that the target accepted rows of ``pending``, in one commit; the receipt is that of the state.

        ``frame``, of any library, has the key's columns, ``_change_type``, ``_commit_version`` and
        ``_row_hash`` as ``pending`` gave them, and may have the target's ids in ``_target_id``: without one
        the id from before stays. Inside a job this is a part of the job.

        Raises:
            BadInput: a column is missing, a row comes twice, or a value cannot be one.
            ConflictError: a row was erased since it was pending; nothing is kept.
            StreamNotFound, InvalidOption: as of ``pending``.
        """
        return self._answer(StreamName(stream), frame, ACCEPTED)

    def reject(self, stream: str, frame: Any) -> Receipt:
        """Keep that the target rejected rows of ``pending``, each with its reason in the column ``_error``.

        Else it is as ``accept``. What the target had of these rows before, it still has.
        """
        return self._answer(StreamName(stream), frame, REJECTED)

    def retry(self, stream: str, keys: Iterable[Any] | pa.Table | None = None) -> int:
        """Make rejected rows pending again as they are: those of some keys, or all; return how many.

        A key is one value, or a tuple or mapping for a key of several columns; or they are an Arrow table.

        Raises:
            StreamNotFound: no row of that stream was delivered.
            BadInput: a key is none of the stream's.
        """
        name = state_name(StreamName(stream), self.target)
        with self.scope.change(name) as transaction:
            _refuse_beside_erasure(transaction)
            scope = Scope(self.scope.context, transaction)
            state = Delivery(scope, self.target)._state(name)  # noqa: SLF001 - its own, in the transaction
            if state is None:
                raise StreamNotFound(
                    f"No row of {stream!r} was delivered to {self.target!r}.",
                    remedy="Check both names.",
                    stream=stream,
                )
            key = stored_key(state.metadata) or ()
            rejected = _rejected_keys(state)
            if keys is not None:
                columns = arrow_columns(state.delta_schema)
                one_by_one = () if isinstance(keys, pa.Table) else keys
                parts = [key_of_row(columns, key, value) for value in one_by_one]
                given = keys if isinstance(keys, pa.Table) else rejected.slice(0, 0)
                wanted = KeyNumbers(join_keys(state, [*parts, given]))
                rejected = rejected.take(pa.array(wanted.found_in(rejected)[0]))
            if len(rejected):
                again = rejected.append_column(STATUS, pa.array([RETRY] * len(rejected)))
                Stream(name, scope).apply(Rows(again), Update(key=key, null_keys="match"))
            return len(rejected)

    def report(self, stream: str, limit: int = LISTED_ROWS) -> DeliveryReport:
        """Return what the target has of a stream, with the first rows that it refused, or has alone.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: as of ``pending``.
        """
        name = StreamName(stream)
        own = state_name(name, self.target)
        differing, key = self.scope.reading(lambda: self._reported(name))
        is_rejected = pc.is_valid(differing[STATUS])
        kinds = differing[CHANGE_TYPE].filter(pc.invert(is_rejected))
        inserted, updated, deleted = (len(kinds.filter(pc.equal(kinds, kind))) for kind in _CHANGES)
        listed = differing.filter(pc.or_(is_rejected, pc.equal(differing[CHANGE_TYPE], DELETE)))
        state = self._state(own)
        accepted = 0
        if state is not None:
            hashes = pc.fill_null(read_rows(state, [ACCEPTED_HASH])[ACCEPTED_HASH], "")
            accepted = int(pc.sum(pc.not_equal(hashes, "")).as_py() or 0)
        return DeliveryReport(
            stream=str(name),
            target=self.target,
            state=str(own),
            accepted=accepted,
            rejected=int(pc.sum(is_rejected).as_py() or 0),
            pending=Counts(inserted=inserted, updated=updated, deleted=deleted),
            rows=_undelivered(listed.slice(0, limit), key),
            is_whole=len(listed) <= limit,
        )

    def _state(self, name: StreamName) -> Snapshot | None:
        """Return the state by its name; None before the first answer.

        A job may keep answers beside another job: each is of one row, and says of which content it is. So the
        read is not noted.
        """
        present = self.scope.state()
        if present.table_version(name) < 0:
            require_no_case_twin(present.streams, name)
            return None
        state = self.scope.snapshot(name)
        if not is_state(name, state.metadata):
            raise InvalidOption(
                f"The stream {str(name)!r} is no state of a delivery.",
                cause="A delivery keeps its state under that name, and the stream is yours.",
                remedy="Deliver under another name, or drop the stream.",
            )
        return state

    def _reported(self, name: StreamName) -> tuple[pa.Table, tuple[str, ...]]:
        """Return the rows that differ and their key, of a stream that may have been dropped."""
        state = self._state(state_name(name, self.target))
        if state is not None and self.scope.state().table_version(name) < 0:
            return differing_rows(name, self._version(name), None, state), stored_key(state.metadata) or ()
        return self._differing(name, with_rejected=True), require_deliverable(name, self.scope.snapshot(name))

    def _differing(self, name: StreamName, *, with_rejected: bool = False) -> pa.Table:
        """Return the rows that differ from what the target has; reads those that changed since it had all.

        Rows that it rejected, and that did not change since, are left out, or (``with_rejected``) all there.
        """
        table, version = self.scope.snapshot(name), self._version(name)
        require_deliverable(name, table)
        own = state_name(name, self.target)
        state = self._state(own)
        if state is None:
            return differing_rows(name, version, table, None)
        since = self._settled.get(name) or settled_in(state)
        if since is not None and not since.is_of(table, state):
            since = None
        then = self._sent_last(name, state)
        # What was pending then is settled where all of it has been answered.
        if (
            then is not None
            and then.metadata.id == table.metadata.id
            and then.version < table.version
            and (since is None or since.stream < then.version)
        ):
            keys = self._open_keys(name, then, state, since)
            with suppress(*_GONE):
                if _is_settled(differing_rows(name, version, then, state, keys)):
                    since = Settled.at(then, state)
        keys = self._open_keys(name, table, state, since)
        if keys is not None and with_rejected:
            keys = join_keys(table, [keys, _rejected_keys(state)])
        found = differing_rows(name, version, table, state, keys)
        if _is_settled(found):
            since = Settled.at(table, state)
        if since is not None and self._are_committed({name: since.stream, own: since.state}):
            self._settled[name] = since
        return found

    def _version(self, name: StreamName) -> int:
        """Return the version of the tenant that pending rows of the stream are of."""
        open_job = self.scope.transaction
        is_changed = open_job is not None and str(name) in open_job.changed_tables
        return self.scope.state().version + int(is_changed)

    def _sent_last(self, name: StreamName, state: Snapshot) -> Snapshot | None:
        """Return the stream as it was when the newest answered rows were pending; None where it is gone."""
        version = pc.max(read_rows(state, [COMMIT_VERSION])[COMMIT_VERSION]).as_py()
        try:
            past = None if version is None else self.scope.state(version)
            return self.scope.snapshot(name, past) if past and str(name) in past.streams else None
        except _GONE:
            return None

    def _open_keys(
        self, name: StreamName, table: Snapshot, state: Snapshot, since: Settled | None
    ) -> pa.Table | None:
        """Return the keys of all rows that can be open; None: any of the stream."""
        if since is None or since.stream > table.version:
            return None
        own = state_name(name, self.target)
        try:
            before = self.scope.snapshot(name, stream_version=since.stream)
            answered = self.scope.snapshot(own, stream_version=since.state)
            if not hashes_alike(table, before) or stored_key(answered.metadata) != stored_key(table.metadata):
                return None
            parts = [changed_keys(table, before), changed_keys(state, answered)]
        except _GONE:
            return None
        known = [keys for keys in parts if keys is not None]
        return join_keys(table, known) if len(known) == len(parts) else None

    def _are_committed(self, versions: Mapping[StreamName, int]) -> bool:
        """Return whether the versions of tables are no longer changed: those of an open job are."""
        open_job = self.scope.transaction
        committed = self.scope.state() if open_job is None else open_job.base
        return all(version <= committed.table_version(name) for name, version in versions.items())

    def _answer(self, name: StreamName, frame: Any, status: str) -> Receipt:
        key = require_deliverable(name, table := self.scope.snapshot(name))
        own = state_name(name, self.target)
        self._state(own)
        rows = Rows(frame)
        given = rows.frame.toArrow() if rows.is_spark else rows.to_arrow()
        needed = [*key, CHANGE_TYPE, COMMIT_VERSION, ROW_HASH, *([ERROR] if status == REJECTED else [])]
        remedy = (
            "Give back the rows of pending with its columns; reject also needs each row's reason in _error."
        )
        MissingColumn.refuse(needed, given.column_names, "The answered rows have no column {}.", remedy)
        columns = arrow_columns(table.delta_schema)
        kinds = _column(given, CHANGE_TYPE, pa.string())
        is_gone = pc.fill_null(pc.equal(kinds, DELETE), fill_value=False)
        hashes = _column(given, ROW_HASH, pa.string())
        is_known = pc.is_in(kinds, pa.array(_CHANGES))
        if not pc.all(pc.and_(is_known, pc.or_(is_gone, pc.is_valid(hashes))), min_count=0).as_py():
            raise BadInput(
                "Answered rows must have the _change_type and the _row_hash of the pending rows.",
                cause=f"A _change_type is one of {', '.join(_CHANGES)}; a row without a hash was deleted.",
                remedy="Give back the columns as pending gave them.",
            )
        hashes = pc.if_else(is_gone, "", hashes)
        ids = _ids(given)
        errors = pa.array([""] * len(given)) if status == ACCEPTED else _errors(given)
        none = pa.nulls(len(given), pa.string())
        answers = {
            **{item: _key_column(given, columns.field(item), rows.library) for item in key},
            STATUS: pa.array([status] * len(given), pa.string()),
            # The target has no more what it deleted, and keeps what it has of a row that it rejects.
            TARGET_ID: pc.if_else(is_gone, "", ids) if status == ACCEPTED else ids,
            ERROR: errors,
            ROW_HASH: hashes,
            ACCEPTED_HASH: hashes if status == ACCEPTED else none,
            COMMIT_VERSION: _column(given, COMMIT_VERSION, pa.int64()),
            ANSWERED_AT: pa.array([moment(now_ms())] * len(given), ANSWER.field(ANSWERED_AT).type),
        }
        notes = [note_of(self._settled[name])] if name in self._settled else []
        if self.scope.state().table_version(own) < 0:
            notes = [note_of(None)]
        # A key that became text in the stream becomes text here.
        update = Update(
            key=key, null_keys="match", drop_duplicates=False, on_drift="string", notes=tuple(notes)
        )
        answered = pa.table(answers)

        def check(transaction: Transaction) -> None:
            self._require_kept_rows(transaction, name, answered.select([*key, COMMIT_VERSION]))

        return Stream(own, self.scope).apply(Rows(answered), update, check)

    def _require_kept_rows(self, transaction: Transaction, name: StreamName, answered: pa.Table) -> None:
        """Refuse answers that would keep keys again which were erased since their rows were pending."""
        _refuse_beside_erasure(transaction)
        is_older = pc.less(answered[COMMIT_VERSION], transaction.base.erased)
        older = answered.filter(pc.fill_null(is_older, fill_value=True)).drop_columns([COMMIT_VERSION])
        if transaction.is_repeated or not len(older):
            return
        inside = Delivery(Scope(self.scope.context, transaction), self.target)
        table, state = inside.scope.snapshot(name), inside._state(state_name(name, self.target))
        keys = join_keys(table, [older])
        sides = [side for side in (table, state) if side is not None]
        kept = join_keys(table, [rows_with(side, keys, keys.column_names) for side in sides])
        if len(kept) < len(keys):
            raise ConflictError(
                f"{len(keys) - len(kept):,} answered rows of {str(name)!r} are gone since an erasure.",
                cause="Neither the stream nor the delivery has their keys, and the answers would keep them.",
                remedy="Delete these rows at the target, and answer those that pending still gives.",
                stream=str(name),
            )


def _refuse_beside_erasure(transaction: Transaction) -> None:
    """Refuse the commit after an erasure that began before the transaction had a lease to revoke."""

    def check(newest: TenantState) -> None:
        if newest.erased != transaction.base.erased:
            raise revoked_error(transaction, newest)

    transaction.checks.append(check)


def deliveries(scope: Scope) -> tuple[tuple[str, str], ...]:
    """Return the streams and targets of which the tenant keeps what was delivered, sorted."""
    pairs = map(split_name, delivery_states(scope.state().streams, scope.snapshot))
    return tuple(sorted(pair for pair in pairs if pair))


def _rejected_keys(state: Snapshot) -> pa.Table:
    key = stored_key(state.metadata) or ()
    return read_rows(state, [*key, STATUS], pc.field(STATUS) == REJECTED).select(list(key))


def _is_settled(differing: pa.Table) -> bool:
    return not differing[STATUS].null_count


def _undelivered(listed: pa.Table, key: tuple[str, ...]) -> tuple[UndeliveredRow, ...]:
    times = listed[ANSWERED_AT].to_pylist()
    rows = shown_rows(listed.drop_columns([ANSWERED_AT]))
    return tuple(
        UndeliveredRow(
            {item: row[item] for item in key},
            row[CHANGE_TYPE],
            row[TARGET_ID],
            row[STATUS] is not None,
            row[ERROR] if row[STATUS] else None,
            when if row[STATUS] else None,
        )
        for row, when in zip(rows, times, strict=True)
    )


def _column(given: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    cast = exact_cast(given[name], kind)
    if cast is None:
        raise BadInput(
            f"The column {name!r} of the answered rows is of type {given[name].type}.",
            cause=f"It is of type {kind} in the pending rows, and a value is none of it.",
            remedy="Give the column back as pending gave it.",
            column=name,
        )
    return cast


def _key_column(given: pa.Table, stored: pa.Field, library: Library) -> pa.ChunkedArray:
    """Return a column of the key; pandas has no other NaN than a missing value."""
    cells = _column(given, stored.name, stored.type)
    if library == "pandas" and pa.types.is_floating(stored.type) and cells.null_count:
        raise BadInput(
            f"The key column {stored.name!r} has a missing value, which pandas makes of NaN, too.",
            cause="Which of them the row has cannot be told.",
            remedy="Deliver such rows with as_='arrow'.",
            column=stored.name,
        )
    return cells


def _ids(given: pa.Table) -> pa.ChunkedArray | pa.Array:
    """Return the target's ids as text; pandas makes floats of integers beside a missing value."""
    if TARGET_ID not in given.column_names:
        return pa.nulls(len(given), pa.string())
    ids = given[TARGET_ID]
    if pa.types.is_floating(ids.type):
        ids = exact_cast(ids, pa.int64()) or ids
    return _column(
        given.set_column(given.column_names.index(TARGET_ID), TARGET_ID, ids), TARGET_ID, pa.string()
    )


def _errors(given: pa.Table) -> pa.ChunkedArray:
    errors = _column(given, ERROR, pa.string())
    if errors.null_count:
        raise BadInput(
            f"{errors.null_count:,} rejected rows have no reason.",
            cause="The column _error is empty in them.",
            remedy="Give the target's message of each row in _error.",
            column=ERROR,
        )
    return errors
