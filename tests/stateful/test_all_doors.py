"""One tenant of a store, changed and read by every door in turn, beside a model: it is the same one at each.

Doors are handles and script functions by each spelling of the place (some kept open, some made anew), the
command, two services on one store, a worker, the Singer target, and a plain Delta reader in a process of its
own. What a step does, and by which door, follows from the seed alone.
"""

import json
import logging
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uvicorn
from tests.runs.file_run import outcome
from tests.singer.taps import record, schema
from tests.singer.taps import run as run_target

import freezeframe
from freezeframe.asgi.application import create_application
from freezeframe.cli.main import main
from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.errors import VersionNotFound
from freezeframe.identifiers import TenantId
from freezeframe.log import DeltaLog
from freezeframe.proof.model import Step, carry_out, changed, content, frame, rows_of
from freezeframe.runs.queue.attempt import Times
from freezeframe.runs.queue.worker import Worker, WorkerOptions
from freezeframe.runs.request import RunRequest
from freezeframe.script import get_snapshot, open_tenant, tenants, update_snapshot
from freezeframe.settings import load_settings
from freezeframe.store.diff.counts import ArrowEngine

pytestmark = pytest.mark.stateful

STREAMS, FILES = ("Account", "Lead", "Contact@crm"), ("a.csv", "maps/b.csv", "settings.json")
KEYS = [f"key-{number}" for number in range(6)]
BEATS = Times(lease_seconds=60, beat_seconds=0.05)
TENANT = "/api/v1/environments/default/tenants/acme"
PLAIN_READER = """
import json, sys
from deltalake import DeltaTable
for line in sys.stdin:
    table = DeltaTable(json.loads(line)).to_pyarrow_table(columns=["Id", "v"])
    print(json.dumps(table.to_pydict()), flush=True)
"""


@contextmanager
def service_on(root, database):
    """A client of a service of its own, which may do everything."""
    app = create_application(load_settings(), str(root), database)
    config = uvicorn.Config(app, log_level="critical", port=0, access_log=False)
    socket = config.bind_socket()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    key = app.state.service.keys.create(scopes=["admin"]).key
    address = f"http://127.0.0.1:{socket.getsockname()[1]}"
    with httpx.Client(base_url=address, headers={"x-api-key": key}, timeout=60) as client:
        yield client
    server.should_exit = True
    thread.join(10)


