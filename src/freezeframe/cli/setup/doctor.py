"""``freezeframe doctor``: checks that this machine has what jobs need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.places.place import Json
from freezeframe.cli.terminal.exit_codes import FAILED
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import FreezeframeError, InputNotFound, InvalidOption

if TYPE_CHECKING:
    from freezeframe.cli.checks.machine import Finding
    from freezeframe.settings import Settings

_MARKS = {"ok": "ok", "warning": "warning", "error": "ERROR"}


def doctor(
    directory: Annotated[
        Path | None, typer.Option("--dir", help="A folder that will hold snapshots, in the store's place.")
    ] = None,
    root: Annotated[
        str | None, typer.Option("--root", help="The store to look at (default: from the settings).")
    ] = None,
    start_spark: Annotated[
        bool, typer.Option("--start-spark", help="Start Spark if none runs, and ask it for a row.")
    ] = False,
    production: Annotated[
        bool, typer.Option("--production", help="Also check the hardening checklist of a service.")
    ] = False,
    bundle: Annotated[
        Path | None,
        typer.Option(help="Write versions, settings without secrets, findings and logs to a new zip."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that jobs can run here, and say what to do.

    The exit code is 1 if jobs could not run, or could lose what they commit; with --production also where
    a service is not as safe as it can be.
    """
    if directory is not None and root is not None:
        raise InvalidOption("--dir and --root cannot be used together.", remedy="Give one of them.")
    if bundle is not None and (bundle.exists() or bundle.is_symlink()):
        raise InvalidOption(f"{bundle} is there already.", remedy="Name a new file.")
    findings, settings = _examine(directory, root, start_spark=start_spark, production=production)
    output = Output(as_json=as_json)
    if as_json:
        output.table("This machine", [finding.to_json() for finding in findings])
    else:
        rows = [
            {"part": finding.part, "": _MARKS[finding.level], "found": finding.found} for finding in findings
        ]
        output.table("This machine", rows)
        for finding in findings:
            if finding.level != "ok" and finding.remedy:
                output.line(f"{finding.part}: {finding.remedy}")
    if bundle is not None:
        from freezeframe.cli.checks.production import write_bundle

        write_bundle(bundle, findings, settings)
        output.line(f"Written to {bundle}; look into it before you send it to anybody.")
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(FAILED)


def _examine(
    directory: Path | None, root: str | None, *, start_spark: bool, production: bool
) -> tuple[list[Finding], Settings]:
    from freezeframe.cli.checks import machine, places, software
    from freezeframe.cli.checks.machine import looked_at

    told, settings = _settings(root)
    place = str(directory) if directory is not None else settings.root
    folder = places.nearest_folder(Path() if "://" in place else Path(place))

    def storage() -> Finding:
        if directory is not None and not directory.is_dir():
            raise InputNotFound(
                f"There is no directory {directory}.", remedy="Name one that exists by --dir."
            )
        wrong = places.kind(place, settings, is_store=directory is None)
        return wrong or places.storage(place, settings)

    looks = {
        "Python": software.python,
        "Packages": software.packages,
        "Settings": lambda: told or places.settings_files(),
        "Java": lambda: software.java(settings),
        "Spark": lambda: software.started_spark(settings) if start_spark else software.spark(settings),
        "Spark's jars": lambda: software.jars(settings),
        "Storage": storage,
        "Disk": lambda: machine.disk(folder),
        "Clock": lambda: machine.clock(folder),
        "Memory": lambda: machine.memory(settings),
        "Limits": machine.limits,
        "State": lambda: machine.state_folder(settings),
        "Database": lambda: places.database(settings, settings.root),
        "Master key": lambda: places.key(settings),
    }
    if production:
        from freezeframe.cli.checks.production import production_looks

        looks |= production_looks(settings, place)
    return [looked_at(part, look) for part, look in looks.items()], settings


def _settings(root: str | None) -> tuple[Finding | None, Settings]:
    """The settings; if they are invalid, a finding and the defaults for the other checks."""
    from freezeframe.cli.checks.machine import Finding
    from freezeframe.settings import Settings, load_settings

    try:
        return None, load_settings(root=root)
    except FreezeframeError as error:
        told = Finding("Settings", "error", f"{error.problem} {error.cause}".strip(), error.remedy)
        defaults = Settings.model_construct()
        return told, defaults if root is None else defaults.model_copy(update={"root": root})
