"""A Python process with everything imported, from which each job's process is forked."""

from __future__ import annotations

from freezeframe.runs.warm.spawning import Process, spawn

__all__ = ["Process", "spawn"]
