"""When schedules are due, above all on the days on which clocks are changed."""

from datetime import UTC, datetime

import pytest

from freezeframe.control.schedules import CAUGHT_UP_MAX, Timing
from freezeframe.errors import InvalidOption


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def coming(timing, start, count):
    """The next due times, each as day and time in UTC."""
    found, moment = [], utc(start)
    for _ in range(count):
        moment = timing.next_after(moment)
        found.append(f"{moment:%dT%H:%M}")
    return found


def test_a_time_of_day_follows_its_zone():
    """06:00 in Berlin is 05:00 UTC in winter and 04:00 in summer."""
    assert coming(Timing("0 6 * * *", "Europe/Berlin"), "2026-03-27T12:00", 3) == [
        "28T05:00",
        "29T04:00",
        "30T04:00",
    ]


def test_a_skipped_time_is_due_after_the_gap():
    """02:30 does not exist on the day when clocks go forward: 03:00 it is, once."""
    assert coming(Timing("30 2 * * *", "Europe/Berlin"), "2026-03-27T12:00", 3) == [
        "28T01:30",
        "29T01:00",
        "30T00:30",
    ]


def test_a_time_that_comes_twice_is_due_once():
    """02:30 comes twice when clocks go back; the second one does not count."""
    timing = Timing("30 2 * * *", "Europe/Berlin")

    assert coming(timing, "2026-10-23T12:00", 3) == ["24T00:30", "25T00:30", "26T01:30"]
    assert (utc("2026-10-25T00:30"),) == timing.due(utc("2026-10-25T00:30"), utc("2026-10-25T02:00"), "all")


def test_every_hour_is_every_hour():
    """Where the hour is *, the hour that comes twice is due twice and the skipped one is none."""
    assert coming(Timing("@hourly", "Europe/Berlin"), "2026-10-24T22:30", 4) == [
        "24T23:00",
        "25T00:00",
        "25T01:00",
        "25T02:00",
    ]
    assert coming(Timing("*/30 * * * *", "Europe/Berlin"), "2026-03-29T00:15", 3) == [
        "29T00:30",
        "29T01:00",
        "29T01:30",
    ]


def test_missed_times_are_the_latest_or_all():
    """All is at most the last hundred; the first and the last moment count."""
    timing, since, now = Timing("* * * * *"), utc("2026-01-01T00:00"), utc("2026-01-01T00:03")

    assert (now,) == timing.due(since, now, "latest")
    assert len(timing.due(since, now, "all")) == 4
    many = timing.due(since, utc("2026-03-01T00:00"), "all")
    assert (CAUGHT_UP_MAX, utc("2026-03-01T00:00")) == (len(many), many[-1])
    assert (utc("2026-01-01T00:00"),) == Timing("@daily").due(since, utc("2026-01-01T23:59:59.999"), "all")


@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("", "UTC"),
        ("* * * *", "UTC"),
        ("* * * * * *", "UTC"),
        ("60 * * * *", "UTC"),
        ("0 0 30 2 *", "UTC"),
        ("R * * * *", "UTC"),
        ("H H * * *", "UTC"),
        ("@reboot", "UTC"),
        ("* * * * x", "UTC"),
        ("@daily", "Europe/Nowhere"),
        ("@daily", "../etc/passwd"),
        ("@daily", ""),
    ],
)
def test_what_never_comes_is_refused(cron, zone):
    """No cron expression, one by lot, a day that no month has, a zone that nobody knows."""
    with pytest.raises(InvalidOption):
        Timing(cron, zone)
