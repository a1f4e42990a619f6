"""Lease of an open or held transaction, whose files ``gc`` retains.

``_freezeframe/staging/<writeId>.json`` is written before anything is staged and removed after the
roll-forward. All files of a transaction have its ``writeId`` in the name: ``<table>/<writeId>-…/``
and ``_freezeframe/blobs/<writeId>/``. A missing heartbeat proves nothing (clocks differ, machines sleep), so
``gc`` first commits a ``revoke``, after which the transaction can no longer commit.

The lease of a held job has the commit itself, whose files are staged, and is renewed in advance until the
hold ends: to all that look at leases it is a transaction that is under way.
"""

import json
import logging
import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from freezeframe.clock import now_ms
from freezeframe.errors import CorruptLog, FreezeframeError, OutcomeUnknown
from freezeframe.storage import Storage
from freezeframe.store.model.directory import STAGING_FOLDER, lease_file
from freezeframe.store.tenant_log.entry import Entry, from_signed_line, parse_entry, to_signed_line

_logger = logging.getLogger(__name__)
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class HeldCommit:
    """A commit that waits to be published: its entry, and what it rests on.

    ``streams`` has the identity of each table that the job read or changes, ``files`` the blob of each file,
    as the job saw them (empty: there was none). ``erased`` is the tenant's newest erasure then. ``effects``
    is what it changes (``DryRun.to_json``). ``token`` names the run of the job.
    """

    entry: Entry
    until_ms: int
    streams: Mapping[str, str]
    files: Mapping[str, str]
    effects: Mapping[str, Any]
    erased: int = 0
    token: str = field(default="", repr=False)

    def to_text(self) -> str:
        """Return the text that ``parse_held_commit`` reads, with its hash."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return to_signed_line({**record, "entry": self.entry.to_bytes().decode()}).decode()


def parse_held_commit(text: str) -> HeldCommit:
    """Parse the form of ``to_text``; raises ``ValueError`` where it is damaged."""
    record, _ = from_signed_line(text.encode())
    return HeldCommit(**{**record, "entry": parse_entry(record["entry"].encode(), "held job")})


@dataclass(frozen=True, slots=True)
class LiveLease:
    """A lease read from storage: its owner, its last renewal in ms, and of a held job its commit."""

    write_id: str
    heartbeat_ms: int
    job_id: str | None = None
    commit: HeldCommit | None = None


class Lease:
    """Lease of one transaction; nothing is written before ``hold``."""

    def __init__(self, storage: Storage, write_id: str, job_id: str | None, heartbeat_seconds: float) -> None:
        self._storage = storage
        self._name = lease_file(write_id)
        self._record = {
            "writeId": write_id,
            "jobId": job_id,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "folders": [f"*/{write_id}-*", f"_freezeframe/blobs/{write_id}"],
        }
        self._seconds = heartbeat_seconds
        self._stop = threading.Event()
        self._renewal = threading.Lock()
        self._heartbeat: threading.Timer | None = None
        self.is_written = False
        """Whether there is a lease, which ``release`` deletes."""

    def hold(self) -> None:
        """Write the lease and start its heartbeat, unless already done."""
        if self.is_written:
            return
        try:
            self._renew()
        except OutcomeUnknown:
            # The last writer does not matter, so an uncertain write is repeated.
            self._renew()
        self.is_written = True
        self._heartbeat = threading.Timer(self._seconds, self._beat)
        self._heartbeat.daemon = True
        self._heartbeat.start()

    def keep(self, commit: HeldCommit) -> None:
        """Replace the heartbeat by the commit of a held job, durably: the point at which the job is held."""
        self.stop()
        with self._renewal:  # a renewal that is under way would replace the commit
            self._renew(heartbeat=commit.until_ms, commit=commit.to_text())

    def release(self) -> None:
        """End the heartbeat and delete the lease; never raises, since gc would delete it too."""
        self.stop()
        if not self.is_written:
            return
        try:
            self._storage.delete(self._name, durable=False)
        except FreezeframeError:
            _logger.warning("The lease %s was not removed; gc will do it", self._name, exc_info=True)

    def stop(self) -> None:
        """End the heartbeat and retain the lease: gc decides about the protected files."""
        self._stop.set()
        if self._heartbeat is not None:
            self._heartbeat.cancel()

    def _beat(self) -> None:
        while not self._stop.is_set():
            try:
                with self._renewal:
                    if not self._stop.is_set():
                        self._renew()
            except FreezeframeError:
                _logger.warning("The lease %s was not renewed", self._name, exc_info=True)
            self._stop.wait(self._seconds)

    def _renew(self, **held: Any) -> None:
        # The lease protects the files of a live process from gc. A power loss ends that process too.
        record: dict[str, Any] = {**self._record, "heartbeat": now_ms(), **held}
        content = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._storage.replace(self._name, content, durable=bool(held))


def live_leases(storage: Storage) -> tuple[LiveLease, ...]:
    """Return all leases; an unreadable lease has the modification time of its file."""
    return tuple(
        _live_lease(storage, status.name, status.modified_ms)
        for status in storage.list_from(STAGING_FOLDER)
        if status.name.endswith(_SUFFIX)
    )


def _live_lease(storage: Storage, name: str, modified_ms: int) -> LiveLease:
    write_id = name.removesuffix(_SUFFIX)
    try:
        record = json.loads(storage.read(f"{STAGING_FOLDER}/{name}"))
        commit = parse_held_commit(record["commit"]) if "commit" in record else None
        return LiveLease(write_id, int(record["heartbeat"]), record.get("jobId"), commit)
    except (ValueError, KeyError, TypeError, AttributeError, CorruptLog, FileNotFoundError):
        return LiveLease(write_id, modified_ms)
