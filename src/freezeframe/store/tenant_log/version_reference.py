"""Version references of callers: number, tag or time."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import datetime
from typing import Any, SupportsIndex

from freezeframe.errors import InvalidOption
from freezeframe.store.table.reader import moment
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import TenantState

Point = int | datetime | str
"""A version's number; a tag's name; or a moment (ISO text is UTC without a zone): its newest version then."""


def version_at_point(log: TenantLog, newest: TenantState, point: Point) -> int:
    """The number of the version; text is a tag where there is one of that name.

    Whether the version is kept is not asked.
    """
    if isinstance(point, SupportsIndex):
        return operator.index(point)
    if isinstance(point, str) and point in newest.tags:
        return newest.tags[point]
    try:
        return log.version_at(moment(point))
    except InvalidOption as error:
        tags = ", ".join(map(repr, sorted(newest.tags)))
        raise InvalidOption(
            f"{point!r} is not a version, tag or moment.",
            cause=f"The tags are {tags}." if tags else "The tenant has no tags.",
            remedy="Pass a version's number, a tag, or ISO text such as 2026-11-20T14:05:00Z.",
        ) from error


def require_one_version(given: Mapping[str, Any]) -> None:
    """Refuse a call that says more than once which version it means, by the names of its options."""
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InvalidOption(
            f"{' and '.join(named)} cannot be used together.",
            cause="Each of them says by itself which version is meant.",
            remedy="Give one of them.",
        )
