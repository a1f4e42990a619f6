"""Base row ids of new files, where the table supports row tracking (section "Row Tracking")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from freezeframe.errors import InvalidOption
from freezeframe.log.actions.actions import Action, Add, DomainMetadata
from freezeframe.log.primitives import json_fields

FEATURE = "rowTracking"
DOMAIN = "delta.rowTracking"
_MARK = "rowIdHighWaterMark"


def assign_row_ids(
    actions: Sequence[Action], domains: Mapping[str, DomainMetadata], version: int
) -> tuple[Action, ...]:
    """Assign base row ids above the high-water mark to new files, and add the new mark to the actions.

    Raises:
        InvalidOption: the statistics of a new file lack its number of rows.
    """
    mark = before = _high_water_mark(domains.get(DOMAIN))
    assigned: list[Action] = []
    for action in actions:
        one = action
        if isinstance(one, Add) and one.base_row_id is None:
            one = replace(one, base_row_id=mark + 1)
            mark += _row_count(one)
        if isinstance(one, Add) and one.default_row_commit_version is None:
            one = replace(one, default_row_commit_version=version)
        assigned.append(one)
    if mark != before:
        assigned.append(DomainMetadata(DOMAIN, json.dumps({_MARK: mark})))
    return tuple(assigned)


def _high_water_mark(domain: DomainMetadata | None) -> int:
    if domain is None or domain.removed:
        return -1
    found = json_fields.whole(json.loads(domain.configuration).get(_MARK))
    return -1 if found is None else found


def _row_count(add: Add) -> int:
    found = json_fields.statistics(add.stats).get("numRecords")
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    raise InvalidOption(
        f"{add.path!r} cannot be added to a table with row ids.",
        cause="Its statistics lack numRecords (Delta protocol, section 'Row Tracking')",
        remedy="Give its statistics.",
        section="Row Tracking",
    )
