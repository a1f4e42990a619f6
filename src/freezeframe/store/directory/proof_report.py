"""The report of the last ``freezeframe prove`` on a store, kept in the store for those who look after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from freezeframe.errors import CorruptData
from freezeframe.storage import Storage
from freezeframe.store.directory.paths import PROOF_FILE
from freezeframe.store.directory.place_kind import is_store


def keep_proof_report(storage: Storage, report: Mapping[str, Any]) -> bool:
    """Keep a report in place of the one before; False where the storage holds no store, and nothing is kept.

    Raises:
        StorageUnavailable: it cannot be written.
    """
    if not is_store(storage):
        return False
    storage.replace(PROOF_FILE, json.dumps(report, ensure_ascii=False).encode())
    return True


def last_proof_report(storage: Storage) -> dict[str, Any] | None:
    """The report that was kept last; None: there is none.

    Raises:
        CorruptData: it is no JSON object.
    """
    try:
        report = json.loads(storage.read(PROOF_FILE))
    except FileNotFoundError:
        return None
    except ValueError:
        report = None
    if not isinstance(report, dict):
        raise CorruptData(
            f"{PROOF_FILE} of the store is damaged.", remedy="Run freezeframe prove again: it writes it anew."
        )
    return report
