"""A tenant: all streams and files of one customer, versioned by one log.

``Tenant`` is the tenant now, ``TenantView`` the tenant at one version, ``JobTenant`` the tenant of a script
that is run as a job: its changes become part of the run's one commit.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from freezeframe.clock import moment
from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import run_concurrently
from freezeframe.store.diff.tenant_diff import TenantDiff, tenant_diff
from freezeframe.store.job import Job, TenantContent, open_job
from freezeframe.store.maintenance.erasure import Erasure, erase, purge
from freezeframe.store.maintenance.garbage import Garbage, collect_after_commit, collect_garbage
from freezeframe.store.maintenance.repair import adopt
from freezeframe.store.maintenance.restore import Restoration, drop_stream, restore
from freezeframe.store.maintenance.retention import Policy, policy_of, remove_tag, set_policy, set_tag
from freezeframe.store.maintenance.verification import Verification, verify_tenant
from freezeframe.store.model.directory import require_known_format, require_no_store
from freezeframe.store.model.receipt import JobReceipt, html_table
from freezeframe.store.model.update_options import Author, RequestContext
from freezeframe.store.snapshot_files import copies_not_refreshed, refresh_copies, rewrite_files
from freezeframe.store.tenant_log.history import History, Point, history, version_at_point
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.tenants import guard_of_place
from freezeframe.store.transaction.changes import NO_GUARD, Changes, CommitCheck, TenantContext, TenantGuard
from freezeframe.store.transaction.dry_run import DryRun
from freezeframe.store.transaction.transaction import Transaction
from freezeframe.store.transaction.view import View

_SHOWN_STREAMS = 50
_SEPARATE_COMMITS = frozenset(
    {"restore", "drop_stream", "tag", "untag", "adopt", "set_retention", "gc", "erase"}
)


_Either = TypeVar("_Either", "Tenant", "JobTenant", "Tenant | JobTenant")


def tenant_name(context: TenantContext) -> str:
    """Return the tenant's id, or the folder of a tenant that is in no store."""
    return context.tenant_id or context.storage.root


def with_request(tenant: Tenant, request_context: RequestContext) -> Tenant:
    """Return the same tenant with a request context, which is recorded with its changes."""
    return tenant.in_context(replace(tenant.context, request_context=request_context))


def with_check(tenant: _Either, check: CommitCheck) -> _Either:
    """Return the same tenant with a ``check`` of each commit and of the state that it follows.

    For a run's tenant it is a check of the run's one commit.
    """
    if isinstance(tenant, JobTenant):
        tenant.require(check)
        return tenant
    return tenant.in_context(replace(tenant.context, checks=(*tenant.context.checks, check)))


class TenantView(TenantContent):
    """Streams and files as of one commit. Whatever is committed later does not show."""

    def __init__(self, context: TenantContext, state: TenantState) -> None:
        super().__init__(View(context, past=state))
        self._state = state

    def __repr__(self) -> str:
        return f"TenantView(version={self.version})"

    def _repr_html_(self) -> str:
        """Return the streams in a notebook; of many only the first ones are opened and shown."""
        names = self.streams()
        shown = [(name, self.stream(name)) for name in names[:_SHOWN_STREAMS]]
        rows = [
            (name, f"{stream.count():,}", ", ".join(stream.key), stream.version) for name, stream in shown
        ]
        more = f", the first {len(shown)} of {len(names)} streams" if len(shown) < len(names) else ""
        caption = f"{tenant_name(self._view.context)}, version {self.version}{more}"
        return html_table(caption, ("stream", "rows", "key", "changed in version"), rows)

    @property
    def version(self) -> int:
        """The tenant version."""
        return self._state.version

    @property
    def timestamp(self) -> datetime:
        """The time of its commit."""
        return moment(self._state.timestamp_ms)


