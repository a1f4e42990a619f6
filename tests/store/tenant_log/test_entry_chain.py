"""Each entry of a log binds its version and its predecessor's hash; what does not fit is damage."""

import hashlib
import json
import shutil

import pytest

from freezeframe.errors import CorruptLog, FormatTooNew
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import FaultyStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.model.directory import FORMAT_FILE, REGISTRY_FOLDER, TENANT_LOG_FOLDER
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant_log.entry import Chain, Link


def _name(version, folder=TENANT_LOG_FOLDER):
    return f"{folder}/{version:020d}.json"


def _tenant(storage):
    return Tenant(storage, ArrowEngine(storage), Settings())


def _filled(storage, versions=5):
    tenant = _tenant(storage)
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
        list(_tenant(storage).history())
    except CorruptLog as error:
        return error.details["version"]
    return None


def test_each_entry_names_its_version_and_its_predecessor(local):
    """The first has none; each other one holds the SHA-256 of the entry before it."""
    _filled(local, 3)
    records = [_record(local, version) for version in range(3)]

    assert [record["version"] for record in records] == [0, 1, 2]
    assert ["", records[0]["sha256"], records[1]["sha256"]] == [record["previous"] for record in records]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_replaced_entry_is_found(local, version):
    """A valid entry of another version in its place is named, the newest one included."""
    _filled(local)
    local.replace(_name(version), local.read(_name(version - 1)))

    assert version == _damage(local)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_entry_of_the_same_version_of_another_log_is_found(local, version):
    """Its own number fits, its neighbours do not."""
    _filled(local)
    other = MemoryStorage()
    _filled(other)
    local.replace(_name(version), other.read(_name(version)))

    assert _damage(local) in {version, version + 1}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_an_entry_that_was_rewritten_is_found(local, version):
    """A changed message with a right hash of its own is found by the successor."""
    _filled(local)
    _rewrite(local, version, {**_record(local, version), "message": "never said"})

    assert version + 1 == _damage(local)


def test_swapped_entries_are_found(local):
    """The first of the two is named."""
    _filled(local)
    one, other = local.read(_name(2)), local.read(_name(3))
    local.replace(_name(2), other)
    local.replace(_name(3), one)

    assert _damage(local) == 2


def test_a_renumbered_log_is_found(local):
    """An entry that is taken out, with those after it moved down, is named."""
    _filled(local)
    for version in (2, 3):
        local.replace(_name(version), local.read(_name(version + 1)))
    local.delete(_name(4))

    assert _damage(local) == 2


def test_the_history_of_a_warm_tenant_is_proved(local):
    """Entries are read anew for it, and each is compared with the one after it."""
    tenant = _filled(local)
    _rewrite(local, 2, {**_record(local, 2), "message": "never said"})

    with pytest.raises(CorruptLog, match="Entry 3"):
        list(tenant.history())
    with pytest.raises(CorruptLog, match="Entry 3"):
        list(tenant.history(until=2))
    with pytest.raises(CorruptLog, match="Entry 3"):
        list(tenant.files.history("a.csv"))
    with pytest.raises(CorruptLog, match="Entry 3"):
        tenant.gc()


def test_the_newest_entry_is_held_against_the_state(local):
    """A head that is another file than the one read before is named."""
    tenant = _filled(local)
    _rewrite(local, 4, {**_record(local, 4), "message": "never said"})

    with pytest.raises(CorruptLog, match="Entry 4"):
        list(tenant.place.log.entries_down(tenant.place.log.current_snapshot.state, [4]))


def test_an_old_log_is_read_and_continued(local):
    """Entries without a link are accepted, and the next one names the last of them."""
    _filled(local)
    _unchained(local, range(5))
    before = [entry.to_json() for entry in _tenant(local).history()]

    tenant = _tenant(local)
    tenant.files.write("a.csv", b"new")

    assert before == [entry.to_json() for entry in tenant.history()][1:]
    assert before == [entry.to_json() for entry in _tenant(local).history()][1:]
    assert _record(local, 4)["sha256"] == _record(local, 5)["previous"]


def test_a_missing_link_after_a_chained_entry_is_damage(local):
    """An entry without a link can only lie before the first chained one."""
    _filled(local)
    _unchained(local, [0, 1, 3])

    assert _damage(local) in {2, 3}


def test_a_last_entry_that_lost_its_link_is_damage(local):
    """So it is for the newest one."""
    _filled(local)
    _unchained(local, [4])

    assert _damage(local) == 4


def test_an_old_checkpoint_is_continued_by_a_chained_entry(local):
    """Its state does not know the head's hash: the head is read, once, before the first entry after it."""
    _filled(local, 11)
    _unchained(local, range(11))
    _make_checkpoint_old(local)
    tenant = _tenant(local)
    assert tenant.place.log.current_state().chain == Chain(None)

    tenant.files.write("a.csv", b"new")

    assert _record(local, 10)["sha256"] == _record(local, 11)["previous"]
    assert len(list(_tenant(local).history())) == 12


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
    assert _tenant(local).version == 12
    _rewrite(local, 11, {**_record(local, 11), "previous": "0" * 64})

    with pytest.raises(CorruptLog) as caught:
        _tenant(local)
    assert caught.value.details["version"] == 11


def test_a_damaged_checkpoint_is_not_used(local):
    """A digit that was changed in it, or a checkpoint of another version, is passed over."""
    tenant = _filled(local, 11)
    wanted = tenant.place.log.current_state().files
    (name,) = [item.name for item in local.list_from(TENANT_LOG_FOLDER) if ".checkpoint." in item.name]
    content = local.read(f"{TENANT_LOG_FOLDER}/{name}")
    local.replace(f"{TENANT_LOG_FOLDER}/{name}", content.replace(b'"floor":[0,', b'"floor":[9,'))

    found = _tenant(local).place.log.current_state()

    assert (found.files, found.floor) == (wanted, 0)


