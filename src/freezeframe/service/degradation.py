"""Degraded state of the service: findings for operators while it still answers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from freezeframe.service.service import Service, own_folder

FREE_SHARE_MIN = 0.05
WAITING_SECONDS_MAX = 900.0


def degradations(service: Service) -> Iterator[str]:
    """What is degraded: sentences, each with its remedy; none if all is well."""
    jobs = service.jobs
    if jobs.waiting_seconds() > WAITING_SECONDS_MAX and not jobs.counts()["running"]:
        yield (
            f"A job has waited for more than {WAITING_SECONDS_MAX / 60:g} minutes and none runs: "
            "see whether a worker does."
        )
    usage = shutil.disk_usage(own_folder(service.settings, service.stores.root))
    if usage.free < FREE_SHARE_MIN * usage.total:
        yield f"The disk of the service is full but for {usage.free / usage.total:.1%}: make room."
