"""Finds unsealed configurations, which the operator is warned of at the start."""

from __future__ import annotations

from collections.abc import Iterator

from freezeframe.service.access.stores import Stores

CONFIGURATION_SUFFIX = "config.json"
TENANTS_LOOKED_AT = 100


def unsealed_configurations(stores: Stores, tenants_max: int = TENANTS_LOOKED_AT) -> Iterator[str]:
    """``environment/tenant/path`` of each unsealed ``*config.json``, of the first tenants only.

    A large store would take minutes to look through, and one such file is enough to be warned.
    """
    left = tenants_max
    for environment in stores.environments():
        if left < 1:
            return
        store = stores.environment(environment)
        names = store.tenants(limit=left)
        left -= len(names)
        for name in names:
            for path, held in store.tenant(name).place.log.current_state().files.items():
                if path.endswith(CONFIGURATION_SUFFIX) and not held.sealed:
                    yield f"{environment}/{name}/{path}"
