"""What a process does while its calls are recorded, and what must be true of the disk after a power loss.

``python -m tests.power_loss.scenarios DISK SAID NAMES`` is the process: before each step it says that it is
begun, and after its acknowledgement that it is done, as a line of the file SAID, outside of the disk.
"""

import contextlib
import hashlib
import io
import os
import sqlite3
import sys
from pathlib import Path

from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.errors import NotFound
from freezeframe.proof.model import Step, content, numbered
from freezeframe.service.staged_blobs import ImportContent, InputOwner, StagedBlobs
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store

SETTINGS = Settings(engine="auto", checkpoint_interval=4, gc_grace_seconds=0, lease_dead_seconds=0)
KEYS = 12
FOLDER = "a" * 32
BYTES = bytes(range(256)) * 12
HALF = len(BYTES) // 2


def tenant_on(disk):
    storage = LocalStorage(disk / "tenant")
    return Tenant(storage, ArrowEngine(), SETTINGS)


class Tenants:
    """A tenant's jobs, restores, retention and garbage collection: the tenant log and the tables' logs."""

    steps = 16

    def begin(self, disk):
        self.tenant = tenant_on(disk)

    def step(self, number):
        self._step(number, self.tenant.version - 1).run(self.tenant)

    @staticmethod
    def _step(number, version):
        """The step of a number; a restoration is that of the version."""
        kind = {3: "restore", 6: "gc", 7: "override", 10: "erase", 12: "restore", 14: "gc"}.get(number, "job")
        rows = {f"key-{key}": number for key in range(number % 3, KEYS, 3)} | {f"key-{number}": number}
        return {
            "restore": Step("restore", version),
            "gc": Step("gc", 6),
            "erase": Step("erase", f"key-{number}", "Account"),
            "override": Step("job", numbered(number, rows, "override"), f"job-{number}"),
            "job": Step("job", numbered(number, rows), f"job-{number}"),
        }[kind]

    def expected(self):
        """The content after each step; the first is that of the beginning."""
        states = [({}, {})]
        for number in range(self.steps):
            states.append(self._step(number, -2).expected(states[-1], {-2: states[-2:][0]}))
        return states

    def check(self, disk, done, begun, thorough):
        tenant, states = tenant_on(disk), self.expected()
        found = content(tenant)
        assert found in states[done : begun + 1], f"{found} after {done} acknowledged steps of {begun}"
        if thorough:
            for entry in tenant.history():
                assert content(tenant.at(entry.version)) in states, (
                    f"version {entry.version} is none that was"
                )
            last = Step("job", [("upsert", "Account", {"last": 1})], "afterwards")
            last.run(tenant)
            assert content(tenant_on(disk)) == last.expected(found, {}), "the next job is another"


class Registry:
    """A store whose tenants are made, written to and deleted."""

    steps = 14

    def begin(self, disk):
        self.store = self._store(disk)

    @staticmethod
    def _store(disk):
        storage = LocalStorage(disk / "store")
        return Store(storage, ArrowEngine(), SETTINGS)

    def step(self, number):
        if number % 5 == 4:
            self.store.delete_tenant(f"t{number - 2}")
        else:
            self.store.tenant(f"t{number}", create=True).files.write("name.txt", f"t{number}".encode())

    def check(self, disk, done, begun, thorough):
        store = self._store(disk)
        found = set(store.tenants())
        states = [set()]
        for number in range(self.steps):
            states.append(states[-1] - {f"t{number - 2}"} if number % 5 == 4 else states[-1] | {f"t{number}"})
        assert found in states[done : begun + 1], (
            f"{sorted(found)} after {done} acknowledged steps of {begun}"
        )
        for name in found & states[done]:
            assert store.tenant(name).files.read("name.txt") == name.encode()
        if thorough:
            store.tenant("afterwards", create=True).files.write("name.txt", b"new")
            assert set(self._store(disk).tenants()) == found | {"afterwards"}


