"""The environment variables by which a process finds its Spark Connect server.

``SPARK_REMOTE`` is Spark's own. A run, and a process whose session the library made, set it to the address
of a server of ours and say so in a second variable: then the setting ``spark`` still decides.
"""

from __future__ import annotations

from collections.abc import Mapping

REMOTE = "SPARK_REMOTE"
OWN_REMOTE = "FREEZEFRAME_OWN_REMOTE"


def foreign_remote(environment: Mapping[str, str]) -> str:
    """The user's server in ``SPARK_REMOTE``; empty without one."""
    remote = environment.get(REMOTE, "")
    return "" if remote == environment.get(OWN_REMOTE) else remote


def own_remote(url: str) -> dict[str, str]:
    """The variables that name a server of ours."""
    return {REMOTE: url, OWN_REMOTE: url}
