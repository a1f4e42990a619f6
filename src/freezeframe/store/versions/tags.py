"""Tags: names of versions, which retention keeps."""

from __future__ import annotations

from types import MappingProxyType

from freezeframe.errors import AlreadyExists, NotFound, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.store.model.author import Author
from freezeframe.store.tenant_log.entry import TenantChange
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import commit_at_end
from freezeframe.store.transaction.transaction import TenantPlace
from freezeframe.store.transaction.unit_of_work import UnitOfWork
from freezeframe.store.versions.restore import require_listed


def set_tag(place: TenantPlace, name: str, version: int | None, *, who: str = "") -> int:
    """Name a version; see ``Tenant.tag``."""
    known = _tag_name(name)
    with commit_at_end(UnitOfWork(place, Author(who, f"tag {known}"), is_single=True)) as work:
        state = work.state()
        wanted = state.version if version is None else version
        if wanted < 0:
            raise VersionNotFound("The tenant has no version yet.", remedy="Commit something first.")
        _require_free(known, wanted, state)
        work.change_tenant(
            TenantChange(tags=MappingProxyType({known: wanted})),
            "policy",
            lambda newest: require_listed(wanted, newest),
            lambda newest: _require_free(known, wanted, newest),
        )
    return wanted


def remove_tag(place: TenantPlace, name: str, *, who: str = "") -> None:
    """Take a tag off; see ``Tenant.untag``."""
    known = _tag_name(name)

    def there(state: TenantState) -> None:
        if known not in state.tags:
            raise NotFound(
                f"There is no tag {known!r}.",
                cause="The tenant has none of that name.",
                remedy="Check the name in the list of the tags.",
            )

    with commit_at_end(UnitOfWork(place, Author(who, f"untag {known}"), is_single=True)) as work:
        there(work.state())
        work.change_tenant(TenantChange(tags=MappingProxyType({known: None})), "policy", there)


def _require_free(name: str, version: int, state: TenantState) -> None:
    if state.tags.get(name, version) != version:
        raise AlreadyExists(
            f"The tag {name!r} is version {state.tags[name]}'s already.",
            cause="A tag that moved would not name what it named.",
            remedy=f"Use another name, or take it off first: untag({name!r}).",
        )


def _tag_name(name: str) -> str:
    return str(StreamName(name))  # the same rules: no slash, no control character, no odd spaces
