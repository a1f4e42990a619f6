"""What the faces of streams and files stand on: a tenant, an open job, or a moment of the past.

A face (``Stream``, ``Files``) does not know which of the three it has. It reads what the scope sees, and
changes through ``changing()``: on a tenant that is a job of one change, in a job it is the job itself,
and on a moment of the past it is refused.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.entries import FileChange
from freezeframe.store.state import TenantState
from freezeframe.store.tenant_log import TenantLog


class FileWork(Protocol):
    """Where changes of files are staged before they become visible all at once."""

    @property
    def write_id(self) -> str:
        """The transaction's own id: its blobs are ``<write_id>/<name>``."""

    @property
    def storage(self) -> Storage:
        """The tenant's storage."""

    @property
    def settings(self) -> Settings:
        """The settings of the process."""

    def state(self) -> TenantState:
        """What the job sees: the state that it began on, with its own changes."""

    def stage_file(self, change: FileChange) -> None:
        """Make ``change`` part of the job; a later one of the same path takes its place."""


class FileScope(Protocol):
    """What ``Files`` reads from and changes through."""

    @property
    def storage(self) -> Storage:
        """The tenant's storage."""

    @property
    def settings(self) -> Settings:
        """The settings of the process."""

    @property
    def log(self) -> TenantLog:
        """The tenant's log, for the history of a file."""

    def state(self, tenant_version: int | None = None, as_of: datetime | str | None = None) -> TenantState:
        """What this scope sees: now, at a tenant version, or at a moment.

        Raises:
            VersionNotFound: there is no such version or moment.
            InvalidOption: both are given.
        """

    def note_file_read(self, path: str) -> None:
        """Remember that the content of ``path`` was read: what is written to it then rests on it."""

    def changing(self) -> AbstractContextManager[FileWork]:
        """The work that a change of a file becomes part of; leaving the block commits a one-change job.

        Raises:
            InvalidOption: the scope is a moment of the past.
        """
