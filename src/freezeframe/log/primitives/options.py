"""Options of a log, the name that it commits under, and the events that it reports."""

from __future__ import annotations

import functools
import importlib.metadata
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from freezeframe.clock import now_ms
from freezeframe.errors import InvalidOption


@functools.cache
def engine_info() -> str:
    """Return the writer's name in commits of this package: ``freezeframe/0.2.0``."""
    return f"freezeframe/{importlib.metadata.version('freezeframe')}"


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event of a log; ``error`` is the message of a failure, else empty.

    Names are ``deltaLog.update``, ``deltaLog.snapshot``, ``deltaLog.commit``, ``deltaLog.checkpoint``.
    """

    name: str
    path: str
    duration_ms: float
    metrics: Mapping[str, Any]
    error: str = ""


Listener: TypeAlias = Callable[[LogEvent], None]


@contextmanager
def report(listener: Listener | None, name: str, path: str) -> Iterator[dict[str, Any]]:
    """Reports the block to the listener when it ends; the block adds its metrics.

    A failure of the listener is logged; the observed operation continues.
    """
    metrics: dict[str, Any] = {}
    if listener is None:
        yield metrics
        return
    started, error = time.perf_counter(), ""
    try:
        yield metrics
    except BaseException as caught:
        error = str(caught) or type(caught).__name__
        raise
    finally:
        event = LogEvent(name, path, (time.perf_counter() - started) * 1000, metrics, error)
        try:
            listener(event)
        except Exception:  # noqa: BLE001 - a listener's failure must not stop the log
            _log.exception("The listener of %s failed at %s", path, name)


# Spark's name -> this package's name.
SPARK_NAMES: Mapping[str, str] = {
    "spark.databricks.delta.stalenessLimit": "staleness_limit_ms",
    "spark.databricks.delta.deltaLog.minorCompaction.useForReads": "use_compacted",
    "spark.databricks.delta.snapshotLoading.maxRetries": "checkpoint_retries_max",
    "spark.databricks.delta.snapshot.logging.maxFilesThreshold": "files_warning_threshold",
    "spark.databricks.delta.readProtocolAndMetadataFromChecksum.enabled": "use_checksum",
    "spark.databricks.delta.lastCheckpoint.checksum.enabled": "verify_hint",
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": (
        "enforce_file_retention"
    ),
    "spark.sql.session.timeZone": "time_zone",
}

# As Spark writes a time in its configuration.
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(rf"([+-]?\d+)\s*({'|'.join(_UNITS_MS)})?")
_OFFSET = re.compile(r"[+-]\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Limits and switches of one log; the defaults are Delta's, with one exception.

    ``enforce_file_retention`` refuses versions older than the table's deleted-file retention,
    whose data files a vacuum may have deleted. Delta enables it; here it is off, so every version in
    the log can be read, and a missing data file raises an error that names it.

    ``time_zone`` is that of partition values that are instants and whose writer named no zone.

    ``listener`` receives a ``LogEvent`` for each operation of the log, on the operation's thread.
    """

    staleness_limit_ms: int = 0
    use_compacted: bool = True
    use_checksum: bool = True
    verify_hint: bool = True
    enforce_file_retention: bool = False
    checkpoint_retries_max: int = 2
    files_warning_threshold: int = 500_000
    time_zone: tzinfo = UTC
    listener: Listener | None = None
    clock: Callable[[], int] = now_ms
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        for name in ("staleness_limit_ms", "checkpoint_retries_max", "files_warning_threshold"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidOption(
                    f"{name} must be a whole number of at least 0, not {value!r}.",
                    remedy="Give 0 to switch it off, or a positive number.",
                )

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> LogOptions:
        """Parse options under this package's names or Spark's; other Spark options are ignored."""
        found: dict[str, Any] = {}
        for name, value in options.items():
            ours = SPARK_NAMES.get(name, name)
            if ours not in cls.__slots__:
                if name.startswith("spark."):
                    continue
                raise InvalidOption(
                    f"{name!r} is not an option of a log.",
                    cause=f"The options are {', '.join(cls.__slots__)}.",
                    remedy="Use one of them, or Spark's own name for it.",
                )
            found[ours] = _zone(name, value) if ours == "time_zone" else _convert(name, value)
        return cls(**found)


def _zone(name: str, value: Any) -> tzinfo:
    if isinstance(value, tzinfo):
        return value
    try:
        if _OFFSET.fullmatch(value):
            return datetime.strptime(value, "%z").tzinfo or UTC
        return UTC if value in ("UTC", "Z") else ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise InvalidOption(
            f"{name} cannot be {value!r:.80}.",
            cause="This machine has no such time zone.",
            remedy="Give a name such as Europe/Berlin, or an offset such as +01:00.",
        ) from error


def _convert(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if text in ("true", "false"):
        return text == "true"
    ours = SPARK_NAMES.get(name, name)
    duration = _DURATION.fullmatch(text)
    if duration is None or (duration[2] and ours != "staleness_limit_ms"):
        units = ", ".join(_UNITS_MS)
        is_time = ours == "staleness_limit_ms"
        what = f"milliseconds, or a number with one of {units}" if is_time else "a whole number"
        raise InvalidOption(f"{name} cannot be {value!r}.", remedy=f"Give {what}, or true or false.")
    return int(duration[1]) * _UNITS_MS[duration[2] or "ms"]
