"""Proofs about a tenant: damage, values, isolation, time travel, restoring, gc, erasure."""

import datetime as dt
import hashlib
import io
import itertools
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from multiprocessing.connection import Connection
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.errors import FixTheRequest, FreezeframeError
from freezeframe.proof.model import Change, Content, Step, content, frame
from freezeframe.proof.task import ProofFolder, Task, children, tenant_on
from freezeframe.proof.writers import expected_after, job_of
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage, Storage
from freezeframe.storage.memory import FaultyStorage
from freezeframe.store import Stream, Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store

_DAMAGE_JOBS = 9
_FLIPS = 4
_AT_ONCE = 8
Held = dict[int, Content]
"""The content at each version."""
_Damage = tuple[str, str, bytes | None]
"""A file, the kind of damage, and the remaining bytes."""
_NUMBER = re.compile(r"\d{4,}|[0-9a-f-]{12,}(?![a-z_])")


def damage_files(task: Task) -> None:
    """Damage copies, in memory, of the bytes that the storage returns; a file of each kind in each round."""
    for folder, random in task.rounds():
        held = _fill_tenant(folder)
        storage = folder.storage()
        files = {item.name: storage.read(item.name) for item in storage.list_below("")}
        whole = FaultyStorage(_copy(files))
        task.require(not _read_all(task, whole, held, "none"), "what was not damaged could not be read")
        needed = {call.name for call in whole.calls if call.verb == "read"}
        damages = [
            (name, way, damaged)
            for name in _one_of_each_kind(sorted(files), needed, random)
            for way, damaged in _damages(files[name], random)
        ]

        def is_reported(damage: _Damage, files: dict[str, bytes] = files, held: Held = held) -> bool:
            name, way, damaged = damage
            return _read_all(task, _copy({**files, name: damaged}), held, f"{name}, {way}")

        # Concurrently, because a reader reads a damaged hint again after a wait.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            told = sum(pool.map(is_reported, damages))
        task.counts.update(files=len({damage[0] for damage in damages}), damages=len(damages), told=told)


def _copy(files: Mapping[str, bytes | None]) -> MemoryStorage:
    copy = MemoryStorage()
    for name, whole in files.items():
        if whole is not None:
            copy.put_if_absent(name, whole)
    return copy


def _one_of_each_kind(names: list[str], needed: set[str], random: Random) -> list[str]:
    """Choose a file of each kind, if possible one that readers need."""
    random.shuffle(names)
    names.sort(key=needed.__contains__)
    return sorted({_NUMBER.sub("", name): name for name in names}.values())


def _fill_tenant(folder: ProofFolder) -> Held:
    """Fill a tenant with rows, vectors, checkpoints and blobs; return its content at each version."""
    held = {}
    tenant = folder.tenant(checkpoint_interval=4, vectors_from_bytes=0)
    for number in range(_DAMAGE_JOBS):
        rows = {f"key-{key}": number for key in range(number % 4, 40, 4)}
        changes = [("upsert", "Account", rows), ("write", "state.json", f"state {number}".encode())]
        Step("job", changes).run(tenant)
        held[tenant.version] = content(folder.tenant())
    return held


def _damages(whole: bytes, random: Random) -> Iterator[tuple[str, bytes | None]]:
    yield "removed", None
    yield "emptied", b""
    yield "cut off", whole[: random.randrange(max(1, len(whole)))]
    yield "zeroed", bytes(len(whole))
    for _ in range(_FLIPS if whole else 0):
        at, bit = random.randrange(len(whole)), random.randrange(8)
        flipped = bytes([whole[at] ^ (1 << bit)])
        yield f"bit {bit} of byte {at} flipped", whole[:at] + flipped + whole[at + 1 :]


