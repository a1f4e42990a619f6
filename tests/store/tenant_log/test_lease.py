"""Threads for what is still under way after a while."""

import threading

from freezeframe.store.tenant_log.lease import DelayedTaskScheduler


def test_what_ends_in_time_starts_nothing():
    threads, ended, late = DelayedTaskScheduler(), threading.Event(), threading.Event()
    token = threads.begin(0.02, ended.set)
    threads.end(token)
    threads.begin(0.05, late.set)
    assert late.wait(10)
    assert not ended.is_set()


def test_what_hangs_holds_up_nobody():
    threads, hanging, done = DelayedTaskScheduler(), threading.Event(), threading.Event()
    threads.begin(0.01, hanging.wait)
    threads.begin(0.02, done.set)
    assert done.wait(10)
    hanging.set()


def test_one_that_is_due_sooner_is_not_kept_waiting():
    threads, sooner = DelayedTaskScheduler(), threading.Event()
    threads.begin(3600, lambda: None)
    threads.begin(0.01, sooner.set)
    assert sooner.wait(10)
