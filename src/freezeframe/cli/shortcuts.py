"""``freezeframe import|export|gc``: files of rows into a tenant's streams and out of them, and cleaning.

They share their code with ``stream import``, ``stream export`` and ``tenant gc``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from freezeframe.cli.places.place import (
    Directory,
    DryRun,
    Environment,
    Json,
    Message,
    Place,
    Root,
    SeenVersion,
    TenantOption,
    Who,
    Yes,
    at_place,
    place_of,
    stream_names,
)
from freezeframe.cli.places.update_flags import require_yes_for, with_csv, with_update
from freezeframe.cli.stream.transfer import (
    FileImport,
    Key,
    Kind,
    SchemaFrom,
    export_streams,
    import_as_version,
)
from freezeframe.cli.tenant import maintenance
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import progress
from freezeframe.errors import InputNotFound, InvalidOption
from freezeframe.store.model.update_options import UpdateOptions


@with_csv
@with_update
def import_files(
    place: Place,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of rows (.csv, .parquet, .jsonl, .json), or folders."),
    ],
    stream: Annotated[
        str | None,
        typer.Option(
            "--stream",
            help="The stream, for a single file (default: the beginning of the file's name).",
            autocompletion=stream_names,
        ),
    ] = None,
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
    """Bring files of rows into streams.

    All of them are one version of the tenant, or none is. Account-20261001T060000.csv and
    Account.snapshot.csv belong to the stream Account; a schema file beside the latter is used. By key rows
    are inserted or update stored ones; --mode full also deletes the rows that a file lacks, --override and
    --replace-where replace all rows, or some, and need no key.
    """
    found = [file for path in files for file in _row_files(path)]
    for flag, value in (("--stream names the stream", stream), ("--schema-from is the schema", schema_from)):
        if value is not None and len(found) > 1:
            raise InvalidOption(f"{flag} of one file.", remedy="Leave it out, or give one file.")
    given = [_import(file, stream, tuple(key or ()), schema_from, update, csv) for file in found]
    tenant = place.tenant()
    if not (dry_run or yes):
        require_yes_for(update, [item.name for item in given], "the files" if given[1:] else str(found[0]))
    names = ", ".join(file.name for file in found)
    with progress(f"Importing {names}", as_json=as_json):
        told = import_as_version(tenant, given, message or f"import {names}", who, dry_run=dry_run)
    Output(as_json=as_json).table(str(place), [item.to_json() for item in told], _COLUMNS)


_COLUMNS = ("stream", "tenant_version", "inserted", "updated", "unchanged", "deleted", "committed")


def _row_files(path: Path) -> list[Path]:
    """The path itself, or the files of rows in a folder."""
    from freezeframe.script.inputs import stream_files
    from freezeframe.script.transfer import IMPORTED

    if not path.is_dir():
        return [path]
    found = [file for files in stream_files(path, IMPORTED).values() for file in files]
    if not found:
        raise InputNotFound(
            f"There is no file of rows in {path}.",
            cause=f"Such files end with {', '.join(sorted(IMPORTED))}.",
            remedy="Check the path.",
            path=str(path),
        )
    return found


def _import(
    file: Path,
    stream: str | None,
    key: tuple[str, ...],
    schema_from: Path | None,
    update: UpdateOptions,
    csv: dict[str, Any],
) -> FileImport:
    if not file.is_file():
        raise InputNotFound(f"There is no file {file}.", remedy="Check the path.", path=str(file))
    return FileImport(stream or _stream_of(file), file, key, schema_from, update, csv)


def _stream_of(file: Path) -> str:
    from freezeframe.script.inputs import stream_files

    exported, middle, _ = file.name.rpartition(".snapshot.")
    return exported if middle else next(iter(stream_files(file, ())))


def export_files(
    place: Place,
    folder: Annotated[Path, typer.Argument(help="The folder for the files; created if missing.")],
    streams: Annotated[
        list[str] | None,
        typer.Option("--stream", help="A stream (default: all).", autocompletion=stream_names),
    ] = None,
    kind: Annotated[Kind, typer.Option(help="csv, parquet or jsonl.")] = Kind.CSV,
    version: SeenVersion = None,
    as_json: Json = False,
) -> None:
    """Write streams to files of rows, all as of one version; the opposite of import.

    Each is NAME.snapshot.csv, .parquet or .jsonl, with a schema file beside text.
    """
    output = Output(as_json=as_json)
    tenant = place.tenant()
    at = tenant.version if version is None else version
    names = tenant.streams(None if at < 0 else at)
    with progress(f"Exporting {place}", as_json=as_json):
        files = export_streams(tenant, tuple(dict.fromkeys(streams or names)), folder, kind, at)
    if not files:
        output.line(f"{place} has no streams.")
    if files or as_json:
        output.table(str(place), files)


def gc_command(
    all_tenants: Annotated[bool, typer.Option("--all", help="Clean every tenant of the store.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
    directory: Directory = None,
    root: Root = None,
    tenant_id: TenantOption = None,
    environment: Environment = None,
) -> None:
    """Delete expired versions and unreferenced files.

    What the retention lets go, and what dead jobs left: of one tenant, or of each with --all.
    """
    how: dict[str, bool] = {"dry_run": dry_run, "yes": yes, "as_json": as_json}
    if not all_tenants:
        maintenance.gc(place_of(directory, root, tenant_id, environment), **how)
        return
    if directory is not None or tenant_id is not None:
        raise InvalidOption(
            "--all and a single tenant cannot be used together.", remedy="Leave --dir and --tenant out."
        )
    maintenance.gc_all(root, environment, **how)


import_command = at_place(import_files)
export_command = at_place(export_files)
