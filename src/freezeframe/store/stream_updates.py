"""Executes one update of a stream, from the caller's rows to the receipt.

On a tenant it is a job of one change, in a job a part of it: ``scope`` knows. What happens in between:
``unit_of_work`` (what a call means), ``transaction`` (the commit point), ``roll_forward`` (after it).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from freezeframe.clock import now_ms
from freezeframe.log import Snapshot
from freezeframe.store.model.receipt import Receipt
from freezeframe.store.model.update_options import KeyedUpdate, Update
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.lease import Lease
from freezeframe.store.tenant_log.roll_forward import require_no_case_twin
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.transaction.stream_changes import StagedStream
from freezeframe.store.transaction.stream_place import StreamPlace
from freezeframe.store.updates.strategy import Explanation, explain_update
from freezeframe.store.updates.update_step import take_update


def write(place: StreamPlace, frame: Any, update: Update | KeyedUpdate) -> Receipt:
    """Execute one update and return its receipt; in a job, the receipt of the pending change.

    Without a key in the update, the stream's key counts.
    """
    with place.scope.change(place.name) as work:
        receipt = work.update(place.name, frame, update)
    return receipt if work.receipt is None else work.receipt.streams[str(place.name)]


@dataclass(frozen=True, slots=True)
class Previewed:
    """A stream before and after an update that is not committed; valid during the call only."""

    before: Snapshot
    after: Snapshot
    receipt: Receipt


def preview(place: StreamPlace, frame: Any, update: Update, use: Callable[[Previewed], Any]) -> Any:
    """Return the result of ``use`` on the stream's state after the update; nothing is committed."""
    scope, name = place.scope, place.name
    state = scope.state()
    require_no_case_twin(state.streams, name)
    base = scope.base(name)
    identity = CommitIdentity(uuid.uuid4().hex, state.next_timestamp_ms(now_ms()))
    staged = StagedStream(name, scope.storage, place.update_place.engine, identity, base)
    with _lease(scope, identity.write_id):
        try:
            with take_update(place.update_place, identity.write_id, base, frame, update) as taken:
                result = staged.add(taken.to_step())
            return use(Previewed(base, staged.view(), result.answer))
        finally:
            staged.discard()


def explain(place: StreamPlace, frame: Any, update: Update) -> Explanation:
    """The execution plan of the update and its writes; nothing is committed."""
    scope, name = place.scope, place.name
    base = scope.base(name)
    write_id = uuid.uuid4().hex
    staging = StagingFolder(scope.storage, place.update_place.folder, f"{write_id}-explained")
    with _lease(scope, write_id):
        try:
            with take_update(place.update_place, write_id, base, frame, update) as taken:
                staged = taken.stage_on(base, staging)
                taken.intake.discard()
            return explain_update(str(name), base.version, staged, scope.settings)
        finally:
            staging.discard()


@contextmanager
def _lease(scope: TenantScope, write_id: str) -> Iterator[None]:
    """Protect staged, never committed files from gc; a tenant without a version has no gc."""
    lease = Lease(scope.storage, write_id, None, scope.settings.lease_heartbeat_seconds)
    if scope.state().version >= 0:
        lease.hold()
    try:
        yield
    finally:
        lease.release()
