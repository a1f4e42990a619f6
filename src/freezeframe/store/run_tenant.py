"""The tenant of a run: its changes become part of the run's one commit.

The script calls what it always calls, streams, files, ``with tenant.job()``; here these are parts of the
job that is open already. What would be a commit of its own is refused and says why.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.store.job import Job
from freezeframe.store.model.receipt import JobReceipt
from freezeframe.store.model.update_options import Author
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import JobScope, commit_at_end
from freezeframe.store.transaction.transaction import CommitCheck, TenantPlace, Transaction
from freezeframe.store.transaction.unit_of_work import UnitOfWork


def _refusing_method(call: str) -> Any:
    """A method that refuses a call that would be a separate commit."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise InvalidOption(
            f"A script cannot call {call} while it is run as a job.",
            cause="A run is one commit of streams and files; this would be another one in the middle of it.",
            remedy="Call it outside of the run: by the freezeframe command, or from a program of your own.",
        )

    return refuse


class JobTenant(Tenant):
    """The tenant of one open job; a lock serialises the script's threads.

    ``token`` names this run of the job: what is revoked when the job is taken over.
    """

    def __init__(self, place: TenantPlace, work: UnitOfWork, token: str) -> None:
        # Skips the checks of opening a tenant, which the job has already passed.
        self.token = token
        self._place = place
        self._work = work
        self._scope = _SharedScope(place, work)

    @property
    def receipt(self) -> JobReceipt | None:
        """The run's receipt, once it is committed."""
        return self._work.receipt

    def with_check(self, check: CommitCheck) -> JobTenant:
        """This tenant, with a ``check`` of the run's one commit."""
        self._work.require(check)
        return self

    @contextmanager
    def job(
        self,
        job_id: str | None = None,  # noqa: ARG002 - the run has its own
        *,
        message: str | None = None,  # noqa: ARG002
        who: str | None = None,  # noqa: ARG002
    ) -> Iterator[Job]:
        """A part of the run: its changes are committed with the run's others, and its receipt is the run's.

        An exception that leaves the block is the run's: what the block changed cannot be taken out
        again, so the run can no longer be committed, even if the script goes on.
        """
        try:
            yield Job(self._place, self._work)
        except BaseException:
            self._work.require(_refuse_broken)
            raise

    restore = _refusing_method("restore")
    drop_stream = _refusing_method("drop_stream")
    tag = _refusing_method("tag")
    untag = _refusing_method("untag")
    adopt = _refusing_method("adopt")
    set_retention = _refusing_method("set_retention")
    gc = _refusing_method("gc")
    erase = _refusing_method("erase")


class _SharedScope(JobScope):
    """Thread-safe view of the job's scope, serialised by a lock: transactions are single-threaded."""

    def __init__(self, place: TenantPlace, work: UnitOfWork) -> None:
        super().__init__(place, work)
        self._turn = threading.RLock()

    def present(self) -> TenantState:
        """See ``JobScope.present``."""
        with self._turn:
            return super().present()

    def snapshot(
        self, name: StreamName, past: TenantState | None = None, stream_version: int | None = None
    ) -> Snapshot:
        """See ``JobScope.snapshot``."""
        with self._turn:
            return super().snapshot(name, past, stream_version)

    def base(self, name: StreamName) -> Snapshot:
        """See ``JobScope.base``."""
        with self._turn:
            return super().base(name)

    @contextmanager
    def change(self, stream: StreamName | None = None) -> Iterator[UnitOfWork]:
        """See ``JobScope.changing``."""
        with self._turn, super().change(stream) as work:
            yield work


@contextmanager
def open_job_tenant(
    place: TenantPlace, job_id: str, *, token: str, message: str = "", who: str = ""
) -> Iterator[JobTenant]:
    """A job for a script, announced at once so that it can be revoked; committed if the block succeeds.

    ``token`` names this run of the job, and was known to who started it before this process was: it can be
    revoked although nobody has heard of the run yet.
    """
    with commit_at_end(UnitOfWork(place, Author(who, message), job_id=job_id, token=token)) as work:
        work.announce()
        yield JobTenant(place, work, token)


def _refuse_broken(_: TenantState, __: Transaction) -> None:
    raise InvalidOption(
        "The run cannot be committed: a job inside its script was broken off by an exception.",
        cause="The script went on, but what that job had changed cannot be told apart any more.",
        remedy="Let the exception end the script, or put what may fail before the 'with' block.",
    )
