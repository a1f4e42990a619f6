"""``freezeframe migrate``: a directory of today's snapshot files becomes a tenant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freezeframe.cli.places.place import (
    DryRun,
    Environment,
    Json,
    Message,
    NeededTenant,
    StoreRoot,
    Who,
    open_store,
)
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import progress


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

    Each NAME.snapshot.csv or .parquet becomes the stream NAME, every other file a file of the tenant, all as
    one version. The directory stays as it is; the tenant is made if it is not there.
    """
    from freezeframe.script.adoption import plan_migration

    store = open_store(root, environment, create=True)
    is_there = store.tenants(tenant_id, limit=1) == (tenant_id,)
    tenant = store.tenant(tenant_id) if is_there else None
    plan = plan_migration(folder, key or ["Id"], tenant)
    version: int | None = None
    rows: list[int | None] = [None for _ in plan.snapshots]
    if not dry_run:
        tenant = tenant or store.tenant(tenant_id, create=True)
        with (
            progress(f"Migrating {folder}", as_json=as_json),
            tenant.job(message=message or f"migrate {folder.name}", who=who) as job,
        ):
            rows = list(plan.carried_out(job))
        version = job.receipt.tenant_version
    streams = [
        {"stream": one.stream, "file": str(one.path), "key": list(one.key), "rows": count}
        for one, count in zip(plan.snapshots, rows, strict=True)
    ]
    files = [path for path, _ in plan.files]
    output = Output(as_json=as_json)
    if as_json:
        output.record({"tenant": tenant_id, "tenant_version": version, "streams": streams, "files": files})
        return
    output.table(str(folder), streams, columns=("stream", "rows", "key", "file"))
    output.line(f"Files: {', '.join(files) or 'none'}.")
    output.line(f"{tenant_id} is at version {version}." if version is not None else "Nothing was written.")
