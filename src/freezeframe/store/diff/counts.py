"""Row counts of a version, equal to a comparison with the version before.

An update counts rows while it merges or patches them. The counts of several updates in a job add up if
they changed different rows. Otherwise, and for a restoration, the two versions are compared.
"""

from collections.abc import Sequence

import pyarrow as pa

from freezeframe.engine.frames.equality import are_distinct
from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import CorruptData, InvalidOption
from freezeframe.log import Snapshot
from freezeframe.storage import Storage
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.table.reader import row_count


def net_counts(before: Snapshot, after: Snapshot, steps: Counts) -> Counts:
    """Return the counts of the commit from ``before`` to ``after``; ``steps`` are the counts of its steps.

    ``unchanged`` comes from the steps. If the rows cannot be compared (a restoration may mend a damaged file
    of ``before``), all counts come from the steps.
    """
    old, new = (None if item.version < 0 or was_dropped(item) else item for item in (before, after))
    if old is new is None:
        return Counts(unchanged=steps.unchanged)
    try:
        if old is None or new is None:
            inserted, deleted = (0 if item is None else row_count(item) for item in (new, old))
            return Counts(inserted, 0, steps.unchanged, deleted)
        found = Comparison(old, new).counts()
    except (CorruptData, InvalidOption):
        return steps
    return Counts(found.inserted, found.updated, steps.unchanged, found.deleted)


def share_no_key(changed: Sequence[pa.Table | None]) -> bool:
    """Return whether no key is in two of the tables, each with distinct keys (None: unknown keys)."""
    tables = [keys for keys in changed if keys is not None]
    if len(tables) < len(changed) or len({keys.schema.remove_metadata() for keys in tables}) > 1:
        return False
    return are_distinct(pa.concat_tables(tables))


def was_dropped(snapshot: Snapshot) -> bool:
    """Return whether the table belongs to a dropped stream: no rows and no key property."""
    return snapshot.version >= 0 and stored_key(snapshot.metadata) is None and not snapshot.count


class ArrowEngine(TableEngine):
    """Engine without Spark, for the service: it refuses every update that needs one, such as a window."""

    def _behind(self) -> TableEngine:
        """Refuse: this engine has no Spark to search, land or read rows."""
        raise InvalidOption(
            "This update has to move stored rows, which needs Spark.",
            cause="The service has no Spark.",
            remedy="Import the rows as a job, or replace the whole content.",
        )

    def storage_of_tasks(self, storage: Storage) -> Storage | None:  # noqa: ARG002 - the engine's signature
        """None: there are no tasks but those of this process."""
        return None

    def require_shared(self, folder: str) -> None:
        """Nothing to check: the engine is this process and sees the same files."""

    def close(self) -> None:
        """Nothing to close."""
