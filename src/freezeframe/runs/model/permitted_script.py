"""Permitted scripts of a worker: the configured folder, and the built-in import."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from freezeframe.errors import InvalidOption
from freezeframe.runs.model.request import RunRequest
from freezeframe.settings import Settings

BUILT_IN_IMPORT = Path("freezeframe:import.py")
"""How a request names the product's own import: not by a path, which another installation has elsewhere."""
_IMPORT_SCRIPT = Path(__file__).with_name("import_script.py")


def with_permitted_script(request: RunRequest, settings: Settings) -> RunRequest:
    """The request with the script's real path, links followed; an import gets this version's script.

    Where ``service_scripts_dir`` is set, only files below it may be run, whoever submitted the job: a row
    of the queue is not proof of who wrote it. Without it any path may.

    Raises:
        InvalidOption: the script is outside the folder.
    """
    if request.script == BUILT_IN_IMPORT:
        return replace(request, script=_IMPORT_SCRIPT)
    folder = settings.service_scripts_dir
    if folder is None:
        return request
    script = request.script.resolve()
    if not script.is_relative_to(folder.resolve()):
        raise InvalidOption(
            f"The script {request.script} may not be run.",
            cause=f"Jobs of the queue run only scripts in {folder} (service_scripts_dir), links followed.",
            remedy="Put the script there, or run it by freezeframe run.",
        )
    return replace(request, script=script)
