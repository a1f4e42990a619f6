"""What was made of a tenant's state: kept until it changes, handed on while commits alone change it."""

import pytest

from freezeframe.service.base.cursors import VersionedCache
from freezeframe.store.tenant_log.state import TenantState


def test_the_value_of_the_same_state_is_made_once():
    cache, state, made = VersionedCache(2), TenantState(version=1), []
    for _ in range(2):
        assert cache.value("acme", state, lambda before: made.append(before) or "one") == "one"
    assert made == [None]


@pytest.mark.parametrize(
    ("later", "known"),
    [
        (TenantState(version=4), "before"),
        (TenantState(version=2), None),
        (TenantState(version=4, erased=4), None),
    ],
    ids=["commits", "an older backup", "an erasure"],
)
def test_an_earlier_value_is_handed_on_where_commits_alone_lie_between(later, known):
    cache, made = VersionedCache(2), []
    cache.value("acme", TenantState(version=3), lambda _: "before")
    cache.value("acme", later, made.append)
    assert made == [known]
