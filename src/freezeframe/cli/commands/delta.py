"""``freezeframe delta``: the transaction log of a Delta table, read without Spark."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.options import Json, parse_moment
from freezeframe.cli.output import FAILED, Output
from freezeframe.errors import InputNotFound

if TYPE_CHECKING:
    from freezeframe.log import DeltaLog, Snapshot


app = typer.Typer(no_args_is_help=True)

Table = Annotated[Path, typer.Argument(help="The table's directory: the one that holds _delta_log.")]


@app.command()
def show(
    path: Table,
    version: Annotated[int | None, typer.Option(help="The version (default: the newest).")] = None,
    as_of: Annotated[str | None, typer.Option(help="A moment in ISO form; UTC without a zone.")] = None,
    as_json: Json = False,
) -> None:
    """Show one version of a table: protocol, metadata, log segment, files, transactions."""
    log = _open(path)
    if version is None and as_of is None:
        snapshot = log.update()
    else:
        snapshot = log.snapshot_at(version, None if as_of is None else parse_moment(as_of))
    fields = describe(snapshot)
    if as_json:
        Output(as_json=True).record(fields)
    else:
        _show_text(fields, snapshot)


@app.command()
def history(
    path: Table,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of versions at most.")] = None,
    as_json: Json = False,
) -> None:
    """List the versions of a table, newest first: time, operation and what the writer said."""
    entries = [_history_entry(entry.to_json()) for entry in _open(path).history(limit)]
    columns = ("version", "timestamp", "operation", "engine_info")
    Output(as_json=as_json).table(str(path), entries, columns)


@app.command()
def verify(path: Table, as_json: Json = False) -> None:
    """Read every file of the log and of the newest version; name each that is damaged (exit code 1)."""
    from freezeframe.log.table.verification import verify_log
    from freezeframe.storage import LocalStorage

    _require_folder(path)
    findings = verify_log(LocalStorage(path), "_delta_log") or _open(path).maintenance.verify()
    rows = [asdict(finding) for finding in findings]
    output = Output(as_json=as_json)
    if as_json:
        output.record({"sound": not rows, "findings": rows})
    elif rows:
        output.table(f"{path} is damaged", rows)
    else:
        output.line(f"{path} is sound: every file of the log and of the newest version was read.")
    if findings:
        raise typer.Exit(FAILED)


@app.command()
def checkpoint(path: Table, as_json: Json = False) -> None:
    """Write a checkpoint of the newest version, so that readers need not replay what came before."""
    hint = _open(path).maintenance.checkpoint()
    fields = {"version": hint.version, "actions": hint.size, "parts": hint.parts or 1}
    Output(as_json=as_json).record({**fields, "bytes": hint.size_in_bytes})


def describe(snapshot: Snapshot) -> dict[str, Any]:
    """Return the snapshot as a JSON object; of an empty table only the version -1."""
    if not snapshot.exists:
        return {"version": snapshot.version}
    protocol, schema = snapshot.protocol.to_json(), snapshot.delta_schema
    return {
        "version": snapshot.version,
        "protocol": {
            "min_reader_version": protocol["minReaderVersion"],
            "min_writer_version": protocol["minWriterVersion"],
            "reader_features": protocol.get("readerFeatures"),
            "writer_features": protocol.get("writerFeatures"),
        },
        "metadata": {
            "id": snapshot.metadata.id,
            "partition_columns": list(snapshot.metadata.partition_columns),
            "configuration": dict(snapshot.metadata.configuration),
            "schema": schema if snapshot.metadata.schema_string else None,
        },
        "segment": {
            "checkpoint_version": snapshot.segment.checkpoint_version,
            "deltas": [file.name for file in snapshot.segment.deltas],
        },
        "files": [_file(row) for row in _sorted_files(snapshot)],
        "tombstones": snapshot.tombstones.num_rows,
        "transactions": {app_id: txn.version for app_id, txn in sorted(snapshot.transactions.items())},
    }


def _history_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a version; ``commit_info`` holds what its writer noted, under the names of Delta's protocol."""
    moment = {"version": entry.pop("version"), "timestamp": entry.pop("timestamp")}
    summary = {"operation": entry.get("operation"), "engine_info": entry.get("engineInfo")}
    return {**moment, **summary, "commit_info": entry}


def _sorted_files(snapshot: Snapshot) -> list[dict[str, Any]]:
    wanted = snapshot.file_list.select(["path", "size", "partition_values", "deletion_vector"])
    return sorted(wanted.to_pylist(), key=lambda row: (row["path"], _vector(row) or ""))


def _file(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "path": row["path"],
        "size": row["size"],
        "partition_values": dict(row["partition_values"] or []),
        "deletion_vector": _vector(row),
    }


def _vector(row: dict[str, Any]) -> str | None:
    vector = row["deletion_vector"]
    return None if vector is None else str(vector["pathOrInlineDv"])


def _show_text(fields: dict[str, Any], snapshot: Snapshot) -> None:
    output = Output()
    if not snapshot.exists:
        output.line(f"{snapshot.path} holds no table yet.")
        return
    names = [field["name"] for field in snapshot.delta_schema["fields"]]
    segment = fields["segment"]
    output.record(
        {
            "table": snapshot.path,
            "id": fields["metadata"]["id"],
            "version": fields["version"],
            "protocol": json.dumps(fields["protocol"]),
            "columns": names,
            "partitioned by": fields["metadata"]["partition_columns"],
            "files": snapshot.count,
            "bytes": snapshot.size,
            "tombstones": fields["tombstones"],
            "checkpoint": segment["checkpoint_version"],
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
