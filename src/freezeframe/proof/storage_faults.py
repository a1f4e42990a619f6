"""Each operation of a tenant, stopped at each of its storage calls: by a crash, or by an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from freezeframe.errors import FreezeframeError
from freezeframe.proof.model import Content, content, frame
from freezeframe.proof.place import Place, tenant_on
from freezeframe.proof.task import Task
from freezeframe.storage.faulty import VERBS, WRITES, Crash, Fault, FaultyStorage, Way
from freezeframe.store import Tenant

CRASH_PROMISE = "A crash between two storage calls leaves the old content or the new; nobody has to repair."
ERROR_PROMISE = (
    "A storage call that fails is told truly: acknowledged is there, failed is not, nothing is half done."
)
_CRASHED, _UNKNOWN = "crashed", "OUTCOME_UNKNOWN"
_FIRST_JOBS = 3
_INTERVAL = 3  # a checkpoint every so many versions, so that their calls are stopped as well


@dataclass(frozen=True, slots=True)
class Operation:
    """Something done to a tenant, by a number; and what the tenant then holds.

    ``one_commit``: an error other than an unknown outcome says that nothing has changed.
    """

    run: Callable[[Tenant, int], object]
    expected: Callable[[Content, Tenant, int], Content]
    one_commit: bool = True


def crashes(task: Task) -> None:
    """A crash before and after each call that writes; one at a read leaves what the write before it left."""
    _stop_all(task, dict.fromkeys(sorted(WRITES), (1, (Way.CUT_BEFORE, Way.CUT_AFTER))))


def errors(task: Task) -> None:
    """A write that is refused or whose answer is lost, and in each round every fifth read."""
    lost: tuple[Way, ...] = (Way.FAIL_BEFORE, Way.FAIL_AFTER)
    refused: tuple[Way, ...] = (Way.FAIL_BEFORE,)
    reads = sorted({*VERBS} - WRITES)
    _stop_all(task, dict.fromkeys(sorted(WRITES), (1, lost)) | dict.fromkeys(reads, (5, refused)))


def _stop_all(task: Task, faults: Mapping[str, tuple[int, tuple[Way, ...]]]) -> None:
    """Each operation, stopped at every so many calls of each verb, in each way."""
    for place, random in task.rounds():
        for name in OPERATIONS:
            within = place.within(name)
            for number in range(_FIRST_JOBS):
                _job(_open_tenant(within), number)
            for verb, (step, ways) in faults.items():
                for way in ways:
                    calls = count(random.randrange(step), step)
                    _stop_at_each(task, within, name, (Fault(call, way, verb) for call in calls))


def _stop_at_each(task: Task, place: Place, name: str, faults: Iterator[Fault]) -> None:
    """At one call after the other, until the operation makes fewer calls than that."""
    for fault in faults:
        number = _FIRST_JOBS + task.counts["calls_stopped"]
        reader = _open_tenant(place)
        before = content(reader)
        new = OPERATIONS[name].expected(before, reader, number)
        storage = FaultyStorage(place.storage(), [fault])
        outcome = _attempt(storage, name, number)
        found = content(_open_tenant(place))
        seen = f"{name} at {fault.verb} {fault.call} ({fault.way.value})"
        if outcome is None:
            task.require(found == new, f"{seen}: acknowledged, and not there")
        elif OPERATIONS[name].one_commit and outcome not in {_CRASHED, _UNKNOWN}:
            task.require(found == before, f"{seen}: failed with {outcome}, and its changes are there")
        else:
            task.require(found in (before, new), f"{seen}: neither the old content nor the new")
        if sum(call.verb == fault.verb for call in storage.calls) <= fault.call or task.violations:
            return
        task.counts["calls_stopped"] += 1


def _attempt(storage: FaultyStorage, name: str, number: int) -> str | None:
    """None if the operation was acknowledged, else how it ended."""
    try:
        OPERATIONS[name].run(tenant_on(storage, checkpoint_interval=_INTERVAL), number)
    except Crash:
        return _CRASHED
    except FreezeframeError as error:
        return error.error_code
    return None


def _open_tenant(place: Place) -> Tenant:
    return place.tenant(checkpoint_interval=_INTERVAL)


def _rows(number: int) -> dict[str, int]:
    return {f"key-{number % 5}": number, f"more-{number % 7}": number}


def _job(tenant: Tenant, number: int) -> None:
    with tenant.job() as job:
        for name in ("Account", "Lead"):
            job.stream(name).update(frame(_rows(number)), key="Id")
        job.files.write("state.json", str(number).encode())


def _after_job(before: Content, _tenant: Tenant, number: int) -> Content:
    streams = {name: before[0].get(name, {}) | _rows(number) for name in ("Account", "Lead")}
    return before[0] | streams, before[1] | {"state.json": str(number).encode()}


def _override(tenant: Tenant, number: int) -> None:
    tenant.stream("Lead").update(frame(_rows(number)), key="Id", override=True)


def _restore(tenant: Tenant, _number: int) -> None:
    tenant.restore(_restored_version(tenant))


def _restored_version(tenant: Tenant) -> int:
    """An older version; another one each time, since restores add versions."""
    return min(entry.version for entry in tenant.history(limit=5))


def _collect(tenant: Tenant, number: int) -> None:
    tenant.set_retention(keep_versions=1 + number % 2)
    tenant.gc()


def _erase(tenant: Tenant, number: int) -> None:
    tenant.erase("Account", [f"key-{number % 5}"])


def _after_erase(before: Content, _tenant: Tenant, number: int) -> Content:
    rows = {key: value for key, value in before[0]["Account"].items() if key != f"key-{number % 5}"}
    return before[0] | {"Account": rows}, before[1]


OPERATIONS = {
    "job": Operation(_job, _after_job),
    "override": Operation(
        _override, lambda before, _, number: (before[0] | {"Lead": _rows(number)}, before[1])
    ),
    "restore": Operation(_restore, lambda _, tenant, __: content(tenant.at(_restored_version(tenant)))),
    "gc": Operation(_collect, lambda before, _, __: before, one_commit=False),
    "erase": Operation(_erase, _after_erase, one_commit=False),
}
