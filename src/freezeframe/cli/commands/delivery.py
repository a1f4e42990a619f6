"""`freezeframe delivery`: what targets have of a tenant's streams, and which rows they refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from freezeframe.cli.operation_commands import add_commands, json_of
from freezeframe.service.operations.deliveries import list_deliveries, retry_delivery, show_delivery

if TYPE_CHECKING:
    from freezeframe.cli.output import Output
    from freezeframe.store.delivery import DeliveryReport

app = typer.Typer(help="Rows that scripts send to targets: what was refused, and sending it again.")


def _show(report: DeliveryReport, output: Output) -> None:
    shown = json_of(report)
    rows, pending, is_whole = shown.pop("rows"), shown.pop("pending"), shown.pop("is_whole")
    waiting = {f"pending_{name}": pending[name] for name in ("inserted", "updated", "deleted")}
    output.record({**shown, **waiting})

    def key_text(values: list[Any]) -> str:
        is_plain = len(values) == 1 and isinstance(values[0], str)
        return values[0] if is_plain else json.dumps(values, ensure_ascii=False)

    refused = [row for row in rows if row["is_rejected"]]
    kept = [row for row in rows if not row["is_rejected"]]
    for title, some, columns in (
        ("Refused, and why", refused, ("key", "change", "error", "answered_at")),
        ("The target has them, the stream has not", kept, ("key", "target_id")),
    ):
        if some:
            shown_rows = [{**row, "key": key_text(list(row["key"].values()))} for row in some]
            output.table(title, shown_rows, columns)
    if not is_whole:
        output.line("There are more: --limit shows up to 1000.")


add_commands(app, list_deliveries, show_delivery, retry_delivery, show_delivery=_show)