class Doors:
    """All doors of the tenant ``acme``, what it should hold now and at each version, and the chosen steps."""

    def __init__(self, folder, seed, stack):
        self.random = random.Random(seed)
        self.folder, self.root = folder, folder / "store"
        (folder / "link").symlink_to(self.root)
        store = freezeframe.open(self.root)
        store.tenant("acme", create=True)
        self.place = self.root / "tenants" / store.folder(TenantId("acme"))
        self.database = ControlDatabase.open(f"sqlite:///{folder}/control.db")
        stack.callback(self.database.close)
        self.services = [stack.enter_context(service_on(self.root, self.database)) for _ in range(2)]
        self.reader = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", PLAIN_READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        stack.callback(self.reader.stdin.close)
        self.kept = [self.handle() for _ in range(6)]
        self.now, self.past, self.tags, self.version, self.steps = ({}, {}), {}, {}, -1, []

    # Spellings: of the store's root, and of the tenant's own folder.

    def spelled(self, place):
        """Return one of the spellings of a place in the store."""
        linked = self.folder / "link" / place.relative_to(self.root)
        spellings = [
            str(place),
            os.path.relpath(place),
            str(linked),
            os.path.relpath(linked),
            f"file://{place}",
        ]
        return self.random.choice(spellings)

    def handle(self):
        """Return a tenant that is opened anew, through its store or by its own folder."""
        if self.random.random() < 0.5:
            return freezeframe.open(self.spelled(self.root)).tenant("acme")
        return open_tenant(self.spelled(self.place))

    def command(self, *arguments):
        """Run the command, now and then in a process of its own, for the store or for the folder."""
        by_store = ("--root", self.spelled(self.root), "--tenant", "acme")
        location = by_store if self.random.random() < 0.5 else ("--dir", self.spelled(self.place))
        line = [*arguments, *location]
        if self.random.random() < 0.03 and "--override" not in line:  # whose count asks Spark there
            code = "import sys; from freezeframe.cli.main import main; sys.exit(main())"
            done = subprocess.run([sys.executable, "-c", code, *line], check=False, capture_output=True)
            assert done.returncode == 0, done.stderr
        else:
            assert main(line) == 0, line

    def chosen_handle(self):
        """Return a handle of before or a new one."""
        return self.random.choice([*self.kept, self.handle()])

    def service(self, method, path, **options):
        """Send a request to one of the services."""
        answer = self.random.choice(self.services).request(method, f"{TENANT}{path}", **options)
        assert answer.status_code < 300, answer.text
        return answer

    # Doors of changes: each carries out all of them, in one commit or in several.

    def by_handle(self, changes):
        with self.chosen_handle().job() as job:
            carry_out(job, changes)

    def by_script(self, changes):
        ((kind, name, value),) = changes
        place = self.spelled(self.place)
        if kind in {"upsert", "override"}:
            update_snapshot(place, name, "Id", frame(value), override=kind == "override")
        else:
            carry_out(open_tenant(place), changes)

    def by_command(self, changes):
        ((kind, name, value),) = changes
        source = self.folder / "rows.parquet"
        if kind in {"upsert", "override"}:
            pq.write_table(frame(value), source)
            more = ["--override", "--yes"] if kind == "override" else []
            self.command("stream", "import", name, str(source), "--key", "Id", *more)
        elif kind == "write":
            source.write_bytes(value)
            self.command("file", "write", name, str(source))
        elif name in self.now[1]:
            self.command("file", "delete", name)

    def by_service(self, changes):
        ((kind, name, value),) = changes
        if kind == "write":
            self.service("PUT", f"/files/{name}", content=value)
        elif kind == "delete" and name in self.now[1]:
            self.service("DELETE", f"/files/{name}")
        elif kind in {"upsert", "override"}:  # the service gives both to a worker
            self.by_worker(changes)

    def by_singer(self, changes):
        messages = []
        for _, name, value in changes:
            messages.append(schema(name, v={"type": ["null", "integer"]}))
            messages += [record(name, Id=key, v=v) for key, v in value.items()]
        run_target(self.spelled(self.root), *messages, environment="default")

    def by_worker(self, changes):
        job = f"job-{self.random.randrange(10**12)}"
        request = RunRequest(
            root=str(self.root), environment="default", tenant="acme", script=Path("none.py"), job_id=job
        )
        order = json.dumps(request.to_json())
        submission = Submission(order, environment="default", tenant="acme", job_id=job)
        JobQueue(self.database).submit(submission)

        def run(request, **_):
            started = time.monotonic()
            with freezeframe.open(request.root).tenant(request.tenant).job(request.job_id) as open_job:
                carry_out(open_job, changes)
            return outcome(request, "succeeded", started, receipt=open_job.receipt.to_json())

        Worker(self.database, run, load_settings(), WorkerOptions(poll_seconds=0.01, times=BEATS)).work(
            "empty"
        )
        assert JobQueue(self.database).get("default", "acme", job).status == "succeeded"

    # Verbs: each returns what the tenant holds after it.

    def change(self):
        draw, changes, names = self.random, [], [*STREAMS, *FILES]
        for name in draw.sample(names, draw.randint(1, 3)):
            rows = {key: draw.randint(0, 3) for key in sorted(draw.sample(KEYS, draw.randint(0, 4)))}
            if name in STREAMS:
                changes.append((draw.choice(["upsert", "upsert", "override"]), name, rows))
            else:
                changes.append((draw.choice(["write", "write", "delete"]), name, draw.randbytes(3)))
        door = draw.choice(["handle", "handle", "script", "command", "service", "singer", "worker"])
        self.steps.append((door, changes))
        if door == "singer":
            batches = [[change for change in changes if change[0] == "upsert" and change[2]]]
        elif door in {"handle", "worker"}:
            batches = [changes]
        else:
            batches = [[change] for change in changes]
        for batch in filter(None, batches):
            getattr(self, f"by_{door}")(batch)
            self.settle(changed(self.now, batch))
        return self.now

    def restore(self):
        listed = [entry.version for entry in self.chosen_handle().history() if entry.version in self.past]
        if not listed:
            return self.now
        version = self.random.choice(listed)
        door = self.random.choice(["handle", "command", "service"])
        self.steps.append((f"restore {door}", version))
        if door == "handle":
            self.chosen_handle().restore(version)
        elif door == "command":
            self.command("tenant", "restore", str(version), "--yes")
        else:
            self.service("POST", "/restorations", json={"version": version})
        return self.past[version]

    def drop(self):
        if not self.now[0]:
            return self.now
        name, door = (
            self.random.choice(sorted(self.now[0])),
            self.random.choice(["handle", "command", "service"]),
        )
        self.steps.append((f"drop {door}", name))
        if door == "handle":
            self.chosen_handle().drop_stream(name)
        elif door == "command":
            self.command("stream", "drop", name, "--yes")
        else:
            self.service("DELETE", f"/streams/{name}")
        return {one: rows for one, rows in self.now[0].items() if one != name}, self.now[1]

    def erase(self):
        if not self.now[0]:
            return self.now
        name, key = self.random.choice(sorted(self.now[0])), self.random.choice(KEYS)
        door = self.random.choice(["handle", "command"])
        self.steps.append((f"erase {door}", name, key))
        before = self.version
        if door == "handle":
            self.chosen_handle().erase(name, [key])
        else:
            self.command("tenant", "erase", name, "--key", key, "--yes")
        if self.chosen_handle().version > before:
            self.tags.clear()
        return Step("erase", key, name).expected(self.now, self.past)

    def tag(self):
        listed = [entry.version for entry in self.chosen_handle().history() if entry.version in self.past]
        if not listed:
            return self.now
        name, version = self.random.choice("xy"), self.random.choice(listed)
        verb, door = "untag" if name in self.tags else "tag", self.random.choice(["handle", "command"])
        value = [] if verb == "untag" else [version]
        self.steps.append((f"{verb} {door}", name, version))
        if door == "handle":
            getattr(self.chosen_handle(), verb)(name, *value)
        else:
            self.command("tenant", verb, name, *map(str, value))
        self.tags = {**self.tags, name: version}
        if verb == "untag":
            del self.tags[name]
        return self.now

    def gc(self):
        keep, door = self.random.randint(1, 5), self.random.choice(["handle", "command"])
        self.steps.append((f"gc {door}", keep))
        if door == "handle":
            Step("gc", keep).run(self.chosen_handle())
        else:
            self.command("tenant", "retention", "--keep-versions", str(keep))
            self.command("tenant", "gc", "--yes")
        return self.now

    def open_table(self):
        for name in self.now[0]:
            self.steps.append(("table", name))
            table = DeltaLog.open(self.spelled(self.place / f"{name}.snapshot"))
            assert self.now[0][name] == rows_of(table.to_arrow().to_pydict()), ("table", name)
        return self.now

    # What each step is followed by.

    def step(self):
        """Do something by some door; then one door says what is there, and one what was."""
        draw = self.random
        verbs = [self.change] * 12 + [self.restore, self.drop, self.erase, self.tag, self.gc, self.open_table]
        self.settle(draw.choice(verbs)())
        getattr(self, draw.choice(["see_handle", "see_handle", "see_script", "see_service", "see_plain"]))()
        handle = draw.choice(self.kept)
        # A service's retention may have made a version since.
        listed = [entry.version for entry in handle.history() if entry.version in self.past]
        assert self.tags == handle.tags()
        if listed:
            version = draw.choice(listed)
            assert self.past[version] == content(handle.at(version)), version
        if draw.random() < 0.1:
            self.kept[draw.randrange(len(self.kept))] = self.handle()

    def settle(self, new):
        """Note what the tenant holds in all versions since the last one that was noted."""
        tenant = freezeframe.open(self.root).tenant("acme")
        held, newest = self.now, tenant.version
        for version in range(self.version + 1, newest + 1):
            # Each 32nd commit is followed by one of the retention, in a service after its answer.
            try:
                held = held if tenant.context.log.entry(version).kind == "policy" else new
            except VersionNotFound:  # collected already
                held = new
            self.past[version] = held
        self.now, self.version = new, newest

    def see_handle(self):
        assert self.now == content(self.chosen_handle())

    def see_script(self):
        for name in STREAMS:
            found = get_snapshot(self.spelled(self.place), name, as_="arrow")
            assert self.now[0].get(name) == (None if found is None else rows_of(found.to_pydict())), name

    def see_service(self):
        listed = self.service("GET", "/streams").json()["streams"]
        assert sorted(self.now[0]) == sorted(listed)
        for name in listed:
            lines = self.service("GET", f"/streams/{name}/export?format=jsonl").text.splitlines()
            rows = [json.loads(line) for line in lines]
            assert self.now[0][name] == {row["Id"]: row["v"] for row in rows}, name
        for path, held in self.now[1].items():
            assert held == self.service("GET", f"/files/{path}").content, path

    def see_plain(self):
        for name, rows in self.now[0].items():
            self.reader.stdin.write(json.dumps(str(self.place / f"{name}.snapshot")) + "\n")
            self.reader.stdin.flush()
            assert rows == rows_of(json.loads(self.reader.stdout.readline())), name


