"""A job: one run of a script for a tenant, committed atomically; its status seen from outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Unpack

from freezeframe.engine.frames.rows import Rows
from freezeframe.identifiers import StreamName
from freezeframe.store.files import Files
from freezeframe.store.model.receipt import JobReceipt, Receipt, parse_job_receipt
from freezeframe.store.model.update_options import Author, Names, UpdateOptions, parse_update
from freezeframe.store.stream import Stream
from freezeframe.store.tenant_log.entry import TenantChange
from freezeframe.store.tenant_log.lease import live_leases
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.dry_run import DryRun
from freezeframe.store.transaction.transaction import Transaction
from freezeframe.store.transaction.view import View


class TenantContent:
    """The streams and files of a tenant, in one view of it."""

    def __init__(self, view: View) -> None:
        self._view = view

    def stream(self, name: str | StreamName) -> Stream:
        """Return the stream of that name, whether or not it exists yet.

        Raises:
            InvalidName: no stream can have that name.
        """
        return Stream(name if isinstance(name, StreamName) else StreamName(name), self._view)

    def streams(self) -> tuple[str, ...]:
        """Return the names of the streams, sorted."""
        return tuple(sorted(self._view.state().streams))

    def __getitem__(self, name: str) -> Stream:
        """Return the stream of that name.

        Raises:
            StreamNotFound: there is none yet; ``stream`` returns one that an update creates.
        """
        found = self.stream(name)
        if name not in self:
            found.snapshot()
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._view.state().streams

    def __iter__(self) -> Iterator[str]:
        return iter(self.streams())

    def __len__(self) -> int:
        return len(self._view.state().streams)

    def __bool__(self) -> bool:
        return True  # a tenant without streams is one

    @property
    def files(self) -> Files:
        """The files by path."""
        return Files(self._view)


class Job(TenantContent):
    """Streams and files within one job; ``Tenant.job`` creates it.

    Inside, reads see the tenant as it was when the job began, with the job's own changes; everybody else
    sees the last commit. Leaving the ``with`` block commits all of it at once. An exception inside:
    nothing happened.
    """

    def __init__(self, context: TenantContext, transaction: Transaction) -> None:
        super().__init__(View(context, transaction))
        self._transaction = transaction

    @property
    def is_repeated(self) -> bool:
        """Whether a job of this id is already committed; its changes are then not repeated."""
        return self._transaction.is_repeated

    @property
    def dry_run(self) -> DryRun | None:
        """What the job would change, after the block of a dry run; None if its id was committed before."""
        return self._transaction.dry_run

    @property
    def receipt(self) -> JobReceipt:
        """The receipt of the job, available after its block.

        Raises:
            InvalidOption: it has not been committed (yet).
        """
        found = self._transaction.done
        view = View(self._view.context)
        streams = {
            name: Stream(StreamName(receipt.stream), view).with_source(receipt)
            for name, receipt in found.streams.items()
        }
        return replace(found, streams=MappingProxyType(streams))

    def update(
        self,
        frames: Mapping[str, Any],
        key: Names | Mapping[str, Names] | None = None,
        **options: Unpack[UpdateOptions],
    ) -> dict[str, Receipt]:
        """Update several streams by name; return the receipts in the same order.

        It does what ``Stream.update`` does for each stream, but Spark searches the keys of small streams
        in one query, which is most of what a small update costs. ``key`` and
        ``options`` are those of ``Stream.update``, for all of the streams; ``key`` may also be a mapping.
        Where one of them fails, the others are part of the job, as after single calls.

        Raises:
            BadInput, TooManyDeletions, InvalidOption, InvalidName: as ``Stream.update`` does.
        """
        keys = key if isinstance(key, Mapping) else dict.fromkeys(frames, key)
        updates = [
            (StreamName(name), Rows(frame), parse_update(keys.get(name), options))
            for name, frame in frames.items()
        ]
        with self._view.change() as transaction:
            receipts = transaction.update_all(updates)
        return {
            name: self.stream(name).with_source(receipt)
            for name, receipt in zip(frames, receipts, strict=True)
        }


@contextmanager
def open_job(
    context: TenantContext,
    job_id: str | None,
    *,
    message: str | None = None,
    who: str | None = None,
    dry_run: bool = False,
) -> Iterator[Job]:
    """Yield a job that commits when the block ends without an error; see ``Tenant.job``."""
    context = replace(context, on_dry_run=lambda *_: None) if dry_run else context
    with Transaction(context, Author(who or "", message or ""), job_id=job_id) as transaction:
        yield Job(context, transaction)


# The status of a job seen from outside, and revoking it before it commits.
#
# For supervisors of job processes: a process may die between its commit and its report, or go on after
# it was given up. The tenant's log has the outcome and decides.


def find_committed_job(context: TenantContext, job_id: str) -> JobReceipt | None:
    """Return the receipt of the job of that id, marked as repeated; None if it is not committed."""
    record = context.log.known_job(context.log.current_state(), job_id)
    if record is None:
        return None
    kept = context.log.receipt(record)
    if kept is None:
        return JobReceipt(record.version, job_id, committed=True, seconds=0.0, repeated=True)
    return parse_job_receipt(kept)


def revoke_job(
    context: TenantContext, job_id: str, reason: str = "", who: str = "", *, tokens: Iterable[str] = ()
) -> tuple[str, ...]:
    """Revoke every open run of that job, so that it cannot commit; return the revoked tokens.

    Runs that have announced themselves are found by their leases, and revoked as transactions. A run that
    has started without announcing itself yet is revoked by its token, if that is among ``tokens``. A run
    that has committed stays committed (``find_committed_job``). Nothing is written if there is nothing
    to revoke, or the job is committed.
    """
    leases = live_leases(context.storage)
    state = context.log.current_state()  # read last: a run that registers later finds the tokens revoked
    if context.log.known_job(state, job_id) is not None:
        return ()
    found = {lease.write_id for lease in leases if lease.job_id == job_id} - state.revoked.keys()
    change = TenantChange(
        revoked=tuple(sorted(found)), revoked_tokens=tuple(sorted(set(tokens) - state.revoked_tokens.keys()))
    )
    revoked = (*change.revoked, *change.revoked_tokens)
    if revoked:
        message = reason or f"The job {job_id!r} was taken over."
        with Transaction(context, Author(who, message)) as transaction:
            transaction.stage_tenant(change, "revoke")
    return revoked
