"""`freezeframe import`, `export`, `migrate`, `stream import`, `stream export`: files of rows."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from freezeframe.cli.local_caller import LocalCaller, Unaudited, create_tenant
from freezeframe.cli.location import TenantLocation, at_location, open_store
from freezeframe.cli.options import (
    DryRun,
    Environment,
    Json,
    Message,
    NeededTenant,
    SeenVersion,
    StoreRoot,
    StreamArgument,
    StreamVersion,
    Who,
    Yes,
    require_yes_for,
    stream_names,
    with_csv,
    with_update,
)
from freezeframe.cli.output import Output
from freezeframe.cli.progress import progress
from freezeframe.errors import InputNotFound, InvalidOption
from freezeframe.store.model.update_options import UpdateOptions, replaces_rows

if TYPE_CHECKING:
    from freezeframe.store import Receipt, Tenant
    from freezeframe.store.tenant import Job


_HERE = Path()


Kind = Literal["csv", "parquet", "jsonl", "xlsx"]


def export(
    location: TenantLocation,
    name: StreamArgument,
    folder: Annotated[Path, typer.Option("--to", help="The folder to write the file to.")] = _HERE,
    kind: Annotated[Kind, typer.Option(help="csv, parquet, jsonl or xlsx (Excel).")] = "csv",
    version: SeenVersion = None,
    stream_version: StreamVersion = None,
    as_json: Json = False,
) -> None:
    """Write a stream to a file.

    NAME.snapshot.csv, .parquet, .jsonl or .xlsx, with a schema file beside text.
    """
    from freezeframe.script.inputs.transfer import export_stream

    stream = location.tenant().stream(name)
    with progress(f"Exporting {name}", as_json=as_json):
        file = export_stream(stream, folder, kind, version=version, stream_version=stream_version)
    Output(as_json=as_json).record(_export_fields(name, file, kind))


def export_streams(
    tenant: Tenant, names: tuple[str, ...], folder: Path, kind: Kind, version: int
) -> list[dict[str, object]]:
    """Write the streams as they are in a version of the tenant; what ``--json`` prints of each."""
    from freezeframe.script.inputs.transfer import export_stream, new_file

    streams = [tenant.stream(name) for name in names]
    for stream in streams:
        new_file(stream.name, folder, kind)
        stream.count(version)
    return [
        _export_fields(stream.name, export_stream(stream, folder, kind, version=version), kind)
        for stream in streams
    ]


def _export_fields(name: str, file: Path, kind: Kind) -> dict[str, object]:
    from freezeframe.script.inputs.transfer import schema_file

    return {
        "stream": name,
        "file": str(file),
        "schema": None if kind in {"parquet", "xlsx"} else str(schema_file(file)),
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
    location: TenantLocation,
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
    caller, output = LocalCaller(location, who), Output(as_json=as_json)
    if not (dry_run or yes):
        require_yes_for(update, [name], str(file))
    file_import = _import(file, name, tuple(key or ()), schema_from, update, csv)
    with caller.filling(output, dry_run=dry_run), progress(f"Importing {file.name}", as_json=as_json):
        receipts = import_as_version(caller, [file_import], message or f"import {file.name}", dry_run=dry_run)
    output.record(receipts[0].to_json())


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
        from freezeframe.script.inputs.transfer import import_stream

        stream = job.stream(self.name)
        options = {"schema_from": self.schema, **self.csv, **self.update}
        return import_stream(stream, self.file, self.key or None, **options)


def import_as_version(
    caller: LocalCaller, files: list[FileImport], message: str, *, dry_run: bool
) -> list[Receipt]:
    """Import the files as one version of the tenant, or preview that."""
    _require_one_file_a_stream(files)
    names = dict.fromkeys(file.name for file in files)
    with nullcontext(Unaudited()) if dry_run else caller.audit_change("stream.import", *names) as change:
        with caller.tenant().job(message=message, who=caller.who, dry_run=dry_run) as job:
            receipts = [file.carried_out(job) for file in files]
        change.outcome = "" if job.receipt.committed else "unchanged"
    # A stream that came in several files has one receipt for all of them.
    return [job.receipt.streams[name] for name in dict.fromkeys(receipt.stream for receipt in receipts)]


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


@with_csv
@with_update
def import_files(
    location: TenantLocation,
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
    """Update streams from files of rows.

    All of them are one version of the tenant, or none is. Account-20261001T060000.csv and
    Account.snapshot.csv belong to the stream Account; a schema file beside the latter is used. By key rows
    are inserted or update stored ones; --mode full also deletes the rows that a file lacks, --override and
    --replace-where replace all rows, or some, and need no key.
    """
    found = [file for path in files for file in _row_files(path)]
    for flag, value in (("--stream names the stream", stream), ("--schema-from is the schema", schema_from)):
        if value is not None and len(found) > 1:
            raise InvalidOption(f"{flag} of one file.", remedy="Leave it out, or give one file.")
    imports = [_import(file, stream, tuple(key or ()), schema_from, update, csv) for file in found]
    caller, output = LocalCaller(location, who), Output(as_json=as_json)
    if not (dry_run or yes):
        require_yes_for(
            update, [item.name for item in imports], "the files" if imports[1:] else str(found[0])
        )
    names = ", ".join(file.name for file in found)
    with caller.filling(output, dry_run=dry_run), progress(f"Importing {names}", as_json=as_json):
        receipts = import_as_version(caller, imports, message or f"import {names}", dry_run=dry_run)
    output.table(str(location), [item.to_json() for item in receipts], _COLUMNS)


_COLUMNS = ("stream", "tenant_version", "inserted", "updated", "unchanged", "deleted", "committed")


def _row_files(path: Path) -> list[Path]:
    """Return the path itself, or the files of rows in a folder."""
    from freezeframe.script.inputs.stream_files import stream_files
    from freezeframe.script.inputs.transfer import IMPORTED

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
    from freezeframe.script.inputs.stream_files import stream_files

    exported, middle, _ = file.name.rpartition(".snapshot.")
    return exported if middle else next(iter(stream_files(file, ())))


def export_files(
    location: TenantLocation,
    folder: Annotated[Path, typer.Argument(help="The folder for the files; created if missing.")],
    streams: Annotated[
        list[str] | None,
        typer.Option("--stream", help="A stream (default: all).", autocompletion=stream_names),
    ] = None,
    kind: Annotated[Kind, typer.Option(help="csv, parquet, jsonl or xlsx (Excel).")] = "csv",
    version: SeenVersion = None,
    with_files: Annotated[
        bool, typer.Option("--files", help="Write the tenant's files, too: all that scripts of hotglue open.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write streams to files of rows, all as of one version; the opposite of import.

    Each is NAME.snapshot.csv, .parquet, .jsonl or .xlsx, with a schema file beside text. With --files the
    folder is the opposite of migrate: a stream that has a snapshot file is written as that.
    """
    output = Output(as_json=as_json)
    tenant = location.tenant()
    if with_files:
        if streams or version is not None or kind not in {"csv", "parquet"}:
            raise InvalidOption(
                "--files writes all of the newest version, in files that scripts of hotglue open.",
                remedy="Leave --stream and --version out; --kind is csv or parquet.",
            )
        output.table(str(location), _write_snapshots(location, folder, kind))
        return
    at = tenant.version if version is None else version
    names = tenant.streams(None if at < 0 else at)
    with progress(f"Exporting {location}", as_json=as_json):
        files = export_streams(tenant, tuple(dict.fromkeys(streams or names)), folder, kind, at)
    if not files:
        output.line(f"{location} has no streams.")
    if files or as_json:
        output.table(str(location), files)