@pytest.fixture
def walk(tmp_path, monkeypatch, caplog):
    """A function that walks a new store by so many steps of a seed; an error names the steps."""
    caplog.set_level(logging.CRITICAL, "freezeframe")
    for name, value in {
        "ENGINE": "auto",
        "SPARK": "sc://127.0.0.1:9",  # nothing listens: no process starts a server
        "GC_GRACE_SECONDS": "0",
        "LEASE_DEAD_SECONDS": "0",
        "STATE_DIR": str(tmp_path / "state"),
        "SERVICE_REQUESTS_PER_SECOND": "0",
    }.items():
        monkeypatch.setenv(f"FREEZEFRAME_{name}", value)
    engine = ArrowEngine()
    monkeypatch.setattr(tenants, "shared_engine", lambda: engine)
    threads = pa.cpu_count()
    pa.set_cpu_count(1)

    def run(seed, steps):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with ExitStack() as stack:
            doors = Doors(folder, seed, stack)
            for number in range(steps):
                try:
                    doors.step()
                except BaseException as error:
                    error.add_note(f"seed {seed}, step {number}: {doors.steps[-4:]}")
                    raise
        return steps

    yield run
    pa.set_cpu_count(threads)


def test_one_tenant_by_every_door(walk):
    """Some steps: each door sees what the others did, now and at listed versions."""
    assert walk(1, 24) == 24


def test_a_change_behind_the_doors_is_seen(walk, monkeypatch):
    """The walk finds what it is there to find: a change that a door loses."""
    monkeypatch.setattr(Doors, "by_worker", lambda *_: None)
    monkeypatch.setattr(Doors, "by_script", lambda *_: None)
    with pytest.raises(AssertionError):
        walk(1, 200)


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
def test_one_tenant_by_every_door_for_long(walk):
    """Twenty seeds of 250 steps; FREEZEFRAME_DOOR_SEEDS names others ("5", "100-140")."""
    first, _, last = os.environ.get("FREEZEFRAME_DOOR_SEEDS", "2-21").partition("-")
    seeds = range(int(first), int(last or first) + 1)
    assert sum(walk(seed, 250) for seed in seeds) == 250 * len(seeds)
