"""Jobs with their lanes, and schedules."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables of the job queue and of its schedules."""
    op.create_table(
        "lanes",
        sa.Column("name", sa.String(500), nullable=False),
        sa.Column("running", sa.Integer, nullable=False),
        sa.Column("running_max", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_lanes"),
        sa.CheckConstraint("running >= 0", name=op.f("ck_lanes_running_not_negative")),
    )
    op.create_table(
        "jobs",
        sa.Column("sequence", _SEQUENCE, autoincrement=True, nullable=False),
        sa.Column("environment", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("job_id", sa.String(500), nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("lane", sa.String(500), nullable=False),
        sa.Column("schedule", sa.String(200), nullable=False, server_default=""),
        sa.Column("run_at_ms", sa.BigInteger, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("started_ms", sa.BigInteger),
        sa.Column("finished_ms", sa.BigInteger),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("attempts_max", sa.Integer, nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("worker", sa.String(200), nullable=False, server_default=""),
        sa.Column("lease_id", sa.String(40)),
        sa.Column("lease_until_ms", sa.BigInteger),
        sa.Column("taken_over_from", sa.String(200), nullable=False, server_default=""),
        sa.Column("only_close", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("outcome", sa.Text),
        sa.PrimaryKeyConstraint("sequence", name="pk_jobs"),
        sa.UniqueConstraint("environment", "tenant", "job_id", name="uq_jobs_environment_tenant_job_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_waiting", "jobs", ["status", sa.text("priority DESC"), "sequence"])
    begun = sa.text("status = 'queued' AND attempts > 0")
    op.create_index("ix_jobs_begun", "jobs", ["lane", "sequence"], postgresql_where=begun, sqlite_where=begun)
    op.create_index("ix_jobs_leases", "jobs", ["status", "lease_until_ms"])
    op.create_index("ix_jobs_of_lane", "jobs", ["lane", "status"])
    op.create_index("ix_jobs_of_tenant", "jobs", ["environment", "tenant", "sequence"])
    _create_schedules()


def _create_schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("sequence", _SEQUENCE, autoincrement=True, nullable=False),
        sa.Column("environment", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("cron", sa.String(200), nullable=False),
        sa.Column("zone", sa.String(100), nullable=False),
        sa.Column("missed", sa.String(20), nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("attempts_max", sa.Integer, nullable=False),
        sa.Column("running_max", sa.Integer, nullable=False),
        sa.Column("is_enabled", sa.Boolean, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("next_due_ms", sa.BigInteger),
        sa.Column("last_due_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("sequence", name="pk_schedules"),
        sa.UniqueConstraint("environment", "tenant", "name", name="uq_schedules_environment_tenant_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_schedules_due", "schedules", ["is_enabled", "next_due_ms"])
