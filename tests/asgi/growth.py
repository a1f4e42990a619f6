"""How the work of a parser grows with its input: processor time, the best of several runs."""

import gc
import time

RATIO_MAX = 2.5
# Three doublings: what a busy machine adds to one measurement weighs a third of what it would in one.
DOUBLINGS = 3
# Below this the clock and the allocator are measured, not the parser.
_NOTHING_SECONDS = 0.002
_RUNS_MAX = 6


def _seconds(work, given):
    started = time.process_time()
    work(given)
    return time.process_time() - started


def growth(work, small, large):
    """How many times longer each of ``DOUBLINGS`` doublings from ``small`` to ``large`` takes, on average."""
    best_small = best_large = float("inf")
    gc.disable()  # when a collection comes depends on all that the process holds
    try:
        for _ in range(_RUNS_MAX):
            best_small = min(best_small, _seconds(work, small))
            best_large = min(best_large, _seconds(work, large))
            ratio = ((best_large + _NOTHING_SECONDS) / (best_small + _NOTHING_SECONDS)) ** (1 / DOUBLINGS)
            if ratio <= RATIO_MAX:
                break
    finally:
        gc.enable()
    return ratio
