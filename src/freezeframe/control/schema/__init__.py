"""The tables of the control database, one concept to a file; the migrations make them."""

from freezeframe.control.schema.jobs import jobs, lanes
from freezeframe.control.schema.metadata import metadata
from freezeframe.control.schema.schedules import schedules

__all__ = ["jobs", "lanes", "metadata", "schedules"]
