"""The tables of the control database; the migrations make them.

Moments are whole milliseconds since 1970 by the database's clock: both databases compare them as numbers.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite assigns row numbers only in a column declared INTEGER.
sequence_type = BigInteger().with_variant(Integer(), "sqlite")

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
    Column("group", String(500), nullable=False, server_default=""),
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
Index("ix_jobs_of_group", jobs.c.environment, jobs.c.group, jobs.c.status)

schedules = Table(
    "schedules",
    metadata,
    Column("sequence", sequence_type, primary_key=True, autoincrement=True),
    Column("environment", String(200), nullable=False),
    Column("tenant", String(200), nullable=False),
    Column("name", String(200), nullable=False),
    Column("cron", String(200), nullable=False),
    Column("zone", String(100), nullable=False),
    Column("missed", String(20), nullable=False),
    Column("request", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("attempts_max", Integer, nullable=False),
    Column("running_max", Integer, nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("next_due_ms", BigInteger),
    Column("last_due_ms", BigInteger),
    Column("incarnation", String(40), nullable=False, server_default=""),
    UniqueConstraint("environment", "tenant", "name"),
    sqlite_autoincrement=True,
)
Index("ix_schedules_due", schedules.c.is_enabled, schedules.c.next_due_ms)

# ``environments`` and ``tenants`` are JSON arrays, or null for all. After a rotation the secret from
# before is good until ``previous_until_ms``; ``rotation`` is the request that rotated it.
keys = Table(
    "keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("secret_hash", String(64), nullable=False),
    Column("previous_hash", String(64), nullable=False, server_default=""),
    Column("previous_until_ms", BigInteger),
    Column("rotation", String(64), nullable=False, server_default=""),
    Column("scopes", Text, nullable=False),
    Column("environments", Text),
    Column("tenants", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("created_by", String(200), nullable=False, server_default=""),
    Column("expires_ms", BigInteger),
    Column("revoked_ms", BigInteger),
    Column("last_used_ms", BigInteger),
)

# Of a key (with the hash of the secret that it was begun with, whose end is the session's), or of a person.
sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("key", String(40), ForeignKey("keys.id", ondelete="CASCADE")),
    Column("secret_hash", String(64), nullable=False, server_default=""),
    Column("person", String(40)),
    Column("name", String(200), nullable=False, server_default=""),
    Column("role", String(20), nullable=False, server_default=""),
    Column("environments", Text),
    Column("tenants", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
)
# Links and returns from an identity provider sign in once; afterwards their name is here until they are over.
used_sign_ins = Table(
    "used_sign_ins",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("expires_ms", BigInteger, nullable=False),
)
Index("ix_sessions_expires", sessions.c.expires_ms)

# Rows are only ever added. What concerns no tenant (keys, sign-ins) has an empty environment and tenant.
audit = Table(
    "audit",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("environment", String(200), nullable=False),
    Column("tenant", String(200), nullable=False),
    Column("moment_ms", BigInteger, nullable=False),
    Column("principal", String(300), nullable=False),
    Column("action", String(60), nullable=False),
    Column("subject", Text, nullable=False),
    Column("request_id", String(60), nullable=False),
    Column("details", Text, nullable=False),
    Column("hash", String(64), nullable=False),
)
Index("ix_audit_place", audit.c.environment, audit.c.tenant, audit.c.number)
