"""``freezeframe tenant``: the tenants of a store."""

from __future__ import annotations

import typer

from freezeframe.cli.places.place import at_place
from freezeframe.cli.tenant.lifecycle import clone, create, delete, list_tenants
from freezeframe.cli.tenant.maintenance import erase, gc, retention, verify
from freezeframe.cli.tenant.versions import diff, history, restore, show, tag, untag

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