def _read_all(task: Task, copy: Storage, held: Held, damage: str) -> bool:
    """Read the newest version and an older one; return whether an error reported the damage."""
    newest = max(held)
    try:
        tenant = tenant_on(copy)
        found = content(tenant)
        task.require(
            tenant.version == newest and found == held[newest], f"{damage}: other rows, and no error"
        )
        seen = content(tenant.at(newest // 2))
        task.require(seen == held[newest // 2], f"{damage}: other rows of an older version, and no error")
    except FreezeframeError:
        return True
    return False


_TEXTS = (
    *("", "007", "NA", "None", "null", "nan", "a\nb", 'say "hi"', "ü😀", " x ", "é", "e\u0301", "9" * 25),
    "\0",
)
_UTC = dt.UTC
_MOMENTS = tuple(
    dt.datetime.fromisoformat(text)
    for text in ("1900-01-01", "1969-12-31T23:59:59.999999", "2026-03-29T02:30", "9999-12-31T23:59:59.999999")
)
_COLUMNS: tuple[tuple[str, pa.DataType, tuple[object, ...]], ...] = (
    ("text", pa.string(), _TEXTS),
    ("large text", pa.large_string(), _TEXTS),
    ("bytes", pa.binary(), (b"", b"\x00", b"\xff\xfe", b"007")),
    ("boolean", pa.bool_(), (True, False)),
    *((f"int{bits}", pa.from_numpy_dtype(f"int{bits}"), (-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1))
      for bits in (8, 16, 32, 64)),
    *((f"uint{bits}", pa.from_numpy_dtype(f"uint{bits}"), (0, 1, 2**bits - 1)) for bits in (8, 16, 32, 64)),
    ("beyond float", pa.int64(), (2**53 + 1, -(2**53) - 1)),
    ("float", pa.float32(), (0.5, -1.5, 3.4028234663852886e38, float("inf"))),
    ("double", pa.float64(), (0.1, -0.0, 5e-324, 1.7976931348623157e308, float("-inf"))),
    ("decimal", pa.decimal128(38, 10), (Decimal("0.0000000001"), Decimal("9" * 28 + ".9999999999"))),
    ("money", pa.decimal128(12, 2), (Decimal("90.50"), Decimal("-0.01"))),
    ("date", pa.date32(), (dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31))),
    ("moment", pa.timestamp("us"), _MOMENTS),
    ("instant", pa.timestamp("us", "UTC"), tuple(item.replace(tzinfo=_UTC) for item in _MOMENTS)),
    ("list", pa.list_(pa.string()), ([], ["a", None], ["007"])),
    ("record", pa.struct([("a", pa.int64()), ("b c", pa.string())]), ({"a": 1, "b c": None},)),
    ("map", pa.map_(pa.string(), pa.int64()), ([("k", 1)], [])),
)  # fmt: skip
_NAMES = ("A/R Paid", "a.b", "größe", "x y", "select", "Id2", "😀", "tab\tname", "q?=&", "__v")


def keep_values(task: Task) -> None:
    """Write values of every type, read them back, and send one row again."""
    for folder, random in task.rounds():
        for number, (kind, arrow, values) in enumerate(_COLUMNS):
            cells = [*values, None]
            random.shuffle(cells)
            column = _NAMES[number % len(_NAMES)]
            table = pa.table(
                {"Id": [str(item) for item in range(len(cells))], column: pa.array(cells, arrow)}
            )
            tenant = folder.within(f"tenant-{number}").tenant()
            try:
                tenant.stream("Values").update(table, key="Id")
            except FixTheRequest:
                task.counts["values_refused"] += len(cells)
                continue
            _compare(task, folder.within(f"tenant-{number}").tenant().stream("Values"), table, kind)
            _update_one(task, tenant.stream("Values"), table, random, kind)
            task.counts["values_kept"] += len(cells)


def _compare(task: Task, stream: Stream, table: pa.Table, kind: str) -> None:
    found = stream.read(as_="arrow").sort_by("Id").to_pylist()
    expected = table.sort_by("Id").to_pylist()
    for seen, put in zip(found, expected, strict=True):
        is_same = repr(seen) == repr(put) or (kind == "uint64" and seen == put)  # stored as a decimal
        task.require(is_same, f"{kind}: {put} came back as {seen}")


def _update_one(task: Task, stream: Stream, table: pa.Table, random: Random, kind: str) -> None:
    """Update one row with itself: nothing may change or be written."""
    row = table.slice(random.randrange(len(table)), 1)
    receipt = stream.update(row)
    task.require(not receipt.committed, f"{kind}: the same row again made a new version")
    _compare(task, stream, table, kind)


def isolate(task: Task) -> None:
    """Try names that lead to another tenant's directory."""
    for folder, random in task.rounds():
        storage = folder.storage()
        store = Store(storage, ArrowEngine(), Settings(engine="auto"))
        canary = random.randbytes(16).hex()
        mine, theirs = store.tenant("mine", create=True), store.tenant("theirs", create=True)
        mine.stream("Account").update(frame({"a": 1}), key="Id")
        mine.files.write("config.json", b"mine")
        theirs.stream("Secret").update(frame({canary: 1}), key="Id")
        theirs.files.write("secret.json", canary.encode())
        other = str(store.folder("theirs"))
        before = _digests(folder, other)
        for name in _names(other):
            for seen in _answers(mine, name):
                task.require(canary not in seen, f"{name!r} gave one tenant the content of the other")
                task.counts["attempts"] += 1
        task.require(_digests(folder, other) == before, "one tenant's calls changed a file of the other")
        seen = repr([mine.streams(), mine.files.list(recursive=True)])
        task.require("Secret" not in seen and "secret.json" not in seen, "one tenant lists the other's names")


def _names(other: str) -> Iterator[str]:
    """Names of the other tenant's stream and files, as an attacker writes them."""
    own = ["theirs/Secret", "theirs/secret.json", "Secret", "secret.json"]
    inner = ("Secret", "Secret.snapshot", "secret.json", "_freezeframe/log")
    climbs = ["", "../", "../../", "./../", "a/../../", "%2e%2e/", "..%2f", "..\\", "/", "//", "\x00/", "~/"]
    for climb, target in itertools.product(climbs, [*(f"{other}/{name}" for name in inner), *own]):
        yield f"{climb}{target}"
        yield f"{climb}{target}".replace("/", "\\")
        yield f"{climb}{target}".upper()


def _answers(tenant: Tenant, name: str) -> Iterator[str]:
    """Yield the result or the error of each call with a name."""
    calls = (
        lambda: tenant.stream(name).read(as_="arrow").to_pydict(),
        lambda: tenant.stream(name).update(frame({"planted": 1}), key="Id"),
        lambda: tenant.files.read(name),
        lambda: tenant.files.write(name, b"planted"),
        lambda: tenant.files.delete(name),
        lambda: tenant.drop_stream(name),
        lambda: tenant.adopt(name, key="Id"),
    )
    for call in calls:
        try:
            yield repr(call())
        except FreezeframeError as error:
            yield f"{error!r} {error}"


def _digests(folder: ProofFolder, below: str) -> dict[str, bytes]:
    storage = folder.storage()
    names = sorted(item.name for item in storage.list_below("") if below in item.name)
    return {name: hashlib.sha256(storage.read(name)).digest() for name in names}


_TRAVEL_JOBS = 12
_STREAMS = ("Account", "Lead", "Contact@crm")


def travel(task: Task) -> None:
    """Read each version as a newcomer, in no order."""
    for folder, random in task.rounds():
        held = _versions(folder, random)
        tenant = folder.tenant()
        history = list(tenant.history())
        random.shuffle(history)
        task.require(len(history) == len(held), f"{len(history)} of {len(held)} versions are listed")
        for entry in history:
            for point in (entry.version, entry.timestamp):
                found = content(tenant.at(point))
                task.require(
                    found == held[entry.version], f"version {entry.version} at {point} reads otherwise"
                )
                task.counts["reads"] += 1
        task.counts["versions"] += len(held)


def restore(task: Task) -> None:
    """Restore each version, and read the version that was newest before."""
    for folder, random in task.rounds():
        held = _versions(folder, random)
        for version in random.sample(sorted(held), len(held)):
            tenant = folder.tenant()
            newest = tenant.version
            tenant.restore(version)
            after = folder.tenant()
            task.require(content(after) == held[version], f"version {version} restored reads otherwise")
            task.require(content(after.at(newest)) == held[newest], f"version {newest} is lost by a restore")
            held[after.version] = content(after)
            task.counts["restores"] += 1


def _versions(folder: ProofFolder, random: Random) -> Held:
    """Random jobs, and what the tenant held after each."""
    held: Held = {}
    now: Content = ({}, {})
    tenant = folder.tenant(checkpoint_interval=4)
    for number in range(_TRAVEL_JOBS):
        changes: list[Change] = []
        for name in random.sample(_STREAMS, 2):
            rows = {f"key-{random.randrange(8)}": number * 100 + item for item in range(3)}
            changes.append(("override" if random.randrange(5) == 0 else "upsert", name, rows))
        changes.append(("write", f"maps/{random.randrange(3)}.json", random.randbytes(20)))
        job = Step("job", changes)
        job.run(tenant)
        held[tenant.version] = now = job.expected(now, {})
    return held


_COMMITS = 30
_KEPT = 3
_GRACE_SECONDS = 5.0


def collect_garbage(task: Task) -> None:
    """Commit and call ``gc`` while another process reads; count the files at the end."""
    for folder, _ in task.rounds():
        tenant = folder.tenant(gc_grace_seconds=_GRACE_SECONDS)
        tenant.set_retention(keep_versions=_KEPT)
        job_of(0).run(tenant)
        with children(_read_for_ever, [(folder,)]) as (reader,):
            for number in range(1, _COMMITS):
                job_of(number).run(tenant)
                task.counts["files_deleted"] += tenant.gc().files
                while (seen := reader.hear(0)) is not None:
                    _judge(task, seen)
            _judge(task, reader.hear() or "the reader says nothing")
        collector = folder.tenant()
        task.counts["files_deleted"] += collector.gc().files + collector.gc().files
        newcomer = folder.tenant()
        task.require(
            content(newcomer) == expected_after(_COMMITS - 1), "after gc the newest version reads otherwise"
        )
        kept = [entry.version for entry in newcomer.history()]
        for version in kept:
            content(newcomer.at(version))
        task.require(task.counts["files_deleted"] > _COMMITS, "gc deleted less than the commits replaced")
        task.counts.update(commits=_COMMITS, versions_kept=len(kept))


def _judge(task: Task, seen: str | int) -> None:
    if isinstance(seen, int):
        task.counts["reads"] += seen
    else:
        task.report(f"a reader was told: {seen}")


def _read_for_ever(connection: Connection, folder: ProofFolder) -> None:
    """Open the newest version, wait, and then read it: less long than the grace period."""
    while True:
        try:
            tenant = folder.tenant()
            view = tenant.at(tenant.version)
            time.sleep(_GRACE_SECONDS / 100)
            streams, files = content(view)
            number = int(files["state.json"])
            is_right = (streams, files) == expected_after(number)
            connection.send(1 if is_right else f"version {view.version} reads otherwise")
        except FreezeframeError as error:
            connection.send(f"{error.error_code}: {error}")


_VERSIONS = 6
_ERASED = 3


def erase_rows(task: Task) -> None:
    """Erase rows, and look for their keys in every byte that is left."""
    for folder, random in task.rounds():
        tenant = folder.tenant(checkpoint_interval=3)
        canaries = [random.randbytes(12).hex() for _ in range(_ERASED)]
        for number in range(_VERSIONS):
            rows = {f"key-{key}": number for key in range(8)} | dict.fromkeys(canaries, number)
            tenant.stream("Account").update(frame(rows), key="Id")
        task.require(bool(_traces(folder, canaries)), "the keys were not found before they were erased")
        erased = tenant.erase("Account", canaries)
        task.require(erased.left.is_clean, "rows with the keys were left")
        task.require(erased.rows_erased == _ERASED, f"{erased.rows_erased} rows were erased")
        for name in _traces(folder, canaries):
            task.report(f"{name} holds an erased key")
        newcomer = folder.tenant()
        kept = {f"key-{key}": _VERSIONS - 1 for key in range(8)}
        for entry in newcomer.history():
            found = content(newcomer.at(entry.version))[0]["Account"]
            task.require(found == kept, f"version {entry.version} reads otherwise after the erasure")
        task.counts.update(rows_erased=_ERASED, versions=_VERSIONS)


def _traces(folder: ProofFolder, canaries: list[str]) -> list[str]:
    """Return the files that hold one of the keys, as bytes or in a column of a Parquet file."""
    storage = folder.storage()
    found = []
    for name in sorted(item.name for item in storage.list_below("")):
        stored = storage.read(name)
        rows = pq.read_table(io.BytesIO(stored)).to_pylist() if name.endswith(".parquet") else []
        decoded = str(rows).encode()
        if any(key.encode() in stored or key.encode() in decoded for key in canaries):
            found.append(name)
    return found