def test_a_checkpoint_under_another_version_is_not_used(local):
    """What it says is of its own version only."""
    _filled(local, 13)
    (name,) = [item.name for item in local.list_from(TENANT_LOG_FOLDER) if ".checkpoint." in item.name]
    local.replace(f"{TENANT_LOG_FOLDER}/{12:020d}{name[20:]}", local.read(f"{TENANT_LOG_FOLDER}/{name}"))

    assert _tenant(local).files.read("a.csv") == b"12"


def test_an_erased_log_goes_on_in_its_chain(local, open_finding):
    """The entry of an erasure, and what comes after it, chain on the checkpoint that is left."""
    pa = pytest.importorskip("pyarrow")
    tenant = open_finding(local)
    tenant.stream("Account").update(pa.table({"Id": ["a", "b"]}), key="Id")
    tenant.erase("Account", ["a"])
    tenant.files.write("a.csv", b"1")

    afresh = open_finding(local)

    assert [entry.version for entry in afresh.history()] == [2, 1]
    assert _record(local, 1)["sha256"] == _record(local, 2)["previous"]


def test_a_loser_of_a_race_continues_the_winner(local):
    """The entry is built again after each lost try, with the winner as its predecessor."""
    tenant, other = _filled(local, 1), _tenant(local)
    with tenant.job("late") as job:
        job.files.write("late.csv", b"1")
        other.files.write("first.csv", b"1")

    assert _record(local, 1)["sha256"] == _record(local, 2)["previous"]
    assert len(list(_tenant(local).history())) == 3


def test_a_write_reads_no_more_than_before():
    """The predecessor's hash is known from the state: a warm write reads no entry."""
    storage = FaultyStorage(MemoryStorage())
    tenant = _filled(storage, 3)
    before = len(storage.calls)
    tenant.files.write("a.csv", b"new")

    read = [call.name for call in storage.calls[before:] if call.verb == "read"]
    assert [name for name in read if name.startswith(TENANT_LOG_FOLDER)] == []


def test_a_clone_begins_a_chain_of_its_own(tmp_path):
    """Its first entry has no predecessor."""
    storage = LocalStorage(tmp_path)
    store = Store(storage, ArrowEngine(storage), Settings())
    _fill = store.tenant("a", create=True)
    _fill.files.write("a.csv", b"1")
    clone = store.clone_tenant("a", "b")
    clone.files.write("a.csv", b"2")

    records = [_record(clone.place.storage, version) for version in (0, 1)]
    assert ("", records[0]["sha256"]) == (records[0]["previous"], records[1]["previous"])


def test_an_older_freezeframe_refuses_a_chained_log(local):
    """The directory's format names the chain, so that nobody adds an entry without it."""
    _filled(local, 1)
    record = json.loads(local.read(FORMAT_FILE))
    assert "chain" in record["features"]

    local.replace(FORMAT_FILE, json.dumps({**record, "features": [*record["features"], "next"]}).encode())
    with pytest.raises(FormatTooNew, match="next"):
        _tenant(local)


@pytest.mark.parametrize("version", [1, 2])
def test_the_registry_is_a_chain_too(tmp_path, version):
    """A tenant's entry that is replaced by another valid one is named."""
    storage = LocalStorage(tmp_path)
    store = Store(storage, ArrowEngine(storage), Settings())
    for name in ("a", "b", "c", "d"):
        store.tenant(name, create=True)
    record = _record(storage, version, REGISTRY_FOLDER)
    _rewrite(storage, version, {**record, "tenant": "zoë"}, REGISTRY_FOLDER, is_ascii=True)

    with pytest.raises(CorruptLog) as caught:
        Store(storage, ArrowEngine(storage), Settings())
    assert version + 1 == caught.value.details["version"]


def test_an_old_registry_is_read_and_continued(tmp_path):
    """Tenants of before are found, and new ones are chained to them."""
    storage = LocalStorage(tmp_path)
    store = Store(storage, ArrowEngine(storage), Settings())
    for name in ("a", "b"):
        store.tenant(name, create=True)
    for version in (0, 1):
        record = _record(storage, version, REGISTRY_FOLDER)
        record = {name: value for name, value in record.items() if name not in {"version", "previous"}}
        _rewrite(storage, version, record, REGISTRY_FOLDER, is_ascii=True)

    again = Store(storage, ArrowEngine(storage), Settings())
    again.tenant("c", create=True)

    assert Store(storage, ArrowEngine(storage), Settings()).tenants() == ("a", "b", "c")
    assert _record(storage, 1, REGISTRY_FOLDER)["sha256"] == _record(storage, 2, REGISTRY_FOLDER)["previous"]


def test_a_restored_backup_is_continued(local, tmp_path):
    """A log that lost its newest entries goes on from where it ends."""
    _filled(local, 3)
    shutil.copytree(local.root, tmp_path / "backup")
    _filled(local, 2)
    shutil.rmtree(local.root)
    shutil.copytree(tmp_path / "backup", local.root)

    tenant = _tenant(local)
    tenant.files.write("a.csv", b"after the backup")

    assert len(list(_tenant(local).history())) == 4


@pytest.mark.parametrize(("version", "previous"), [(0, "a"), (1, ""), (-1, "a")])
def test_a_link_has_a_predecessor_unless_it_is_the_first(version, previous):
    """Anything else is not a link."""
    with pytest.raises(ValueError, match="not a link"):
        Link(version, previous)
