"""Sessions of who signed in with a key: the browser holds a token of their own, not the key."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "key_sessions",
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("key", sa.String(40), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name="pk_key_sessions"),
        sa.ForeignKeyConstraint(["key"], ["keys.id"], name="fk_key_sessions_key", ondelete="CASCADE"),
    )
    op.create_index("ix_key_sessions_expires", "key_sessions", ["expires_ms"])
