"""Versions that are kept: the retention policy and tags."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from freezeframe.errors import AlreadyExists, InvalidOption, NotFound, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log.segments.management import iso
from freezeframe.store.model.update_options import Author
from freezeframe.store.table.reader import moment
from freezeframe.store.tenant_log.entry import Entry, TenantChange
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.transaction import Transaction

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Policy:
    """Which versions are kept: the newest ``keep_versions``, and those of the last ``keep_days``.

    Only versions that changed a stream or a file count. With both limits a version is kept if either keeps
    it; without limits all are kept. Tagged versions and the newest version are always kept.
    """

    keep_versions: int | None = None
    keep_days: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("keep_versions", 1), ("keep_days", 0)):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (is_number and value >= least):
                raise InvalidOption(
                    f"{name} cannot be {value!r}.",
                    remedy=f"Pass a number of at least {least}, or None for no limit.",
                )

    def to_json(self) -> dict[str, Any]:
        """Return the limits by name."""
        return {"keepVersions": self.keep_versions, "keepDays": self.keep_days}

    def floor(self, log: TenantLog, state: TenantState, now_ms: int) -> int:
        """Return the oldest version that the policy retains at a moment; it never decreases."""
        limits = []
        if self.keep_versions is not None:
            limits.append(_nth_newest(log, state, int(self.keep_versions)))
        if self.keep_days is not None:
            limits.append(_version_at(log, now_ms - int(self.keep_days * _DAY_MS)))
        wanted = min(limits, default=0)
        # Entries of gc and of the policy hold no data, so they must not displace versions that do.
        while wanted > state.floor and not _has_content(log.entry(wanted)):
            wanted -= 1
        return max(state.floor, wanted)


def policy_of(state: TenantState) -> Policy:
    """Return the tenant's policy; without a policy everything is kept."""
    kept: Mapping[str, Any] = state.policy
    return Policy(kept.get("keepVersions"), kept.get("keepDays"))


def set_policy(context: TenantContext, policy: Policy, *, who: str = "") -> int:
    """Set the tenant's policy; see ``Tenant.set_retention``."""
    with Transaction(context, Author(who, "set retention"), is_single=True) as transaction:
        transaction.stage_tenant(TenantChange(policy=MappingProxyType(policy.to_json())), "policy")
    return transaction.done.tenant_version


def _nth_newest(log: TenantLog, state: TenantState, number: int) -> int:
    """Return the oldest of the ``number`` newest versions that changed streams or files."""
    for version in range(state.version, state.floor, -1):
        number -= _has_content(log.entry(version))
        if not number:
            return version
    return state.floor


def _has_content(entry: Entry) -> bool:
    return bool(entry.streams or entry.files or entry.tenant.dropped)


def _version_at(log: TenantLog, moment_ms: int) -> int:
    try:
        return log.version_at(moment(iso(moment_ms)))
    except VersionNotFound:
        return 0


def set_tag(context: TenantContext, name: str, version: int | None, *, who: str = "") -> int:
    """Name a version; see ``Tenant.tag``."""
    known = _tag_name(name)
    with Transaction(context, Author(who, f"tag {known}"), is_single=True) as transaction:
        state = transaction.state()
        wanted = state.version if version is None else version
        if wanted < 0:
            raise VersionNotFound("The tenant has no version yet.", remedy="Commit something first.")
        _require_free(known, wanted, state)
        transaction.stage_tenant(
            TenantChange(tags=MappingProxyType({known: wanted})),
            "policy",
            lambda newest: _require_listed(wanted, newest),
            lambda newest: _require_free(known, wanted, newest),
        )
    return wanted


def remove_tag(context: TenantContext, name: str, *, who: str = "") -> None:
    """Remove a tag; see ``Tenant.untag``."""
    known = _tag_name(name)

    def there(state: TenantState) -> None:
        if known not in state.tags:
            raise NotFound(
                f"There is no tag {known!r}.",
                cause="The tenant has none of that name.",
                remedy="Check the name in the list of the tags.",
            )

    with Transaction(context, Author(who, f"untag {known}"), is_single=True) as transaction:
        there(transaction.state())
        transaction.stage_tenant(TenantChange(tags=MappingProxyType({known: None})), "policy", there)


def _require_listed(version: int, state: TenantState) -> None:
    if not state.is_listed(version):
        raise VersionNotFound(
            f"Version {version} of the tenant is not kept.",
            cause=f"Versions {state.floor} to {state.version}, and those with a tag, are.",
            remedy="Choose one that the history lists.",
            version=version,
        )


def _require_free(name: str, version: int, state: TenantState) -> None:
    if state.tags.get(name, version) != version:
        raise AlreadyExists(
            f"The tag {name!r} is version {state.tags[name]}'s already.",
            cause="A tag cannot be moved.",
            remedy=f"Use another name, or remove it first: untag({name!r}).",
        )


def _tag_name(name: str) -> str:
    return str(StreamName(name))  # the same rules: no slash, no control character, no odd spaces
