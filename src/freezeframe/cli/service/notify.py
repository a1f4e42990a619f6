"""``freezeframe notify``: webhooks for failed jobs, refused deletions, schema drift and stale tenants."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from freezeframe.cli.places.control_place import control
from freezeframe.cli.places.options import Json
from freezeframe.cli.places.place import Environment, StoreRoot
from freezeframe.cli.terminal.output import Output
from freezeframe.extras import requires_extra


def notify(
    root: StoreRoot,
    environment: Environment = None,
    every: Annotated[float | None, typer.Option(min=1, help="Repeat after this many seconds.")] = None,
    test: Annotated[bool, typer.Option("--test", help="Queue a notification of type `test` first.")] = False,
    as_json: Json = False,
) -> None:
    """Tell the webhook of the settings what went wrong since the last look: signed, each event once.

    Looks once, for cron, or `--every` so many seconds. What does not arrive is sent again at the next looks.
    """
    with requires_extra("service"):
        from freezeframe.service.access.stores import Stores
        from freezeframe.service.overview.findings import TenantFindings
        from freezeframe.service.overview.overview import Overviews
        from freezeframe.service.overview.webhook import Notifier, Webhook

    output = Output(as_json=as_json)
    with control(root, environment, create=True) as found:
        webhook = Webhook(found.settings)
        stores, findings = Stores(root, found.settings), TenantFindings(Overviews())
        notifier = Notifier(stores, findings, found.database, found.environment)
        if test:
            moment = datetime.now(UTC).isoformat()
            told = {"type": "test", "environment": found.environment, "timestamp": moment}
            notifier.notifications.queue([told])
        while True:
            output.record(asdict(notifier.look(webhook)))
            if every is None:
                return
            time.sleep(every)
