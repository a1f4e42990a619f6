"""The options of a run, shared by the commands that queue and schedule one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.errors import InvalidOption

if TYPE_CHECKING:
    from freezeframe.runs.model.request import RunRequest, Scalar

Script = Annotated[Path, typer.Argument(metavar="SCRIPT", help="The script: etl.py or etl.ipynb.")]
Flow = Annotated[str, typer.Option("--flow", help="The flow, for the script's FLOW.")]
Input = Annotated[Path | None, typer.Option("--input", help="The folder with the sync's output.")]
Parameters = Annotated[
    list[str] | None, typer.Option("--param", help="A parameter as name=value; may be repeated.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", min=0.001, help="Time limit of an attempt in seconds; --wait-timeout limits the wait."
    ),
]
Memory = Annotated[
    int | None, typer.Option("--memory", min=1, help="Bytes of memory that the script may use.")
]
Config = Annotated[Path | None, typer.Option("--config", help="The connector's settings: config.json.")]
State = Annotated[Path | None, typer.Option("--state", help="The sync's bookmarks: state.json.")]
Catalog = Annotated[Path | None, typer.Option("--catalog", help="The streams' schemas: catalog.json.")]
Connector = Annotated[str, typer.Option("--connector", help="For the script's CONNECTOR_ID.")]
JobType = Annotated[str, typer.Option("--job-type", help="For the script's JOB_TYPE.")]
SyncType = Annotated[
    str, typer.Option("--sync-type", help="For the script's SYNC_TYPE (default: by state.json).")
]
Attempts = Annotated[int, typer.Option("--attempts", min=1, max=100, help="Number of attempts at most.")]
Priority = Annotated[int, typer.Option("--priority", help="Priority; higher ones run first.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of a run from the command line; paths are relative to the current directory."""

    script: Path
    flow: str
    input_dir: Path | None
    parameters: Sequence[str] | None
    timeout_seconds: float | None
    memory_bytes: int | None
    message: str | None
    who: str | None
    files: Mapping[str, Path | None]
    """``config``, ``state`` and ``catalog``."""
    names: Mapping[str, str]
    """``connector_id``, ``job_type`` and ``sync_type``."""

    def request(self, root: str, environment: str, tenant: str, job_id: str) -> RunRequest:
        """The request, with paths that a worker in another directory can open.

        Raises:
            InputNotFound: a file or folder that is named does not exist.
            InvalidOption: a parameter is not a name=value, or anything else that cannot be.
        """
        from freezeframe.runs.model.given_paths import given_file, given_folder
        from freezeframe.runs.model.request import RunRequest

        script = given_file(self.script, "script")
        input_dir = None if self.input_dir is None else given_folder(self.input_dir, "sync's output")
        options: dict[str, Any] = {name: _given_path(path, name) for name, path in self.files.items()}
        options |= self.names
        return RunRequest(
            root=root if "://" in root else str(Path(root).resolve()),
            environment=environment,
            tenant=tenant,
            script=script,
            job_id=job_id,
            flow=self.flow,
            input_dir=input_dir,
            parameters=dict(map(_parameter, self.parameters or ())),
            timeout_seconds=self.timeout_seconds,
            memory_bytes=self.memory_bytes,
            message=self.message or "",
            who=self.who or "",
            **options,
        )


def _given_path(path: Path | None, name: str) -> Path | None:
    from freezeframe.runs.model.given_paths import given_file

    return None if path is None else given_file(path, f"{name} file")


def _parameter(text: str) -> tuple[str, Scalar]:
    """``limit=5`` is a number, ``full=true`` a truth value, ``name="5"`` and ``name=abc`` are text."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InvalidOption(
            f"{text!r} is not a parameter.",
            cause="It has no name before an equals sign.",
            remedy="Write it as name=value.",
        )
    try:
        found = json.loads(value)
    except ValueError:
        return name, value
    return name, found if isinstance(found, str | int | float | bool | None) else value
