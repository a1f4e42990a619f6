"""Adopted snapshot files in a run's working copy: refreshed before the run.

What a tenant keeps as a file is what its stream adopted last; the rows since then are the stream's. So
a run's copy is written anew from the stream before the script begins, for scripts that open it, and what
freezeframe wrote there itself is not a change of the file. What the script wrote is one, and is kept.
Rules: ``docs/reference/gluestick.md``, "Existing files".
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from freezeframe.script.adoption.legacy import export_adopted, snapshot_file_stream
from freezeframe.store.run_tenant import JobTenant


def refresh_copies(folder: Path, tenant: JobTenant, paths: Collection[str]) -> None:
    """Write those of the checked-out files that streams adopted anew, as of the job's beginning.

    The job has not read the streams by that: it meets no conflict over one that its script leaves alone.
    """
    names = {snapshot_file_stream(path) for path in paths} & set(tenant.streams())
    if names:
        view = tenant.at(tenant.version)
        for name in sorted(filter(None, names)):
            export_adopted(folder, view.stream(name))
