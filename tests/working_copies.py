"""What a run does with a script's working copy."""

import uuid

from freezeframe.runs.process.working_copy import apply_changes, capture, check_out
from freezeframe.script.adoption import adopt_written, refresh_copies
from freezeframe.script.current_job import current_job
from freezeframe.store.snapshot_files import own_exports
from freezeframe.store.tenant import open_script_job


def run_in_working_copy(tenant, place, script):
    """Run a script as a job does, in a folder below the place; return the receipt of its one commit."""
    folder = place / uuid.uuid4().hex
    with open_script_job(tenant.context, folder.name, token="") as job:
        before = check_out(job.files, folder)
        with current_job(folder, job, {}):
            refresh_copies(folder, job, before)
            script(folder)
            changes = capture(folder, before, own_exports(folder))
            adopt_written(folder, job, {*changes.added, *changes.changed} - changes.sealed)
            apply_changes(job.files, folder, changes)
    return job.receipt
