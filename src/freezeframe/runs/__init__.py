"""Running a tenant's transformation script as one job: its folders, its process, its one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.runs.dry_run_changes import kept_changes
    from freezeframe.runs.request import RunRequest
    from freezeframe.runs.running import run

__all__ = ["RunRequest", "kept_changes", "run"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "RunRequest": ".request",
            "kept_changes": ".dry_run_changes",
            "run": ".running",
        },
    )
