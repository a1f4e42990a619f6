"""A tenant as it was at one of its versions: all streams and files of one moment, for reading."""

from __future__ import annotations

from datetime import UTC, datetime

from freezeframe.identifiers import StreamName
from freezeframe.store.files import Files
from freezeframe.store.stream import Stream
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import MomentScope
from freezeframe.store.transaction.transaction import TenantPlace


class TenantView:
    """Streams and files as of one commit. Whatever is committed later does not show."""

    def __init__(self, place: TenantPlace, state: TenantState) -> None:
        self._state = state
        self._scope = MomentScope(place, state)

    def __repr__(self) -> str:
        return f"TenantView(version={self.version})"

    @property
    def version(self) -> int:
        """The tenant version that is seen."""
        return self._state.version

    @property
    def timestamp(self) -> datetime:
        """When it was committed."""
        return datetime.fromtimestamp(self._state.timestamp_ms / 1000, UTC)

    @property
    def files(self) -> Files:
        """The files of that moment; writing is refused."""
        return Files(self._scope)

    def stream(self, name: str | StreamName) -> Stream:
        """The stream of that name at that moment; updating is refused.

        Raises:
            InvalidName: no stream can have that name.
        """
        return Stream(name if isinstance(name, StreamName) else StreamName(name), self._scope)

    def streams(self) -> tuple[str, ...]:
        """The names of the streams at that moment, sorted."""
        return tuple(sorted(self._state.streams))
