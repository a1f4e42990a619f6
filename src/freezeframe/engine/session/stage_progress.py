"""Progress of a long Spark query, from its server's reports every two seconds."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from pyspark.sql.connect.shell.progress import StageInfo

from freezeframe import progress


def tell_stages(
    stages: Iterable[StageInfo] | None,
    inflight_tasks: int,  # noqa: ARG001 - Spark gives its arguments by these names
    operation_id: str | None,  # noqa: ARG001
    done: bool,  # noqa: FBT001
) -> None:
    """Report stages to this thread's watcher; for ``SparkSession.registerProgressHandler``."""
    # Spark calls it between two responses: an error here would fail the query.
    with suppress(Exception):
        progress.wait_for("" if done else _describe(list(stages or ())))


def _describe(stages: list[StageInfo]) -> str:
    tasks = sum(stage.num_tasks for stage in stages)
    ended = sum(stage.num_completed_tasks for stage in stages)
    return f"Spark: {ended:,} of {tasks:,} tasks, {sum(item.done for item in stages)} of {len(stages)} stages"
