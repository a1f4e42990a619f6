"""Conditions of a request (RFC 9110, section 13), checked at the commit that they are about.

``If-Match`` and ``If-None-Match`` hold entity tags that must or must not be those of a subject: a file, a
stream, or the tenant. The commit checks them against the state that it follows, so no commit comes between.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from freezeframe import clock
from freezeframe.errors import PreconditionFailed, PreconditionRequired, UnreadableRequest, VersionNotFound
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.store.model.json_fields import FileEntry
from freezeframe.store.tenant_log.roll_forward import table_snapshot
from freezeframe.store.tenant_log.state import HeldFile, TenantState
from freezeframe.store.transaction.changes import Changes, CommitCheck, TenantContext
from freezeframe.store.transaction.scope import Scope

_TAG = re.compile(r'\s*(W/)?"([^"\x00-\x1f\x7f]*)"\s*(?:,|$)')
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Subject:
    """What conditions apply to: a file, a stream or the tenant.

    ``tag`` gives its entity tag in a state (None: it does not exist), ``made_by`` the tenant version that
    changed it last.
    """

    tag: Callable[[TenantContext, TenantState], str | None]
    made_by: Callable[[TenantContext, TenantState], int]


def etag_of(file: FileEntry | HeldFile) -> str:
    """Return the entity tag of a file, equal only for the same bytes at the same version."""
    return f'"{file.version}-{file.sha256[:32]}"'


def file_tag(path: str, state: TenantState) -> str | None:
    """Return the entity tag of the tenant's file of that path in a state; None: there is none."""
    held = state.files.get(path)
    return None if held is None else etag_of(held)


def file_subject(path: str) -> Subject:
    """Return the subject for a file; its tag is that of a response with the file."""
    known = str(FilePath(path))
    return Subject(lambda _, state: file_tag(known, state), lambda _, state: state.files[known].version)


def stream_subject(name: str) -> Subject:
    """Return the subject for a stream; its tag is equal only for the same commit of the same table."""
    known = StreamName(name)

    def tag(context: TenantContext, state: TenantState) -> str | None:
        version = state.table_version(known)
        if version < 0:
            return None
        identity = table_snapshot(context.log, state, known).identity
        return f'"{version}-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"'

    return Subject(tag, lambda context, _: Scope(context).version_of(known))


def tenant_tag(state: TenantState) -> str | None:
    """Return the entity tag of a tenant in a state, equal only for the same commit; None: without a version.

    A tenant that was made again under its id has the same numbers, and another log.
    """
    if state.version < 0:
        return None
    # Only the checkpoint of an early release lacks the head.
    return f'"{state.version}-{state.chain.head[:32]}"' if state.chain.head else f'"{state.version}"'


TENANT = Subject(lambda _, state: tenant_tag(state), lambda _, state: state.version)
"""The whole tenant."""


def any_subject(streams: Collection[str], files: Collection[str]) -> Subject:
    """Return the first existing one of some streams and files as the subject of ``If-None-Match: *``."""
    subjects = [*map(stream_subject, streams), *map(file_subject, files)]

    def first(context: TenantContext, state: TenantState) -> Subject | None:
        return next((subject for subject in subjects if subject.tag(context, state) is not None), None)

    def tag(context: TenantContext, state: TenantState) -> str | None:
        found = first(context, state)
        return None if found is None else found.tag(context, state)

    def made_by(context: TenantContext, state: TenantState) -> int:
        found = first(context, state)
        return state.version if found is None else found.made_by(context, state)

    return Subject(tag, made_by)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The values of ``If-Match`` and ``If-None-Match``; None: the request lacks the header.

    ``strict``: a change of an existing subject needs one of them (``service_requires_conditions``).
    """

    if_match: str | None = None
    if_none_match: str | None = None
    strict: bool = False

    @property
    def are_given(self) -> bool:
        """Whether the request has a condition."""
        return self.if_match is not None or self.if_none_match is not None

    def at_commit(self, subject: Subject) -> CommitCheck:
        """Return a check of a commit: the conditions must hold for the subject in the state that it follows.

        If ``strict``, a commit that changes or removes any stream or file needs conditions.
        """

        def check(state: TenantState, changes: Changes) -> None:
            if self.strict and changes.changes_existing(state):
                self._require_given()
            context = changes.context
            self._require_holds(subject.tag(context, state), lambda: _last_change(subject, context, state))

        return check

    def require_now(self, subject: Subject, context: TenantContext) -> None:
        """Refuse a request whose conditions do not hold for the newest state; the commit checks again.

        Only its commit shows whether a change of the tenant needs conditions; errors as of ``require``.
        """
        state = context.log.current_state()
        if self.strict and subject is not TENANT and subject.tag(context, state) is not None:
            self._require_given()
        self._require_holds(subject.tag(context, state), lambda: _last_change(subject, context, state))

    def require(self, etag: str | None, explain: Callable[[], str] = str) -> None:
        """Refuse a change of a subject with that tag (None: it does not exist).

        ``explain`` returns who changed it last, or nothing if that is not known.
        """
        if self.strict and etag is not None:
            self._require_given()
        self._require_holds(etag, explain)

    def is_fresh(self, etag: str) -> bool:
        """Return whether the client has this very version already, so that the answer is 304."""
        return self.if_none_match is not None and _names(self.if_none_match, etag, strong=False)

    def _require_given(self) -> None:
        # "Only if it is another one than this" does not say what the change rests on.
        if self.if_match is None and (self.if_none_match or "").strip() != _ANY:
            raise PreconditionRequired(
                "A change of an existing object needs If-Match.",
                cause="The service requires conditions (service_requires_conditions).",
                remedy="Read it first and send its ETag as If-Match.",
            )

    def _require_holds(self, etag: str | None, explain: Callable[[], str]) -> None:
        if self.if_match is not None and not _names(self.if_match, etag, strong=True):
            raise PreconditionFailed(
                "The current state does not match If-Match.",
                cause="Nothing exists there." if etag is None else explain() or "It was changed meanwhile.",
                remedy="Read it again, then repeat the change.",
                etag=etag,
            )
        if self.if_none_match is not None and _names(self.if_none_match, etag, strong=False):
            raise PreconditionFailed(
                "Something exists there already.",
                cause=explain()
                or "If-None-Match permits the change only where nothing, or another version, exists.",
                remedy="Read it, and send its ETag as If-Match to replace it.",
                etag=etag,
            )


def _last_change(subject: Subject, context: TenantContext, state: TenantState) -> str:
    """Return who changed the subject last, and when; empty if the log no longer has that version."""
    with suppress(VersionNotFound):
        version = subject.made_by(context, state)
        entry = context.log.entry(version)
        moment = clock.rfc3339(clock.moment(entry.timestamp_ms), "seconds")
        return f"{entry.author or 'A caller'} changed it at {moment}, in version {version} of the tenant."
    return ""


def _names(header: str, etag: str | None, *, strong: bool) -> bool:
    if header.strip() == _ANY:
        return etag is not None
    position, found = 0, False
    while position < len(header):
        match = _TAG.match(header, position)
        if match is None:
            raise UnreadableRequest(
                f"{header!r} is not a list of entity tags.",
                cause="A tag stands in quotes, as the header ETag gives it.",
                remedy='Send * or tags in quotes, such as "12".',
            )
        found = found or (etag == f'"{match[2]}"' and not (strong and match[1]))
        position = match.end()
    return found
