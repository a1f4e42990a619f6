"""Deletion guard: refuses a full extract that would delete too much (pure).

Rule: ``docs/reference/semantics.md``, "Full extracts".
"""

from __future__ import annotations

from freezeframe.errors import TooManyDeletions
from freezeframe.store.model.update_options import Update


def require_few_deletions(update: Update, *, lost: int, live: int) -> None:
    """Refuse an extract that lacks more than ``max_delete_ratio`` of the ``live`` rows.

    ``live`` are the stored rows that are neither flagged as deleted nor of the past.

    Raises:
        TooManyDeletions: it lacks more than it may; the message tells count and ratio.
    """
    if not live or lost / live <= update.max_delete_ratio:
        return
    raise TooManyDeletions(
        f"The full extract would delete {lost} of {live} rows ({lost / live:.0%}); "
        f"at most {update.max_delete_ratio:.0%} are allowed.",
        cause="Their keys are not in the batch: it may have been cut off, filtered, or be empty.",
        remedy=f"If they are gone for good, pass max_delete_ratio={_ratio_that_allows(lost, live)}; "
        "1.0 allows everything, an empty batch included.",
        deleted=lost,
        stored=live,
        ratio=lost / live,
        max_delete_ratio=update.max_delete_ratio,
    )


def _ratio_that_allows(lost: int, live: int) -> float:
    """The smallest ratio in whole percent that permits this number of deletions."""
    return -(-100 * lost // live) / 100
