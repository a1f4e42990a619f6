"""Runs several updates of one call concurrently and batches their Spark queries.

An update of a few thousand rows spends nearly all its time on a Spark query. A job that updates ten streams
in one call sends one query in place of ten: see `engine.protocol.query_batcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from freezeframe.engine.protocol.query_batcher import QueryBatcher
from freezeframe.engine.protocol.table_engine import TableEngine

TOGETHER_MAX = 16
"""So many at once: more would make Spark's plan long and hold more rows than one update at a time."""

_Done = TypeVar("_Done")


def run_together(
    engine: TableEngine, works: Sequence[Callable[[TableEngine], _Done]]
) -> list[_Done | Exception]:
    """The result or error of each work, in order; each work receives the engine to use.

    They are done in threads, so no two of them may touch the same stream.
    """
    outcomes: list[_Done | Exception] = []
    for begin in range(0, len(works), TOGETHER_MAX):
        group = works[begin : begin + TOGETHER_MAX]
        meeting = QueryBatcher(engine, len(group))
        with ThreadPoolExecutor(len(group)) as pool:
            outcomes += pool.map(lambda work, meeting=meeting: _outcome(work, meeting), group)
    return outcomes


def _outcome(work: Callable[[TableEngine], _Done], meeting: QueryBatcher) -> _Done | Exception:
    try:
        with meeting.party():
            return work(meeting)
    except Exception as error:  # noqa: BLE001 - the caller raises it, once the others have come to an end
        return error
