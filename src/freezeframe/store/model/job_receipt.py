"""The receipt of a job: its versions, and the receipt of each stream and file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from freezeframe.store.model.html_table import html_table
from freezeframe.store.model.receipt import Receipt
from freezeframe.store.model.row_counts import table_of


@dataclass(frozen=True, slots=True)
class JobReceipt:
    """Result of a job: the tenant version, and the receipt of each stream and file.

    ``tenant_version`` is the version of the one commit; where nothing changed, the version from before,
    and ``committed`` is false. ``streams`` has a receipt for every stream that the job updated, with the
    net counts of all its updates: those of its version in the history. ``repeated``: the job had been
    committed before, and this is what it was answered then.
    """

    tenant_version: int
    job_id: str | None
    committed: bool
    seconds: float
    streams: Mapping[str, Receipt] = field(default_factory=lambda: MappingProxyType({}))
    files_written: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    repeated: bool = False

    def _repr_html_(self) -> str:
        """The counts of each stream in a notebook, and the files."""
        state = f"version {self.tenant_version}" if self.committed else "nothing committed"
        counts = {name: receipt.counts for name, receipt in self.streams.items()}
        files = [(path, "written") for path in self.files_written]
        files += [(path, "deleted") for path in self.files_deleted]
        listed = html_table("Files", ("file", ""), files) if files else ""
        return html_table(f"Job {self.job_id or ''}, {state}", *table_of(counts)) + listed

    def to_json(self) -> dict[str, Any]:
        """All fields by name, the streams' receipts as objects."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        streams = {name: receipt.to_json() for name, receipt in self.streams.items()}
        return {
            **named,
            "streams": streams,
            "files_written": list(self.files_written),
            "files_deleted": list(self.files_deleted),
        }


def parse_job_receipt(record: Mapping[str, Any]) -> JobReceipt:
    """Parse the form of ``to_json`` as a receipt marked as repeated.

    Raises:
        KeyError, TypeError: it is none.
    """
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
    )


def join_receipts(receipts: tuple[Receipt, ...]) -> Receipt:
    """Combine several updates of one stream: total bytes and columns, counts and versions of the last."""
    last = receipts[-1]
    return replace(
        last,
        committed=any(one.committed for one in receipts),
        columns_added=_distinct(name for one in receipts for name in one.columns_added),
        columns_dropped=_distinct(name for one in receipts for name in one.columns_dropped),
        columns_missing=_distinct(name for one in receipts for name in one.columns_missing),
        null_keys_dropped=sum(one.null_keys_dropped for one in receipts),
        bytes_written=sum(one.bytes_written for one in receipts),
        seconds=round(sum(one.seconds for one in receipts), 3),
        engine="spark" if any(one.engine == "spark" for one in receipts) else last.engine,
    )


def _distinct(names: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _stream_receipt(record: Mapping[str, Any]) -> Receipt:
    known = {one.name for one in fields(Receipt) if one.init}
    # Older receipts have the stream version under the name ``version``.
    own = record["stream_version"] if "stream_version" in record else record["version"]
    numbers = {"version": record["tenant_version"], "stream_version": own}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in {**record, **numbers}.items()
        if name in known
    }
    return Receipt(**values)
