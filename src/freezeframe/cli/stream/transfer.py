"""``freezeframe stream import|export``: a stream from and to one file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.places.options import (
    DryRun,
    Json,
    Message,
    SeenVersion,
    StreamArgument,
    StreamVersion,
    Who,
    Yes,
)
from freezeframe.cli.places.place import Place
from freezeframe.cli.terminal.confirmation import require_yes
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import progress
from freezeframe.cli.terminal.receipts import receipt_fields

if TYPE_CHECKING:
    from freezeframe.store import Receipt, Tenant
    from freezeframe.store.job import Job

_HERE = Path()


class _SeenEnough(Exception):
    """Aborts the job of a dry run."""


class Kind(StrEnum):
    """File formats of an export."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"


class Mode(StrEnum):
    """Update mode of an import."""

    UPSERT = "upsert"
    FULL = "full"


def export(
    place: Place,
    name: StreamArgument,
    folder: Annotated[Path, typer.Option("--to", help="The folder to write the file to.")] = _HERE,
    kind: Annotated[Kind, typer.Option(help="csv, parquet or jsonl.")] = Kind.CSV,
    version: SeenVersion = None,
    stream_version: StreamVersion = None,
    as_json: Json = False,
) -> None:
    """Write a stream to a file.

    NAME.snapshot.csv, .parquet or .jsonl, with a schema file beside text.
    """
    from freezeframe.script.inputs.transfer import export_stream

    stream = place.tenant().stream(name)
    with progress(f"Exporting {name}", as_json=as_json):
        file = export_stream(stream, folder, kind.value, version=version, stream_version=stream_version)
    Output(as_json=as_json).record(_export_fields(name, file, kind))


def export_streams(
    tenant: Tenant, names: tuple[str, ...], folder: Path, kind: Kind, version: int
) -> list[dict[str, object]]:
    """Write the streams as they are in a version of the tenant; what ``--json`` prints of each.

    Raises:
        InvalidOption: one of the files is there already; nothing is written then.
        StreamNotFound, VersionNotFound: there is no such stream or version; nothing is written then.
    """
    from freezeframe.script.inputs.transfer import export_stream, new_file

    streams = [tenant.stream(name) for name in names]
    for stream in streams:
        new_file(stream.name, folder, kind.value)
        stream.row_count(version)
    return [
        _export_fields(stream.name, export_stream(stream, folder, kind.value, version=version), kind)
        for stream in streams
    ]


def _export_fields(name: str, file: Path, kind: Kind) -> dict[str, object]:
    from freezeframe.script.inputs.transfer import schema_file

    return {
        "stream": name,
        "file": str(file),
        "schema": None if kind is Kind.PARQUET else str(schema_file(file)),
    }


def import_rows(
    place: Place,
    name: StreamArgument,
    file: Annotated[Path, typer.Argument(help="A .csv, .parquet, .jsonl, .ndjson or .arrow file.")],
    key: Annotated[
        list[str] | None, typer.Option(help="A column of the key; needed by a new stream without schema.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The schema file; every value must fit its types.")
    ] = None,
    mode: Annotated[
        Mode, typer.Option(help="upsert, or full: rows missing from the file are deleted.")
    ] = Mode.UPSERT,
    message: Message = None,
    who: Who = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Bring a file's rows into a stream.

    A full extract also deletes the rows that it lacks.
    """
    tenant = place.tenant()
    if mode is Mode.FULL and not (dry_run or yes):
        require_yes(f"Delete the rows of {name} that {file} lacks?")
    given = FileImport(name, file, tuple(key or ()), schema, mode)
    with progress(f"Importing {file.name}", as_json=as_json):
        told = import_as_version(tenant, [given], message or f"import {file.name}", who, dry_run=dry_run)
    Output(as_json=as_json).record(receipt_fields(told[0].to_json()))


@dataclass(frozen=True, slots=True)
class FileImport:
    """An import of one file into a stream."""

    name: str
    file: Path
    key: tuple[str, ...]
    schema: Path | None
    mode: Mode

    def carried_out(self, job: Job) -> Receipt:
        """Import the file as a part of a job."""
        from freezeframe.script.inputs.transfer import import_stream

        stream = job.stream(self.name)
        return import_stream(
            stream, self.file, self.key or None, schema_from=self.schema, mode=self.mode.value
        )


def import_as_version(
    tenant: Tenant, files: list[FileImport], message: str, who: str | None, *, dry_run: bool
) -> list[Receipt]:
    """Import the files as one version of the tenant, or preview that."""
    told: list[Receipt] = []
    with suppress(_SeenEnough), tenant.job(message=message, who=who) as job:
        told = [one.carried_out(job) for one in files]
        if dry_run:
            raise _SeenEnough
    if dry_run:
        return [replace(receipt, committed=False) for receipt in told]
    # A stream that came in several files has one receipt for all of them.
    return [job.receipt.streams[name] for name in dict.fromkeys(receipt.stream for receipt in told)]
