"""Requests that wait for each other are told from those that go side by side."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from benchmarks.latency import LatencyStorage, Request, in_sequence

from freezeframe.errors import InvalidOption
from freezeframe.storage import MemoryStorage


def test_the_longest_chain_is_counted():
    """Three at once are one step, whatever their order; one that begins at an end has waited for it."""
    requests = [Request("read", name, began, ended) for name, began, ended in
                [("a", 0, 1), ("b", 0, 1), ("c", 0.5, 1.5), ("d", 1, 2), ("e", 2, 3)]]  # fmt: skip
    for order in (requests, requests[::-1]):
        assert [item.name for item in in_sequence(order)][1:] == ["d", "e"]
        assert len(in_sequence(order)) == 3
    assert in_sequence([]) == ()


def test_each_request_takes_its_time_and_failures_count():
    """Side by side or one after the other, as the caller asks; an absent file is an answer as well."""
    storage = LatencyStorage(MemoryStorage(), 0.2)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: storage.put_if_absent(f"f/{number}", b"x"), range(4)))
    assert (len(storage.requests), len(in_sequence(storage.requests))) == (4, 1)
    with pytest.raises(FileNotFoundError):
        storage.read("f/5")
    assert storage.read("f/1") == b"x"
    assert len(list(storage.list_from("f"))) == 4
    assert [request.verb for request in storage.requests[4:]] == ["read", "read", "list_from"]
    assert len(in_sequence(storage.requests)) == 4
    assert all(request.ended - request.began >= 0.2 for request in storage.requests)
    with pytest.raises(InvalidOption):
        LatencyStorage(MemoryStorage(), -1)
