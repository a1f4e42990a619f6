"""Starts the warm Spark server while a job's script begins: it is up when the first update asks for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping

from freezeframe.engine.configuration import cores
from freezeframe.engine.server import attach
from freezeframe.errors import FreezeframeError
from freezeframe.settings import Settings
from freezeframe.store.tenant import Tenant


def start_early(
    settings: Settings, tenant: Tenant, environment: Mapping[str, str], progress: Callable[[str], None]
) -> None:
    """Start the server in a thread where the job's updates will need it: the tenant has stored rows.

    A server that runs already is left as it is. What goes wrong is told by the update that needs the server.
    """
    where = settings.spark
    is_ours = "SPARK_REMOTE" not in environment and (where == "auto" or where.startswith("spark://"))
    if settings.engine == "spark" and is_ours and tenant.streams():
        master = f"local[{cores()}]" if where == "auto" else where
        threading.Thread(target=_start, args=(settings, master, progress), daemon=True).start()


def _start(settings: Settings, master: str, progress: Callable[[str], None]) -> None:
    with contextlib.suppress(FreezeframeError, OSError):
        attach(settings, master, progress).close()
