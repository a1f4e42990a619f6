"""``freezeframe upgrade``: what an unreleased freezeframe wrote becomes what this one reads."""

from __future__ import annotations

from freezeframe.cli.places.place import Json, StoreRoot, require_root
from freezeframe.cli.terminal.output import Output


def upgrade(root: StoreRoot, as_json: Json = False) -> None:
    """Bring a store's control database to this version, where freezeframe doctor says that it is older.

    Stop the service and its workers first. Jobs and schedules stay; keys are made anew, and the audit begins
    anew. Tenants' data is not in the control database.
    """
    from freezeframe.control.database import database_url, upgrade_unreleased
    from freezeframe.settings import load_settings

    settings = load_settings(root=root)
    if not settings.database_url:
        require_root(root)
    found = upgrade_unreleased(database_url(settings, root))
    Output(as_json=as_json).record({"root": root, "version_before": found, "upgraded": found is not None})
