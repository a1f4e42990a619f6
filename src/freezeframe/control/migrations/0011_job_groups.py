"""The group of a job, and the index that finds a group's jobs."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, String, inspect

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column where it is missing; a new database has it from the first step."""
    connection = op.get_bind()
    if "group" in {column["name"] for column in inspect(connection).get_columns("jobs")}:
        return
    op.add_column("jobs", Column("group", String(500), nullable=False, server_default=""))
    op.create_index("ix_jobs_of_group", "jobs", ["environment", "group", "status"])
