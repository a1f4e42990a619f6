"""Proofs about a storage: creation, listing, crashes and errors between its calls, clocks."""

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from multiprocessing.connection import Connection

from freezeframe.clock import another_clock, now_ms
from freezeframe.errors import FreezeframeError, OutcomeUnknown
from freezeframe.proof.model import Step, content, frame, numbered
from freezeframe.proof.task import ProofFolder, Task, race, store_tenant_on, wait_for_start
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.memory import VERBS, WRITES, Crash, Fault, FaultyStorage, Way
from freezeframe.store import Tenant

_WRITERS = 4
_CREATE_NAMES = 40
_DIGEST_BYTES = 32
_BYTES = 60_000


def create_atomically(task: Task) -> None:
    """Let processes race to create the same names, and read each name while it is written."""
    for folder, _ in task.rounds():
        names = [f"race/{number:06}" for number in range(_CREATE_NAMES)]
        answers = race(_create_all, [(folder, names)] * _WRITERS)
        storage = folder.storage()
        winners = Counter(name for won, _, _ in answers for name in won)
        digests = {name: digest for won, _, _ in answers for name, digest in won.items()}
        for name in names:
            task.require(winners[name] == 1, f"{name}: {winners[name]} of {_WRITERS} writers created it")
            found = _digest(storage, name)
            task.require(
                found == digests.get(name), f"{name}: the bytes of the writer that succeeded are gone"
            )
        for torn in (name for _, half, _ in answers for name in half):
            task.report(f"{torn}: a reader was given half of its bytes")
        task.counts.update(
            names=_CREATE_NAMES, creates=_CREATE_NAMES * _WRITERS, reads=sum(reads for _, _, reads in answers)
        )