class FileUploads:
    """Staged blobs, which become files of a tenant, and inputs of jobs that wait."""

    steps = 24

    def begin(self, disk):
        self.tenant, self.uploads = tenant_on(disk), self._uploads(disk)

    @staticmethod
    def _uploads(disk):
        return StagedBlobs(disk / "uploads", SETTINGS)

    @staticmethod
    def _id(number):
        return hashlib.md5(str(number // 4).encode()).hexdigest()

    @staticmethod
    def _content(number):
        return f"{number // 4}".encode() + BYTES

    def step(self, number):
        sent, kind = self._content(number), number % 4
        if kind == 0:
            with self.uploads.stage(FOLDER, self._id(number)) as writer:
                writer.write(sent[:HALF])
                writer.write(sent[HALF:])
        elif kind == 3:
            owner = InputOwner(FOLDER, self._id(number + 400), "dev", "acme", f"job-{number}")
            self.uploads.keep_input(owner, "rows.csv", ImportContent(io.BytesIO(sent), ""))
        elif kind == 2:
            with self.uploads.publish(FOLDER, self._id(number)) as content:
                self.tenant.files.write(f"{number // 4}.bin", content(self._id(number)))

    def check(self, disk, done, begun, thorough):
        tenant = tenant_on(disk)
        files = {item.path: tenant.files.read(item.path) for item in tenant.files.list()}
        begun_files = {f"{number // 4}.bin": number for number in range(begun) if number % 4 == 2}
        for path, number in begun_files.items():
            assert path in files or number >= done, f"{path} was acknowledged and is missing"
        for path, found in files.items():
            assert found == self._content(begun_files[path]), f"{path} is not what was sent"
        for number in range(3, done, 4):
            file = disk / "uploads" / FOLDER / self._id(number + 400) / "input" / "rows.csv"
            assert file.read_bytes() == self._content(number), "the input of a job that waits"
        last = done - 1
        if begun == done and last >= 0 and last % 4 < 2:  # a blob that was acknowledged is there
            with self._uploads(disk).publish(FOLDER, self._id(last)) as content:
                assert b"".join(content(self._id(last))) == self._content(last)
        if thorough:
            tenant.files.write("afterwards", b"new")
            assert tenant_on(disk).files.read("afterwards") == b"new"


class Control:
    """Jobs that are handed in, taken and finished: the control database in SQLite."""

    steps = 16

    @staticmethod
    def _queue(disk):
        database = ControlDatabase.open(f"sqlite:///{disk}/state/control.db")
        return database, JobQueue(database)

    def begin(self, disk):
        self.database, self.queue = self._queue(disk)

    def step(self, number):
        if number % 2:
            self.queue.finish(self.queue.claim("worker"), "succeeded", "{}")
        else:
            self.queue.submit(Submission('{"script": "etl.py"}', "dev", f"t{number}", "job"))

    def check(self, disk, done, begun, thorough):
        database, queue = self._queue(disk)
        try:
            found = [self._status(queue, number) for number in range(0, begun, 2)]
            for number in range(0, begun, 2):
                told = found[number // 2]
                assert number >= done or told is not None, f"the job of t{number} was acknowledged"
                assert number + 1 >= done or told == "succeeded", f"t{number}'s end was acknowledged: {told}"
                assert number + 1 < begun or told in (None, "queued"), f"t{number} is {told} too early"
            if thorough:
                queue.submit(Submission('{"script": "etl.py"}', "dev", "after", "job"))
                assert queue.get("dev", "after", "job").status == "queued"
        finally:
            database.close()
        with contextlib.closing(sqlite3.connect(disk / "state" / "control.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    @staticmethod
    def _status(queue, number):
        with contextlib.suppress(NotFound):
            return queue.get("dev", f"t{number}", "job").status
        return None


SCENARIOS = {"tenant": Tenants, "registry": Registry, "uploads": FileUploads, "control": Control}


def main(disk, said, *names):
    """The process that is recorded: one scenario after the other, each on a folder of its own."""
    words = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for name in names:
        scenario = SCENARIOS[name]()
        scenario.begin(Path(disk) / name)
        for number in range(scenario.steps):
            os.write(words, f"begun {name}\n".encode())
            scenario.step(number)
            os.write(words, f"done {name}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
