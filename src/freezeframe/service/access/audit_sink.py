"""The audit's sink: each new entry, with its chain's number and hash, is sent to a file, syslog or a URL.

The sink is outside of the control database, so that whoever writes to the database cannot rewrite the past
there as well. Entries are sent in the background, and the request does not wait for it: an entry that does
not arrive is a warning in the log, and the next entry's hash covers it.
"""

from __future__ import annotations

import atexit
import json
import logging
import queue
import sys
from collections.abc import Sequence
from logging.handlers import QueueHandler, QueueListener, SysLogHandler, WatchedFileHandler
from urllib.parse import SplitResult, urlsplit

from freezeframe.errors import InvalidOption, SetupError
from freezeframe.extras import requires_extra
from freezeframe.service.access.audit_entry import AuditEntry
from freezeframe.settings import Settings

_WAITING_MAX = 10_000
_SECONDS = 10.0
_SYSLOG_PORT = 514
_logger = logging.getLogger(__name__)


class AuditSink:
    """Sends entries in the background to one handler; called with those that became durable."""

    def __init__(self, handler: _Counting) -> None:
        waiting: queue.Queue[logging.LogRecord] = queue.Queue(_WAITING_MAX)
        self._entrance = _Entrance(waiting)
        self._handler = handler
        self._listener = QueueListener(waiting, handler)
        self._is_started = False

    @property
    def lost_count(self) -> int:
        """The number of entries that did not arrive."""
        return self._handler.lost + self._entrance.lost

    def __call__(self, entries: Sequence[AuditEntry]) -> None:
        """Queue entries to be sent, without waiting."""
        if not self._is_started:  # by its first entry: a process that only checks settings needs no thread
            self._is_started = True
            self._listener.start()
            atexit.register(self.close)
        for entry in entries:
            record = {"msg": sink_line(entry), "levelno": logging.INFO, "levelname": "INFO"}
            self._entrance.handle(logging.makeLogRecord(record))

    def close(self) -> None:
        """Wait until all queued entries are sent; nothing can be sent afterwards."""
        if self._is_started:
            atexit.unregister(self.close)
            self._listener.stop()
        self._handler.close()


def audit_sink(settings: Settings) -> AuditSink | None:
    """The sink that the settings name; None if they name none.

    Raises:
        InvalidOption: it is not a file, syslog or http address.
        SetupError: the host of syslog is not known. A local daemon may start later.
    """
    return AuditSink(_handler(settings.audit_sink)) if settings.audit_sink else None


def sink_line(entry: AuditEntry) -> str:
    """An entry as the sink gets it: one line of JSON without the details."""
    told = entry.to_json()
    del told["details"]
    return json.dumps({"environment": entry.environment, "tenant": entry.tenant, **told}, ensure_ascii=False)


def _handler(address: str) -> _Counting:
    parsed = urlsplit(address)
    if parsed.scheme == "file" and parsed.path.startswith("/") and not parsed.netloc:
        return _File(parsed.path, delay=True)
    if parsed.scheme == "syslog":
        return _syslog(parsed)
    if parsed.scheme in {"https", "http"} and parsed.hostname:
        return _Webhook(address)
    raise InvalidOption(
        "The setting audit_sink names no sink.",
        cause="It is neither a file, nor syslog, nor a URL.",
        remedy="Set it to file:///path, syslog://host:514, syslog:///dev/log or https://host/path.",
    )


def _syslog(parsed: SplitResult) -> _Counting:
    host, path = parsed.hostname, parsed.path or "/dev/log"
    place = path if host is None else (host, parsed.port or _SYSLOG_PORT)
    try:
        return _Syslog(place, SysLogHandler.LOG_AUTHPRIV)
    except OSError as error:
        raise SetupError(
            "The audit sink cannot be reached.",
            cause=f"{place}: {error}",
            remedy="Check audit_sink, and that syslog runs there.",
        ) from error


class _Counting(logging.Handler):
    """A handler whose failures are counted, and warnings of the service."""

    lost = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - as the base class
        """See ``logging.Handler``."""
        self.lost += 1
        _logger.warning("The audit sink did not take an entry: %r", sys.exception())


class _Entrance(_Counting, QueueHandler):
    """Queue of entries for the sink."""


class _File(_Counting, WatchedFileHandler):
    """A file, opened anew where somebody rotated it."""


class _Syslog(_Counting, SysLogHandler):
    """A syslog daemon."""


class _Webhook(_Counting):
    """An address that takes each entry as a ``POST`` of JSON."""

    def __init__(self, address: str) -> None:
        super().__init__()
        with requires_extra("service"):
            import httpx  # noqa: PLC0415 - a sink of another kind needs no client
        self._address = address
        self._error = httpx.HTTPError
        self._client = httpx.Client(timeout=_SECONDS, follow_redirects=False)

    def emit(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler``."""
        try:
            headers = {"content-type": "application/json"}
            self._client.post(self._address, content=record.getMessage(), headers=headers).raise_for_status()
        except self._error:
            self.handleError(record)

    def close(self) -> None:
        """See ``logging.Handler``."""
        self._client.close()
        super().close()