class BaseTenant(TenantContent):
    """What the tenant of now and the tenant of a job share: content, history, retention."""

    def __repr__(self) -> str:
        return f"Tenant({tenant_name(self._view.context)!r})"

    @property
    def view(self) -> View:
        """The view in which streams and files are read, for packages built on this one."""
        return self._view

    @property
    def context(self) -> TenantContext:
        """The tenant's storage, log, engine and settings, for packages built on this one."""
        return self._view.context

    @property
    def version(self) -> int:
        """The newest tenant version, -1 before the first commit."""
        return self._view.state().version

    def streams(self, version: Point | None = None) -> tuple[str, ...]:
        """Return the names of the streams at a tenant version (default: now), sorted."""
        return tuple(sorted(self._view.state(version).streams))

    def history(
        self,
        limit: int | None = None,
        *,
        until: int | None = None,
        job_id: str | None = None,
        stream: str | None = None,
        path: str | None = None,
    ) -> History:
        """Return the kept versions, the newest (or ``until``) first, at most ``limit`` of them.

        Every version that is listed can be read and restored. ``job_id``, ``stream`` and ``path`` leave
        only the versions that were made by that job, or changed that stream or file.
        """
        newest = self._view.state()
        return history(self._view.log, newest, limit, until=until, job_id=job_id, stream=stream, path=path)

    def at(self, version: Point) -> TenantView:
        """All streams and files as of one version: by number, tag, or the newest one at a moment.

        Raises:
            InvalidOption: it is neither a version, a tag nor a moment.
            VersionNotFound: there is no such version or moment, or it is no longer kept.
        """
        return TenantView(self.context, self._view.state(version))

    def diff(self, before: Point, after: Point | None = None) -> TenantDiff:
        """Return the difference between two versions (default ``after``: now): streams by key, files by text.

        Each is a number, a tag or a moment.

        Raises:
            InvalidOption: one of them is neither a version, a tag nor a moment.
            VersionNotFound: one of them does not exist or is no longer kept.
        """
        return tenant_diff(self._view.log, self._view.state(before), self._view.state(after))

    def tags(self) -> dict[str, int]:
        """Return the tags and their versions."""
        return dict(self._view.state().tags)

    def retention(self) -> Policy:
        """Return the retention policy; without a limit every version is kept."""
        return policy_of(self._view.state())

    def verify(self) -> Verification:
        """Read everything that the tenant's listed versions need, and report damage.

        Entries with their chain, tables, data files with the sizes and hashes that were recorded, and blobs.

        Raises:
            StorageUnavailable: something could not be read.
        """
        return verify_tenant(self._view.storage, self._view.settings)


