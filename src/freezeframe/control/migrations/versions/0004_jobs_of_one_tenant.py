"""Jobs: which tenant of an id they are for, where one was deleted and another one made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the jobs that are there are for whichever tenant has the id."""
    op.add_column("jobs", sa.Column("incarnation", sa.String(40), nullable=False, server_default=""))
