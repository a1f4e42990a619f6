"""Makes the archive of Spark's classes before the first job, by a server of its own that runs a few."""

import fcntl
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from freezeframe.engine.daemon import private_folder
from freezeframe.engine.java import find_java
from freezeframe.engine.server.launch import CLASSES, archive_command, class_archive
from freezeframe.engine.server.server import running_servers, stop
from freezeframe.engine.server.watcher import whole_lines
from freezeframe.errors import SetupError
from freezeframe.settings import Settings

_LISTING_SECONDS = 600
_STOP_SECONDS = 60.0
_OUTPUT_MAX = 4_000


def make_archive(
    settings: Settings, run_jobs: Callable[[Settings], object], progress: Callable[[str], object]
) -> Path:
    """Return the archive that servers of these settings load their classes from, made if there is none.

    ``run_jobs`` runs what the first job of a day does, with settings by which it starts a server of its own:
    what that loads is archived.
    """
    java = find_java()
    state = private_folder(settings.state_dir)
    archive = class_archive(state, java)
    if archive.exists():  # that of an installation, perhaps, beside which not everybody may write a lock
        return archive
    # A short name, because the names of sockets are in it, and it is removed with all that is in it.
    with archive.with_suffix(".lock").open("a") as lock, tempfile.TemporaryDirectory(prefix="ff-") as name:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.exists():
            return archive
        progress("Running two small jobs, to see which classes Spark loads")
        own = {"state_dir": Path(name) / "state", "spark": "auto", "spark_idle_seconds": _LISTING_SECONDS}
        training = settings.model_copy(update={**own, "engine": "spark", "runner_idle_seconds": 0})
        classes, draft = Path(name) / CLASSES, archive.with_suffix(".new")
        try:
            run_jobs(training)
            (server,) = running_servers(training)
            (found,) = server.folder.glob(f"work-*/{CLASSES}")
            classes.write_bytes(whole_lines(found))
        finally:
            for server in running_servers(training):
                stop(server, _STOP_SECONDS, at_once=True)
        progress("Archiving them")
        done = subprocess.run(  # noqa: S603 - our own command line
            archive_command(java, classes, draft), capture_output=True, text=True, check=False
        )
        if done.returncode:
            draft.unlink(missing_ok=True)
            raise SetupError(
                "Java did not archive Spark's classes.",
                cause=(done.stderr or done.stdout).strip()[-_OUTPUT_MAX:],
                remedy="Jobs run without the archive; free some memory or disk and try it again.",
            )
        draft.replace(archive)
    return archive
