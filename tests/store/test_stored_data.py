"""A store that an earlier version of the package wrote is read, updated and restored as before.

How it was written: ``tests/store/stored_data/write_store.py``.
"""

import json
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest
from tests.store.stored_data.write_store import MASTER_KEY, accounts, read_tenant, read_version

import freezeframe
from freezeframe.errors import TenantNotFound
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store

STORED = Path(__file__).parent / "stored_data"
EXPECTED = json.loads((STORED / "store-0.1.json").read_text())


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The stored folder, with the key of its sealed files."""
    key = tmp_path / "master.key"
    key.write_bytes(MASTER_KEY)
    key.chmod(0o600)
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(key))
    with tarfile.open(STORED / "store-0.1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


@pytest.fixture
def store(root):
    """The stored store, updated without Spark."""
    storage = LocalStorage(root)
    return Store(storage, ArrowEngine(), Settings(engine="auto"))


@pytest.mark.parametrize("name", ["acme", "globex"])
def test_each_version_is_read_as_before(store, name):
    """Rows, types, keys, files, history and tags of each version are what they were when written."""
    assert EXPECTED[name] == json.loads(json.dumps(read_tenant(store.tenant(name))))


def test_the_registry_is_read_as_before(store, root):
    """Tenants and environments are found, a deleted tenant is not."""
    assert store.tenants() == ("acme", "globex")
    assert store.environments() == ("default", "staging")
    assert freezeframe.open(root, "staging").tenant("acme").files.read("a") == b"of staging"
    with pytest.raises(TenantNotFound):
        store.tenant("left")


def test_the_data_is_whole(store):
    """Each entry of the log, checkpoint, data file, deletion vector and blob matches its digest."""
    assert store.tenant("acme").verify().findings == ()


def test_updates_follow_the_stored_versions(store):
    """An upsert and a file change make new versions on the old ones, which stay as they were."""
    tenant = store.tenant("acme")
    newest = tenant.version
    receipt = tenant.stream("Account").update(accounts(5, 42, "new"), key="Id")
    assert (37, 0, newest + 1) == (receipt.updated, receipt.unchanged, receipt.version)
    tenant.files.write("secret.json", b"{}", sealed=True)
    assert newest + 2 == tenant.version
    seen = json.loads(json.dumps(read_tenant(tenant)))
    assert EXPECTED["acme"]["versions"] == {
        name: version for name, version in seen["versions"].items() if int(name) <= newest
    }


def test_each_version_is_restored(store):
    """A restored version reads as it did when it was written, dropped streams and sealed files included."""
    tenant = store.tenant("acme")
    for version in range(len(EXPECTED["acme"]["history"])):
        tenant.restore(version)
        seen = json.loads(json.dumps(read_version(tenant, tenant.version)))
        assert EXPECTED["acme"]["versions"][str(version)] == seen, version


@pytest.mark.spark
def test_spark_updates_stored_tables(root, default_engine):
    """A window and a row history that Spark wrote are updated by Spark."""
    tenant = freezeframe.open(root).tenant("acme")
    january = pa.table({"Date": ["2026-01-09"], "Total": [7.0]})
    receipt = tenant.stream("Ledger").update(january, replace_where="Date < '2026-02-01'")
    assert (receipt.inserted, receipt.deleted) == (1, 2)
    receipt = tenant.stream("Contact").update(pa.table({"Id": [1], "Phone": ["one"]}), key="Id")
    assert receipt.updated == 1
    assert sorted(tenant.stream("Contact").read(as_="arrow")["Phone"].to_pylist()) == ["3", "one", "two"]
