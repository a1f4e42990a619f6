"""All tables, as the first release has them.

Until there is a release the schema is this one step. Whoever adds a second one writes the tables out here as
they were: a new database would otherwise have the second step's changes before it runs.
"""

from __future__ import annotations

from alembic import op

from freezeframe.control.tables import metadata

revision = "0010"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables; those of jobs and schedules may be there (``upgrade.replace``)."""
    metadata.create_all(op.get_bind())
