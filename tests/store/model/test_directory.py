"""A tenant's directory: store or tenant, folders of jobs."""

import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests import given

from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.base import PrefixStorage
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.model.directory import (
    in_use,
    is_in_use,
    job_roots,
    job_roots_folder,
    remove_expired_roots,
    remove_job_roots,
    root_stamp,
)
from freezeframe.store.snapshot_store import Store

NOBODY = 65534
"""A user without rights, whom root can act as."""


def _store(storage):
    return Store(storage, ArrowEngine(), Settings())


def _names(storage):
    return [item.name for item in storage.list_below("")]


@pytest.fixture(params=["memory", "local"])
def storage(request, tmp_path):
    """A storage in memory and one on the disk."""
    return MemoryStorage() if request.param == "memory" else LocalStorage(tmp_path / "place")


def test_a_store_is_not_opened_as_a_tenant(storage):
    _store(storage).tenant("acme", create=True)
    before = _names(storage)

    with pytest.raises(InvalidOption, match=r"--root and the tenant by --tenant"):
        given.tenant(storage)
    assert before == _names(storage)


def test_a_tenant_is_not_opened_as_a_store(storage):
    given.tenant(storage).files.write("a", b"1")

    with pytest.raises(InvalidOption, match="--dir"):
        _store(storage)


def test_a_directory_that_became_a_store_takes_no_first_change(storage):
    """A tenant that was opened on an empty directory looks once more before its first entry."""
    tenant = given.tenant(storage)
    _store(storage).tenant("acme", create=True)
    before = _names(storage)

    for change in (lambda: tenant.files.write("a", b"1"), lambda: tenant.set_retention(3)):
        with pytest.raises(InvalidOption, match="store of many tenants"):
            change()
    assert before == _names(storage)
    assert _store(storage).tenants() == ("acme",)


def test_a_directory_that_became_a_tenant_takes_no_tenants(storage):
    """A store that was opened on an empty directory looks once more before its first tenant."""
    store = _store(storage)
    given.tenant(storage).files.write("a", b"1")
    before = _names(storage)

    with pytest.raises(InvalidOption, match="one tenant's directory"):
        store.tenant("acme", create=True)
    assert before == _names(storage)


def test_the_folder_of_a_stores_tenant_is_no_store(storage):
    store = _store(storage)
    store.tenant("acme", create=True)
    folder = LocalStorage(f"{storage.root}/tenants/{store.folder('acme')}")

    with pytest.raises(InvalidOption, match="one tenant's directory"):
        _store(folder)


FOLDER = "0123456789abcdef" * 2
NOW = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)


def _made(folder, moment, name="x"):
    root = folder / f"{root_stamp(moment)}-{name}"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "file").write_text("1")
    return root


def _ms(moment):
    return int(moment.timestamp() * 1000)


def test_roots_are_beside_the_tenants_of_a_local_store(tmp_path):
    """By the tenant's own folder name; for a bucket in the state folder; never for a bare directory."""
    settings = Settings(state_dir=tmp_path / "state")
    local = PrefixStorage(LocalStorage(tmp_path / "store"), f"tenants/{FOLDER}")
    assert tmp_path / "store" / "job-roots" / FOLDER == job_roots_folder(local, settings)
    elsewhere = job_roots_folder(PrefixStorage(MemoryStorage(), f"tenants/{FOLDER}"), settings)
    assert elsewhere.is_relative_to(tmp_path / "state")
    assert elsewhere.name == FOLDER
    with pytest.raises(InvalidOption):
        job_roots_folder(LocalStorage(tmp_path), settings)
    assert remove_job_roots(LocalStorage(tmp_path), settings) == 0


def test_roots_that_began_before_a_moment_are_removed(tmp_path):
    """An erasure's moment: older ones go, whatever a script left in them; links are not followed."""
    storage = PrefixStorage(LocalStorage(tmp_path / "store"), f"tenants/{FOLDER}")
    settings = Settings(state_dir=tmp_path / "state")
    folder = job_roots_folder(storage, settings)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    old, new = _made(folder, NOW - timedelta(seconds=1)), _made(folder, NOW)
    (old / "link").symlink_to(tmp_path / "outside")
    (old / "sub").chmod(0o500)
    unknown = folder / "unknown"
    unknown.mkdir()
    assert remove_job_roots(storage, settings, before_ms=_ms(NOW)) == 2
    assert [new] == job_roots(folder)
    assert (tmp_path / "outside" / "kept").exists()
    assert remove_job_roots(storage, settings) == 1
    assert job_roots(folder) == []


def test_a_root_that_its_script_closed_is_removed():
    """A folder without any right, of a plain user; it ended every removal with a TypeError."""
    place = Path(tempfile.mkdtemp(prefix="freezeframe-"))
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(NOBODY)
        storage = PrefixStorage(LocalStorage(place / "store"), f"tenants/{FOLDER}")
        settings = Settings(state_dir=place / "state")
        closed = _made(job_roots_folder(storage, settings), NOW) / "sub" / "closed"
        closed.mkdir(parents=True, exist_ok=True)
        (closed / "file").touch()
        closed.chmod(0)
        closed.parent.chmod(0)
        assert 1 == remove_job_roots(storage, settings)
    finally:
        if user == 0:
            os.seteuid(0)
        shutil.rmtree(place)


def test_expired_roots_are_removed_unless_in_use(tmp_path):
    settings = Settings(job_root_days=2)
    used = _made(tmp_path, NOW - timedelta(days=9), "used")
    old, young = _made(tmp_path, NOW - timedelta(days=3)), _made(tmp_path, NOW - timedelta(days=1))
    with in_use(used):
        assert (is_in_use(used), is_in_use(young)) == (True, False)
        assert remove_expired_roots(tmp_path, settings, _ms(NOW)) == 1
    assert [used, young] == job_roots(tmp_path)
    assert not old.exists()
    assert remove_expired_roots(tmp_path, settings, _ms(NOW)) == 1
