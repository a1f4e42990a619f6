"""All tables.

A new database gets the tables of today here: each later step checks whether its change is there already.
"""

from __future__ import annotations

from alembic import op

from freezeframe.control.tables import metadata

revision = "0010"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    metadata.create_all(op.get_bind())