class Tenant(BaseTenant):
    """One tenant's snapshot directory. Cheap to make; nothing is written before the first update."""

    def __init__(
        self,
        storage: Storage,
        engine: TableEngine,
        settings: Settings,
        guard: TenantGuard = NO_GUARD,
        tenant_id: str = "",
    ) -> None:
        guard = guard_of_place(storage, settings) if guard is NO_GUARD else guard
        # A tenant with a guard belongs to a store and has its own folder.
        guards = [functools.partial(require_no_store, storage)] if guard is NO_GUARD else []
        *_, log = run_concurrently(
            storage, lambda: require_known_format(storage), *guards, lambda: TenantLog(storage, settings)
        )
        context = TenantContext(storage, log, engine, settings, guard, tenant_id, after_commit=_after_commit)
        super().__init__(View(context))

    def _repr_html_(self) -> str:
        """Return the streams in a notebook, as of the newest version."""
        return TenantView(self.context, self._view.state())._repr_html_()

    def in_context(self, context: TenantContext) -> Tenant:
        """Return the same tenant in another context, for packages built on this one."""
        tenant = copy.copy(self)
        tenant._view = View(context)  # noqa: SLF001 - another instance of this class
        return tenant

    def job(
        self,
        job_id: str | None = None,
        *,
        message: str | None = None,
        who: str | None = None,
        dry_run: bool = False,
    ) -> AbstractContextManager[Job]:
        """Return a job: all changes of its ``with`` block are committed at once, or none is.

        With a ``job_id`` (unique for each run) the job is done once: when the id comes again, the job
        changes nothing and has the receipt of the first time, whatever its input. Ids are remembered for
        ``job_id_days``. ``message`` and ``who`` go into the history. With ``dry_run`` nothing is committed:
        ``job.dry_run`` then has what would change, and the id stays free.

        Raises:
            IdempotencyConflict: the id is committed, and the job updates a stream that it did not then.
            ConflictError: others changed what the job read and then wrote, or a file that it wrote.
            JobRevoked: the job stood still for so long that it was declared dead.
            OutcomeUnknown: the answer of the commit was lost; it is there whole or not at all.
        """
        return open_job(self.context, job_id, message=message, who=who, dry_run=dry_run)

    def restore(
        self,
        version: Point,
        *,
        streams: Iterable[str] | None = None,
        files: Iterable[str] | None = None,
        dry_run: bool = False,
        message: str | None = None,
        who: str | None = None,
    ) -> Restoration:
        """Restore everything, or the named streams and files, to a version, tag or moment.

        This makes a new version without writing rows; all later versions can still be read. With
        ``dry_run`` only the effect is returned. The protocol of a stream's table is never lowered.

        Raises:
            VersionNotFound: there is no such version, or it is no longer kept.
            StreamNotFound, FileNotFound: a name exists neither now nor then, or was released.
            CorruptData: a file of that version is gone.
            ConflictError: others kept committing meanwhile.
        """
        number = version_at_point(self.context.log, self._view.state(), version)
        return restore(
            self.context,
            number,
            streams=streams,
            files=files,
            dry_run=dry_run,
            author=Author(who or "", message or ""),
        )

    def drop_stream(self, name: str, *, message: str | None = None, who: str | None = None) -> int:
        """Drop a stream in a new version, which is returned; its past can be read and restored.

        Raises:
            StreamNotFound: there is no such stream.
        """
        return drop_stream(self.context, StreamName(name), Author(who or "", message or ""))

    def tag(self, name: str, version: int | None = None, *, who: str | None = None) -> int:
        """Tag a version (default: the newest), which the policy then keeps; returns the version.

        Raises:
            InvalidName: no tag can have that name.
            AlreadyExists: the tag names another version.
            VersionNotFound: there is no such version, or it is no longer kept.
        """
        return set_tag(self.context, name, version, who=who or "")

    def untag(self, name: str, *, who: str | None = None) -> None:
        """Remove a tag; its version is then kept as long as the policy says.

        Raises:
            NotFound: there is no such tag.
        """
        remove_tag(self.context, name, who=who or "")

    def adopt(self, name: str, key: str | Iterable[str] | None = None, *, who: str | None = None) -> int:
        """Adopt the Delta table in the folder ``{name}.snapshot`` as a stream; returns the tenant version.

        The table may be a released stream, or one that another program wrote. Without ``key`` the key
        stored with the table is used. From then on other writers must refuse the table.

        Raises:
            StreamNotFound: there is no such table.
            InvalidOption: it is a stream already, lacks the key's columns, or holds a key twice.
            UnsupportedTable: it is partitioned, or has features that streams are not written with.
        """
        chosen = None if key is None else (key,) if isinstance(key, str) else tuple(key)
        return adopt(self.context, StreamName(name), chosen, who or "")

    def set_retention(
        self, keep_versions: int | None = None, keep_days: float | None = None, *, who: str | None = None
    ) -> int:
        """Retain the newest ``keep_versions`` and those of ``keep_days``; returns the tenant version.

        With both limits a version is kept if either keeps it; without limits all are. ``gc`` deletes others.

        Raises:
            InvalidOption: a limit that is not a positive number.
        """
        return set_policy(self.context, Policy(keep_versions, keep_days), who=who or "")

    def gc(self, *, dry_run: bool = False) -> Garbage:
        """Delete expired versions and unreferenced files; returns the numbers of files and bytes.

        Expired versions first leave the history; a call after ``gc_grace_seconds`` deletes their files.
        Jobs whose heartbeat stopped are declared dead, and their files are deleted in the same two steps.
        With ``dry_run`` nothing is deleted: the answer has everything that would be deleted in the end.

        Raises:
            CorruptLog: the tenant is damaged; nothing was deleted.
        """
        if not dry_run and purge(self.context).files:  # resumes an interrupted erasure
            refresh_copies(self.context, self.streams(), is_erasure=True)
        return collect_garbage(self.context, dry_run=dry_run)

    def erase(self, name: str, keys: Iterable[Any], *, who: str | None = None) -> Erasure:
        """Erase the rows of some keys from a stream for good, from every version and all bytes.

        A key is one value, or a tuple or dictionary for a key of several columns. The tenant's history
        begins anew at this commit: older versions of all streams and files can not be read or restored
        any more, tags are gone, and running jobs can not commit. At the end the remaining rows are searched
        for the keys, and the stream's snapshot files are written anew: ``erasure.left``.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: it has no key, or no key is named.
            BadInput: a key has another type than the stream's.
            StorageUnavailable: the newest version has lost the rows, but not all older files are deleted
                yet: ``gc`` continues.
        """

        def rewritten(transaction: Transaction) -> tuple[str, ...]:
            return rewrite_files(transaction, StreamName(name))

        def refreshed() -> tuple[str, ...]:
            refresh_copies(self.context, [name], is_erasure=True)
            return copies_not_refreshed(self.stream(name))

        return erase(self.context, StreamName(name), keys, who or "", rewritten, refreshed)


