"""A machine of one seed: a disk that loses power, processes that take turns at its calls, and a clock.

Processes are threads of which one runs at a time: at each call of the storage the seed says who goes on, and
whether somebody dies. What is random in our own code (names of files) comes from the same seed.
"""

import threading
from functools import partial
from pathlib import Path
from random import Random

from freezeframe.errors import StorageUnavailable
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash

START_MS = 1_790_000_000_000
PAGE_BYTES = 512


class Disk(MemoryStorage):
    """What processes see, and what of it would survive a power loss."""

    def __init__(self):
        super().__init__()
        self.unsynced = {}

    def remember(self, name):
        """Before a change that is not durable: what is on the platter."""
        if name not in self.unsynced:
            self.unsynced[name] = self._files[name][0] if name in self._files else None

    def create(self, call, name, content):
        """Create a file in one step of the machine."""
        call(lambda: self.put_if_absent(name, content))

    def listed(self, call, listing):
        """Files of a listing, all of one moment."""
        return call(lambda: iter(list(listing())))

    def lose_power(self, random):
        """Each change that was not synced is kept or undone, or leaves an empty or a torn file."""
        for name, before in sorted(self.unsynced.items()):
            fate = random.choice(["kept", "undone", "empty", "torn"])
            if fate == "undone" and before is None:
                super().delete(name)
            elif fate == "undone":
                super().replace(name, before)
            elif fate == "empty" and name in self._files:
                super().replace(name, b"")
            elif fate == "torn" and name in self._files:
                super().replace(name, torn(self._files[name][0], random))
        self.unsynced.clear()


class Bucket(Disk):
    """An object store: what was answered is durable; others change it between the pages of a listing."""

    PAGE_NAMES = 3

    def listed(self, call, listing):
        page, last = self._page, ""
        while found := call(partial(page, listing, last)):
            yield from found
            last = found[-1].name

    def _page(self, listing, after):
        return [item for item in listing() if item.name > after][: self.PAGE_NAMES]

    def lose_power(self, _random):
        """Whoever calls it loses power, the bucket does not."""
        self.unsynced.clear()


def torn(whole, random):
    """A beginning of the bytes, or all of them with pages that were never written."""
    if random.random() < 0.5:
        return whole[: random.randrange(len(whole) + 1)]
    pages = [whole[start : start + PAGE_BYTES] for start in range(0, len(whole), PAGE_BYTES)]
    return b"".join(random.choice([page, bytes(len(page))]) for page in pages)


def closed_gate():
    """A lock that one thread waits for and another one opens."""
    gate = threading.Lock()
    gate.acquire()
    return gate


class Process:
    """One process of the machine: it runs ``work(storage)`` until it ends, fails or dies."""

    def __init__(self, machine, name, work):
        self.name, self.machine = name, machine
        self.go, self.is_over, self.is_doomed, self.error = closed_gate(), False, False, None
        self.skew_ms = machine.random.choice([0, 0, -90_000_000, 3_600_000])
        self.thread = threading.Thread(target=self._run, args=(work,), name=name, daemon=True)
        self.thread.start()

    def _run(self, work):
        self.go.acquire()
        try:
            work(machine_storage(self))
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001 - the machine tells it to the test
            self.error = error
        self.is_over = True
        self.machine.turn.release()

    def wait_for_turn(self):
        """At a call: let the machine choose who goes on; die if it says so."""
        if threading.current_thread() is self.thread:
            if not self.is_doomed:
                self.machine.turn.release()
                self.go.acquire()
            if self.is_doomed:
                raise Crash(self.name)


