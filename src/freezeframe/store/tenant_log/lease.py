"""Lease of an open transaction, whose files ``gc`` retains.

``_freezeframe/staging/<writeId>.json`` is written before anything is staged and removed after the
roll-forward. All files of a transaction have its ``writeId`` in the name: ``<table>/<writeId>-…/``
and ``_freezeframe/blobs/<writeId>/``. A missing heartbeat proves nothing (clocks differ, machines sleep), so
``gc`` first commits a ``revoke``, after which the transaction can no longer commit.
"""

import json
import logging
import os
import socket
import threading
from dataclasses import dataclass
from typing import Any

from freezeframe.clock import now_ms
from freezeframe.errors import FreezeframeError, OutcomeUnknown
from freezeframe.storage import Storage
from freezeframe.store.model.directory import STAGING_FOLDER, lease_file

_logger = logging.getLogger(__name__)
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class LiveLease:
    """A lease read from storage: its owner and its last renewal in ms."""

    write_id: str
    heartbeat_ms: int
    job_id: str | None = None


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
        self._heartbeat: threading.Timer | None = None

    def hold(self) -> None:
        """Write the lease and start its heartbeat, unless already done."""
        if self._heartbeat is not None:
            return
        try:
            self._renew()
        except OutcomeUnknown:
            # The last writer does not matter, so an uncertain write is repeated.
            self._renew()
        self._heartbeat = threading.Timer(self._seconds, self._beat)
        self._heartbeat.daemon = True
        self._heartbeat.start()

    def release(self) -> None:
        """End the heartbeat and delete the lease; never raises, since gc would delete it too."""
        self.stop()
        if self._heartbeat is None:
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
                self._renew()
            except FreezeframeError:
                _logger.warning("The lease %s was not renewed", self._name, exc_info=True)
            self._stop.wait(self._seconds)

    def _renew(self) -> None:
        # The lease protects the files of a live process from gc. A power loss ends that process too.
        record: dict[str, Any] = {**self._record, "heartbeat": now_ms()}
        content = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._storage.replace(self._name, content, durable=False)


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
        return LiveLease(write_id, int(record["heartbeat"]), record.get("jobId"))
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        return LiveLease(write_id, modified_ms)
