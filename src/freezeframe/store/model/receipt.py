"""Receipts of updates and jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from freezeframe.engine.frames.frames import DtypeBackend, Library
from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.errors import InvalidOption
from freezeframe.store.model.json_fields import JsonFields

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Counts(JsonFields):
    """Row counts of one change of a stream."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0

    def __post_init__(self) -> None:
        if min(self.inserted, self.updated, self.unchanged, self.deleted) < 0:
            raise ValueError(f"counts cannot be negative: {self}")

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.unchanged + other.unchanged,
            self.deleted + other.deleted,
        )

    @property
    def changed(self) -> int:
        """Number of changed rows: inserted, updated and deleted."""
        return self.inserted + self.updated + self.deleted


def table_of(counts: Mapping[str, Counts]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the columns and the rows of a table of counts by stream."""
    names = tuple(Counts().to_json())
    return ("stream", *names), [(name, *found.to_json().values()) for name, found in counts.items()]


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table; texts are escaped, numbers are aligned to the right, None is an empty cell."""
    heading = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    # Notebooks put captions below a table and in grey without it.
    style = "caption-side: top; text-align: left; font-weight: bold"
    return (
        f'<table><caption style="{style}">{escape(caption)}</caption>'
        f"<thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>"
    )


def rows_html(caption: str, rows: pa.Table) -> str:
    """Return the rows of an Arrow table as an HTML table."""
    return html_table(caption, rows.column_names, [tuple(row.values()) for row in shown_rows(rows)])


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align: right">{value}</td>'
    return f'<td style="text-align: left">{"" if value is None else escape(str(value))}</td>'


@dataclass(frozen=True, slots=True)
class Receipt(JsonFields):
    """Result of an update: row counts and versions.

    ``version`` and ``stream_version`` are the tenant's and the stream's versions after the call; if nothing
    changed they are those from before, and ``committed`` is false.
    ``bytes_written`` counts the newly referenced data files, ``deleted`` the rows that were removed,
    closed or flagged.
    """

    stream: str
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    version: int
    stream_version: int
    committed: bool
    columns_added: tuple[str, ...]
    columns_dropped: tuple[str, ...]
    null_keys_dropped: int
    bytes_written: int
    seconds: float
    engine: str = ""
    """The engine that searched or merged stored rows: ``spark``, ``process`` (the job's) or empty."""
    columns_missing: tuple[str, ...] = ()
    """Stored columns that the batch lacks."""
    source: Callable[[Library, str | None], Any] | None = field(default=None, repr=False, compare=False)
    """A function that reads the changed rows; None in a receipt that was copied to another process."""

    @property
    def counts(self) -> Counts:
        """The four row counts as one value."""
        return Counts(self.inserted, self.updated, self.unchanged, self.deleted)

    def changed_rows(self, as_: Library = "pandas", *, dtype_backend: DtypeBackend | None = None) -> Any:
        """Return the rows changed by this update, in the form of ``Stream.changes``.

        ``_change_type`` is ``insert``, ``update`` (with the old row in ``_before``) or ``delete``; what
        others committed before or after is not among them. Nothing changed: no rows. A job makes one
        version of a stream, so there it is what the job has done with the stream so far.

        Raises:
            InvalidOption: the receipt was sent to another process, which does not know the stream.
            VersionNotFound: the versions are no longer kept.
        """
        if self.source is None:
            since = f"since={self.version - 1}, " if self.version > 0 else ""
            raise InvalidOption(
                "This receipt no longer knows its stream.",
                cause="It was copied to another process.",
                remedy=f"Ask the stream: changes({since}until={self.version})."
                if self.committed
                else "Nothing was committed, so no row was changed.",
            )
        return self.source(as_, dtype_backend)

    def _repr_html_(self) -> str:
        state = f"version {self.version}" if self.committed else "nothing committed"
        return html_table(f"{self.stream}, {state}", *table_of({self.stream: self.counts}))

    def __reduce__(self) -> tuple[Any, ...]:
        # The source holds storage and engine, which cannot be pickled.
        return type(self), tuple(getattr(self, item.name) for item in fields(self) if item.compare)


@dataclass(frozen=True, slots=True)
class JobReceipt(JsonFields):
    """Result of a job: the tenant version, and the receipt of each stream and file.

    ``tenant_version`` is the version of the commit; if nothing changed, it is the version from before, and
    ``committed`` is false. ``streams`` has a receipt for every stream that the job updated, with the
    net counts of all its updates: those of its version in the history. ``repeated``: the job had been
    committed before, and this is its receipt from then. ``script_sha256`` is the hash of the script that ran;
    empty without one, and in receipts of before it was kept.
    """

    tenant_version: int
    job_id: str | None
    committed: bool
    seconds: float
    streams: Mapping[str, Receipt] = field(default_factory=lambda: MappingProxyType({}))
    files_written: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    repeated: bool = False
    script_sha256: str = ""

    def _repr_html_(self) -> str:
        state = f"version {self.tenant_version}" if self.committed else "nothing committed"
        counts = {name: receipt.counts for name, receipt in self.streams.items()}
        files = [(path, "written") for path in self.files_written]
        files += [(path, "deleted") for path in self.files_deleted]
        listed = html_table("Files", ("file", ""), files) if files else ""
        return html_table(f"Job {self.job_id or ''}, {state}", *table_of(counts)) + listed


def parse_job_receipt(record: Mapping[str, Any]) -> JobReceipt:
    """Parse the form of ``to_json`` as a receipt marked as repeated."""
    streams = {name: _stream_receipt(receipt) for name, receipt in record["streams"].items()}
    return JobReceipt(
        tenant_version=int(record["tenant_version"]),
        job_id=record["job_id"],
        committed=bool(record["committed"]),
        seconds=float(record["seconds"]),
        streams=MappingProxyType(streams),
        files_written=tuple(record["files_written"]),
        files_deleted=tuple(record["files_deleted"]),
        repeated=True,
        script_sha256=record.get("script_sha256", ""),
    )


def join_receipts(receipts: tuple[Receipt, ...]) -> Receipt:
    """Combine several updates of one stream: total bytes and columns, counts and versions of the last."""
    last = receipts[-1]
    return replace(
        last,
        committed=any(receipt.committed for receipt in receipts),
        columns_added=_distinct(name for receipt in receipts for name in receipt.columns_added),
        columns_dropped=_distinct(name for receipt in receipts for name in receipt.columns_dropped),
        columns_missing=_distinct(name for receipt in receipts for name in receipt.columns_missing),
        null_keys_dropped=sum(receipt.null_keys_dropped for receipt in receipts),
        bytes_written=sum(receipt.bytes_written for receipt in receipts),
        seconds=round(sum(receipt.seconds for receipt in receipts), 3),
        engine="spark" if any(receipt.engine == "spark" for receipt in receipts) else last.engine,
    )


def _distinct(names: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _stream_receipt(record: Mapping[str, Any]) -> Receipt:
    known = {item.name for item in fields(Receipt) if item.init}
    # Older receipts have the stream version under the name ``version``.
    own = record["stream_version"] if "stream_version" in record else record["version"]
    numbers = {"version": record["tenant_version"], "stream_version": own}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in {**record, **numbers}.items()
        if name in known
    }
    return Receipt(**values)
