"""Each entry of a log binds its version and its predecessor's hash; what does not fit is damage."""

import hashlib
import json
import shutil

import pytest
from tests import given

from freezeframe.clock import another_clock, now_ms
from freezeframe.errors import CorruptLog, FormatTooNew, VersionNotFound
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import FaultyStorage
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.model.directory import FORMAT_FILE, REGISTRY_FOLDER, TENANT_LOG_FOLDER
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant_log.entry import Chain, Link
from freezeframe.store.tenant_log.log import LogTail


def _name(version, folder=TENANT_LOG_FOLDER):
    return f"{folder}/{version:020d}.json"


def _filled(storage, versions=5):
    tenant = given.tenant(storage)
    for number in range(versions):
        tenant.files.write("a.csv", b"%d" % number)
    return tenant


def _record(storage, version, folder=TENANT_LOG_FOLDER):
    return json.loads(storage.read(_name(version, folder)))


def _rewrite(storage, version, record, folder=TENANT_LOG_FOLDER, *, is_ascii=False):
    """Put a record in an entry's place, with a hash of its own that is right."""
    record.pop("sha256", None)
    text = json.dumps(record, ensure_ascii=is_ascii, separators=(",", ":"))
    record["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    line = json.dumps(record, ensure_ascii=is_ascii, separators=(",", ":"))
    storage.replace(_name(version, folder), line.encode() + b"\n")


def _unchained(storage, versions):
    """Make some entries such as were written before chains."""
    for version in versions:
        record = _record(storage, version)
        record.pop("version", None)
        record.pop("previous", None)
        _rewrite(storage, version, record)


def _damage(storage):
    """The version that opening the tenant and reading its history names, or None."""
    try:
        list(given.tenant(storage).history())
    except CorruptLog as error:
        return error.details["version"]
    return None


def test_each_entry_names_its_version_and_its_predecessor(local):
    """The first has none; each other one holds the SHA-256 of the entry before it."""
    _filled(local, 3)
    records = [_record(local, version) for version in range(3)]

    assert [record["version"] for record in records] == [0, 1, 2]
    assert ["", records[0]["sha256"], records[1]["sha256"]] == [record["previous"] for record in records]


def _replaced(storage, version):
    storage.replace(_name(version), storage.read(_name(version - 1)))


def _of_another_log(storage, version):
    other = MemoryStorage()
    _filled(other)
    storage.replace(_name(version), other.read(_name(version)))


def _rewritten(storage, version):
    _rewrite(storage, version, {**_record(storage, version), "message": "never said"})


def _swapped(storage, version):
    contents = [storage.read(_name(number)) for number in (version, version + 1)]
    storage.replace(_name(version), contents[1])
    storage.replace(_name(version + 1), contents[0])


def _renumbered(storage, version):
    for number in range(version, 4):
        storage.replace(_name(number), storage.read(_name(number + 1)))
    storage.delete(_name(4))


def _without_link(storage, version):
    _unchained(storage, [version])


@pytest.mark.parametrize(
    ("damage", "version", "named"),
    [
        *((_replaced, version, {version}) for version in (1, 4)),
        *((_of_another_log, version, {version, version + 1}) for version in (1, 3)),
        *((_rewritten, version, {version + 1}) for version in (0, 3)),
        (_swapped, 2, {2}),
        (_renumbered, 2, {2}),
        (_without_link, 3, {3}),
        (_without_link, 4, {4}),
    ],
)
def test_an_entry_that_does_not_fit_its_neighbours_is_named(local, damage, version, named):
    """Replaced by a valid entry, rewritten with a right hash of its own, swapped, renumbered, unlinked."""
    _filled(local)
    damage(local, version)

    assert _damage(local) in named


def test_the_history_of_a_warm_tenant_is_proved(local):
    """Entries are read anew for it, and each is compared with the one after it; the newest with the state."""
    tenant = _filled(local)
    _rewritten(local, 2)
    for look in (
        lambda: list(tenant.history()),
        lambda: list(tenant.history(until=2)),
        lambda: list(tenant.files.history("a.csv")),
        tenant.gc,
    ):
        with pytest.raises(CorruptLog, match="Entry 3"):
            look()
    _rewritten(local, 4)
    with pytest.raises(CorruptLog, match="Entry 4"):
        list(tenant.context.log.entries_down(tenant.context.log.current_snapshot.state, [4]))


def test_an_old_log_is_read_and_continued(local):
    """Entries without a link are accepted, and the next one names the last of them."""
    _filled(local)
    _unchained(local, range(5))
    before = [entry.to_json() for entry in given.tenant(local).history()]

    tenant = given.tenant(local)
    tenant.files.write("a.csv", b"new")

    assert before == [entry.to_json() for entry in tenant.history()][1:]
    assert before == [entry.to_json() for entry in given.tenant(local).history()][1:]
    assert _record(local, 4)["sha256"] == _record(local, 5)["previous"]


def test_an_old_checkpoint_is_continued_by_a_chained_entry(local):
    """Its state does not know the head's hash: the head is read, once, before the first entry after it."""
    _filled(local, 11)
    _unchained(local, range(11))
    _make_checkpoint_old(local)
    tenant = given.tenant(local)
    assert tenant.context.log.current_state().chain == Chain(None)

    tenant.files.write("a.csv", b"new")

    assert _record(local, 10)["sha256"] == _record(local, 11)["previous"]
    assert len(list(given.tenant(local).history())) == 12


def _make_checkpoint_old(storage):
    (name,) = [item.name for item in storage.list_from(TENANT_LOG_FOLDER) if ".checkpoint." in item.name]
    record = json.loads(storage.read(f"{TENANT_LOG_FOLDER}/{name}"))
    for member in ("head", "chained", "sha256"):
        record.pop(member, None)
    content = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    storage.replace(f"{TENANT_LOG_FOLDER}/{name}", content)


def test_a_log_that_begins_at_a_checkpoint_is_still_chained(local):
    """The checkpoint carries the head's hash: an entry after it that continues another one is found."""
    _filled(local, 13)
    for version in range(10):
        local.delete(_name(version))
    assert given.tenant(local).version == 12
    _rewrite(local, 11, {**_record(local, 11), "previous": "0" * 64})

    with pytest.raises(CorruptLog) as caught:
        given.tenant(local)
    assert caught.value.details["version"] == 11


def test_a_damaged_checkpoint_is_not_used(local):
    """A digit that was changed in it, or a checkpoint of another version, is passed over."""
    tenant = _filled(local, 13)
    wanted = tenant.context.log.current_state().files
    (name,) = [item.name for item in local.list_from(TENANT_LOG_FOLDER) if ".checkpoint." in item.name]
    content = local.read(f"{TENANT_LOG_FOLDER}/{name}")
    local.replace(f"{TENANT_LOG_FOLDER}/{12:020d}{name[20:]}", content)
    assert given.tenant(local).files.read("a.csv") == b"12"
    local.replace(f"{TENANT_LOG_FOLDER}/{name}", content.replace(b'"floor":[0,', b'"floor":[9,'))

    found = given.tenant(local).context.log.current_state()

    assert (found.files, found.floor) == (wanted, 0)


def test_an_erased_log_goes_on_in_its_chain(local, open_finding):
    """The entry of an erasure, and what comes after it, chain on the checkpoint that is left."""
    tenant = open_finding(local, streams={"Account": {"Id": ["a", "b"]}})
    tenant.erase("Account", ["a"])
    tenant.files.write("a.csv", b"1")

    assert [entry.version for entry in open_finding(local).history()] == [2, 1]
    assert _record(local, 1)["sha256"] == _record(local, 2)["previous"]


def test_a_loser_of_a_race_continues_the_winner(local):
    """The entry is built again after each lost try, with the winner as its predecessor."""
    tenant, other = _filled(local, 1), given.tenant(local)
    with tenant.job("late") as job:
        job.files.write("late.csv", b"1")
        other.files.write("first.csv", b"1")

    assert _record(local, 1)["sha256"] == _record(local, 2)["previous"]
    assert len(list(given.tenant(local).history())) == 3


def test_a_write_reads_no_more_than_before():
    """The predecessor's hash is known from the state: a warm write reads no entry."""
    storage = FaultyStorage(MemoryStorage())
    tenant = _filled(storage, 3)
    before = len(storage.calls)
    tenant.files.write("a.csv", b"new")

    read = [call.name for call in storage.calls[before:] if call.verb == "read"]
    assert [name for name in read if name.startswith(TENANT_LOG_FOLDER)] == []


def test_an_older_freezeframe_refuses_a_chained_log(local):
    """The directory's format names the chain, so that nobody adds an entry without it."""
    _filled(local, 1)
    record = json.loads(local.read(FORMAT_FILE))
    assert "chain" in record["features"]

    local.replace(FORMAT_FILE, json.dumps({**record, "features": [*record["features"], "next"]}).encode())
    with pytest.raises(FormatTooNew, match="next"):
        given.tenant(local)


@pytest.mark.parametrize("version", [1, 2])
def test_the_registry_is_a_chain_too(tmp_path, version):
    storage = LocalStorage(tmp_path)
    store = Store(storage, ArrowEngine(), Settings())
    for name in ("a", "b", "c", "d"):
        store.tenant(name, create=True)
    record = _record(storage, version, REGISTRY_FOLDER)
    _rewrite(storage, version, {**record, "tenant": "zoë"}, REGISTRY_FOLDER, is_ascii=True)

    with pytest.raises(CorruptLog) as caught:
        Store(storage, ArrowEngine(), Settings())
    assert version + 1 == caught.value.details["version"]


def test_an_old_registry_is_read_and_continued(tmp_path):
    storage = LocalStorage(tmp_path)
    store = Store(storage, ArrowEngine(), Settings())
    for name in ("a", "b"):
        store.tenant(name, create=True)
    for version in (0, 1):
        record = _record(storage, version, REGISTRY_FOLDER)
        record = {name: value for name, value in record.items() if name not in {"version", "previous"}}
        _rewrite(storage, version, record, REGISTRY_FOLDER, is_ascii=True)

    again = Store(storage, ArrowEngine(), Settings())
    again.tenant("c", create=True)

    assert Store(storage, ArrowEngine(), Settings()).tenants() == ("a", "b", "c")
    assert _record(storage, 1, REGISTRY_FOLDER)["sha256"] == _record(storage, 2, REGISTRY_FOLDER)["previous"]


def test_a_restored_backup_is_continued(local, tmp_path):
    _filled(local, 3)
    shutil.copytree(local.root, tmp_path / "backup")
    _filled(local, 2)
    shutil.rmtree(local.root)
    shutil.copytree(tmp_path / "backup", local.root)

    tenant = given.tenant(local)
    tenant.files.write("a.csv", b"after the backup")

    assert len(list(given.tenant(local).history())) == 4


@pytest.mark.parametrize(("version", "previous"), [(0, "a"), (1, ""), (-1, "a")])
def test_a_link_has_a_predecessor_unless_it_is_the_first(version, previous):
    with pytest.raises(ValueError, match="not a link"):
        Link(version, previous)


class Counted(LocalStorage):
    """A local disk that counts how often a folder is listed."""

    listings = 0

    def list_from(self, folder, start=""):
        self.listings += 1
        return super().list_from(folder, start)


@pytest.fixture
def storage(tmp_path):
    return Counted(tmp_path / "tenant")


def test_a_log_that_stands_still_is_not_listed(storage):
    """Looking at a tenant again and again lists nothing; what another process adds is seen at once."""
    tenant, other = given.tenant(storage), given.tenant(LocalStorage(storage.root))
    tenant.files.write("a.csv", b"1")
    assert tenant.version == 0
    before = storage.listings
    assert [tenant.version for _ in range(20)] == [0] * 20
    assert before == storage.listings
    other.files.write("a.csv", b"2")
    assert tenant.files.read("a.csv") == b"2"


def test_what_this_process_adds_is_not_listed_but_now_and_then(storage):
    """Its own entries are the state at once; a listing every ten versions finds the newer checkpoint."""
    tenant, other = given.tenant(storage), given.tenant(LocalStorage(storage.root))
    tenant.files.write("a.csv", b"0")
    before = storage.listings
    for number in range(1, 10):
        tenant.files.write("a.csv", b"%d" % number)
    assert before == storage.listings
    other.files.write("b.csv", b"theirs")
    for number in range(11, 22):
        tenant.files.write("a.csv", b"%d" % number)
    assert before < storage.listings
    segment = tenant.context.log.current_snapshot.segment
    assert (segment.version, segment.checkpoint_version) == (21, 20)
    afresh = given.tenant(LocalStorage(storage.root)).context.log.current_state()
    assert afresh == tenant.context.log.current_state()
    assert (tenant.files.read("b.csv"), tenant.files.read("a.csv")) == (b"theirs", b"21")


def test_a_log_that_was_put_back_from_a_backup_is_read_anew(storage, tmp_path):
    """A log of the same length with other entries is not taken for the one that was seen.

    Its entry has another size: two of one size may have been written in one tick of a file system's clock.
    """
    three = b"three" * 20
    tenant = given.tenant(storage)
    tenant.files.write("a.csv", b"1")
    shutil.copytree(storage.root, tmp_path / "backup")
    tenant.files.write("a.csv", b"two")
    other = given.tenant(LocalStorage(tmp_path / "backup"))
    other.files.write("a.csv", three)
    shutil.rmtree(storage.root)
    (tmp_path / "backup").rename(storage.root)
    assert tenant.version == 1
    assert three == tenant.files.read("a.csv")


def test_a_log_whose_past_was_erased_is_listed(storage):
    """Whoever has seen an entry that is gone, with those that followed it, finds the newest one."""
    tenant, other = given.tenant(storage), given.tenant(LocalStorage(storage.root))
    for number in range(3):
        tenant.files.write("a.csv", b"%d" % number)
    assert tenant.version == 2
    other.files.write("a.csv", b"3")
    other.files.write("a.csv", b"4")
    other.context.log.write_checkpoint(other.context.log.current_state())
    for version in range(4):
        other.context.storage.delete(f"{TENANT_LOG_FOLDER}/{version:020d}.json")
    assert (tenant.version, tenant.files.read("a.csv")) == (4, b"4")


def test_pages_of_tenants_follow_each_change(tmp_path):
    """A tenant that somebody else makes or deletes is in, or out of, the next page."""
    storage = LocalStorage(tmp_path)
    here, there = (Store(storage, ArrowEngine(), Settings()) for _ in range(2))
    here.tenant("b", create=True)
    assert here.tenants() == ("b",)
    there.tenant("a", create=True)
    assert here.tenants() == ("a", "b")
    here.delete_tenant("a")
    assert there.tenants() == ("b",)


class ForgottenMeanwhile(LogTail):
    """A tail that another thread forgets whenever the disk is looked at."""

    def _identity(self, version):
        self.forget()
        return super()._identity(version)


def test_a_checkpoint_of_another_thread_comes_between_two_looks(storage):
    """Each method goes by what was seen when it was called; after it the log is listed."""
    given.tenant(storage).files.write("a.csv", b"1")
    tail = ForgottenMeanwhile(storage, TENANT_LOG_FOLDER)
    tail.note(0)
    assert (tail.is_at(0), tail.is_at(0)) == (True, False)
    tail.note(0)
    assert tail.note_added(1) is None


def test_a_past_state_is_that_of_the_directory_as_it_is_now(tmp_path, open_finding):
    """Where it was removed and made anew, or an older backup of it was put back, with fewer versions too."""
    tenant = open_finding(LocalStorage(tmp_path / "t"))
    for number in range(3):
        tenant.files.write("f", str(number).encode())
    assert b"1" == tenant.at(1).files.read("f")
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(VersionNotFound):
        tenant.at(1)
    for number in range(2, 4):
        open_finding(LocalStorage(tmp_path / "t")).files.write("f", str(number).encode())

    assert [b"2", b"3"] == [tenant.at(version).files.read("f") for version in range(2)]


def test_one_commit_by_a_clock_far_ahead_is_told_and_forgets_no_job(local, caplog):
    """Its time makes no id old, and it and the commits after it say how far the clocks are apart."""
    with given.tenant(local).job("sync-1") as job:
        job.files.write("a.csv", b"1")
    ahead = now_ms() + 400 * 86_400_000
    with another_clock(lambda: ahead):
        given.tenant(local).files.write("a.csv", b"2")
    told = [caplog.text.count("400 days after the time of version 0, the tenant's newest")]
    with given.tenant(local).job("sync-1") as again:
        again.files.write("a.csv", b"3")
    given.tenant(local).files.write("b.csv", b"4")
    told.append(caplog.text.count("days before the time of version 1, the tenant's newest"))

    assert [1, 1] == told
    assert again.is_repeated
    assert b"2" == given.tenant(local).files.read("a.csv")
