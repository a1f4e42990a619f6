"""A support bundle (zip): versions, settings without secrets, findings, the ends of logs."""

from __future__ import annotations

import json
import os
import platform
import zipfile
from collections.abc import Sequence
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from freezeframe.cli.checks.finding import Finding
from freezeframe.cli.checks.software import installed_version
from freezeframe.configuration.masking import mask_secrets, masked_value
from freezeframe.settings import Settings
from freezeframe.storage.local import failure

_TAIL_BYTES = 64 * 1024
_LOGS_MAX = 20


def write_bundle(target: Path, findings: Sequence[Finding], settings: Settings) -> None:
    """Write a new zip (mode 0600) with ``versions.json``, ``settings.json``, ``findings.json`` and ``logs/``.

    Raises:
        StorageUnavailable: it could not be written.
    """
    values = {name: masked_value(Settings, name, getattr(settings, name)) for name in Settings.model_fields}
    texts = {
        "versions.json": _json(_versions()),
        "settings.json": _json(values),
        "findings.json": _json([one.to_json() for one in findings]),
        **{f"logs/{name}": text for name, text in _logs(settings.state_dir).items()},
    }
    try:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
            for name, text in texts.items():
                bundle.writestr(name, text)
    except OSError as error:
        raise failure("write", str(target), error) from error


def _versions() -> dict[str, Any]:
    names = sorted({Requirement(one).name for one in requires("freezeframe") or ()})
    return {
        "freezeframe": version("freezeframe"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: installed_version(name) for name in names},
        # Only the names: the values may be secret.
        "variables": sorted(name for name in os.environ if name.startswith(("FREEZEFRAME_", "SPARK_"))),
    }


def _logs(folder: Path) -> dict[str, str]:
    """The ends of the newest logs by their names below the folder, passwords and tokens masked."""
    if not folder.is_dir():
        return {}
    files = sorted(folder.rglob("*.log"), key=lambda file: file.stat().st_mtime, reverse=True)
    return {str(file.relative_to(folder)): mask_secrets(_tail(file)) for file in files[:_LOGS_MAX]}


def _tail(file: Path) -> str:
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        return log.read().decode(errors="replace")


def _json(value: object) -> str:
    return json.dumps(value, indent=2, default=str) + "\n"
