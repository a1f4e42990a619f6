"""Observability: structured log lines with their context, durations of operations, spans.

The context of log lines (request, principal, tenant, job, version) is set where it is known and goes with
the thread or task that works on it. Without an observer an operation costs two readings of the clock.
Where the process has loaded ``opentelemetry.trace``, each operation is a span of the tracer ``freezeframe``.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from freezeframe.clock import moment, rfc3339

LogFormat = Literal["text", "json"]
_TRACING = "opentelemetry.trace"
_STATES = (
    "freezeframe.log.segments.management",
    "freezeframe.log.segments.segment",
    "freezeframe.log.table.table_log",
)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
_context: ContextVar[dict[str, Any] | None] = ContextVar("freezeframe_log_context", default=None)


@contextmanager
def log_context(**fields: Any) -> Iterator[dict[str, Any]]:
    """Within the block each line of the log has these fields, and those that ``note`` adds."""
    known = {**(_context.get() or {}), **fields}
    token = _context.set(known)
    try:
        yield known
    finally:
        _context.reset(token)


def note(**fields: Any) -> None:
    """Add fields to the lines of the innermost ``log_context``; outside of one it does nothing."""
    known = _context.get()
    if known is not None:
        known.update(fields)


@dataclass(slots=True)
class Operation:
    """A finished operation: name, ``done`` or the error's code, duration and retries.

    ``subject`` is what a span's name has after the operation's, such as a request's route.
    """

    name: str
    outcome: str = "done"
    seconds: float = 0.0
    retries: int = 0
    subject: str = ""


_observers: list[Callable[[Operation], None]] = []


@contextmanager
def observe(name: str) -> Iterator[Operation]:
    """Report the operation of the block to the process's observers when it ends."""
    operation = Operation(name)
    with _span(operation) if _TRACING in sys.modules else nullcontext(), _measured(operation):
        yield operation


@contextmanager
def _measured(operation: Operation) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    except Exception as error:
        operation.outcome = getattr(error, "error_code", type(error).__name__)
        raise
    finally:
        operation.seconds = time.perf_counter() - started
        for observer in _observers:
            observer(operation)


@contextmanager
def _span(operation: Operation) -> Iterator[None]:
    """Yield the operation as a span, with the fields of the log's context as attributes."""
    from opentelemetry import trace  # noqa: PLC0415 - loaded already; the import waits until that is done

    with trace.get_tracer("freezeframe").start_as_current_span(operation.name) as span:
        try:
            yield
        finally:
            if span.is_recording():
                span.update_name(f"{operation.name} {operation.subject}".rstrip())
                fields = {
                    **(_context.get() or {}),
                    "outcome": operation.outcome,
                    "retries": operation.retries,
                }
                span.set_attributes(
                    {
                        f"freezeframe.{name}": value
                        for name, value in fields.items()
                        if isinstance(value, (str, int))
                    }
                )


def observe_with(observer: Callable[[Operation], None]) -> Callable[[], None]:
    """Have the observer called with each operation; the function that is returned ends it."""
    _observers.append(observer)
    return lambda: _observers.remove(observer)


class _Text(logging.Formatter):
    """A line: moment, level, logger, message, context."""

    def format(self, record: logging.LogRecord) -> str:
        context = " ".join(f"{name}={_plain(value)}" for name, value in _fields(record).items())
        head = f"{_moment(record)} {record.levelname} {record.name}:"
        lines = [f"{_plain(record.getMessage())} {context}".rstrip()]
        if record.exc_info:
            lines += self.formatException(record.exc_info).splitlines()
        # Each line has the head: the text of an error, which a caller may have chosen, begins none.
        return "\n".join(f"{head} {line}" for line in lines)


class _Json(logging.Formatter):
    """A line of JSON: ``time``, ``level``, ``logger``, ``message`` and the context's fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


_HEAD = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z [A-Z]+ (?P<logger>[\w.]+): |\{")
_COPIED = ("log", "MESSAGE")


def logged_by(logger: str, line: str) -> dict[str, Any] | str | None:
    """Return what the logger said in a line of a log: the fields of JSON, or the text behind its name.

    None: another logger wrote the line, whatever it quotes. A log collector may have put something in front
    of the line, or the line into a field of its own JSON.
    """
    head = _HEAD.search(line)
    if head is None:
        return None
    if head["logger"]:
        return line[head.end() :] if head["logger"] == logger else None
    try:
        fields = json.loads(line[head.start() :])
    except ValueError:
        return None
    if "logger" in fields:
        return fields if fields["logger"] == logger else None
    copied = next((text for name in _COPIED if isinstance(text := fields.get(name), str)), None)
    return None if copied is None else logged_by(logger, copied)


def configure_logging(kind: LogFormat, level: str) -> None:
    """Write the process's log to standard error, in this format, from this level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if kind == "json" else _Text())
    if level == "info":
        handler.addFilter(_is_no_state)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # The audit is always logged whole, whatever the level of the log.
    logging.getLogger("freezeframe.audit").setLevel(logging.INFO)
    for talkative in ("httpx", "httpcore", "py4j", "alembic"):
        logging.getLogger(talkative).setLevel(max(logging.WARNING, logging.getLogger().level))


def _is_no_state(record: logging.LogRecord) -> bool:
    """Return whether the line is not a message of the Delta log about a loaded state.

    The library logs these at INFO, as Delta does; most lines would be such, so a service shows them at DEBUG.
    """
    return record.levelno > logging.INFO or not record.name.startswith(_STATES)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    own = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    # A line's own fields come first: what follows may hold names that callers chose.
    return {**own, **{name: value for name, value in (_context.get() or {}).items() if name not in own}}


def _moment(record: logging.LogRecord) -> str:
    return rfc3339(moment(int(record.created * 1000)), "milliseconds")


def _plain(value: Any) -> str:
    """Text of one line: what a client named must not look like a line of its own."""
    return str(value).encode("unicode_escape").decode() if not str(value).isprintable() else str(value)
