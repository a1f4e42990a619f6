"""Commits that begin anew until nobody else is first."""

from freezeframe.log.segments.commit import Conflict
from freezeframe.log.table.transaction import Transaction


def commit_at_last(log, actions, upkeep=None):
    """The outcome of the first attempt that meets no conflict, and how many attempts met one."""
    conflicts = 0
    while isinstance(found := Transaction(log, upkeep=upkeep).commit(actions), Conflict):
        conflicts += 1
    return found, conflicts
