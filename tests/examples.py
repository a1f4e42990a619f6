"""Which examples a property is tried with: the same few in each run, many others at night.

So a run that fails does so again, and says something about the change before it.
"""

from itertools import product

from hypothesis import settings

EVERY_RUN, NIGHTLY = "every-run", "nightly"
_FULL = settings.get_profile("default").max_examples
_SHARE = 4

# How long an example takes says how busy the machine is, and nothing about what is promised.
settings.register_profile(NIGHTLY, deadline=None, max_examples=_FULL)
settings.register_profile(EVERY_RUN, deadline=None, max_examples=_FULL // _SHARE, derandomize=True)
settings.load_profile(EVERY_RUN)


def examples(count, share=_SHARE):
    """The count by night (`pytest --hypothesis-profile=nightly`), else a fourth of it, or another share."""
    return count if settings.get_current_profile_name() == NIGHTLY else max(1, count // share)


def by_turns(cases, number):
    """Return all cases by night, else the case whose turn it is; the test has the mark `sampled`."""
    found = list(cases)
    is_night = settings.get_current_profile_name() == NIGHTLY
    return found if is_night else [found[number % len(found)]]


def share(cases, number):
    """All cases by night, else a fourth of them, with another number others; the test is `sampled`."""
    is_night = settings.get_current_profile_name() == NIGHTLY
    return list(cases) if is_night else list(cases)[number % _SHARE :: _SHARE]


def sampled(cases, every=_SHARE):
    """All cases by night, else the first, the last and some between them; the test has the mark `sampled`."""
    found = list(cases)
    if settings.get_current_profile_name() == NIGHTLY:
        return found
    chosen = found[::every]
    return chosen if chosen[-1:] == found[-1:] else [*chosen, found[-1]]


def crossed(*axes):
    """All combinations by night, else those of all axes but the last, which takes turns; it is `sampled`."""
    is_night = settings.get_current_profile_name() == NIGHTLY
    return [
        tuple(case for _, case in found)
        for found in product(*map(enumerate, axes))
        if is_night or sum(number for number, _ in found) % len(axes[-1]) == 0
    ]
