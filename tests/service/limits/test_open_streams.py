"""The limit of open logs and events: all workers of a machine count, those that died do not."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Barrier

import psutil
import pytest

from freezeframe.errors import RateLimited, TryAgain
from freezeframe.service.identity.principal import Principal
from freezeframe.service.limits.open_streams import OpenStreams
from freezeframe.service.limits.shared_file import SharedFile

ONE, OTHER = (Principal("key", name, name, frozenset()) for name in ("one", "other"))

OPEN_AND_WAIT = """
import sys
from pathlib import Path
from freezeframe.service.identity.principal import Principal
from freezeframe.service.limits.open_streams import OpenStreams
from freezeframe.service.limits.shared_file import SharedFile

OpenStreams(SharedFile(Path(sys.argv[1])), 9, 9).begin(Principal("key", "one", "one", frozenset()))
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "limits"


def streams(path, streams_max=3, per_principal_max=2):
    return OpenStreams(SharedFile(path), streams_max, per_principal_max)


def test_a_principal_may_open_what_it_has_closed(path):
    mine = streams(path)
    for _ in range(5):
        mine.begin(ONE)
        mine.begin(ONE)
        with pytest.raises(RateLimited, match="service_streams_per_principal_max"):
            mine.begin(ONE)
        mine.end(ONE)
        mine.end(ONE)


def test_all_together_may_open_no_more_than_the_service_sends(path):
    mine = streams(path)
    for principal in (ONE, ONE, OTHER):
        mine.begin(principal)
    with pytest.raises(TryAgain, match="service_streams_max"):
        mine.begin(OTHER)
    mine.end(ONE)
    mine.begin(OTHER)


def test_what_another_process_has_open_counts_until_it_is_killed(path):
    mine = streams(path, per_principal_max=1)
    with subprocess.Popen(
        [sys.executable, "-c", OPEN_AND_WAIT, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(RateLimited):
            mine.begin(ONE)
        mine.begin(OTHER)
        other.kill()
        other.wait(30)
    mine.begin(ONE)


def test_of_many_at_once_as_many_begin_as_may(path):
    together, opened = Barrier(8), streams(path, streams_max=100, per_principal_max=5)

    def begin(_):
        together.wait(30)
        try:
            opened.begin(ONE)
        except RateLimited:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(begin, range(8))) == 5


@pytest.mark.parametrize(("moved", "counts"), [(2.0, True), (-2.0, True), (-3600.0, False)])
def test_a_worker_is_known_though_the_clock_was_set_and_who_has_its_number_is_not_it(path, moved, counts):
    """The moment at which a process began follows the machine's clock; its number is given again."""
    mine, process = streams(path, per_principal_max=1), psutil.Process()
    worker = f"{process.pid}@{process.create_time() + moved}"
    SharedFile(path).connection().execute("INSERT INTO open_streams VALUES (?, 'key/one', 1)", (worker,))
    with pytest.raises(RateLimited) if counts else nullcontext():
        mine.begin(ONE)
