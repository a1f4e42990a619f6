"""A read-only view of a directory that a job's script opens and that is not the job's own."""

from __future__ import annotations

from pathlib import Path

from freezeframe.errors import InvalidOption
from freezeframe.store.transaction.tenant_guard import NoGuard


class OutsideJob(NoGuard):
    """The guard of such a directory; ``folder`` is the job's snapshot directory."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        self._folder = folder

    def require_writable(self) -> None:
        """See ``TenantGuard.require_writable``.

        Raises:
            InvalidOption: always.
        """
        raise InvalidOption(
            f"{self._path} is not the snapshot directory of this job.",
            cause="What is written there is no part of the job's one commit; below the job's root it is "
            "thrown away with it.",
            remedy=f"Write to {self._folder}, which is ROOT_DIR/snapshots.",
            code="OUTSIDE_JOB",
            path=str(self._path),
        )
