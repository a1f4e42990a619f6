"""``freezeframe stream import|export``: a stream from and to one file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.places.place import (
    DryRun,
    Json,
    Message,
    Place,
    SeenVersion,
    StreamArgument,
    StreamVersion,
    Who,
    Yes,
)
from freezeframe.cli.places.update_flags import require_yes_for, with_csv, with_update
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import progress
from freezeframe.errors import InvalidOption
from freezeframe.store.model.update_options import UpdateOptions, replaces_rows

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
    from freezeframe.script.transfer import export_stream

    stream = place.tenant().stream(name)
    with progress(f"Exporting {name}", as_json=as_json):
        file = export_stream(stream, folder, kind.value, version=version, stream_version=stream_version)
    Output(as_json=as_json).record(_export_fields(name, file, kind))


def export_streams(
    tenant: Tenant, names: tuple[str, ...], folder: Path, kind: Kind, version: int
) -> list[dict[str, object]]:
    """Write the streams as they are in a version of the tenant; what ``--json`` prints of each."""
    from freezeframe.script.transfer import export_stream, new_file

    streams = [tenant.stream(name) for name in names]
    for stream in streams:
        new_file(stream.name, folder, kind.value)
        stream.row_count(version)
    return [
        _export_fields(stream.name, export_stream(stream, folder, kind.value, version=version), kind)
        for stream in streams
    ]


def _export_fields(name: str, file: Path, kind: Kind) -> dict[str, object]:
    from freezeframe.script.transfer import schema_file

    return {
        "stream": name,
        "file": str(file),
        "schema": None if kind is Kind.PARQUET else str(schema_file(file)),
    }


SchemaFrom = Annotated[
    Path | None,
    typer.Option(
        "--schema-from",
        help="The schema file, whose types every value must fit (default: the one beside an exported file).",
    ),
]
Key = Annotated[list[str] | None, typer.Option(help="A column of the key (default: the stream's).")]


@with_csv
@with_update
def import_rows(
    place: Place,
    name: StreamArgument,
    file: Annotated[Path, typer.Argument(help="A .csv, .tsv, .parquet, .jsonl, .json or .arrow file.")],
    key: Key = None,
    schema_from: SchemaFrom = None,
    *,
    csv: dict[str, Any],
    update: UpdateOptions,
    message: Message = None,
    who: Who = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Bring a file's rows into a stream.

    By key they are inserted or update stored rows; --mode full also deletes the rows that the file lacks,
    --override and --replace-where replace all rows, or some, and need no key.
    """
    tenant = place.tenant()
    if not (dry_run or yes):
        require_yes_for(update, [name], str(file))
    given = FileImport(name, file, tuple(key or ()), schema_from, update, csv)
    with progress(f"Importing {file.name}", as_json=as_json):
        told = import_as_version(tenant, [given], message or f"import {file.name}", who, dry_run=dry_run)
    Output(as_json=as_json).record(told[0].to_json())


@dataclass(frozen=True, slots=True)
class FileImport:
    """An import of one file into a stream."""

    name: str
    file: Path
    key: tuple[str, ...]
    schema: Path | None
    update: UpdateOptions
    csv: dict[str, Any]

    def carried_out(self, job: Job) -> Receipt:
        """Import the file as a part of a job."""
        from freezeframe.script.transfer import import_stream

        stream = job.stream(self.name)
        given = {"schema_from": self.schema, **self.csv, **self.update}
        return import_stream(stream, self.file, self.key or None, **given)


def import_as_version(
    tenant: Tenant, files: list[FileImport], message: str, who: str | None, *, dry_run: bool
) -> list[Receipt]:
    """Import the files as one version of the tenant, or preview that."""
    _require_one_file_a_stream(files)
    told: list[Receipt] = []
    with suppress(_SeenEnough), tenant.job(message=message, who=who) as job:
        told = [file.carried_out(job) for file in files]
        if dry_run:
            raise _SeenEnough
    if dry_run:
        return [replace(receipt, committed=False) for receipt in told]
    # A stream that came in several files has one receipt for all of them.
    return [job.receipt.streams[name] for name in dict.fromkeys(receipt.stream for receipt in told)]


def _require_one_file_a_stream(files: list[FileImport]) -> None:
    names = [file.name for file in files]
    for file in files:
        replaces = file.update.get("mode") == "full" or replaces_rows(file.update)
        if replaces and names.count(file.name) > 1:
            raise InvalidOption(
                f"{names.count(file.name)} files are of the stream {file.name!r}.",
                cause="Each would replace the rows of the one before it.",
                remedy="Import the full file alone, or join the files first.",
                stream=file.name,
            )
