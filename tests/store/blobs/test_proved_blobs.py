"""A part of a large file is read alone once all of it was proved, and damage is still found."""

import pytest

from freezeframe.errors import CorruptData
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine

CONTENT = bytes(range(256)) * 20_000


class Counted(LocalStorage):
    """A local disk that counts the bytes that are read from blobs."""

    read_bytes = 0

    def read(self, name, offset=0, length=None):
        found = super().read(name, offset, length)
        if "/blobs/" in name:
            self.read_bytes += len(found)
        return found


@pytest.fixture
def storage(tmp_path):
    return Counted(tmp_path / "tenant")


@pytest.fixture
def files(storage):
    tenant = Tenant(storage, ArrowEngine(storage), Settings())
    tenant.files.write("large.bin", CONTENT)
    return tenant.files


def test_parts_after_the_first_are_read_alone(storage, files):
    """The first part costs a reading of all; those after it cost what they hold."""
    for first, last in ((0, 0), (5_000, 5_999), (len(CONTENT) - 10, len(CONTENT) + 50)):
        storage.read_bytes = 0
        assert CONTENT[first : last + 1] == b"".join(files.part("large.bin", first, last))
    assert storage.read_bytes == 10


def test_damage_after_the_proof_is_found(storage, files, tmp_path):
    """A file that was written to since is proved again, and refused."""
    assert CONTENT[:10] == b"".join(files.part("large.bin", 0, 9))
    (blob,) = (path for path in tmp_path.rglob("blobs/*/*") if path.is_file())
    with blob.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"damage")
    with pytest.raises(CorruptData):
        files.part("large.bin", 0, 9)
