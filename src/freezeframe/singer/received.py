"""The whole output of a tap, taken in before anything is written to a tenant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import BinaryIO

from freezeframe.singer.json_text import json_text
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


def receive(messages: Iterable[Message], file: BinaryIO, limits: BatchLimits) -> Received:
    """Take in all messages; rows that are more than ``limits`` go to ``file``.

    Raises:
        UnreadableInput, MissingColumn: a line is not a message of a tap (``read_messages``).
        UnreadableInput, NullKeyError: a record has no SCHEMA before it, or does not fit it.
    """
    received = Received()
    for message in messages:
        if isinstance(message, StateMessage):
            received.state = json_text(message.value)
        elif isinstance(message, SchemaMessage):
            known = received.spools.get(message.stream)
            if known is None:
                received.spools[message.stream] = RecordSpool(file, message, limits)
            else:
                known.declare(message)
        else:
            _take(received, message)
    return received


def _take(received: Received, message: RecordMessage | ActivateVersionMessage) -> None:
    spool = received.spools.get(message.stream)
    if spool is None:
        cause = f"No SCHEMA of the stream {message.stream!r} came before it."
        raise unreadable(message.line, cause, stream=message.stream)
    if message.version is not None:
        received.versions[message.stream] = message.version
    if isinstance(message, RecordMessage):
        spool.add(message)
    else:
        received.activated[message.stream] = message.version
