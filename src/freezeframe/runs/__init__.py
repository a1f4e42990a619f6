"""Running a tenant's transformation script as one job: its folders, its process, its one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.runs.request import RunRequest
    from freezeframe.runs.running import run

__all__ = [
    "RunRequest",
    "run",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "RunRequest": ".request",
            "run": ".running",
        },
    )
