"""Plain files in a tenant's own directory follow the newest version, and are never the truth."""

import os

import pytest

from freezeframe.settings import Settings
from freezeframe.storage import PrefixStorage
from freezeframe.store import Tenant
from freezeframe.store.tenant_log.roll_forward import derive_copies


@pytest.fixture
def tenant(open_on, local):
    return open_on(local)


def test_a_script_finds_files_by_name(tenant, tmp_path):
    """What was written, moved and deleted is so in the directory, empty folders included."""
    root = tmp_path / "snapshots"
    tenant.files.write("folder/deep/a.txt", b"1")
    assert (root / "folder/deep/a.txt").read_bytes() == b"1"
    tenant.files.move("folder/deep/a.txt", "folder")
    assert (root / "folder").read_bytes() == b"1"
    tenant.files.delete("folder")
    assert not (root / "folder").exists()


def test_a_changed_copy_is_not_the_file(tenant, tmp_path):
    """Reading gives the version that was committed; the next change derives the copy anew."""
    tenant.files.write("a", b"1")
    (tmp_path / "snapshots" / "a").write_bytes(b"forged")
    assert tenant.files.read("a") == b"1"
    tenant.files.write("a", b"2")
    assert (tmp_path / "snapshots" / "a").read_bytes() == b"2"


def test_a_slow_writer_never_brings_an_old_file_back(tenant, open_on, local, tmp_path):
    """The newest version is looked up anew, whatever change asks for the copy."""
    tenant.files.write("a", b"1")
    open_on(local).files.write("a", b"2")
    derive_copies(local, tenant._place.log, ["a"])
    assert (tmp_path / "snapshots" / "a").read_bytes() == b"2"


def test_a_copy_that_cannot_be_written_costs_nothing_else(tenant, tmp_path, caplog):
    """A folder in the way, or a planted link, loses the copy only, and the link's target is untouched."""
    (tmp_path / "snapshots" / "a").mkdir(parents=True)
    (tmp_path / "snapshots" / "link").symlink_to(tmp_path)
    tenant.files.write("a", b"1")
    tenant.files.write("link/b", b"2")
    assert [tenant.files.read(path) for path in ("a", "link/b")] == [b"1", b"2"]
    assert not (tmp_path / "b").exists()
    assert caplog.text.count("could not be written") == 2


def test_secrets_and_tenants_of_a_store_have_no_copies(local, tmp_path):
    """Sealing a file removes its copy; in a store there is none."""
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    tenant = Tenant(local, None, Settings(master_key_file=key))
    tenant.files.write("a", b"1")
    tenant.files.write("a", b"2", sealed=True)
    assert not (tmp_path / "snapshots" / "a").exists()
    place = PrefixStorage(local, f"tenants/{'a' * 32}")
    Tenant(place, None, Settings()).files.write("a", b"1")
    assert not place.local_path("a").exists()
