"""A tenant: all streams and files of one customer, versioned by one log."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

from freezeframe.clock import moment
from freezeframe.engine.protocol import TableEngine
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import run_concurrently
from freezeframe.store.files import Files
from freezeframe.store.job import Job, open_job
from freezeframe.store.maintenance.erasure import Erasure, erase, purge
from freezeframe.store.maintenance.garbage import Garbage, collect_after_commit, collect_garbage
from freezeframe.store.maintenance.repair import adopt
from freezeframe.store.model.directory import require_known_format, require_no_store
from freezeframe.store.model.receipt import html_table
from freezeframe.store.model.update_options import Author, RequestContext
from freezeframe.store.readers.tenant_reader import TenantReader
from freezeframe.store.stream import Stream
from freezeframe.store.tenant_log.history import Point, version_at_point
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import MomentScope, TenantScope
from freezeframe.store.transaction.tenant_guard import NO_GUARD, TenantGuard
from freezeframe.store.transaction.transaction import CommitCheck, TenantPlace
from freezeframe.store.versions.restore import Restoration, drop_stream, restore
from freezeframe.store.versions.retention import Policy, remove_tag, set_policy, set_tag

_SHOWN_STREAMS = 50


class Tenant(TenantReader):
    """One tenant's snapshot directory. Cheap to make; nothing is written before the first update."""

    def __init__(
        self,
        storage: Storage,
        engine: TableEngine,
        settings: Settings,
        guard: TenantGuard = NO_GUARD,
        refresh_copies: Callable[[Stream], None] = lambda _: None,
    ) -> None:
        """``refresh_copies`` rewrites the copy of a stream's rows that is stored beside it."""
        # A tenant with a guard belongs to a store and has its own folder.
        guards = [functools.partial(require_no_store, storage)] if guard is NO_GUARD else []
        *_, log = run_concurrently(
            storage, lambda: require_known_format(storage), *guards, lambda: TenantLog(storage, settings)
        )
        super().__init__(
            TenantPlace(storage, log, engine, settings, guard, after_commit=collect_after_commit)
        )
        self._refresh_copies = refresh_copies

    def _repr_html_(self) -> str:
        """The streams in a notebook, as of the newest version."""
        return TenantView(self._place, self._scope.state())._repr_html_()

    def on(self, request_context: RequestContext) -> Tenant:
        """The same tenant with a request context, which is recorded with its changes; costs nothing."""
        return self._at(replace(self._place, request_context=request_context))

    def with_check(self, check: CommitCheck) -> Tenant:
        """The same tenant with a ``check`` of each commit: of its changes and the state that it follows."""
        return self._at(replace(self._place, checks=(*self._place.checks, check)))

    def _at(self, place: TenantPlace) -> Tenant:
        found = copy.copy(self)
        found._place, found._scope = place, TenantScope(place)  # noqa: SLF001 - another one of this class
        return found

    def stream(self, name: str | StreamName) -> Stream:
        """The stream of that name, whether or not it exists yet.

        Raises:
            InvalidName: no stream can have that name.
        """
        return Stream(name if isinstance(name, StreamName) else StreamName(name), self._scope)

    def job(
        self, job_id: str | None = None, *, message: str | None = None, who: str | None = None
    ) -> AbstractContextManager[Job]:
        """A job: all changes of its ``with`` block are committed at once, or none is.

        With a ``job_id`` (unique for each run) the job is done once: when the id comes again, the job
        changes nothing and has the receipt of the first time, whatever its input. Ids are remembered for
        ``job_id_days``. ``message`` and ``who`` go into the history.

        Raises:
            IdempotencyConflict: the id is committed, and the job updates a stream that it did not then.
            ConflictError: others changed what the job read and then wrote, or a file that it wrote.
            JobRevoked: the job stood still for so long that it was declared dead.
            OutcomeUnknown: the answer of the commit was lost; it is there whole or not at all.
        """
        return open_job(self._place, job_id, message=message, who=who)

    @property
    def files(self) -> Files:
        """The tenant's files; each change is a job of its own."""
        return Files(self._scope)

    def at(self, version: Point) -> TenantView:
        """All streams and files as of one version: by number, tag, or the newest one at a moment.

        Raises:
            InvalidOption: it is neither a version, a tag nor a moment.
            VersionNotFound: there is no such version or moment, or it is no longer kept.
        """
        return TenantView(self._place, self._scope.state(version))

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

        That is a new version and no row is written; nothing that came since is lost. With
        ``dry_run`` the effect is told and nothing is done. A protocol that was raised stays so.

        Raises:
            VersionNotFound: there is no such version, or it is no longer kept.
            StreamNotFound, FileNotFound: a name exists neither now nor then, or was released.
            CorruptData: a file of that version is gone.
            ConflictError: others kept committing meanwhile.
        """
        number = version_at_point(self._place.log, self._scope.state(), version)
        return restore(
            self._place,
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
        return drop_stream(self._place, StreamName(name), Author(who or "", message or ""))

    def tag(self, name: str, version: int | None = None, *, who: str | None = None) -> int:
        """Tag a version (default: the newest), which the policy then keeps; returns the version.

        Raises:
            InvalidName: no tag can have that name.
            AlreadyExists: the name is another version's already.
            VersionNotFound: there is no such version, or it is no longer kept.
        """
        return set_tag(self._place, name, version, who=who or "")

    def untag(self, name: str, *, who: str | None = None) -> None:
        """Remove a tag; its version is then kept as long as the policy says.

        Raises:
            NotFound: there is no such tag.
        """
        remove_tag(self._place, name, who=who or "")

    def adopt(self, name: str, key: str | Iterable[str] | None = None, *, who: str | None = None) -> int:
        """Adopt the Delta table in the folder ``{name}.snapshot`` as a stream; returns the tenant version.

        It may have been released before, or be anybody's. ``key`` None: the one that is noted with it.
        From then on other writers must refuse it.

        Raises:
            StreamNotFound: there is no such table.
            InvalidOption: it is a stream already, lacks the key's columns, or holds a key twice.
            UnsupportedTable: it is partitioned, or has features that streams are not written with.
        """
        chosen = None if key is None else (key,) if isinstance(key, str) else tuple(key)
        return adopt(self._place, StreamName(name), chosen, who or "")

    def set_retention(
        self, keep_versions: int | None = None, keep_days: float | None = None, *, who: str | None = None
    ) -> int:
        """Retain the newest ``keep_versions`` and those of ``keep_days``; returns the tenant version.

        With both, either is enough to be kept; with none, all are. ``gc`` carries it out.

        Raises:
            InvalidOption: a limit that is not a positive number.
        """
        return set_policy(self._place, Policy(keep_versions, keep_days), who=who or "")

    def gc(self, *, dry_run: bool = False) -> Garbage:
        """Delete expired versions and unreferenced files; returns the numbers of files and bytes.

        What the policy lets go is first taken off the history and deleted by a call after
        ``gc_grace_seconds``; jobs whose heartbeat stopped are declared dead and their files treated the
        same way. With ``dry_run`` nothing is done and all that would go in the end is told.

        Raises:
            CorruptLog: the tenant is damaged; nothing was deleted.
        """
        if not dry_run:
            purge(self._place)  # resumes an interrupted erasure
        return collect_garbage(self._place, dry_run=dry_run)

    def erase(self, name: str, keys: Iterable[Any], *, who: str | None = None) -> Erasure:
        """Erase the rows of some keys from a stream for good, from every version and all bytes.

        A key is one value, or a tuple or dictionary for a key of several columns. The tenant's history
        begins anew at this commit: older versions of all streams and files can not be read or restored
        any more, tags are gone, and jobs under way can not commit. At the end what is left is read for the
        keys: ``erasure.left``.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: it has no key, or no key is named.
            BadInput: a key has another type than the stream's.
            StorageUnavailable: the rows are gone from the present, but not all of the past is deleted
                yet: ``gc`` goes on with it.
        """
        stream = self.stream(name)
        return erase(self._place, StreamName(name), keys, who or "", lambda: self._refresh_copies(stream))


class TenantView:
    """Streams and files as of one commit. Whatever is committed later does not show."""

    def __init__(self, place: TenantPlace, state: TenantState) -> None:
        self._state = state
        self._scope = MomentScope(place, state)

    def __repr__(self) -> str:
        return f"TenantView(version={self.version})"

    def _repr_html_(self) -> str:
        """The streams in a notebook; of many only the first ones are opened and shown."""
        names = self.streams()
        shown = [(name, self.stream(name)) for name in names[:_SHOWN_STREAMS]]
        rows = [(name, one.row_count(), ", ".join(one.key()), one.version()) for name, one in shown]
        more = f", the first {len(shown)} of {len(names)} streams" if len(shown) < len(names) else ""
        caption = f"{self._scope.storage.root}, version {self.version}{more}"
        return html_table(caption, ("stream", "rows", "key", "changed in version"), rows)

    @property
    def version(self) -> int:
        """The tenant version."""
        return self._state.version

    @property
    def timestamp(self) -> datetime:
        """The time of its commit."""
        return moment(self._state.timestamp_ms)

    @property
    def files(self) -> Files:
        """The files at that version; writing is refused."""
        return Files(self._scope)

    def stream(self, name: str | StreamName) -> Stream:
        """The stream of that name at that version; updating is refused."""
        return Stream(name if isinstance(name, StreamName) else StreamName(name), self._scope)

    def streams(self) -> tuple[str, ...]:
        """The names of the streams at that version, sorted."""
        return tuple(sorted(self._state.streams))
