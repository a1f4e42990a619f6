"""Webhook notifications of an environment: findings become signed events.

The headers are those of the Standard Webhooks specification, for which receivers have libraries.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx

from freezeframe.clock import rfc3339
from freezeframe.control.database.database import ControlDatabase
from freezeframe.control.jobs.job_feed import failed_jobs, newest_jobs
from freezeframe.control.notifications import Notification, Notifications
from freezeframe.errors import InvalidOption, ReportDamage, SetupError, TenantNotFound, TooManyDeletions
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.access.stores import Stores
from freezeframe.service.jobs.past_jobs import first_line
from freezeframe.service.overview.findings import Findings, TenantFindings
from freezeframe.settings import Settings

_logger = logging.getLogger(__name__)
_LOOKED_BACK = timedelta(days=1)
_TENANTS_AT_ONCE = 200
_JOBS_MAX = 500
_SECRET_BYTES_MIN = 16
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Round:
    """Result of a round: new events, deliveries, and pending retries."""

    queued: int
    delivered: int
    failed: int
    waiting: int


class Webhook:
    """Takes notifications as a signed ``POST`` of JSON; redirects are not followed.

    Raises:
        InvalidOption: the settings name no http address.
        SetupError: they name no file with a secret of at least 16 bytes.
    """

    def __init__(self, settings: Settings) -> None:
        address = urlsplit(settings.notify_url)
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise InvalidOption(
                "The setting notify_url names no webhook.",
                cause="It is empty, or no http address.",
                remedy="Set it to https://host/path, and notify_secret_file to a file with a secret.",
            )
        self._url = settings.notify_url
        self._secret = _secret(settings)

    def send(self, notification: Notification) -> bool:
        """Send it; whether the receiver answered with a status of 2xx within ten seconds."""
        timestamp = str(int(time.time()))
        headers = {
            "content-type": "application/json",
            "webhook-id": notification.id,
            "webhook-timestamp": timestamp,
            "webhook-signature": signature(self._secret, notification.id, timestamp, notification.body),
        }
        try:
            answer = httpx.post(self._url, content=notification.body, headers=headers, timeout=_SECONDS)
        except httpx.HTTPError as error:
            _logger.warning("Notification %s did not arrive: %s", notification.id, type(error).__name__)
            return False
        if not answer.is_success:
            _logger.warning("Notification %s was refused: %s", notification.id, answer.status_code)
        return answer.is_success


def signature(secret: bytes, notification_id: str, timestamp: str, body: str) -> str:
    """``v1,`` and the HMAC-SHA256 of id, timestamp and body as base64."""
    signed = hmac.digest(secret, f"{notification_id}.{timestamp}.{body}".encode(), hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


class Notifier:
    """Looks at one environment and tells its webhook what is new, again and again."""

    def __init__(
        self, stores: Stores, findings: TenantFindings, database: ControlDatabase, environment: str
    ) -> None:
        self._stores = stores
        self._findings = findings
        self._database = database
        self._environment = EnvironmentName(environment)
        self.notifications = Notifications(database, self._environment)

    def look(self, webhook: Webhook) -> Round:
        """Queue the new events of the last day, and send those that are due.

        Raises:
            TryAgain: the store or the control database cannot be reached.
        """
        queued = self.notifications.queue(list(self._events(datetime.now(UTC))))
        delivered = failed = 0
        while due := self.notifications.due():
            for one in due:
                if webhook.send(one):
                    self.notifications.note_delivered(one)
                    delivered += 1
                else:
                    failed += 1
        return Round(queued, delivered, failed, self.notifications.count_waiting())

    def _events(self, now: datetime) -> Iterator[dict[str, Any]]:
        since = now - _LOOKED_BACK
        for job in failed_jobs(self._database, self._environment, None, since, _JOBS_MAX):
            code = ((job.outcome or {}).get("error") or {}).get("code")
            kind = "guard.refused" if code == TooManyDeletions.code else "job.failed"
            yield self._event(
                kind,
                job.tenant,
                job_id=job.job_id,
                attempts=job.attempts,
                status=job.status,
                error=first_line(job.outcome),
                error_code=code,
                finished=None if job.finished is None else rfc3339(job.finished),
            )
        store = self._stores.environment(self._environment)
        for names in store.tenant_pages(_TENANTS_AT_ONCE):
            jobs = newest_jobs(self._database, self._environment, names)
            for name in names:
                last = jobs.get(name)
                success = last.finished if last is not None and last.status == "succeeded" else None
                try:
                    found = self._findings.of(store.tenant(TenantId(name)), since, now, success)
                except (TenantNotFound, ReportDamage) as error:
                    _logger.warning("The tenant %s was not looked at: %s", name, error)
                else:
                    yield from self._tenant_events(name, found)

    def _tenant_events(self, tenant: str, found: Findings) -> Iterator[dict[str, Any]]:
        if found.stale is not None:
            last = rfc3339(found.stale.last_sync)
            yield self._event("tenant.stale", tenant, last_sync=last)
        for drift in found.drift:
            at = rfc3339(drift.timestamp)
            columns = asdict(drift.columns)
            yield self._event(
                "schema.drift", tenant, stream=drift.stream, version=drift.version, timestamp=at, **columns
            )

    def _event(self, kind: str, tenant: str, **facts: Any) -> dict[str, Any]:
        """An event whose id is derived from its facts, so that it is sent once."""
        return {"type": kind, "environment": self._environment, "tenant": tenant, **facts}


def _secret(settings: Settings) -> bytes:
    path = settings.notify_secret_file
    try:
        secret = b"" if path is None else path.read_bytes().strip()
    except OSError as error:
        raise SetupError(
            f"The secret of notifications cannot be read from {path}.",
            cause=str(error),
            remedy="Check notify_secret_file, and who may read it.",
        ) from error
    if len(secret) < _SECRET_BYTES_MIN:
        raise SetupError(
            "There is no secret to sign notifications with.",
            cause=f"The file notify_secret_file has fewer than {_SECRET_BYTES_MIN} bytes, or is not set.",
            remedy="Put a random secret into a file that only the service reads, and name it there.",
        )
    return secret
