"""A job: one run of a script for a tenant, committed atomically."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Unpack

from freezeframe.identifiers import StreamName
from freezeframe.store.files import Files
from freezeframe.store.model.receipt import JobReceipt, Receipt
from freezeframe.store.model.update_options import Author, Names, UpdateOptions, parse_update
from freezeframe.store.stream import Stream
from freezeframe.store.transaction.scope import JobScope, TenantScope, commit_at_end
from freezeframe.store.transaction.transaction import TenantPlace
from freezeframe.store.transaction.unit_of_work import UnitOfWork


class Job:
    """Streams and files within one job; ``Tenant.job`` creates it.

    Inside, reads see the tenant as it was when the job began, with the job's own changes; everybody else
    sees the last commit. Leaving the ``with`` block commits all of it at once. An exception inside:
    nothing happened.
    """

    def __init__(self, place: TenantPlace, work: UnitOfWork) -> None:
        self._place = place
        self._work = work
        self._scope = JobScope(place, work)

    @property
    def is_repeated(self) -> bool:
        """Whether a job of this id is already committed; its changes are then not repeated."""
        return self._work.is_repeated

    @property
    def receipt(self) -> JobReceipt:
        """The receipt of the job, available after its block.

        Raises:
            InvalidOption: it has not been committed (yet).
        """
        found = self._work.done
        streams = {name: self._with_source(receipt) for name, receipt in found.streams.items()}
        return replace(found, streams=MappingProxyType(streams))

    def stream(self, name: str | StreamName) -> Stream:
        """The stream of that name within the job; its updates become part of the job.

        Raises:
            InvalidName: no stream can have that name.
        """
        return Stream(name if isinstance(name, StreamName) else StreamName(name), self._scope)

    def update(
        self,
        frames: Mapping[str, Any],
        key: Names | Mapping[str, Names] | None = None,
        **options: Unpack[UpdateOptions],
    ) -> dict[str, Receipt]:
        """Update several streams, given by name; returns the receipt of each, in the order given.

        It does what ``Stream.update`` does for one after the other, but small streams are searched for
        all their keys by one question to Spark, which is most of what a small update costs. ``key`` and
        ``options`` are those of ``Stream.update``, for all of the streams; ``key`` may also be a mapping.
        Where one of them fails, the others are part of the job, as after single calls.

        Raises:
            BadInput, TooManyDeletions, InvalidOption, InvalidName: as ``Stream.update`` does.
        """
        keys = key if isinstance(key, Mapping) else dict.fromkeys(frames, key)
        updates = [
            (StreamName(name), frame, parse_update(keys.get(name), options)) for name, frame in frames.items()
        ]
        with self._scope.change() as work:
            receipts = work.update_all(updates)
        return {
            name: replace(receipt, source=functools.partial(self.stream(name).changed_by, receipt))
            for name, receipt in zip(frames, receipts, strict=True)
        }

    @property
    def files(self) -> Files:
        """The tenant's files within the job; changes become part of the job."""
        return Files(self._scope)

    def streams(self) -> tuple[str, ...]:
        """The sorted names of the streams within the job."""
        return tuple(sorted(self._work.state().streams))

    def _with_source(self, receipt: Receipt) -> Receipt:
        stream = Stream(StreamName(receipt.stream), TenantScope(self._place))
        return replace(receipt, source=functools.partial(stream.changed_by, receipt))


@contextmanager
def open_job(
    place: TenantPlace, job_id: str | None, *, message: str | None = None, who: str | None = None
) -> Iterator[Job]:
    """A job that commits when the block ends without an error; see ``Tenant.job``."""
    with commit_at_end(UnitOfWork(place, Author(who or "", message or ""), job_id=job_id)) as work:
        yield Job(place, work)
