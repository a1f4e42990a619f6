"""The list of planted faults fits the code, and at night each fault is found by a test."""

from pathlib import Path

import pytest
from tests.mutation.__main__ import copied_repository, finders
from tests.mutation.faults import FAULTS

import freezeframe


def test_every_fault_can_be_planted():
    """Its text is there once, so that the change is the one that is meant; its tests are there."""
    source, tests, wrong = Path(freezeframe.__path__[0]), Path(__file__).parents[1], []
    for fault in FAULTS:
        modules = fault.modules(source)
        is_once = [path.read_text().count(fault.old) for path in modules] == [1]
        if not is_once or fault.old == fault.new:
            wrong.append((fault.package, fault.old, modules))
        paths = [tests / name for name in fault.tests.split()]
        wrong += [path for path in paths if not path.is_file() and not [*path.rglob("test_*.py")]]
    assert wrong == []


@pytest.mark.nightly
@pytest.mark.timeout(4 * 60 * 60)
def test_every_fault_is_found():
    """By the tests of its own neighbourhood."""
    with copied_repository() as folder:
        assert [fault for fault in FAULTS if not finders(fault, folder)] == []
