"""Clones copy files side by side, and leave nothing where one of them cannot be copied."""

import threading

import pytest
from tests import given

from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.tenants import clone_into

AT_ONCE = 4
FILES = {f"folder/{number}.txt": b"%d" % number for number in range(3 * AT_ONCE)}


class Meeting(LocalStorage):
    """A disk on which each blob waits until some others are being written too."""

    def __init__(self, root):
        super().__init__(root)
        self.others = threading.Barrier(AT_ONCE, timeout=5)

    def put_if_absent(self, name, content):
        if "/blobs/" in name:
            self.others.wait()
        super().put_if_absent(name, content)


@pytest.fixture
def source(tmp_path):
    return given.tenant(LocalStorage(tmp_path / "source"), files=FILES).context.storage


def test_files_are_copied_side_by_side(source, tmp_path):
    """Several at once, each whole; the version that names them is the only one."""
    target = Meeting(tmp_path / "target")
    clone_into(source, target, Settings())
    clone = given.tenant(target)

    assert clone.version == 0
    assert {path: clone.files.read(path) for path in FILES} == FILES
