"""The tables of the job queue: the jobs, and the lanes in which they wait for each other."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from freezeframe.control.schema.metadata import metadata, sequence_type

# A lane is what may not run at once: a tenant of an environment. Its row counts the running jobs, so that
# locking it is enough to know that no other worker starts a second one.
lanes = Table(
    "lanes",
    metadata,
    Column("name", String(500), primary_key=True),
    Column("running", Integer, nullable=False),
    Column("running_max", Integer, nullable=False),
    CheckConstraint("running >= 0", name="running_not_negative"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("sequence", sequence_type, primary_key=True, autoincrement=True),
    Column("environment", String(200), nullable=False),
    Column("tenant", String(200), nullable=False),
    Column("job_id", String(500), nullable=False),
    Column("request", Text, nullable=False),
    Column("status", String(20), nullable=False),
    Column("priority", Integer, nullable=False),
    Column("lane", String(500), nullable=False),
    Column("schedule", String(200), nullable=False, server_default=""),
    Column("run_at_ms", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger),
    Column("finished_ms", BigInteger),
    Column("attempts", Integer, nullable=False),
    Column("attempts_max", Integer, nullable=False),
    Column("cancel_requested", Boolean, nullable=False, server_default=false()),
    Column("worker", String(200), nullable=False, server_default=""),
    Column("lease_id", String(40)),
    Column("lease_until_ms", BigInteger),
    Column("taken_over_from", String(200), nullable=False, server_default=""),
    Column("only_close", Boolean, nullable=False, server_default=false()),
    Column("outcome", Text),
    Column("incarnation", String(40), nullable=False, server_default=""),
    UniqueConstraint("environment", "tenant", "job_id"),
    sqlite_autoincrement=True,
)
Index("ix_jobs_waiting", jobs.c.status, jobs.c.priority.desc(), jobs.c.sequence)
# Few jobs wait for another attempt, and each claim queries them.
_BEGUN = (jobs.c.status == "queued") & (jobs.c.attempts > 0)
Index("ix_jobs_begun", jobs.c.lane, jobs.c.sequence, postgresql_where=_BEGUN, sqlite_where=_BEGUN)
Index("ix_jobs_leases", jobs.c.status, jobs.c.lease_until_ms)
Index("ix_jobs_of_lane", jobs.c.lane, jobs.c.status)
Index("ix_jobs_of_tenant", jobs.c.environment, jobs.c.tenant, jobs.c.sequence)
