"""The messages of a Singer tap, one JSON object a line: SCHEMA, RECORD, STATE and ACTIVATE_VERSION."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from freezeframe.errors import MissingColumn, UnreadableInput
from freezeframe.script.formats.json_columns import JsonNumber, UnkeptValue, parse_letters


@dataclass(frozen=True, slots=True)
class SchemaMessage:
    """The columns of a stream, each by its JSON schema, and the columns of its key (none: empty)."""

    line: int
    stream: str
    properties: Mapping[str, Mapping[str, Any]]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordMessage:
    """A row of a stream; ``version`` is that of the table at its source, where the tap tells it."""

    line: int
    stream: str
    record: Mapping[str, Any]
    version: int | None


@dataclass(frozen=True, slots=True)
class StateMessage:
    """Bookmark of a tap for its next run."""

    line: int
    value: Any


@dataclass(frozen=True, slots=True)
class ActivateVersionMessage:
    """The records of this version are all rows that the stream has at its source."""

    line: int
    stream: str
    version: int


_VERSION_DIGITS_MAX = 19

Message = SchemaMessage | RecordMessage | StateMessage | ActivateVersionMessage


def read_messages(lines: Iterable[bytes]) -> Iterator[Message]:
    """Yield the messages in their order; empty lines count, and are passed over."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _message(number, line)


def _message(line: int, text: bytes) -> Message:
    try:
        message = parse_letters(text)
    except UnkeptValue as error:
        raise unreadable(line, f"It cannot be kept: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise unreadable(line, f"It is not JSON: {error}.") from error
    if not isinstance(message, dict):
        raise unreadable(line, "It is not a JSON object.")
    kind = message.get("type")
    if kind == "BATCH":
        raise unreadable(
            line, "It is a BATCH message, which names files of records; the target reads RECORDs."
        )
    if not isinstance(kind, str) or kind not in _READERS:
        raise unreadable(line, f"Its type is {kind!r}; known types are {', '.join(_READERS)}.")
    return _READERS[kind](line, message)


def unreadable(line: int, cause: str, **details: Any) -> UnreadableInput:
    """Return the error for a line that the target cannot take."""
    return UnreadableInput(
        f"Line {line} of the tap's output is not valid.",
        cause=cause,
        remedy="Correct the tap or its catalog, and run both again; nothing was written.",
        line=line,
        **details,
    )


def _schema(line: int, message: dict[str, Any]) -> SchemaMessage:
    stream = _stream(line, message)
    schema = _member(line, message, "schema", dict)
    properties = schema.get("properties")
    if not properties:
        raise unreadable(
            line, "Its schema has no properties, so that the stream has no columns.", stream=stream
        )
    if not isinstance(properties, dict) or not all(isinstance(item, dict) for item in properties.values()):
        raise unreadable(line, "The properties of its schema are not objects.", stream=stream)
    key = message.get("key_properties") or []
    if not isinstance(key, list) or not all(type(name) is str for name in key):
        raise unreadable(line, "Its key_properties are not a list of names.", stream=stream)
    lacking = [name for name in key if name not in properties]
    if lacking:
        raise MissingColumn(
            f"Line {line}: the schema of the stream {stream!r} lacks columns of its key: {lacking}.",
            remedy="Select these columns in the tap's catalog; nothing was written.",
            line=line,
            stream=stream,
            columns=lacking,
        )
    return SchemaMessage(line, stream, properties, tuple(key))


def _record(line: int, message: dict[str, Any]) -> RecordMessage:
    stream = _stream(line, message)
    version = None if message.get("version") is None else _version(line, message)
    return RecordMessage(line, stream, _member(line, message, "record", dict), version)


def _state(line: int, message: dict[str, Any]) -> StateMessage:
    if "value" not in message:
        raise unreadable(line, "A STATE message has no 'value'.")
    return StateMessage(line, message["value"])


def _activate_version(line: int, message: dict[str, Any]) -> ActivateVersionMessage:
    return ActivateVersionMessage(line, _stream(line, message), _version(line, message))


def _stream(line: int, message: dict[str, Any]) -> str:
    return str(_member(line, message, "stream", str))


def _version(line: int, message: dict[str, Any]) -> int:
    version = _member(line, message, "version", JsonNumber)
    if not version.is_integer or len(version) > _VERSION_DIGITS_MAX:
        raise unreadable(line, f"Its version {version:.80} is not an integer of 64 bits.")
    return int(version)


def _member(line: int, message: dict[str, Any], name: str, kind: type) -> Any:
    """Return a required member of the message."""
    value = message.get(name)
    if type(value) is not kind:
        found = "is missing" if name not in message else f"has the wrong type: {value!r:.80}"
        raise unreadable(line, f"The {name!r} of a {message['type']} message {found}.")
    return value


_READERS: Mapping[str, Callable[[int, dict[str, Any]], Message]] = {
    "SCHEMA": _schema,
    "RECORD": _record,
    "STATE": _state,
    "ACTIVATE_VERSION": _activate_version,
}
