"""Row counts of a version, equal to a comparison with the version before.

Each step of a job counts the changes of its own rows. Two steps may change the same row, and an override,
a dropped column or a restoration changes rows outside of its input: then only a comparison gives the counts.
"""

from __future__ import annotations

from freezeframe.errors import CorruptData, InvalidOption
from freezeframe.log import Snapshot
from freezeframe.store.diff.row_diff_pages import Comparison
from freezeframe.store.model.row_counts import Counts
from freezeframe.store.schema.table_properties import stored_key


def compared_counts(before: Snapshot | None, after: Snapshot | None) -> Counts:
    """Row counts of the changes between two versions (None: the stream does not exist).

    Rows without a key that are too many to be compared whole all count as deleted and inserted, but for
    those of files that both versions have.

    Raises:
        CorruptData: a file is missing or damaged.
        InvalidOption: the stream has a column with a name that changes use themselves.
    """
    comparison = Comparison(before, after)
    return comparison.counts() if comparison.can_be_told else comparison.counts_of_files()


def net_counts(before: Snapshot, after: Snapshot, steps: Counts) -> Counts:
    """The counts of the commit that leads from ``before`` to ``after``; ``steps`` are those of its steps.

    ``unchanged`` is theirs. Where the rows cannot be compared (a file of ``before`` is damaged, which a
    restoration is to mend), all counts are theirs.
    """
    sides = [None if one.version < 0 or was_dropped(one) else one for one in (before, after)]
    if sides == [None, None]:
        return Counts(unchanged=steps.unchanged)
    try:
        found = compared_counts(*sides)
    except (CorruptData, InvalidOption):
        return steps
    return Counts(found.inserted, found.updated, steps.unchanged, found.deleted)


def was_dropped(snapshot: Snapshot) -> bool:
    """Whether the table belongs to a dropped stream: no rows and no key property."""
    return snapshot.version >= 0 and stored_key(snapshot.metadata) is None and not snapshot.count
