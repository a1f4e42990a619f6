"""The whole output of a tap, taken in before anything is written to a tenant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from freezeframe.script.formats.json_columns import JsonNumber, json_text
from freezeframe.singer.messages import (
    ActivateVersionMessage,
    Message,
    RecordMessage,
    SchemaMessage,
    StateMessage,
    unreadable,
)
from freezeframe.singer.record_spool import BatchLimits, RecordSpool


@dataclass(slots=True)
class Received:
    """Received output: rows by stream, table versions at the source, and the last STATE as JSON."""

    spools: dict[str, RecordSpool] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    """The newest version of each stream's records, for streams that have versions."""
    activated: dict[str, int] = field(default_factory=dict)
    state: str | None = None


RUN_KEY = ("_sdc_run_id", "_sdc_row")
"""The key of rows that have none: the run that brought them, and their number in it, from 1."""
_RUN_PROPERTIES = {"_sdc_run_id": {"type": "string"}, "_sdc_row": {"type": "integer"}}


def receive(
    messages: Iterable[Message], file: BinaryIO, limits: BatchLimits, run_id: str | None = None
) -> Received:
    """Take in all messages; rows that are more than ``limits`` go to ``file``.

    With ``run_id`` the rows of streams without a key are given ``RUN_KEY``.
    """
    received = Received()
    for message in messages:
        if isinstance(message, StateMessage):
            received.state = json_text(message.value)
        elif isinstance(message, SchemaMessage):
            if run_id is not None and not message.key:
                properties = {**message.properties, **_RUN_PROPERTIES}
                message = replace(message, properties=properties, key=RUN_KEY)  # noqa: PLW2901 - the same one
            known = received.spools.get(message.stream)
            if known is None:
                received.spools[message.stream] = RecordSpool(file, message, limits)
            else:
                known.declare(message)
        else:
            _take(received, message, run_id)
    return received


def _take(received: Received, message: RecordMessage | ActivateVersionMessage, run_id: str | None) -> None:
    spool = received.spools.get(message.stream)
    if spool is None:
        cause = f"No SCHEMA of the stream {message.stream!r} came before it."
        raise unreadable(message.line, cause, stream=message.stream)
    if message.version is not None:
        received.versions[message.stream] = message.version
    if isinstance(message, RecordMessage):
        if spool.key == RUN_KEY:
            row = JsonNumber(spool.count + 1)
            message = replace(message, record={**message.record, "_sdc_run_id": run_id, "_sdc_row": row})
        spool.add(message)
    else:
        received.activated[message.stream] = message.version
