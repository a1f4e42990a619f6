"""`freezeframe gc` and `tenant verify`: of one tenant, or of each tenant of a store."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.local_caller import LocalCaller
from freezeframe.cli.location import TenantLocation, location_of, open_store, present_control
from freezeframe.cli.options import Directory, DryRun, Environment, Json, Root, TenantOption, Yes
from freezeframe.cli.output import FAILED, Output, require_yes
from freezeframe.cli.progress import progress
from freezeframe.errors import FreezeframeError, InvalidOption

if TYPE_CHECKING:
    from freezeframe.store.maintenance.garbage import Garbage

_GC_SHOWN = ("files", "bytes", "versions_expired")
_VERIFIED = ("environment", "tenant", "tenant_version", "log_sha256", "streams", "data_files", "findings")


def gc(location: TenantLocation, dry_run: DryRun = False, yes: Yes = False, as_json: Json = False) -> None:
    """Delete expired versions and unreferenced files.

    Versions that the retention no longer keeps, and files that dead jobs left.
    """
    caller, output = LocalCaller(location), Output(as_json=as_json)
    tenant = caller.tenant()
    if not (dry_run or yes):
        require_yes(f"Delete what {location} no longer needs?")
    with progress(f"Cleaning {location}", as_json=as_json):
        garbage = tenant.gc(dry_run=True) if dry_run else _collected(caller)
    if as_json:
        output.record({**garbage.to_json(), "names": list(garbage.names)})
        return
    verb = "would be" if dry_run else "were"
    output.line(f"{garbage.files:,} files of {garbage.bytes:,} bytes {verb} deleted.")
    if garbage.versions_expired or garbage.revoked:
        output.line(
            f"{garbage.versions_expired:,} versions and {len(garbage.revoked):,} dead jobs {verb} given up; "
            "what only they need goes after the grace period."
        )
    if dry_run and garbage.names:
        output.table("Files", [{"file": name} for name in garbage.names])


def _collected(caller: LocalCaller) -> Garbage:
    with caller.audit_change("tenant.gc") as change:
        garbage = caller.tenant().gc()
        change.outcome = "" if garbage.files or garbage.versions_expired or garbage.revoked else "unchanged"
    return garbage


def gc_all(root: str, environment: str | None, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Run ``gc`` for each tenant of a store; one that fails does not stop the others (exit code 1).

    Then finish deletions of tenants that a crash interrupted, and delete folders that belong to no tenant.
    """
    store, output = open_store(root, environment), Output(as_json=as_json)
    if not (dry_run or yes):
        require_yes(f"Delete what the tenants of {root} no longer need?")
    rows = []
    with progress(f"Cleaning {root}", as_json=as_json):
        for tenant_id in itertools.chain.from_iterable(store.tenant_pages()):
            try:
                place = TenantLocation(None, root, tenant_id, environment)
                garbage = (
                    store.tenant(tenant_id).gc(dry_run=True) if dry_run else _collected(LocalCaller(place))
                )
                rows.append({"tenant": tenant_id, **{name: getattr(garbage, name) for name in _GC_SHOWN}})
            except FreezeframeError as error:
                rows.append({"tenant": tenant_id, **dict.fromkeys(_GC_SHOWN, 0), "error": error.problem})
        finished = () if dry_run else store.sweep()
        if not dry_run:
            _sweep_blobs(root)
    output.table("", [{"error": "", **row} for row in rows], ("tenant", *_GC_SHOWN, "error"))
    for deletion in finished:
        output.line(
            f"The interrupted deletion of {deletion.tenant} in {deletion.environment} was finished."
            if deletion.environment
            else f"The folder tenants/{deletion.tenant} of no tenant was removed: {deletion.objects:,} files."
        )
    if any("error" in row for row in rows):
        raise typer.Exit(FAILED)


def _sweep_blobs(root: str) -> None:
    """Remove what was sent to the service and never published, or belongs to jobs that have ended."""
    from freezeframe.service.staged_blobs import StagedBlobs
    from freezeframe.settings import load_settings

    with present_control(root) as found:
        fate = () if found is None else (found.queue.has_ended,)
        StagedBlobs.of_store(root, load_settings(root=root), *fate).sweep()


def verify(location: TenantLocation, *, as_json: bool) -> None:
    """Verify one tenant, and show what was read or is damaged."""
    output = Output(as_json=as_json)
    with progress(f"Verifying {location}", as_json=as_json):
        verification = location.verify()
    if as_json:
        output.record(verification.to_json())
    elif verification.is_sound:
        output.line(
            f"{location} is sound: {verification.entries:,} entries, {verification.streams:,} streams, "
            f"{verification.data_files:,} data files and {verification.blobs:,} stored files were read."
        )
    else:
        output.table(f"{location} is damaged", verification.to_json()["findings"])
    if not verification.is_sound:
        raise typer.Exit(FAILED)


def verify_all(root: str, environment: str | None, *, as_json: bool) -> None:
    """Run ``verify`` for each tenant of a store, in all environments or in one (exit code 1 for damage)."""
    rows = []
    with progress(f"Verifying {root}", as_json=as_json):
        for name in [environment] if environment else open_store(root, None).environments():
            store = open_store(root, name)
            for tenant_id in itertools.chain.from_iterable(store.tenant_pages()):
                fields = store.verify_tenant(tenant_id).to_json()
                rows.append({"environment": name, "tenant": tenant_id, **fields})
    shown = rows if as_json else [{**row, "findings": len(row["findings"])} for row in rows]
    Output(as_json=as_json).table(root, shown, _VERIFIED)
    if not all(row["sound"] for row in rows):
        raise typer.Exit(FAILED)


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

    Versions that the retention no longer keeps, and files that dead jobs left: of one tenant, or of each with
    --all, which also deletes what crashes left of tenants that are gone.
    """
    how: dict[str, bool] = {"dry_run": dry_run, "yes": yes, "as_json": as_json}
    if all_tenants:
        gc_all(_whole_store(directory, root, tenant_id), environment, **how)
    else:
        gc(location_of(directory, root, tenant_id, environment), **how)


def verify_command(
    all_tenants: Annotated[
        bool, typer.Option("--all", help="Verify every tenant of the store, or of --env.")
    ] = False,
    as_json: Json = False,
    directory: Directory = None,
    root: Root = None,
    tenant_id: TenantOption = None,
    environment: Environment = None,
) -> None:
    """Read all that a tenant's versions need; name each file that is damaged (exit code 1).

    Entries and their chain, tables, data files by their sizes and hashes, and the bytes of files: of one
    tenant, or of each with --all.
    """
    if all_tenants:
        verify_all(_whole_store(directory, root, tenant_id), environment, as_json=as_json)
    else:
        verify(location_of(directory, root, tenant_id, environment), as_json=as_json)


def _whole_store(directory: Path | None, root: str | None, tenant_id: str | None) -> str:
    from freezeframe.settings import load_settings

    if directory is not None or tenant_id is not None:
        raise InvalidOption(
            "--all and a single tenant cannot be used together.", remedy="Leave --dir and --tenant out."
        )
    return root or load_settings().root
