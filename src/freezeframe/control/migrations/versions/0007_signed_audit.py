"""The audit: which key an entry's hash was made with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the entries that are there were not signed."""
    op.add_column("audit", sa.Column("signing_key", sa.String(16), nullable=False, server_default=""))
