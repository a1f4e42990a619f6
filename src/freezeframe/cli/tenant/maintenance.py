"""``freezeframe tenant gc|verify|erase|retention``."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.places.control_place import audited_place
from freezeframe.cli.places.place import DryRun, Json, Place, StreamArgument, Who, Yes, open_store
from freezeframe.cli.terminal.confirmation import require_yes
from freezeframe.cli.terminal.exit_codes import FAILED
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import progress
from freezeframe.errors import FreezeframeError, InvalidOption

if TYPE_CHECKING:
    from freezeframe.store import Tenant

_GC_SHOWN = ("files", "bytes", "versions_expired")


def gc(place: Place, dry_run: DryRun = False, yes: Yes = False, as_json: Json = False) -> None:
    """Delete expired versions and unreferenced files.

    What the retention lets go, and what dead jobs left.
    """
    tenant, output = place.tenant(), Output(as_json=as_json)
    if not (dry_run or yes):
        require_yes(f"Delete what {place} no longer needs?")
    with progress(f"Cleaning {place}", as_json=as_json):
        told = tenant.gc(dry_run=dry_run)
    if as_json:
        output.record({**told.to_json(), "names": list(told.names)})
        return
    verb = "would be" if dry_run else "were"
    output.line(f"{told.files:,} files of {told.bytes:,} bytes {verb} deleted.")
    if told.versions_expired or told.revoked:
        output.line(
            f"{told.versions_expired:,} versions and {len(told.revoked):,} dead jobs {verb} given up; "
            "what only they need goes after the grace period."
        )
    if dry_run and told.names:
        output.table("Files", [{"file": name} for name in told.names])


def gc_all(root: str | None, environment: str | None, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Run ``gc`` for each tenant of a store; one that fails does not stop the others (exit code 1)."""
    from freezeframe.settings import load_settings

    place = root or load_settings().root
    store, output = open_store(place, environment), Output(as_json=as_json)
    if not (dry_run or yes):
        require_yes(f"Delete what the tenants of {place} no longer need?")
    rows = []
    with progress(f"Cleaning {place}", as_json=as_json):
        for tenant_id in itertools.chain.from_iterable(store.tenant_pages()):
            try:
                told = store.tenant(tenant_id).gc(dry_run=dry_run)
                rows.append({"tenant": tenant_id, **{name: getattr(told, name) for name in _GC_SHOWN}})
            except FreezeframeError as error:
                rows.append({"tenant": tenant_id, **dict.fromkeys(_GC_SHOWN, 0), "error": error.problem})
    output.table("", [{"error": "", **row} for row in rows], ("tenant", *_GC_SHOWN, "error"))
    if any("error" in row for row in rows):
        raise typer.Exit(FAILED)


def verify(place: Place, as_json: Json = False) -> None:
    """Read all that a tenant's versions need; name each file that is damaged (exit code 1).

    Entries and their chain, tables, data files by their sizes and hashes, and the bytes of files.
    """
    output = Output(as_json=as_json)
    with progress(f"Verifying {place}", as_json=as_json):
        told = place.verify()
    if as_json:
        output.record(told.to_json())
    elif told.is_sound:
        output.line(
            f"{place} is sound: {told.entries:,} entries, {told.streams:,} streams, "
            f"{told.data_files:,} data files and {told.blobs:,} stored files were read."
        )
    else:
        output.table(f"{place} is damaged", told.to_json()["findings"])
    if not told.is_sound:
        raise typer.Exit(FAILED)


def erase(
    place: Place,
    stream: StreamArgument,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A row's key; one of several columns as a JSON array. May be repeated."),
    ] = None,
    keys_file: Annotated[
        Path | None, typer.Option(help="A CSV file with the columns of the key; other columns are ignored.")
    ] = None,
    who: Who = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove rows of a stream for good.

    From every version and all bytes; at the end what is left is read for the keys.
    The tenant's history begins anew: older
    versions of all streams and files are gone. The exit code is 1 if a row with a key is still there.
    """
    from freezeframe.cli.places.row_keys import named_keys, stored_rows

    tenant, output = place.tenant(), Output(as_json=as_json)
    rows = tenant.stream(stream)
    keys = named_keys(rows, key or (), keys_file)
    if dry_run or not yes:
        effect = {
            "stream": stream,
            "keys": len(keys),
            "rows_now": stored_rows(rows, keys),
            "versions_lost": sum(1 for _ in tenant.history()),
        }
        if dry_run:
            output.record(effect)
            return
        question = (
            f"Erase {len(keys)} keys of {stream} and all {effect['versions_lost']} versions of {place}?"
        )
        require_yes(question)
    # Keys are personal data, so the audit has only their number.
    with (
        progress(f"Erasing from {stream}", as_json=as_json),
        audited_place(place, "rows.erase", stream, keys=len(keys)),
    ):
        erasure = tenant.erase(stream, keys, who=who)
    _show_erasure(output, erasure.to_json(), as_json=as_json)
    if not erasure.left.is_clean:
        raise typer.Exit(FAILED)


def retention(
    place: Place,
    keep_versions: Annotated[
        int | None, typer.Option(min=1, help="Keep this many of the newest versions.")
    ] = None,
    keep_days: Annotated[
        float | None, typer.Option(min=0, help="Keep the versions of this many days.")
    ] = None,
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Keep everything, for ever.")] = False,
    who: Who = None,
    as_json: Json = False,
) -> None:
    """Show or set how long versions are kept.

    It is gc that carries it out.
    """
    if keep_all and (keep_versions is not None or keep_days is not None):
        raise InvalidOption("--keep-all allows no limit beside it.", remedy="Give the one or the others.")
    tenant = place.tenant()
    if keep_all or keep_versions is not None or keep_days is not None:
        tenant.set_retention(keep_versions, keep_days, who=who)
    Output(as_json=as_json).record(retention_fields(tenant))


def retention_fields(tenant: Tenant) -> dict[str, Any]:
    """The limits by name."""
    policy = tenant.retention()
    return {"keep_versions": policy.keep_versions, "keep_days": policy.keep_days}


def _show_erasure(output: Output, fields: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.record(fields)
        return
    left = fields.pop("left")
    output.record({**fields, **left})
    if left["remaining"]:
        output.line("Rows with a key are still there: run the command again.")
