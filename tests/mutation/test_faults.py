"""The list of planted faults fits the code, and at night each fault is found by a test."""

from pathlib import Path

import pytest
from tests.mutation.__main__ import copied_repository, finders
from tests.mutation.faults import FAULTS

import freezeframe


def test_every_fault_can_be_planted():
    """Its text is there once, so that the change is the one that is meant; its tests are there."""
    package = freezeframe.__path__[0]
    wrong = []
    for fault in FAULTS:
        count = Path(package, fault.module).read_text().count(fault.old)
        if count != 1 or fault.old == fault.new:
            wrong.append((fault.module, fault.old, count))
    assert wrong == []


@pytest.mark.nightly
@pytest.mark.timeout(4 * 60 * 60)
def test_every_fault_is_found():
    """By the tests of its own neighbourhood."""
    with copied_repository() as folder:
        assert [fault for fault in FAULTS if not finders(fault, folder)] == []