def _after_commit(context: TenantContext, version: int, kind: str, changed: Collection[str]) -> None:
    refresh_copies(context, changed)
    if kind == "commit":
        collect_after_commit(context, version)


class JobTenant(BaseTenant):
    """The tenant of a script that is run as one job; a lock serialises the script's threads.

    The script calls what it always calls: streams, files, ``with tenant.job()``. Here these are parts of the
    job that is open already. ``token`` names this run of the job: it is revoked when the job is taken over.
    """

    def __init__(self, context: TenantContext, transaction: Transaction) -> None:
        super().__init__(View(context, transaction, turn=threading.RLock()))
        self.token = transaction.token
        self._transaction = transaction

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Explain why a tenant's calls that commit by themselves are missing."""
            if name not in _SEPARATE_COMMITS:
                raise AttributeError(name)
            raise InvalidOption(
                f"A script cannot call {name} in a run.",
                cause="A run is one commit, and this call would be another one.",
                remedy="Call it outside of the run: by the freezeframe command, "
                "or from a program of your own.",
            )

    @property
    def receipt(self) -> JobReceipt | None:
        """The run's receipt, once it is committed."""
        return self._transaction.receipt

    @property
    def dry_run(self) -> DryRun | None:
        """What a dry run would change, at its end."""
        return self._transaction.dry_run

    def require(self, check: CommitCheck) -> None:
        """Add a ``check`` of the run's one commit."""
        self._transaction.require(check)

    @contextmanager
    def job(
        self,
        job_id: str | None = None,  # noqa: ARG002 - the run has its own
        *,
        message: str | None = None,  # noqa: ARG002
        who: str | None = None,  # noqa: ARG002
    ) -> Iterator[Job]:
        """Yield a part of the run: its changes and its receipt are those of the run.

        An exception that leaves the block is the run's: what the block changed cannot be taken out
        again, so the run can no longer be committed, even if the script goes on.
        """
        try:
            yield Job(self.context, self._transaction)
        except BaseException:
            self._transaction.require(_refuse_broken)
            raise


@contextmanager
def open_job_tenant(
    context: TenantContext, job_id: str, *, token: str, message: str = "", who: str = ""
) -> Iterator[JobTenant]:
    """Yield a job for a script, announced at once so that it can be revoked; committed if the block succeeds.

    ``token`` names this run of the job. The supervisor chose it before it started this process, so it can
    revoke a run that has not announced itself yet.
    """
    with Transaction(context, Author(who, message), job_id=job_id, token=token) as transaction:
        transaction.announce()
        yield JobTenant(context, transaction)


def _refuse_broken(_: TenantState, __: Changes) -> None:
    raise InvalidOption(
        "The run cannot be committed: an exception ended a job inside its script.",
        cause="The script continued, but the changes of that job can no longer be separated.",
        remedy="Let the exception end the script, or move the failing code before the 'with' block.",
    )
