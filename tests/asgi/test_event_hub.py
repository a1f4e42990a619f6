"""A follower of events: what it is told, and that nothing of it is left when it goes."""

import asyncio

import pytest

from freezeframe.asgi.event_streams import EventHub, Follower, TenantsEvent
from freezeframe.errors import TryAgain
from freezeframe.service.access.keys import Principal

ADMIN = Principal("key", "k1", "a key", frozenset({"admin"}))


def followed(work):
    """What the work gives that is done with a follower, and how many tasks it has left behind."""

    async def done():
        ending = asyncio.get_running_loop().create_future()
        found = await work(Follower(ADMIN, "dev", frozenset()), ending)
        await asyncio.sleep(0)
        return found, len(asyncio.all_tasks()) - 1

    return asyncio.run(done())


def test_an_event_is_told_and_its_absence_too():
    """One that waits already, one that comes too late, and the end of the service."""

    async def work(follower, ending):
        event = TenantsEvent("dev", frozenset({"acme"}))
        follower.tell(event)
        body = [await follower.next_event(ending, 5), await follower.next_event(ending, 0.01)]
        ending.set_result(True)
        return [*body, await follower.next_event(ending, 5)] == [(event,), (), ()]

    assert followed(work) == (True, 0)


def test_nothing_waits_any_more_when_a_page_goes_away():
    """Its task is cancelled while it waits: what it waited with ends as well."""

    async def work(follower, ending):
        page = asyncio.create_task(follower.next_event(ending, 60))
        await asyncio.sleep(0.01)
        page.cancel()
        await asyncio.wait({page})
        return page.cancelled()

    assert followed(work) == (True, 0)


class FailingWatch:
    """A store at which each look fails but the last, which finds nothing."""

    def __init__(self, errors):
        self._errors = errors

    def look(self, _wanted):
        if self._errors:
            raise self._errors.pop()
        return []


@pytest.mark.parametrize(
    "error", [TryAgain("No.", cause="a", remedy="b"), RuntimeError("a look that went wrong")]
)
def test_a_look_that_fails_is_followed_by_another(error):
    """Whatever the error is: who follows is told to read everything anew, and does not wait for ever."""

    async def work(follower, ending):
        hub = EventHub(FailingWatch([error, error]), look_seconds=0.001)
        async with hub.follow(follower):
            body = await follower.next_event(ending, 5)
        hub._task.cancel()
        await asyncio.wait({hub._task})
        return body

    assert followed(work) == ((None,), 0)
