"""A server that does not see our files is refused before it is trusted with any."""

from pathlib import Path

import pytest

from freezeframe.engine.spark_sharing import require_shared
from freezeframe.errors import StorageNotShared

pytestmark = pytest.mark.spark


def test_a_shared_folder_passes_and_is_remembered(spark_session, tmp_path):
    """Both sides read what the other wrote; nothing stays in the folder, and the answer is kept."""
    folder, memory = tmp_path / "data [1]", tmp_path / "memory"
    folder.mkdir()
    memory.mkdir()
    require_shared(spark_session, folder, memory)
    assert [] == list(folder.iterdir())
    (remembered,) = memory.iterdir()
    before = remembered.stat().st_mtime_ns
    require_shared(spark_session, folder, memory)
    assert before == remembered.stat().st_mtime_ns


def test_a_folder_that_only_we_see_is_refused(spark_session, tmp_path, monkeypatch):
    """A path that means another folder to the server is found out, and nothing is remembered."""
    memory = tmp_path / "memory"
    memory.mkdir()
    # To every process this is another folder: its own working directory.
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageNotShared, match="does not see the files"):
        require_shared(spark_session, Path("/proc/self/cwd"), memory)
    assert [] == list(memory.iterdir())
    assert ["memory"] == [path.name for path in tmp_path.iterdir()]
