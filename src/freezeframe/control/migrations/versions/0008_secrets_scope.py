"""Keys: what reads snapshots goes on reading sealed files, for which there is a scope of its own now."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give the scope to the keys that could do it without."""
    keys = sa.table("keys", sa.column("id", sa.String), sa.column("scopes", sa.Text))
    connection = op.get_bind()
    for key_id, text in connection.execute(sa.select(keys.c.id, keys.c.scopes)).all():
        scopes = json.loads(text)
        if "snapshots:read" in scopes and "secrets:read" not in scopes:
            raised = json.dumps(sorted([*scopes, "secrets:read"]))
            connection.execute(sa.update(keys).where(keys.c.id == key_id).values(scopes=raised))
