"""Starts the warm Spark server while a job's script begins: it is up when the first update asks for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from freezeframe.engine.server.server import attach
from freezeframe.errors import FreezeframeError
from freezeframe.settings import Settings
from freezeframe.store.tenant import Tenant


def start_early(settings: Settings, master: str, tenant: Tenant, progress: Callable[[str], None]) -> None:
    """Start the server in a thread where the job's updates will need it: the tenant has stored rows.

    What goes wrong is told by the update that needs the server.
    """
    is_warm = settings.spark == "auto" or settings.spark.startswith("spark://")
    if settings.engine == "spark" and is_warm and tenant.streams():
        threading.Thread(target=_start, args=(settings, master, progress), daemon=True).start()


def _start(settings: Settings, master: str, progress: Callable[[str], None]) -> None:
    with contextlib.suppress(FreezeframeError, OSError):
        attach(settings, master, progress).close()
