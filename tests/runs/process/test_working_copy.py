"""What a script does to its private folder with plain open() is found, whole, and nothing else."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.given import tenant as open_tenant
from tests.store.conftest import NoEngine

from freezeframe.errors import BadInput, InvalidName, InvalidOption
from freezeframe.runs.process.working_copy import (
    WorkingChanges,
    apply_changes,
    capture,
    check_out,
)
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant


@pytest.fixture
def tenant():
    tenant = Tenant(MemoryStorage(), NoEngine(), Settings())
    with tenant.job() as job:
        for path in ("a.txt", "b.json", "m/c.csv"):
            job.files.write(path, path.encode())
    return tenant


def test_files_lie_there_as_they_are(tenant, tmp_path):
    """All files are copied out, private, and an untouched copy has no changes."""
    before = check_out(tenant.files, tmp_path / "copy")
    assert (tmp_path / "copy/m/c.csv").read_bytes() == b"m/c.csv"
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "copy").rglob("*") if path.is_file()} == {
        0o600
    }
    assert capture(tmp_path / "copy", before).is_empty
    with pytest.raises(InvalidOption):
        check_out(tenant.files, tmp_path / "copy")


def test_what_a_script_did_becomes_the_jobs(tenant, tmp_path):
    """Added, changed, deleted and same-size changes are found; a job makes them one version."""
    folder = tmp_path / "copy"
    before = check_out(tenant.files, folder)
    (folder / "a.txt").write_bytes(b"A.txt")  # the same size
    (folder / "b.json").unlink()
    (folder / "new" / "d").mkdir(parents=True)
    (folder / "new" / "d" / "e").write_bytes(b"added")
    (folder / "m" / "c.csv").touch()
    os.utime(folder / "m" / "c.csv", (1, 1))  # a new time alone is not a change
    (folder / "Account.snapshot").mkdir()
    (folder / "Account.snapshot" / "part").write_bytes(b"a stream's")
    (folder / "_freezeframe").mkdir()
    (folder / "_freezeframe" / "job.json").write_bytes(b"{}")
    changes = capture(folder, before)
    assert WorkingChanges(("new/d/e",), ("a.txt",), ("b.json",)) == changes
    with tenant.job() as job:
        apply_changes(job.files, folder, changes)
    found = {item.path: tenant.files.read(item.path) for item in tenant.files.list(recursive=True)}
    assert found == {"a.txt": b"A.txt", "m/c.csv": b"m/c.csv", "new/d/e": b"added"}
    assert tenant.version == 1


def test_a_file_that_was_replaced_in_time_is_found(tenant, tmp_path):
    """Replaced by another file of the same size and time: it is another file, so its content is read."""
    folder = tmp_path / "copy"
    before = check_out(tenant.files, folder)
    status = (folder / "a.txt").stat()
    (folder / "tmp").write_bytes(b"B.txt")
    (folder / "tmp").replace(folder / "a.txt")
    os.utime(folder / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert capture(folder, before).changed == ("a.txt",)


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "dangling", "pipe"])
def test_links_and_pipes_are_refused(tenant, tmp_path, kind):
    """A link to another tenant's file, a folder, nothing, and a pipe: refused, and nothing is captured."""
    folder = tmp_path / "copy"
    before = check_out(tenant.files, folder)
    (tmp_path / "secret").write_bytes(b"canary")
    match kind:
        case "link to a file":
            (folder / "m" / "x").symlink_to(tmp_path / "secret")
        case "link to a folder":
            (folder / "x").symlink_to(tmp_path)
        case "dangling":
            (folder / "x").symlink_to("nowhere")
        case _:
            os.mkfifo(folder / "x")
    with pytest.raises(BadInput):
        capture(folder, before)


@pytest.mark.parametrize("instead", ["nothing", "a file", "a link"])
def test_a_folder_that_is_gone_is_told(tenant, tmp_path, instead):
    """Removed, moved away or replaced: that is the script's deed, no fault of the storage."""
    folder = tmp_path / "copy"
    before = check_out(tenant.files, folder)
    folder.rename(tmp_path / "moved")
    match instead:
        case "a file":
            folder.write_bytes(b"")
        case "a link":
            folder.symlink_to(tmp_path / "moved")
    with pytest.raises(BadInput, match="The script deleted") as raised:
        capture(folder, before)
    assert raised.value.remedy


def test_a_file_that_becomes_a_link_after_the_look_is_refused(tenant, tmp_path):
    """Between capturing and reading no link can be slipped in."""
    folder = tmp_path / "copy"
    before = check_out(tenant.files, folder)
    (folder / "new").write_bytes(b"1")
    changes = capture(folder, before)
    (folder / "new").unlink()
    (tmp_path / "secret").write_bytes(b"canary")
    (folder / "new").symlink_to(tmp_path / "secret")
    with pytest.raises(BadInput), tenant.job() as job:
        apply_changes(job.files, folder, changes)
    assert not tenant.files.exists("new")


@pytest.mark.parametrize("name", [".hidden", "con", "a:b", "x" * 201])
def test_names_that_cannot_be_kept_are_refused(tenant, tmp_path, name):
    """A file that could not be kept is told, not left out in silence."""
    before = check_out(tenant.files, tmp_path / "copy")
    (tmp_path / "copy" / name).write_bytes(b"1")
    with pytest.raises(InvalidName):
        capture(tmp_path / "copy", before)


def test_secrets_are_sealed_again_and_do_not_stay(tmp_path):
    """A sealed file lies there in the clear, is captured sealed, and is removed afterwards."""
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    tenant = open_tenant(master_key_file=key)
    tenant.files.write("c.json", b"secret", sealed=True)
    folder = tmp_path / "copy"
    before = check_out(tenant.files, folder)
    assert (folder / "c.json").read_bytes() == b"secret"
    (folder / "c.json").write_bytes(b"secret 2")
    apply_changes(tenant.files, folder, capture(folder, before))
    assert tenant.files.list()[0].sealed
    assert tenant.files.read("c.json") == b"secret 2"


def test_a_folder_that_becomes_a_link_is_not_followed(tenant, tmp_path):
    """A folder that is replaced by a link after the capture makes nothing from elsewhere a tenant's file."""
    folder = tmp_path / "copy"
    before = check_out(tenant.files, folder)
    (folder / "new").mkdir()
    (folder / "new" / "f").write_bytes(b"own")
    changes = capture(folder, before)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "f").write_bytes(b"the secret")
    shutil.rmtree(folder / "new")
    (folder / "new").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(BadInput):
        apply_changes(tenant.files, folder, changes)
    assert "new/f" not in [entry.path for entry in tenant.files.list(recursive=True)]


paths = st.sampled_from(["a.txt", "b.json", "m/c.csv", "m/new", "x/y/z"])


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(paths, st.none() | st.binary(max_size=3)), max_size=8))
def test_a_captured_copy_is_what_the_folder_was(tmp_path, steps):
    """Whatever is written and deleted, the tenant afterwards has just what lay in the folder."""
    tenant = Tenant(MemoryStorage(), NoEngine(), Settings())
    with tenant.job() as job:
        for path in ("a.txt", "b.json", "m/c.csv"):
            job.files.write(path, path.encode())
    folder = tmp_path / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    before = check_out(tenant.files, folder)
    for path, content in steps:
        target: Path = folder / path
        if content is None:
            target.unlink(missing_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    expected = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    apply_changes(tenant.files, folder, capture(folder, before))
    assert {item.path: tenant.files.read(item.path) for item in tenant.files.list(recursive=True)} == expected
