"""The control database: jobs, schedules, keys, sessions and the audit, beside the snapshots themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.control.database import ControlDatabase
    from freezeframe.control.queue import JobQueue

__all__ = ["ControlDatabase", "JobQueue"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {"ControlDatabase": ".database", "JobQueue": ".queue"})
