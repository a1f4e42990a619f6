"""A tenant: all streams and files of one customer, versioned by one log; and a job, one commit of it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Unpack, cast

from freezeframe.clock import moment
from freezeframe.engine.frames.rows import Rows, library_of
from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import run_concurrently
from freezeframe.store.delivery import Delivery, deliveries
from freezeframe.store.diff.tenant_diff import TenantDiff, tenant_diff
from freezeframe.store.files import Files
from freezeframe.store.maintenance.erasure import Erasure, erase, purge
from freezeframe.store.maintenance.garbage import Garbage, collect_after_commit, collect_garbage
from freezeframe.store.maintenance.repair import adopt
from freezeframe.store.maintenance.restore import Restoration, drop_stream, restore
from freezeframe.store.maintenance.retention import Policy, policy_of, remove_tag, set_policy, set_tag
from freezeframe.store.maintenance.revert import Reversion, Selection, revert, version_of_job
from freezeframe.store.maintenance.verification import Verification, verify_tenant
from freezeframe.store.model.directory import require_known_format, require_no_store
from freezeframe.store.model.receipt import JobReceipt, Receipt, html_table
from freezeframe.store.model.update_options import (
    Author,
    Names,
    RequestContext,
    UpdateOptions,
    parse_update,
)
from freezeframe.store.snapshot_files import files_not_rewritten, refresh_copies, rewrite_files
from freezeframe.store.stream import Stream
from freezeframe.store.tenant_log.history import History, Point, Version, history
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.tenants import guard_of_place
from freezeframe.store.transaction.changes import NO_GUARD, Changes, CommitCheck, TenantContext, TenantGuard
from freezeframe.store.transaction.dry_run import DryRun
from freezeframe.store.transaction.scope import Scope
from freezeframe.store.transaction.transaction import Transaction

_SHOWN_STREAMS = 50


def tenant_name(context: TenantContext) -> str:
    """Return the tenant's id, or the folder of a tenant that is in no store."""
    return context.tenant_id or context.storage.root


def with_request(tenant: Tenant, request_context: RequestContext) -> Tenant:
    """Return the same tenant with a request context, which is recorded with its changes."""
    return tenant.with_context(replace(tenant.context, request_context=request_context))


def with_check(tenant: Tenant, check: CommitCheck) -> Tenant:
    """Return the same tenant with a ``check`` of each commit and of the state that it follows.

    For a job it is a check of the job's one commit.
    """
    if isinstance(tenant, Job):
        tenant.require(check)
        return tenant
    return tenant.with_context(replace(tenant.context, checks=(*tenant.context.checks, check)))


