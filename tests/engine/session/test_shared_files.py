"""A server that does not see our files is refused before it is trusted with any."""

import os
import subprocess
from pathlib import Path

import pytest

from freezeframe.engine.connect import connect, has_our_files, require_shared
from freezeframe.errors import StorageNotShared


@pytest.mark.spark
def test_a_shared_folder_passes_and_is_remembered(spark_session, tmp_path):
    """Both sides read what the other wrote; nothing stays in the folder, and the answer is kept."""
    folder, memory = tmp_path / "data [1]", tmp_path / "memory"
    folder.mkdir()
    memory.mkdir()
    require_shared(spark_session, folder, memory)
    assert list(folder.iterdir()) == []
    (remembered,) = memory.iterdir()
    before = remembered.stat().st_mtime_ns
    require_shared(spark_session, folder, memory)
    assert before == remembered.stat().st_mtime_ns


@pytest.mark.spark
def test_a_folder_that_only_we_see_is_refused(spark_session, tmp_path, monkeypatch):
    """A path that means another folder to the server is found out, and nothing is remembered."""
    memory = tmp_path / "memory"
    memory.mkdir()
    # To every process this is another folder: its own working directory.
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageNotShared, match="does not see the files"):
        require_shared(spark_session, Path("/proc/self/cwd"), memory)
    assert list(memory.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["memory"]


@pytest.mark.spark
def test_our_own_server_is_not_asked(spark_settings, spark_session):
    """The system says that it has our view of the files; a session on it is known by its token."""
    connection = connect(spark_settings, lambda _: None)
    try:
        assert connection.sees_our_files()
        assert connection.is_of_same_server(spark_session)
        assert not connection.is_of_same_server(object())
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("apart", "expected"),
    [((), True), (("unshare", "--mount"), False)],
)
def test_another_view_of_the_files_is_told_apart(apart, expected):
    """A process with mounts of its own does not have our files, whatever its paths look like."""
    if apart and subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"this user may not call {apart[0]}")
    environment = {**os.environ, "THE_TOKEN": "7"}
    command = [*apart, "sh", "-c", "echo; read -r _"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, env=environment) as process:
        process.stdout.readline()
        assert has_our_files(process.pid, "THE_TOKEN=7") == expected
        assert not has_our_files(process.pid, "THE_TOKEN=8")
        process.stdin.close()


def test_a_process_that_is_not_there_has_no_view():
    """The number of a process in another view of the processes is believed to be nobody."""
    assert not has_our_files(2**22 + 1, "THE_TOKEN=7")
