"""Idempotency: how long a request is believed to be under way, apart from how long its key is taken."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; a request that is under way meanwhile counts as one whose process died."""
    op.add_column("idempotency", sa.Column("begun_until_ms", sa.BigInteger))
    op.add_column("idempotency", sa.Column("body_sha256", sa.String(64), nullable=False, server_default=""))
