"""Target of an update: stream, storage, engine and settings."""

from __future__ import annotations

from dataclasses import dataclass

from freezeframe.engine.protocol import TableEngine
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.model.directory import table_folder
from freezeframe.store.updates.plan import FileRule, rule_of


@dataclass(frozen=True, slots=True)
class UpdatePlace:
    """A stream in its tenant's storage, with engine and settings."""

    name: StreamName
    storage: Storage
    engine: TableEngine
    settings: Settings

    @property
    def folder(self) -> str:
        """The stream's table."""
        return table_folder(self.name)

    @property
    def rule(self) -> FileRule:
        """The file rules from the settings."""
        return rule_of(self.settings)
