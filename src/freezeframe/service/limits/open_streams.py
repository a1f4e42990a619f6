"""Limits the logs and streams of events that are open, in all and for each principal.

All workers of a machine count together. What a worker had open ends with it: those of a process that is no
more are not counted.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache

import psutil

from freezeframe.errors import RateLimited, TryAgain
from freezeframe.service.identity.principal import Principal
from freezeframe.service.limits.shared_file import SharedFile

_RETRY_SECONDS = 30
# When a process began is counted from the machine's start, whose moment moves when its clock is set.
_CLOCK_SECONDS = 60.0
_BEGIN = """
    INSERT INTO open_streams VALUES (?, ?, 1)
    ON CONFLICT (worker, principal) DO UPDATE SET number = number + 1
"""
_END = "UPDATE open_streams SET number = number - 1 WHERE worker = ? AND principal = ?"
_FORGET = "DELETE FROM open_streams WHERE worker = ? AND principal = ? AND number <= 0"


class OpenStreams:
    """The streams that the workers of one service are sending, by principal."""

    def __init__(self, file: SharedFile, streams_max: int, per_principal_max: int) -> None:
        self._file = file
        self._streams_max = streams_max
        self._per_principal_max = per_principal_max
        file.connection().execute(
            "CREATE TABLE IF NOT EXISTS open_streams (worker TEXT NOT NULL, principal TEXT NOT NULL,"
            " number INTEGER NOT NULL, PRIMARY KEY (worker, principal)) WITHOUT ROWID"
        )

    def begin(self, principal: Principal) -> None:
        """Count one more stream of the principal, until ``end``.

        Raises:
            RateLimited: the principal has as many open as it may.
            TryAgain: the service has.
        """
        who, connection = _name(principal), self._file.connection()
        # Counted and written under one lock, so of two that come at once the second sees the first.
        connection.execute("BEGIN IMMEDIATE")
        try:
            counted = connection.execute("SELECT worker, principal, number FROM open_streams").fetchall()
            ended = {worker for worker in {worker for worker, _, _ in counted} if not _is_running(worker)}
            connection.executemany("DELETE FROM open_streams WHERE worker = ?", [(one,) for one in ended])
            held = [(name, number) for worker, name, number in counted if worker not in ended]
            self._require_room(
                principal, sum(number for name, number in held if name == who), sum(n for _, n in held)
            )
            connection.execute(_BEGIN, (_worker(os.getpid()), who))
        finally:
            connection.execute("COMMIT")

    def end(self, principal: Principal) -> None:
        """Count one stream less."""
        place = (_worker(os.getpid()), _name(principal))
        self._file.connection().execute(_END, place)
        self._file.connection().execute(_FORGET, place)

    def _require_room(self, principal: Principal, of_principal: int, of_all: int) -> None:
        if of_principal >= self._per_principal_max:
            raise RateLimited(
                f"This {principal.kind} follows {of_principal} logs and streams of events already.",
                cause="The service sends no more to one (service_streams_per_principal_max).",
                remedy=f"End one of them, or ask again in {_RETRY_SECONDS} seconds.",
                retry_after_seconds=_RETRY_SECONDS,
            )
        if of_all >= self._streams_max:
            raise TryAgain(
                "Too many follow the service's logs and events.",
                cause=f"The service sends at most {self._streams_max} (service_streams_max).",
                remedy=f"Ask again in {_RETRY_SECONDS} seconds, and read what is wanted meanwhile.",
                retry_after_seconds=_RETRY_SECONDS,
            )


def _name(principal: Principal) -> str:
    return f"{principal.kind}/{principal.id}"


@cache
def _worker(process: int) -> str:
    """The name of a process, which none that has its number later has."""
    return f"{process}@{psutil.Process(process).create_time()}"


def _is_running(worker: str) -> bool:
    process, _, started = worker.partition("@")
    with suppress(psutil.Error):
        return abs(psutil.Process(int(process)).create_time() - float(started)) < _CLOCK_SECONDS
    return False
