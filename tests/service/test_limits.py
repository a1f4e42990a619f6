"""Requests of one principal: so many a second, at once, and so many streams of events."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from freezeframe.errors import RateLimited, TryAgain
from freezeframe.service.access.keys import Principal
from freezeframe.service.limits import FairLimits, OpenStreams, RateLimits

ONE, OTHER = (Principal("key", name, name, frozenset()) for name in ("one", "other"))


class Requests:
    """Requests that are carried out until they are told to end."""

    def __init__(self, turns):
        self._turns = turns
        self.running = []
        self._ends = asyncio.Event()

    async def one(self, principal):
        async with self._turns.turn(principal):
            self.running.append(principal.id)
            await self._ends.wait()
            self.running.remove(principal.id)

    async def begin(self, principal, count):
        begun = [asyncio.create_task(self.one(principal)) for _ in range(count)]
        await asyncio.sleep(0.01)
        return begun

    def end(self):
        self._ends.set()


def test_a_principal_has_its_number_at_once_and_another_does_not_wait():
    async def run():
        requests = Requests(FairLimits(2))
        begun = await requests.begin(ONE, 5) + await requests.begin(OTHER, 1)
        seen = sorted(requests.running)
        requests.end()
        await asyncio.gather(*begun)
        return seen

    assert asyncio.run(run()) == ["one", "one", "other"]


def test_a_line_has_an_end():
    """Of one at once, ten wait and the twelfth is refused; with the line gone it may come again."""

    async def run():
        turns = FairLimits(1)
        requests = Requests(turns)
        begun = await requests.begin(ONE, 11)
        with pytest.raises(RateLimited, match="service_requests_at_once_per_principal"):
            await requests.one(ONE)
        requests.end()
        await asyncio.gather(*begun)
        await requests.one(ONE)
        return turns._lines

    assert asyncio.run(run()) == {}


def test_a_request_that_is_broken_off_leaves_the_line():
    async def run():
        turns = FairLimits(1)
        requests = Requests(turns)
        first, second = await requests.begin(ONE, 2)
        second.cancel()
        await asyncio.wait([second])
        requests.end()
        await first
        return turns._lines

    assert asyncio.run(run()) == {}


def test_zero_is_no_limit():
    async def run():
        requests = Requests(FairLimits(0))
        begun = await requests.begin(ONE, 50)
        seen = len(requests.running)
        requests.end()
        await asyncio.gather(*begun)
        return seen

    assert asyncio.run(run()) == 50


def test_requests_a_second_may_be_saved_up(monkeypatch):
    """Ten seconds' worth at once, then at the rate; another principal has its own."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    limits = RateLimits(2)
    for _ in range(20):
        limits.spend(ONE)
    with pytest.raises(RateLimited, match="service_requests_per_second") as refused:
        limits.spend(ONE)
    limits.spend(OTHER)
    now[0] += 0.5
    limits.spend(ONE)
    with pytest.raises(RateLimited):
        limits.spend(ONE)

    assert refused.value.details["retry_after_seconds"] == 1


def test_no_limit_of_requests_counts_none():
    """0 a second is no limit."""
    limits = RateLimits(0)
    for _ in range(1000):
        limits.spend(ONE)


def test_a_principal_may_open_the_streams_that_it_has_closed():
    """One more than it may is refused; what was closed counts no more."""
    mine = OpenStreams(3, 2)
    for _ in range(5):
        mine.begin(ONE)
        mine.begin(ONE)
        with pytest.raises(RateLimited, match="service_streams_per_principal_max"):
            mine.begin(ONE)
        mine.end(ONE)
        mine.end(ONE)
    assert mine.number == 0


def test_all_together_may_open_no_more_streams_than_a_process_sends():
    """Whoever comes then is told to try again."""
    mine = OpenStreams(3, 2)
    for principal in (ONE, ONE, OTHER):
        mine.begin(principal)
    with pytest.raises(TryAgain, match="service_streams_max"):
        mine.begin(OTHER)
    mine.end(ONE)
    mine.begin(OTHER)


def test_of_many_at_once_as_many_begin_as_may():
    """Threads count together."""
    opened = OpenStreams(100, 5)

    def begin(_):
        try:
            opened.begin(ONE)
        except RateLimited:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(begin, range(8))) == 5
