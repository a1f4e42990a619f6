"""What the warm server and the warm runner have in common. The daemon here is a shell script."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from freezeframe.engine import daemon
from freezeframe.engine.daemon import IdleTime, private_folder
from freezeframe.errors import SetupError


def test_a_state_folder_open_to_others_is_closed(tmp_path):
    """The token's folder is for its owner alone, whatever it was before."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    assert private_folder(folder).stat().st_mode & 0o777 == 0o700


def test_a_state_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    """A token is never kept where another user could read it."""
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    with pytest.raises(SetupError, match="belongs to another user"):
        private_folder(tmp_path)


def test_of_several_who_need_it_one_starts_it(tmp_path):
    """The others wait until it is ready and find it; what was said to the one before is forgotten."""
    word, found, starts = tmp_path / "word", [], []

    def find():
        return word.exists() and int(word.read_text() or 0)

    def start():
        starts.append("start")
        command = ["/bin/sh", "-c", "sleep 0.2; echo $$ > word; exec sleep 600"]
        with daemon.started(tmp_path, command, "log") as process:
            return daemon.wait_until_ready(process, find, limit)

    daemon.retire(tmp_path)
    limit = daemon.StartLimit(60, "a minute", TimeoutError)
    with ThreadPoolExecutor(4) as pool:
        found += pool.map(lambda _: daemon.found_or_started(tmp_path, find, start, limit), range(4))
    os.kill(found[0], 9)
    assert (4, 1, ["start"]) == (len(found), len({*found}), starts)
    assert not daemon.is_retired(tmp_path)


def test_a_daemon_ends_when_it_is_unused_or_not_wanted(tmp_path):
    """After its time, which may be changed; when it was retired; when its folder is gone."""
    folders = [tmp_path / name for name in ("spark-1", "spark-2", "runner-1")]
    for folder in folders:
        folder.mkdir()
    daemon.retire_others(folders[0])
    assert [False, True, False] == [IdleTime(folder, 600).is_over() for folder in folders]
    assert IdleTime(folders[2], 0).is_over()
    (folders[2] / daemon.IDLE_SECONDS).write_text("600")
    assert not IdleTime(folders[2], 0).is_over()
    assert IdleTime(tmp_path / "gone", 600).is_over()
