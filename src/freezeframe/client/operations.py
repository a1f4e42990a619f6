"""All operations of the service.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from freezeframe.client.audit import AuditOperations
from freezeframe.client.files import FilesOperations
from freezeframe.client.health import HealthOperations
from freezeframe.client.hotglue import HotglueOperations
from freezeframe.client.jobs import JobsOperations
from freezeframe.client.keys import KeysOperations
from freezeframe.client.people import PeopleOperations
from freezeframe.client.session import SessionOperations
from freezeframe.client.streams import StreamsOperations
from freezeframe.client.tenants import TenantsOperations
from freezeframe.client.uploads import UploadsOperations
from freezeframe.client.versions import VersionsOperations


class Operations(
    AuditOperations,
    FilesOperations,
    HealthOperations,
    HotglueOperations,
    JobsOperations,
    KeysOperations,
    PeopleOperations,
    SessionOperations,
    StreamsOperations,
    TenantsOperations,
    UploadsOperations,
    VersionsOperations,
):
    """What a service can be asked, by name; see ``Client``."""
