"""The tables of the control database, one concept to a file; the migrations make them."""

from freezeframe.control.schema.audit import audit
from freezeframe.control.schema.jobs import jobs, lanes
from freezeframe.control.schema.keys import key_sessions, keys
from freezeframe.control.schema.metadata import metadata
from freezeframe.control.schema.notifications import notifications
from freezeframe.control.schema.people import people, sessions
from freezeframe.control.schema.schedules import schedules

__all__ = [
    "audit",
    "jobs",
    "key_sessions",
    "keys",
    "lanes",
    "metadata",
    "notifications",
    "people",
    "schedules",
    "sessions",
]
