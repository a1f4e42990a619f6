"""The order of a Spark frame's rows, where it is known: that of the files which the frame reads.

A frame is marked by the reader that knows the order of its files. What is derived from it without moving
rows between partitions has them in the same order, so Spark can number them (decision 0040).
"""

from __future__ import annotations

import contextlib
from typing import Any

# What Spark Connect calls the steps that keep the rows of each partition in their order.
_KEEPING = frozenset(
    {"Drop", "Filter", "Hint", "MapPartitions", "NADrop", "NAFill", "NAReplace", "Project", "SubqueryAlias"}
) | {"ToDF", "ToSchema", "WithColumns", "WithColumnsRenamed"}
_MARK = "_freezeframe_in_file_order"


def mark_file_order(frame: Any) -> Any:
    """The frame, known to have its rows in the order of their files."""
    with contextlib.suppress(AttributeError):
        setattr(getattr(frame, "_plan", frame), _MARK, True)
    return frame


def numbered_rows(frame: Any, name: str) -> Any | None:
    """The frame with a column of growing numbers; None if the order of its rows is not that of files."""
    step = getattr(frame, "_plan", frame)
    while not getattr(step, _MARK, False):
        if type(step).__name__ not in _KEEPING:
            return None
        step = step._child  # noqa: SLF001 - the plan of a Connect frame is a chain of these
    # A window function is a part of a projection, and moves rows.
    if step is not getattr(frame, "_plan", frame) and "Exchange" in frame._explain_string():  # noqa: SLF001
        return None
    return frame.selectExpr("*", f"monotonically_increasing_id() as {name}")