def _write_snapshots(location: TenantLocation, folder: Path, kind: Kind) -> list[dict[str, object]]:
    """Write the tenant's files, and each stream as its snapshot file, or one of the kind if it has none."""
    from freezeframe.service import hotglue
    from freezeframe.service.rows.streams import snapshot_name, stream_of
    from freezeframe.storage.local import write_durably

    caller = LocalCaller(location)
    tenant = caller.tenant()

    def note(path: str) -> None:
        with caller.audit_change("file.unseal", path):
            pass  # the entry comes before the bytes

    written: list[dict[str, object]] = []
    for name in hotglue.names(tenant):
        named = stream_of(name)
        is_made = named is not None and not tenant.files.exists(name)
        target = folder / (snapshot_name(named[0], kind) if named is not None and is_made else name)
        if target.exists() or target.is_symlink():
            raise InvalidOption(f"{target} is there already.", remedy="Remove it, or name another folder.")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_durably(target, hotglue.read(tenant, target.name if is_made else name, sys.maxsize, note))
        written.append({"stream": named[0] if named else None, "file": str(target), "schema": None})
    return written


import_command = at_location(import_files)
export_command = at_location(export_files)


def migrate(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory with NAME.snapshot.csv or .parquet files.")
    ],
    tenant_id: NeededTenant,
    root: StoreRoot,
    environment: Environment = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A column of the key (default: Id); streams without it have no key."),
    ] = None,
    message: Message = None,
    who: Who = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Turn a directory of snapshot files into a tenant.

    Each NAME.snapshot.csv or .parquet becomes the stream NAME and stays a file, for scripts that open it;
    every other file is a file of the tenant. All is one version. The directory stays as it is; the tenant is
    made if it is not there.
    """
    from freezeframe.script.adoption import plan_migration

    store = open_store(root, environment, create=True)
    is_there = store.tenants(tenant_id, limit=1) == (tenant_id,)
    tenant = store.tenant(tenant_id) if is_there else None
    plan = plan_migration(folder, key or ["Id"], tenant)
    version: int | None = None
    rows: list[int | None] = [None for _ in plan.snapshots]
    if not dry_run:
        caller = LocalCaller(TenantLocation(None, root, tenant_id, environment), who)
        if tenant is None:
            create_tenant(root, environment, tenant_id)
        with (
            progress(f"Migrating {folder}", as_json=as_json),
            caller.audit_change("tenant.migrate", tenant_id, folder=str(folder)),
            caller.tenant().job(message=message or f"migrate {folder.name}", who=caller.who) as job,
        ):
            rows = list(plan.carried_out(job))
        version = job.receipt.tenant_version
    streams = [
        {"stream": snapshot.stream, "file": str(snapshot.path), "key": list(snapshot.key), "rows": count}
        for snapshot, count in zip(plan.snapshots, rows, strict=True)
    ]
    files = [path for path, _ in plan.files]
    output = Output(as_json=as_json)
    if as_json:
        output.record({"tenant": tenant_id, "tenant_version": version, "streams": streams, "files": files})
        return
    output.table(str(folder), streams, columns=("stream", "rows", "key", "file"))
    output.line(f"Files: {', '.join(files) or 'none'}.")
    output.line(f"{tenant_id} is at version {version}." if version is not None else "Nothing was written.")