def _create_all(connection: Connection, folder: ProofFolder, names: list[str]) -> None:
    """Create each name, and read the next one, which others may be writing."""
    storage = folder.storage()
    won: dict[str, str] = {}
    torn, reads = [], 0
    wait_for_start(connection)
    for number, name in enumerate(names):
        body = uuid.uuid4().bytes * (_BYTES // 16)
        digest = hashlib.sha256(body).digest()
        if _create(storage, name, digest + body):
            won[name] = digest.hex()
        for other in names[number : number + 2]:
            reads += 1
            if _digest(storage, other) == "":
                torn.append(other)
    connection.send((won, torn, reads))


def _create(storage: Storage, name: str, content: bytes) -> bool:
    try:
        storage.put_if_absent(name, content)
    except FileExistsError:
        return False
    except OutcomeUnknown:
        return storage.read(name) == content
    return True


def _digest(storage: Storage, name: str) -> str | None:
    """Return the digest that the file begins with; "" if its bytes have another, None if there is no file."""
    try:
        content = storage.read(name)
    except FileNotFoundError:
        return None
    digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return digest.hex() if hashlib.sha256(body).digest() == digest and len(body) == _BYTES // 16 * 16 else ""


_LISTING_NAMES = 60


def list_all(task: Task) -> None:
    """Create and delete names by one storage, and compare each listing by another one."""
    for folder, random in task.rounds():
        writer, reader = folder.storage(), folder.storage()
        there: set[str] = set()
        for _ in range(_LISTING_NAMES):
            name = f"{random.randrange(10**6):06}{random.choice(['', 'é', '~', '.json'])}"
            if name in there or (there and random.random() < 0.25):  # noqa: PLR2004 - a quarter deletes
                name = name if name in there else random.choice(sorted(there))
                writer.delete(f"list/{name}")
                there.discard(name)
            else:
                writer.put_if_absent(f"list/{name}", b"x")
                there.add(name)
            start = f"{random.randrange(10**6):06}"
            for begin in ("", start):
                found = [item.name for item in reader.list_from("list", begin)]
                expected = sorted((item for item in there if item >= begin), key=str.encode)
                task.require(found == expected, _difference(found, expected))
                task.counts["listings"] += 1
        task.counts["changes"] += _LISTING_NAMES


def _difference(found: list[str], expected: list[str]) -> str:
    missing, more = sorted({*expected} - {*found}), sorted({*found} - {*expected})
    if not missing and not more:
        return "a listing was not in the order of the names"
    return f"a listing had {len(expected)} names to show: {missing[:3]} were missing, {more[:3]} were deleted"


_CRASHED, _UNKNOWN = "crashed", "OUTCOME_UNKNOWN"
_FIRST_JOBS = 3
_INTERVAL = 3  # a checkpoint every so many versions, so that their calls are stopped as well


def crashes(task: Task) -> None:
    """Crash before and after each call that writes; one at a read leaves what the write before left."""
    _stop_all(task, dict.fromkeys(sorted(WRITES), (1, (Way.CUT_BEFORE, Way.CUT_AFTER))))


def errors(task: Task) -> None:
    """Refuse each write or lose its response, and refuse every fifth read in each round."""
    lost: tuple[Way, ...] = (Way.FAIL_BEFORE, Way.FAIL_AFTER)
    refused: tuple[Way, ...] = (Way.FAIL_BEFORE,)
    reads = sorted({*VERBS} - WRITES)
    _stop_all(task, dict.fromkeys(sorted(WRITES), (1, lost)) | dict.fromkeys(reads, (5, refused)))


def _stop_all(task: Task, faults: Mapping[str, tuple[int, tuple[Way, ...]]]) -> None:
    """Stop each operation at every so many calls of each verb, in each way."""
    for folder, random in task.rounds():
        for name in OPERATIONS:
            within = folder.within(name)
            for number in range(_FIRST_JOBS):
                Step("job", numbered(number, _rows(number))).run(_open_tenant(within))
            for verb, (step, ways) in faults.items():
                for way in ways:
                    calls = count(random.randrange(step), step)
                    _stop_at_each(task, within, name, (Fault(call, way, verb) for call in calls))


def _stop_at_each(task: Task, folder: ProofFolder, name: str, faults: Iterator[Fault]) -> None:
    """At one call after the other, until the operation makes fewer calls than that."""
    for fault in faults:
        number = _FIRST_JOBS + task.counts["calls_stopped"]
        reader = _open_tenant(folder)
        before = content(reader)
        step = OPERATIONS[name](reader, number)
        past = {step.value: content(reader.at(step.value))} if step.kind == "restore" else {}
        new = step.expected(before, past)
        storage = FaultyStorage(folder.storage(), [fault])
        outcome = _attempt(storage, step)
        found = content(_open_tenant(folder))
        seen = f"{name} at {fault.verb} {fault.call} ({fault.way.value})"
        if outcome is None:
            task.require(found == new, f"{seen}: acknowledged, and not there")
        elif step.kind in _ONE_COMMIT and outcome not in {_CRASHED, _UNKNOWN}:
            task.require(found == before, f"{seen}: failed with {outcome}, and its changes are there")
        else:
            task.require(found in (before, new), f"{seen}: neither the old content nor the new")
        if sum(call.verb == fault.verb for call in storage.calls) <= fault.call or task.violations:
            return
        task.counts["calls_stopped"] += 1


def _attempt(storage: FaultyStorage, step: Step) -> str | None:
    """None if the operation was acknowledged, else how it ended."""
    try:
        step.run(store_tenant_on(storage, checkpoint_interval=_INTERVAL))
    except Crash:
        return _CRASHED
    except FreezeframeError as error:
        return error.error_code
    return None


def _open_tenant(folder: ProofFolder) -> Tenant:
    return store_tenant_on(folder.storage(), checkpoint_interval=_INTERVAL)


def _rows(number: int) -> dict[str, int]:
    return {f"key-{number % 5}": number, f"more-{number % 7}": number}


def _restoration(tenant: Tenant, _number: int) -> Step:
    """Restore an older version; another one each time, since restores add versions."""
    return Step("restore", min(entry.version for entry in tenant.history(limit=5)))


OPERATIONS: Mapping[str, Callable[[Tenant, int], Step]] = {
    "job": lambda _, number: Step("job", numbered(number, _rows(number))),
    "override": lambda _, number: Step("job", [("override", "Lead", _rows(number))]),
    "restore": _restoration,
    "gc": lambda _, number: Step("gc", 1 + number % 2),
    "erase": lambda _, number: Step("erase", f"key-{number % 5}", "Account"),
}
_ONE_COMMIT = {"job", "restore"}
"""Kinds of which an error other than an unknown outcome means that nothing changed."""


_COMMITS = 8
_DAY_MS = 86_400_000


def skew_clocks(task: Task) -> None:
    """Commit under clocks that are days off, and find each version by its time."""
    for folder, random in task.rounds():
        storage = folder.storage()
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
        tenants = folder.within("tenant")
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
