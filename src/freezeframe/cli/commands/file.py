"""``freezeframe file``: read and change a tenant's files; each change is a version of the tenant."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.local_caller import LocalCaller
from freezeframe.cli.location import TenantLocation, at_location
from freezeframe.cli.operation_commands import add_commands, json_of
from freezeframe.cli.options import AsOf, Json, Message, Who
from freezeframe.cli.output import Output
from freezeframe.errors import InputNotFound, InvalidOption
from freezeframe.service.operations.files import delete_file, file_history, list_files, move_file

if TYPE_CHECKING:
    from freezeframe.store.files import Files
    from freezeframe.store.model.json_fields import FileEntry


app = typer.Typer(no_args_is_help=True)

FileArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="The file's path, for example mappings/a.csv.")
]
Version = Annotated[int | None, typer.Option(min=0, help="The tenant's version (default: the newest).")]
Sealed = Annotated[
    bool | None,
    typer.Option("--sealed/--not-sealed", help="Encrypt the file, or store it plain (default: as it was)."),
]
_STANDARD_INPUT = Path("-")


def read(
    location: TenantLocation,
    path: FileArgument,
    target: Annotated[
        Path | None, typer.Option("--to", help="A new file with mode 0600 (default: standard output).")
    ] = None,
    version: Version = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print a file's bytes, or save them.

    With --json and without --to the output has the content as text, or in base64 if it is not UTF-8.
    """
    caller, output = LocalCaller(location), Output(as_json=as_json)
    files = caller.tenant().files
    if files.entry(path, version, as_of=as_of).sealed:
        with caller.audit_change("file.unseal", path, version=version):
            pass  # the entry comes before the bytes, so that each read of a secret is recorded
    if target is not None:
        size = _save(target, files.chunks(path, version, as_of=as_of))
        output.record({"path": path, "to": str(target), "bytes": size})
        return
    if as_json:
        output.record(_content(path, files.read(path, version, as_of=as_of)))
        return
    for chunk in files.chunks(path, version, as_of=as_of):
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def write(
    location: TenantLocation,
    path: FileArgument,
    source: Annotated[
        Path, typer.Argument(help="The file to read (default: standard input).")
    ] = _STANDARD_INPUT,
    sealed: Sealed = None,
    message: Message = None,
    who: Who = None,
    as_json: Json = False,
) -> None:
    """Keep bytes as a file's new version.

    They come from a file, or from standard input.
    """
    if source != _STANDARD_INPUT and not source.is_file():
        raise InputNotFound(f"There is no file {source}.", remedy="Check the path.", path=str(source))

    def change(files: Files) -> FileEntry:
        if source == _STANDARD_INPUT:
            return files.write(path, sys.stdin.buffer, sealed=sealed)
        with source.open("rb") as content:
            return files.write(path, content, sealed=sealed)

    _write_file(location, path, change, message or f"write {path}", who, as_json=as_json)


def patch(
    location: TenantLocation,
    path: FileArgument,
    change: Annotated[
        str, typer.Argument(metavar="PATCH", help='JSON, for example {"a": 1}; - reads standard input.')
    ] = "-",
    sealed: Sealed = None,
    message: Message = None,
    who: Who = None,
    as_json: Json = False,
) -> None:
    """Change members of a JSON file.

    By a merge patch (RFC 7396): objects are merged, null removes a member. No file counts as {}. A secret
    is best read from standard input, where no list of processes shows it.
    """
    text = sys.stdin.read() if change == "-" else change
    try:
        wanted = json.loads(text)
    except ValueError as error:
        raise InvalidOption(
            "The patch is not JSON.",
            cause="It cannot be parsed.",
            remedy="""Quote it for the shell: '{"region": "eu"}'.""",
        ) from error

    def patched(files: Files) -> FileEntry:
        files.patch_json(path, wanted, sealed=sealed)
        return files.entry(path)

    _write_file(location, path, patched, message or f"patch {path}", who, as_json=as_json)


def _write_file(
    location: TenantLocation,
    path: str,
    change: Callable[[Files], FileEntry],
    message: str,
    who: str | None,
    *,
    as_json: bool,
) -> None:
    """Carry out a change of one file as a version of the tenant, and print the file."""
    from freezeframe.service.files import for_own_file
    from freezeframe.store.files import committed_entry

    caller = LocalCaller(location, who)
    tenant = for_own_file(caller.tenant(), path)
    with caller.audit_change("file.write", path), tenant.job(message=message, who=caller.who) as job:
        staged = change(job.files)
    entry = committed_entry(tenant.files, staged, job.receipt.tenant_version)
    Output(as_json=as_json).record(json_of(entry))


def _content(path: str, content: bytes) -> dict[str, Any]:
    try:
        return {"path": path, "encoding": "utf-8", "content": content.decode()}
    except UnicodeDecodeError:
        return {"path": path, "encoding": "base64", "content": base64.b64encode(content).decode()}


def _save(target: Path, chunks: Iterable[bytes]) -> int:
    """Write a new file, whole or not at all; its size."""
    from freezeframe.storage.local import failure, write_durably

    try:
        write_durably(target, chunks)
    except FileExistsError:
        raise InvalidOption(
            f"{target} is there already.", remedy="Remove it, or name another file."
        ) from None
    except BaseException as error:
        with suppress(OSError):
            target.unlink()
        if isinstance(error, OSError):
            raise failure("write", str(target), error) from error
        raise
    return target.stat().st_size


for _command in (read, write, patch):
    app.command()(at_location(_command))
add_commands(app, list_files, delete_file, move_file, file_history)
