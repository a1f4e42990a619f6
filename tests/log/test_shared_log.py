"""One log, many threads: each gets the answer that it would get alone."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.log.tables import TableBuilder, file

THREADS, READS, COMMITS = 8, 60, 40


@pytest.fixture
def hurried():
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("checkpoint", [None, "classic"])
def test_threads_that_read_versions_of_one_log_do_not_disturb_each_other(hurried, checkpoint):
    """Every version read by any thread, updates in between, has the files it has alone."""
    table = TableBuilder().commits(COMMITS)
    if checkpoint:
        table.checkpoint(6, checkpoint)
    log = table.log()

    def look(number):
        version = number * 7 % COMMITS
        if number % 5 == 0:
            found = log.update()
            return found.version, sorted(found.files["path"].to_pylist())
        return version, sorted(log.snapshot_at(version=version).files["path"].to_pylist())

    with ThreadPoolExecutor(THREADS) as pool:
        answers = pool.map(look, range(READS))
        for number in range(3):
            table.commit(file(f"late{number}"))
            log.update()
        wrong = [version for version, found in answers if table.live(version) != found]
    assert wrong == []
