"""``engineInfo`` of the commits that this package writes."""

from __future__ import annotations

import functools
import importlib.metadata


@functools.cache
def engine_info() -> str:
    """The writer's name in commits of this package: ``freezeframe/0.2.0``."""
    return f"freezeframe/{importlib.metadata.version('freezeframe')}"
