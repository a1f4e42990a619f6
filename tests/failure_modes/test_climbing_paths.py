"""Paths that climb and planted links: nothing beside the tenant is read or written."""

import pytest

from freezeframe.errors import FreezeframeError, InvalidName, UnsafePath
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant

CLIMBING = ["../b/f", "/etc/passwd", "a/../../b/f", "a\\..\\b", "./f", "a//f", "_freezeframe/format.json"]


@pytest.mark.parametrize("path", CLIMBING)
def test_climbing_paths_are_refused(tmp_path, path):
    """Every verb refuses the path before it is opened."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "f").write_text("theirs")
    files = Tenant(LocalStorage(tmp_path / "a"), None, Settings()).files
    for call in (files.read, files.exists, files.delete, lambda name: files.write(name, b"x")):
        with pytest.raises(InvalidName):
            call(path)
    assert (tmp_path / "b" / "f").read_text() == "theirs"


def test_a_planted_link_leads_nowhere(tmp_path):
    """A folder of ours that was replaced by a link leads nowhere, for reading and for writing."""
    theirs = Tenant(LocalStorage(tmp_path / "b"), None, Settings())
    theirs.files.write("f", b"theirs")
    kept = {path: path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file()}
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "_freezeframe").symlink_to(tmp_path / "b" / "_freezeframe")

    with pytest.raises(FreezeframeError) as caught:
        Tenant(LocalStorage(tmp_path / "a"), None, Settings()).files.write("f", b"mine")

    assert isinstance(caught.value, UnsafePath)
    assert kept == {path: path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file()}