class Machine:
    """Runs processes call by call; ``faults`` are the steps at which something breaks (None: by the seed).

    With ``fault_within`` one of the first so many steps is one of them.
    """

    def __init__(self, seed, disk, faults=None, fault_chance=0.008, fault_within=0):
        self.random, self.disk, self.faults = Random(seed), disk, faults
        self.seed, self.fault_chance, self.chances = seed, fault_chance, Random(f"{seed} faults")
        # Of a short run: a step at which something breaks whatever the chances are.
        self.sure_fault = self.chances.randrange(1, fault_within + 1) if fault_within else None
        self.turn = closed_gate()
        self.now, self.step, self.struck, self.running = START_MS, 0, [], None
        self.due = []

    def now_ms(self):
        """The clock of the process that runs: some are a day late, some an hour early."""
        return self.now + (self.running.skew_ms if self.running else 0)

    def later(self, steps, change):
        """A change of the disk that somebody else makes so many steps from now, but for a power loss."""
        self.due.append((self.step + steps, change))

    def run(self, works):
        """Run one process for each of ``works`` (name to function) at the same time; those that died."""
        alive = [Process(self, name, work) for name, work in works.items()]
        died = set()
        while alive:
            self.step += 1
            self.now += self.random.choice([1, 20, 1_000, 600_000])
            self._change_what_is_due()
            self.running = self.random.choice(alive)
            doomed = self._strike(alive)
            for process in doomed or [self.running]:
                process.is_doomed = process in doomed
                self.running = process
                process.go.release()
                self.turn.acquire()
                if process.error is not None:
                    raise process.error
            died |= {process.name for process in doomed}
            alive = [process for process in alive if not process.is_over]
        self.running = None
        return died

    def _change_what_is_due(self):
        for change in [change for step, change in self.due if step <= self.step]:
            change()
        self.due = [(step, change) for step, change in self.due if step > self.step]

    def _strike(self, alive):
        """Whom the seed lets die now: the one whose turn it is, or all, by a power loss."""
        chance, loses_power = self.chances.random(), self.chances.random() < 0.3
        doomed = []
        is_due = chance < self.fault_chance or self.step == self.sure_fault
        if is_due and (self.faults is None or self.step in self.faults):
            self.struck.append(self.step)
            doomed = alive if loses_power else [self.running]
            if loses_power:
                self.due.clear()
                # Of its own: the rest goes on the same way without this fault.
                self.disk.lose_power(Random(f"{self.seed} {self.step}"))
        return list(doomed)


def machine_storage(process):
    """The disk as a process calls it."""
    return SimulatedStorage(process)


class SimulatedStorage:
    """The machine's disk; each call is a step, after or before which the process may die."""

    def __init__(self, process):
        self._process, self._disk = process, process.machine.disk

    @property
    def root(self):
        return self._disk.root

    def list_from(self, folder, start=""):
        return self._disk.listed(self._call, lambda: self._disk.list_from(folder, start))

    def list_below(self, folder):
        return self._disk.listed(self._call, lambda: self._disk.list_below(folder))

    def read(self, name, offset=0, length=None):
        return self._call(lambda: self._disk.read(name, offset, length))

    def put_if_absent(self, name, content):
        whole = content if isinstance(content, bytes) else b"".join(content)
        self._disk.create(self._call, name, whole)

    def replace(self, name, content, *, durable=True):
        whole = content if isinstance(content, bytes) else b"".join(content)
        self._call(lambda: self._change(name, durable, lambda: self._disk.replace(name, whole)))

    def delete(self, name, *, durable=True):
        self._call(lambda: self._change(name, durable, lambda: self._disk.delete(name)))

    def prune(self, folder):
        self._call(lambda: self._disk.prune(folder))

    def local_path(self, name):
        """A path for the root alone: it is a disk, where nothing is read ahead."""
        return None if name else Path("/simulated")

    def uri(self, name):
        return self._disk.uri(name)

    def _change(self, name, durable, change):
        if durable:
            self._disk.unsynced.pop(name, None)
        else:
            self._disk.remember(name)
        change()

    def _call(self, work):
        self._process.wait_for_turn()
        if self._process.is_doomed:
            raise StorageUnavailable("The process is dead.", remedy="Nothing.")
        return work()
