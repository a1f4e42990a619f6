"""Keys, people with their sessions, and the audit."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of the service."""
    _create_keys()
    _create_people()
    _create_audit()


def _create_keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("previous_hash", sa.String(64), nullable=False, server_default=""),
        sa.Column("previous_until_ms", sa.BigInteger),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("environments", sa.Text),
        sa.Column("tenants", sa.Text),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.String(200), nullable=False, server_default=""),
        sa.Column("expires_ms", sa.BigInteger),
        sa.Column("revoked_ms", sa.BigInteger),
        sa.Column("last_used_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )


def _create_people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("password_hash", sa.String(300), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("environments", sa.Text),
        sa.Column("tenants", sa.Text),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("disabled_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_people"),
        sa.UniqueConstraint("name", name="uq_people_name"),
    )
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("person", sa.String(40), nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name="pk_sessions"),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_sessions_person", ondelete="CASCADE"),
    )
    op.create_index("ix_sessions_expires", "sessions", ["expires_ms"])


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("environment", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("moment_ms", sa.BigInteger, nullable=False),
        sa.Column("principal", sa.String(300), nullable=False),
        sa.Column("action", sa.String(60), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("request_id", sa.String(60), nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("previous_hash", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("environment", "tenant", "number", name="pk_audit"),
    )
