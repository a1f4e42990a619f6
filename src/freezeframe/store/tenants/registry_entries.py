"""Entries of the registry, and the state folded from them (pure).

A tenant id of an environment maps to a folder with an opaque name. A deleted and recreated tenant has a
new folder, so no data of the old one can reappear.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from freezeframe.errors import CorruptLog
from freezeframe.store.tenant_log.entry_chain import Chain, Link
from freezeframe.store.tenant_log.signed_json import from_signed_line, to_signed_line
from freezeframe.store.tenant_log.state import NO_VERSION

Kind = Literal["create", "delete", "removed"]
_KINDS = ("create", "delete", "removed")
_FOLDER_LENGTH = 32
_STORED = ("kind", "environment", "tenant", "folder", "write_id", "timestamp_ms")


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """A tenant begins (``create``), is not to be found any more (``delete``), or all of it is gone."""

    kind: Kind
    environment: str
    tenant: str
    folder: str
    write_id: str
    timestamp_ms: int
    link: Link | None = None
    sha256: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"the kind {self.kind!r} is not known")
        if len(self.folder) != _FOLDER_LENGTH or not set(self.folder) <= set("0123456789abcdef"):
            raise ValueError(f"{self.folder!r} is not a folder of a tenant")

    def to_bytes(self) -> bytes:
        """The entry as one line of JSON, with a checksum."""
        record = {name: getattr(self, name) for name in _STORED}
        linked = {} if self.link is None else self.link.to_json()
        # ASCII only: some letters count as the end of a line, and a log's entry is one line.
        return to_signed_line({**record, **linked}, is_ascii=True)


@dataclass(frozen=True, slots=True)
class RegistryState:
    """Each environment's tenants and their folders; ``leaving``: folders pending removal."""

    version: int = NO_VERSION
    timestamp_ms: int = 0
    tenants: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    leaving: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    chain: Chain = field(default_factory=Chain)

    def folder(self, environment: str, tenant: str) -> str | None:
        """The tenant's folder; None for an unknown tenant."""
        return self.tenants.get(environment, {}).get(tenant)

    @property
    def folders(self) -> frozenset[str]:
        """The folders of all tenants of all environments."""
        return frozenset(folder for known in self.tenants.values() for folder in known.values())

    def after(self, version: int, *entries: RegistryEntry) -> RegistryState:
        """The state once ``entries`` are ``version`` and those that follow it.

        Raises:
            CorruptLog: an entry does not fit the state before it.
        """
        if not entries:
            return self
        # One copy for all entries, because it contains every tenant of the store.
        tenants = {name: dict(known) for name, known in self.tenants.items()}
        leaving = dict(self.leaving)
        chain = self.chain
        for number, entry in enumerate(entries, version):
            chain = chain.after(number, entry.link, entry.sha256, "the store's registry")
            _carry_out(entry, number, tenants.setdefault(entry.environment, {}), leaving)
        return replace(
            self,
            version=version + len(entries) - 1,
            timestamp_ms=entries[-1].timestamp_ms,
            tenants=MappingProxyType({name: MappingProxyType(known) for name, known in tenants.items()}),
            leaving=MappingProxyType(leaving),
            chain=chain,
        )

    def to_checkpoint(self) -> bytes:
        """The state as the content of a checkpoint file; tenants are in order of their ids."""
        record = {
            "version": self.version,
            "timestamp": self.timestamp_ms,
            "tenants": {name: dict(sorted(tenants.items())) for name, tenants in self.tenants.items()},
            "leaving": {folder: list(names) for folder, names in self.leaving.items()},
            **self.chain.to_json(),
        }
        return to_signed_line(record, is_ascii=True)


def _carry_out(
    entry: RegistryEntry, version: int, known: dict[str, str], leaving: dict[str, tuple[str, str]]
) -> None:
    if entry.kind == "create" and entry.tenant not in known:
        known[entry.tenant] = entry.folder
    elif entry.kind == "delete" and known.get(entry.tenant) == entry.folder:
        del known[entry.tenant]
        leaving[entry.folder] = (entry.environment, entry.tenant)
    elif entry.kind == "removed" and entry.folder in leaving:
        del leaving[entry.folder]
    else:
        raise CorruptLog(
            f"Entry {version} of the store's registry does not continue the one before it.",
            cause=f"It is a {entry.kind!r} of the folder {entry.folder}.",
            remedy="Restore the store's registry from a backup.",
            version=version,
        )


def parse_registry_entry(content: bytes, name: str) -> RegistryEntry:
    """The entry in a file's bytes; ``name`` is for messages.

    Raises:
        CorruptLog: the bytes are not a whole entry.
    """
    try:
        record, sha256 = from_signed_line(content, is_ascii=True)
        known = {name: record[name] for name in _STORED}
        return RegistryEntry(**known, link=Link.of_record(record), sha256=sha256)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damage_error(f"entry {name!r}", error) from error


def parse_registry_checkpoint(content: bytes, name: str) -> RegistryState:
    """The state in a checkpoint file's bytes; ``name`` is for messages.

    Raises:
        CorruptLog: the bytes are not a whole checkpoint.
    """
    try:
        record, _ = from_signed_line(content, is_ascii=True)
        tenants = {env: MappingProxyType(dict(known)) for env, known in record["tenants"].items()}
        leaving = {folder: (env, tenant) for folder, (env, tenant) in record["leaving"].items()}
        return RegistryState(
            int(record["version"]),
            int(record["timestamp"]),
            MappingProxyType(tenants),
            MappingProxyType(leaving),
            Chain.of_record(record),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damage_error(f"checkpoint {name!r}", error) from error


def _damage_error(what: str, error: Exception) -> CorruptLog:
    return CorruptLog(
        f"The {what} of the store's registry cannot be read.",
        cause=f"It is damaged or cut off ({error}).",
        remedy="Restore it from a backup; a checkpoint can be deleted, for it is made again.",
    )
