"""``freezeframe log``: what the log of a Delta table says, without Spark.

With ``--json`` each command prints one JSON value on standard output: the result, or
``{"error": {"code", "message"}}`` with an exit code other than 0.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.terminal.exit_codes import FAILED, exit_code
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import FreezeframeError, InputNotFound, InvalidOption

if TYPE_CHECKING:
    from freezeframe.log import DeltaLog, Snapshot

app = typer.Typer(no_args_is_help=True)

Table = Annotated[Path, typer.Argument(help="The table's directory: the one that holds _delta_log.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def show(
    path: Table,
    version: Annotated[int | None, typer.Option(help="The version; the newest without it.")] = None,
    as_of: Annotated[str | None, typer.Option(help="A moment in ISO form; UTC without a zone.")] = None,
    as_json: Json = False,
) -> None:
    """Show one version of a table: protocol, metadata, log segment, files, transactions."""
    with _answers(as_json=as_json):
        log = _open(path)
        if version is None and as_of is None:
            snapshot = log.update()
        else:
            snapshot = log.snapshot_at(version, None if as_of is None else _moment(as_of))
        fields = describe(snapshot)
        if as_json:
            _print(fields)
        else:
            _show_text(fields, snapshot)


@app.command()
def history(
    path: Table,
    limit: Annotated[int | None, typer.Option(min=1, help="How many versions at most.")] = None,
    as_json: Json = False,
) -> None:
    """List the versions of a table, newest first: time, operation and what the writer said."""
    with _answers(as_json=as_json):
        entries = [entry.to_json() for entry in _open(path).history(limit)]
        if as_json:
            _print(entries)
        else:
            Output().table(str(path), entries, columns=("version", "timestamp", "operation", "engineInfo"))


@app.command()
def verify(path: Table, as_json: Json = False) -> None:
    """Read every file of the log and of the newest version; name each that is damaged (exit code 1)."""
    from freezeframe.log.table.verification import verify_log
    from freezeframe.storage import LocalStorage

    with _answers(as_json=as_json):
        _require_folder(path)
        findings = verify_log(LocalStorage(path), "_delta_log")
        if not findings:
            findings = _open(path).verify()
        rows = [
            {"file": finding.file, "code": finding.code, "problem": finding.problem} for finding in findings
        ]
        if as_json:
            _print({"sound": not rows, "findings": rows})
        elif rows:
            Output().table(f"{path} is damaged", rows)
        else:
            Output().line(f"{path} is sound: every file of the log and of the newest version was read.")
    if findings:
        raise typer.Exit(FAILED)


@app.command()
def checkpoint(path: Table, as_json: Json = False) -> None:
    """Write a checkpoint of the newest version, so that readers need not replay what came before."""
    from freezeframe.log.write.checkpoint_writer import write_checkpoint

    with _answers(as_json=as_json):
        hint = write_checkpoint(_open(path).update())
        fields = {
            "version": hint.version,
            "actions": hint.size,
            "parts": hint.parts or 1,
            "bytes": hint.size_in_bytes,
        }
        if as_json:
            _print(fields)
        else:
            Output().record(fields)


def describe(snapshot: Snapshot) -> dict[str, Any]:
    """The snapshot as a JSON object; of a table that holds nothing, the version -1 alone."""
    if not snapshot.exists:
        return {"version": snapshot.version}
    schema = snapshot.schema
    return {
        "version": snapshot.version,
        "protocol": snapshot.protocol.to_json(),
        "metadata": {
            "id": snapshot.metadata.id,
            "partitionColumns": list(snapshot.metadata.partition_columns),
            "configuration": dict(snapshot.metadata.configuration),
            "schema": schema if snapshot.metadata.schema_string else None,
        },
        "segment": {
            "checkpointVersion": snapshot.segment.checkpoint_version,
            "deltas": [file.name for file in snapshot.segment.deltas],
        },
        "files": [_file(row) for row in _sorted_files(snapshot)],
        "numTombstones": snapshot.tombstones.num_rows,
        "transactions": {app_id: txn.version for app_id, txn in sorted(snapshot.transactions.items())},
    }


def _sorted_files(snapshot: Snapshot) -> list[dict[str, Any]]:
    wanted = snapshot.files.select(["path", "size", "partition_values", "deletion_vector"])
    return sorted(wanted.to_pylist(), key=lambda row: (row["path"], _vector(row) or ""))


def _file(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "path": row["path"],
        "size": row["size"],
        "partitionValues": dict(row["partition_values"] or []),
        "dv": _vector(row),
    }


def _vector(row: dict[str, Any]) -> str | None:
    vector = row["deletion_vector"]
    return None if vector is None else str(vector["pathOrInlineDv"])


def _show_text(fields: dict[str, Any], snapshot: Snapshot) -> None:
    output = Output()
    if not snapshot.exists:
        output.line(f"{snapshot.path} holds no table yet.")
        return
    names = [field["name"] for field in snapshot.schema["fields"]]
    segment = fields["segment"]
    output.record(
        {
            "table": snapshot.path,
            "id": fields["metadata"]["id"],
            "version": fields["version"],
            "protocol": json.dumps(fields["protocol"]),
            "columns": names,
            "partitioned by": fields["metadata"]["partitionColumns"],
            "files": snapshot.count,
            "bytes": snapshot.size,
            "tombstones": fields["numTombstones"],
            "checkpoint": segment["checkpointVersion"],
            "commits after it": len(segment["deltas"]),
            "transactions": [f"{app_id}: {version}" for app_id, version in fields["transactions"].items()],
        }
    )


def _open(path: Path) -> DeltaLog:
    from freezeframe.log import DeltaLog

    _require_folder(path)
    return DeltaLog.for_table(path)


def _require_folder(path: Path) -> None:
    if not path.is_dir():
        raise InputNotFound(
            f"There is no directory {path}.", remedy="Name the directory that holds _delta_log."
        )


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidOption(
            f"{text!r} is no moment.", cause=str(error), remedy="Write it as 2026-11-21T08:00:00Z."
        ) from error


@contextmanager
def _answers(*, as_json: bool) -> Iterator[None]:
    """What goes wrong becomes the command's JSON answer; as text the main command prints it."""
    try:
        yield
    except FreezeframeError as error:
        if not as_json:
            raise
        _print({"error": {"code": error.error_code, "message": str(error)}})
        raise typer.Exit(exit_code(error)) from error


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