class Tenant:
    """One tenant: its streams and files, as they are now, in a job, or at a version (``at``).

    Cheap to make; nothing is written before the first update. Whatever is committed later does not show in
    the tenant of a version, which cannot be changed.
    """

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
        self._scope = Scope(context)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({tenant_name(self.context)!r})"

    def _repr_html_(self) -> str:
        """Return the streams in a notebook, all of one version; of many only the first ones are opened."""
        seen = self if self._scope.transaction else self._in(Scope(self.context, past=self._scope.state()))
        names = seen.streams()
        shown = [(name, seen.stream(name)) for name in names[:_SHOWN_STREAMS]]
        rows = [
            (name, f"{stream.count():,}", ", ".join(stream.key), stream.version) for name, stream in shown
        ]
        more = f", the first {len(shown)} of {len(names)} streams" if len(shown) < len(names) else ""
        caption = f"{tenant_name(self.context)}, version {seen.version}{more}"
        return html_table(caption, ("stream", "rows", "key", "changed in version"), rows)

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
        return name in self._scope.state().streams

    def __iter__(self) -> Iterator[str]:
        return iter(self.streams())

    def __len__(self) -> int:
        return len(self._scope.state().streams)

    def __bool__(self) -> bool:
        return True  # a tenant without streams is one

    @property
    def scope(self) -> Scope:
        """The scope in which streams and files are read, for packages built on this one."""
        return self._scope

    @property
    def context(self) -> TenantContext:
        """The tenant's storage, log, engine and settings, for packages built on this one."""
        return self._scope.context

    @property
    def version(self) -> int:
        """The newest tenant version, -1 before the first commit; of the tenant of a version that one."""
        return self._scope.state().version

    @property
    def timestamp(self) -> datetime:
        """The time of that version's commit."""
        return moment(self._scope.state().timestamp_ms)

    @property
    def files(self) -> Files:
        """The files by path."""
        return Files(self._scope)

    def stream(self, name: str | StreamName) -> Stream:
        """Return the stream of that name, whether or not it exists yet.

        Raises:
            InvalidName: no stream can have that name.
        """
        return Stream(name if isinstance(name, StreamName) else StreamName(name), self._scope)

    def streams(self, version: Point | None = None) -> tuple[str, ...]:
        """Return the names of the streams at a tenant version (default: now), sorted."""
        return tuple(sorted(self._scope.state(version).streams))

    def delivery(self, target: str) -> Delivery:
        """Return the delivery of rows to a target such as ``"salesforce"``: pending rows, and its answers.

        Raises:
            InvalidName: no delivery can have that name.
        """
        return Delivery(self._scope, target)

    def deliveries(self) -> tuple[tuple[str, str], ...]:
        """Return the streams and targets of which answers are kept, sorted."""
        return deliveries(self._scope)

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
        newest = self._scope.state()
        return history(self._scope.log, newest, limit, until=until, job_id=job_id, stream=stream, path=path)

    def at(self, version: Point) -> Tenant:
        """Return the tenant as of one version: by number, tag, or the newest one at a moment.

        Raises:
            InvalidOption: it is neither a version, a tag nor a moment.
            VersionNotFound: there is no such version or moment, or it is no longer kept.
        """
        return self._in(Scope(self.context, past=self._scope.state(version)))

    def diff(self, before: Point, after: Point | None = None) -> TenantDiff:
        """Return the difference between two versions (default ``after``: now): streams by key, files by text.

        Each is a number, a tag or a moment.

        Raises:
            InvalidOption: one of them is neither a version, a tag nor a moment.
            VersionNotFound: one of them does not exist or is no longer kept.
        """
        return tenant_diff(self._scope.log, self._scope.state(before), self._scope.state(after))

    def tags(self) -> dict[str, int]:
        """Return the tags and their versions."""
        return dict(self._scope.state().tags)

    def retention(self) -> Policy:
        """Return the retention policy; without a limit every version is kept."""
        return policy_of(self._scope.state())

    def verify(self) -> Verification:
        """Read everything that the tenant's listed versions need, and report damage.

        Entries with their chain, tables, data files with the sizes and hashes that were recorded, and blobs.

        Raises:
            StorageUnavailable: something could not be read.
        """
        return verify_tenant(self._scope.storage, self._scope.settings)

    def with_context(self, context: TenantContext) -> Tenant:
        """Return the same tenant in another context, for packages built on this one."""
        return self._in(Scope(context))

    def _in(self, scope: Scope) -> Tenant:
        tenant = Tenant.__new__(Tenant)
        tenant._scope = scope  # noqa: SLF001 - another instance of this class
        return tenant

    def _alone(self, call: str) -> TenantContext:
        """Return the context for a call that commits by itself, which a job and a past version refuse."""
        if self._scope.transaction is None:
            return self._scope.require_now()
        raise InvalidOption(
            f"A job cannot call {call}.",
            cause="A job, such as the run of a script, is one commit, and this call would be another one.",
            remedy="Call it outside of the job: by the freezeframe command, or from a program of your own.",
        )

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
        return open_job(self._alone("job"), job_id, message=message, who=who, dry_run=dry_run)

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
        ``dry_run`` only the effect is returned. The protocol of a stream's table is never lowered. What
        targets accepted (``delivery``) is restored only by the name of its stream: they still have it.

        Raises:
            VersionNotFound: there is no such version, or it is no longer kept.
            StreamNotFound, FileNotFound: a name exists neither now nor then, or was released.
            CorruptData: a file of that version is gone.
            ConflictError: others kept committing meanwhile.
        """
        context = self._alone("restore")
        number = Version.parse(version).find(context.log, self._scope.state())
        return restore(
            context,
            number,
            streams=streams,
            files=files,
            dry_run=dry_run,
            author=Author(who or "", message or ""),
        )

    def revert(
        self,
        version: Point | tuple[Point, Point] | None = None,
        *,
        job_id: str | None = None,
        only: Iterable[str] | None = None,
        where: Any = None,
        dry_run: bool = False,
        message: str | None = None,
        who: str | None = None,
    ) -> Reversion:
        """Take one version, or that of a job, back as a new version, and keep what came after it.

        Each cell that is still as the version made it becomes what it was before; rows that the version
        inserted go, and rows that it deleted return. What was changed again since stays and is named, as
        are streams whose rows cannot be matched. ``only`` names streams and files; ``where`` selects rows of
        a stream, by a condition as of ``Stream.read`` or by a frame of their keys. With ``dry_run`` only
        the effect is returned. A pair names the first and the last of several versions, which go back as if
        they were one: what one of them undid of another is no change.

        Raises:
            VersionNotFound: there is no such version or job, or the version before it is no longer kept.
            StreamNotFound: a name of ``only`` is neither a stream nor a file.
            InvalidOption: no job made the version; or inside a job, or of a moment of the past.
            TooLarge: too many rows of a stream would have to go back one by one.
            ConflictError: others kept committing meanwhile.
        """
        context = self._alone("revert")
        if (version is None) == (job_id is None):
            raise InvalidOption(
                "A version or a job is to be named.", remedy="Pass a version, or job_id, and not both."
            )
        first: int | None = None
        if job_id is not None:
            number = version_of_job(context, job_id)
        else:
            named = version if isinstance(version, tuple) else (cast("Point", version),)
            found = [Version.parse(point).find(context.log, self._scope.state()) for point in named]
            number, first = found[-1], found[0] if len(found) > 1 else None
        rows = where if library_of(where) is None else Rows(where).to_arrow()
        chosen = Selection(None if only is None else tuple(only), rows)
        author = Author(who or "", message or "")
        return revert(context, number, chosen, since=first, dry_run=dry_run, author=author)

    def drop_stream(self, name: str, *, message: str | None = None, who: str | None = None) -> int:
        """Drop a stream in a new version, which is returned; its past can be read and restored.

        Raises:
            StreamNotFound: there is no such stream.
        """
        return drop_stream(self._alone("drop_stream"), StreamName(name), Author(who or "", message or ""))

    def tag(self, name: str, version: int | None = None, *, who: str | None = None) -> int:
        """Tag a version (default: the newest), which the policy then keeps; returns the version.

        Raises:
            InvalidName: no tag can have that name.
            AlreadyExists: the tag names another version.
            VersionNotFound: there is no such version, or it is no longer kept.
        """
        return set_tag(self._alone("tag"), name, version, who=who or "")

    def untag(self, name: str, *, who: str | None = None) -> None:
        """Remove a tag; its version is then kept as long as the policy says.

        Raises:
            NotFound: there is no such tag.
        """
        remove_tag(self._alone("untag"), name, who=who or "")

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
        return adopt(self._alone("adopt"), StreamName(name), chosen, who or "")

    def set_retention(
        self, keep_versions: int | None = None, keep_days: float | None = None, *, who: str | None = None
    ) -> int:
        """Retain the newest ``keep_versions`` and those of ``keep_days``; returns the tenant version.

        With both limits a version is kept if either keeps it; without limits all are. ``gc`` deletes others.

        Raises:
            InvalidOption: a limit that is not a positive number.
        """
        return set_policy(self._alone("set_retention"), Policy(keep_versions, keep_days), who=who or "")

    def gc(self, *, dry_run: bool = False) -> Garbage:
        """Delete expired versions and unreferenced files; returns the numbers of files and bytes.

        Expired versions first leave the history; a call after ``gc_grace_seconds`` deletes their files.
        Jobs whose heartbeat stopped are declared dead, and their files are deleted in the same two steps.
        With ``dry_run`` nothing is deleted: the answer has everything that would be deleted in the end.

        Raises:
            CorruptLog: the tenant is damaged; nothing was deleted.
        """
        context = self._alone("gc")
        if not dry_run and purge(context).files:  # resumes an interrupted erasure
            refresh_copies(context, self.streams(), is_erasure=True)
        return collect_garbage(context, dry_run=dry_run)

    def erase(
        self,
        name: str,
        keys: Any,
        *,
        dry_run: bool = False,
        message: str | None = None,
        who: str | None = None,
    ) -> Erasure:
        """Erase the rows of some keys from a stream for good, from every version and all bytes.

        A key is one value, or a tuple or dictionary for a key of several columns; or they are a frame with
        the key's columns. The tenant's history
        begins anew at this commit: older versions of all streams and files can not be read or restored
        any more, tags are gone, and running jobs can not commit. At the end the remaining rows are searched
        for the keys, and the stream's snapshot files are written anew: ``erasure.left``. With ``dry_run``
        nothing is changed: it tells which rows there are now.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: it has no key, or no key is named.
            BadInput: a key has another type than the stream's.
            StorageUnavailable: the newest version has lost the rows, but not all older files are deleted
                yet: ``gc`` continues.
        """
        context = self._alone("erase")

        def rewrite(transaction: Transaction) -> None:
            rewrite_files(transaction, StreamName(name))

        def files_left() -> tuple[str, ...]:
            if not dry_run:
                refresh_copies(context, [name], is_erasure=True)
            return files_not_rewritten(self.stream(name))

        wanted = keys if library_of(keys) is None else Rows(keys).to_arrow()
        author = Author(who or "", message or "")
        return erase(context, StreamName(name), wanted, author, rewrite, files_left, dry_run=dry_run)


def _after_commit(context: TenantContext, version: int, kind: str, changed: Collection[str]) -> None:
    refresh_copies(context, changed)
    if kind == "commit":
        collect_after_commit(context, version)


class Job(Tenant):
    """Streams and files within one job; ``Tenant.job`` creates it, and ``freezeframe run`` for its script.

    Inside, reads see the tenant as it was when the job began, with the job's own changes; everybody else
    sees the last commit. Leaving the ``with`` block commits all of it at once. An exception inside:
    nothing happened.
    """

    def __init__(
        self, context: TenantContext, transaction: Transaction, *, has_threads: bool = False
    ) -> None:
        """``has_threads``: a lock serialises the calls of several threads."""
        turn = threading.RLock() if has_threads else None
        self._scope = Scope(context, transaction, turn=turn)
        self._transaction = transaction

    @property
    def token(self) -> str:
        """What names this run of the job; it is revoked when the job is taken over."""
        return self._transaction.token

    @property
    def is_repeated(self) -> bool:
        """Whether a job of this id is already committed; its changes are then not repeated."""
        return self._transaction.is_repeated

    @property
    def dry_run(self) -> DryRun | None:
        """What the job would change, after the block of a dry run; None if its id was committed before."""
        return self._transaction.dry_run

    @property
    def streams_used(self) -> list[str]:
        """The streams that the job has read, looked for or changed so far, sorted."""
        return sorted({*self._transaction.tables, *self._transaction.streams_missed})

    @property
    def receipt(self) -> JobReceipt:
        """The receipt of the job, available after its block.

        Raises:
            InvalidOption: it has not been committed (yet).
        """
        found = self._transaction.done
        scope = Scope(self._scope.context)
        streams = {
            name: Stream(StreamName(receipt.stream), scope).with_source(receipt)
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
        with self._scope.change() as transaction:
            receipts = transaction.update_all(updates)
        return {
            name: self.stream(name).with_source(receipt)
            for name, receipt in zip(frames, receipts, strict=True)
        }

    @contextmanager
    def job(
        self,
        job_id: str | None = None,  # noqa: ARG002 - the job has its own
        *,
        message: str | None = None,  # noqa: ARG002
        who: str | None = None,  # noqa: ARG002
        dry_run: bool = False,
    ) -> Iterator[Job]:
        """Yield a part of the job: its changes and its receipt are those of the job.

        An exception that leaves the block is the job's: what the block changed cannot be taken out
        again, so the job can no longer be committed, even if the script goes on.
        """
        if dry_run:
            raise InvalidOption(
                "A part of a job cannot be a dry run.",
                cause="It would be committed with the job.",
                remedy="Make the whole job a dry run.",
            )
        try:
            yield self
        except BaseException:
            self.require(_refuse_broken)
            raise

    def require(self, check: CommitCheck) -> None:
        """Add a ``check`` of the job's one commit."""
        self._transaction.require(check)


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
    context = replace(context, is_dry_run=True) if dry_run else context
    with Transaction(context, Author(who or "", message or ""), job_id=job_id) as transaction:
        yield Job(context, transaction)


@contextmanager
def open_script_job(
    context: TenantContext, job_id: str, *, token: str, message: str = "", who: str = ""
) -> Iterator[Job]:
    """Yield a job for a script, announced at once so that it can be revoked; committed if the block succeeds.

    The script calls what it always calls: streams, files, ``with tenant.job()``. Here these are parts of the
    job. ``token`` names this run of the job. The supervisor chose it before it started this process, so it
    can revoke a run that has not announced itself yet.
    """
    with Transaction(context, Author(who, message), job_id=job_id, token=token) as transaction:
        transaction.announce()
        yield Job(context, transaction, has_threads=True)


def _refuse_broken(_: TenantState, __: Changes) -> None:
    raise InvalidOption(
        "The run cannot be committed: an exception ended a job inside its script.",
        cause="The script continued, but the changes of that job can no longer be separated.",
        remedy="Let the exception end the script, or move the failing code before the 'with' block.",
    )
