"""Committers whose clocks are days apart, and the clock of the storage itself."""

from __future__ import annotations

from functools import partial

from freezeframe.clock import another_clock, now_ms
from freezeframe.proof.model import content, frame
from freezeframe.proof.task import Task
from freezeframe.settings import Settings

PROMISE = "Clocks that are wrong change no order: times rise with versions, and a moment finds its version."
_COMMITS = 8
_DAY_MS = 86_400_000


def run(task: Task) -> None:
    """See the module."""
    for place, random in task.rounds():
        storage = place.storage()
        before = now_ms()
        storage.put_if_absent("clock/now", b"x")
        after = now_ms()
        stamp = next(iter(storage.list_from("clock"))).modified_ms
        skew = max(before - stamp, stamp - after, 0)
        grace = int(Settings().gc_grace_seconds * 1000)
        task.require(
            skew < grace / 2, f"the clock of the storage is {skew} ms off; gc_grace_seconds is {grace} ms"
        )
        held = {}
        tenants = place.within("tenant")
        for number in range(_COMMITS):
            wrong = now_ms() + random.randint(-2 * _DAY_MS, 2 * _DAY_MS)
            with another_clock(partial(int, wrong)):
                tenants.tenant().stream("Account").update(frame({f"key-{number}": number}), key="Id")
            tenant = tenants.tenant()
            held[tenant.version] = content(tenant)
        tenant = tenants.tenant()
        history = list(tenant.history())[::-1]
        times = [entry.timestamp for entry in history]
        task.require(times == sorted(set(times)), "the times of the versions do not rise")
        for entry in history:
            found = tenant.at(entry.timestamp)
            task.require(found.version == entry.version, f"{entry.timestamp} finds version {found.version}")
            task.require(content(found) == held[entry.version], f"version {entry.version} reads otherwise")
        task.counts.update(commits=_COMMITS, moments=len(history), skew_ms=skew)
