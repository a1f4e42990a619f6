"""Turns: so many requests of one principal at once, the rest in a line of a bounded length."""

import asyncio

import pytest

from freezeframe.errors import RateLimited
from freezeframe.service.identity.principal import Principal
from freezeframe.service.limits.turns import Turns

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
        requests = Requests(Turns(2))
        begun = await requests.begin(ONE, 5) + await requests.begin(OTHER, 1)
        seen = sorted(requests.running)
        requests.end()
        await asyncio.gather(*begun)
        return seen

    assert asyncio.run(run()) == ["one", "one", "other"]


def test_a_line_has_an_end():
    """Of one at once, ten wait and the twelfth is refused; with the line gone it may come again."""

    async def run():
        turns = Turns(1)
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
        turns = Turns(1)
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
        requests = Requests(Turns(0))
        begun = await requests.begin(ONE, 50)
        seen = len(requests.running)
        requests.end()
        await asyncio.gather(*begun)
        return seen

    assert asyncio.run(run()) == 50
