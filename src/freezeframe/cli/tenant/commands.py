"""Commands of tenants."""

from __future__ import annotations

from typing import Annotated

import typer

from freezeframe.cli.places.control_place import audited_change, forget_jobs
from freezeframe.cli.places.place import (
    DryRun,
    Environment,
    Json,
    StoreRoot,
    Yes,
    at_place,
    open_store,
    tenant_ids,
)
from freezeframe.cli.tenant.maintenance import erase, gc, retention, verify
from freezeframe.cli.tenant.versions import diff, history, restore, show, tag, untag
from freezeframe.cli.terminal.confirmation import require_yes
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import progress

# ``freezeframe tenant list|create|delete|clone``.

TenantArgument = Annotated[
    str, typer.Argument(metavar="TENANT", help="The tenant's id.", autocompletion=tenant_ids)
]
_PAGE = 100


def list_tenants(
    root: StoreRoot,
    environment: Environment = None,
    prefix: Annotated[str, typer.Option(help="Only ids with this prefix.")] = "",
    after: Annotated[str | None, typer.Option(help="Only ids after this one, for the next page.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of entries at most.")] = _PAGE,
    as_json: Json = False,
) -> None:
    """List a store's tenants by id, a page at a time."""
    found = open_store(root, environment).tenants(prefix, after, limit)
    output = Output(as_json=as_json)
    if not found:
        output.line(f"{root} has no such tenants: freezeframe tenant create makes them.")
    if found or as_json:
        output.table(root, [{"tenant": item} for item in found])
    if len(found) == limit:
        output.line(f"There may be more: --after {found[-1]}")


def create(
    tenant: TenantArgument, root: StoreRoot, environment: Environment = None, as_json: Json = False
) -> None:
    """Make a tenant.

    The store is made with it; a tenant that is there already stays as it is.
    """
    made = open_store(root, environment, create=True).tenant(tenant, create=True)
    Output(as_json=as_json).record({"tenant": tenant, "tenant_version": made.version})


def delete(
    tenant: TenantArgument,
    root: StoreRoot,
    environment: Environment = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove a tenant for good.

    All that is kept for it goes, its jobs and schedules too; how much it was is printed.
    """
    store, output = open_store(root, environment), Output(as_json=as_json)
    there = store.tenant(tenant)  # jobs may wait for a tenant that does not exist yet
    if dry_run:
        files = there.files.list(recursive=True)
        output.record(
            {
                "tenant": tenant,
                "tenant_version": there.version,
                "streams": list(there.streams()),
                "files": [file.path for file in files],
            }
        )
        return
    if not yes:
        require_yes(f"Remove all that is kept for {tenant} in {root}, for good?")
    with (
        progress(f"Deleting {tenant}", as_json=as_json),
        audited_change(root, store, tenant, "tenant.delete", tenant, outlives_tenant=True),
    ):
        forget_jobs(root, store.environment, tenant)
        removed = store.delete_tenant(tenant)
    output.record(removed.to_json())


def clone(
    source: Annotated[str, typer.Argument(help="The id of the tenant to copy.")],
    target: Annotated[str, typer.Argument(help="The id of the new tenant.")],
    root: StoreRoot,
    environment: Environment = None,
    to_root: Annotated[
        str | None, typer.Option("--to-root", help="The store of the new tenant (default: the same).")
    ] = None,
    to_environment: Annotated[
        str | None, typer.Option("--to-env", help="The environment of the new tenant (default: the same).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Copy a tenant to a new one, in this store or in another.

    Its newest streams and files, and none of its past.
    """
    store = open_store(root, environment)
    goal_root = to_root or root
    goal = open_store(goal_root, to_environment or store.environment, create=to_root is not None)
    with progress(f"Copying {source}", as_json=as_json):
        with audited_change(root, store, source, "tenant.cloned", target):
            made = store.clone_tenant(source, target, to=goal)
        with audited_change(goal_root, goal, target, "tenant.clone", target, source=source):
            pass  # the copy's own audit begins with where it came from
    Output(as_json=as_json).record({"tenant": target, "tenant_version": made.version})


# ``freezeframe tenant``: the tenants of a store.

app = typer.Typer(no_args_is_help=True)
app.command("list")(list_tenants)
app.command("create")(create)
app.command("show")(at_place(show))
app.command("history")(at_place(history))
app.command("diff")(at_place(diff))
app.command("restore")(at_place(restore))
app.command("tag")(at_place(tag))
app.command("untag")(at_place(untag))
app.command("delete")(delete)
app.command("clone")(clone)
app.command("gc")(at_place(gc))
app.command("verify")(at_place(verify))
app.command("erase")(at_place(erase))
app.command("retention")(at_place(retention))
