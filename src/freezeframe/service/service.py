"""Composition root of the service."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freezeframe.clock import now_ms
from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import Schedules
from freezeframe.service.access.access import Stores, TenantAccess
from freezeframe.service.access.audit import Audit, load_audit_secret
from freezeframe.service.access.identity_provider import IdentityProvider
from freezeframe.service.access.keys import Keys, Principal
from freezeframe.service.access.sessions import LINK_SECONDS, Person, Sessions, Tickets
from freezeframe.service.jobs import TenantJobs
from freezeframe.service.limits import FairLimits, OpenStreams, RateLimits
from freezeframe.service.overview import Overviews, TenantFindings
from freezeframe.service.schedules import TenantSchedules
from freezeframe.service.signing import Cursors
from freezeframe.service.staged_blobs import StagedBlobs
from freezeframe.service.stored_bytes import StoredBytes, StoredSizes
from freezeframe.settings import Settings
from freezeframe.store.model.update_options import system_user

_OURS = "_freezeframe"


@dataclass(frozen=True, slots=True)
class Service:
    """One store, its control database, and the parts of the service that share them."""

    settings: Settings
    database: ControlDatabase
    stores: Stores
    keys: Keys
    sessions: Sessions
    audit: Audit
    cursors: Cursors
    limits: RateLimits
    queue: JobQueue
    jobs: TenantJobs
    schedules: TenantSchedules
    blobs: StagedBlobs
    tickets: Tickets
    provider: IdentityProvider | None
    overviews: Overviews
    findings: TenantFindings
    stored_bytes: StoredBytes
    stored_sizes: StoredSizes
    streams: OpenStreams
    turns: FairLimits

    def access(self, principal: Principal) -> TenantAccess:
        """Return the tenants that the principal may see."""
        return TenantAccess(self.stores, principal)

    def enter_by_link(self, link: str) -> Person:
        """Return the administrator that a link of ``freezeframe serve`` signs in, once."""
        name = self.tickets.read_link(link)
        self.sessions.use_once(name, now_ms() + LINK_SECONDS * 1000)
        return Person("local", system_user(), "admin")

    def require_ready(self) -> None:
        """Read the store and the control database once."""
        self.stores.require_readable()
        self.queue.counts()


def open_service(root: str, settings: Settings, database: ControlDatabase) -> Service:
    """Open the service of the store at ``root``, which need not have tenants yet."""
    secret = load_audit_secret(settings, root, database)
    stores = Stores(root, settings)
    queue, overviews = JobQueue(database), Overviews()
    blobs = StagedBlobs.of_store(root, settings, queue.has_ended)
    schedules = Schedules(database)
    jobs = TenantJobs(queue, schedules, settings, root, blobs)
    keys = Keys(database)
    stored_bytes = StoredBytes(blobs, settings.service_tenant_stored_bytes_max)
    return Service(
        settings=settings,
        database=database,
        stores=stores,
        keys=keys,
        sessions=Sessions(database, keys, settings.service_session_hours),
        audit=Audit(database, secret),
        cursors=Cursors(secret),
        limits=RateLimits(settings.service_requests_per_second),
        queue=queue,
        jobs=jobs,
        schedules=TenantSchedules(schedules, queue, jobs, stores),
        blobs=blobs,
        tickets=Tickets(secret),
        provider=IdentityProvider(settings) if settings.service_oidc_issuer else None,
        overviews=overviews,
        findings=TenantFindings(overviews),
        stored_bytes=stored_bytes,
        stored_sizes=StoredSizes(stores, stored_bytes),
        streams=OpenStreams(settings.service_streams_max, settings.service_streams_per_principal_max),
        turns=FairLimits(settings.service_requests_at_once_per_principal),
    )


def own_folder(settings: Settings, root: str) -> Path:
    """Return the service's own folder: in the store's root, or for a bucket on this machine."""
    return settings.state_dir / "service" if "://" in root else Path(root).resolve() / _OURS


FREE_SHARE_MIN = 0.05
WAITING_SECONDS_MAX = 900.0


def degradations(service: Service) -> Iterator[str]:
    """Yield what is degraded: sentences, each with its remedy; none if all is well."""
    queue = service.queue
    if queue.waiting_seconds() > WAITING_SECONDS_MAX and not queue.counts()["running"]:
        yield (
            f"A job has waited for more than {WAITING_SECONDS_MAX / 60:g} minutes and none runs: "
            "see whether a worker does."
        )
    usage = shutil.disk_usage(own_folder(service.settings, service.stores.root))
    if usage.free < FREE_SHARE_MIN * usage.total:
        yield f"The disk of the service is full but for {usage.free / usage.total:.1%}: make room."
