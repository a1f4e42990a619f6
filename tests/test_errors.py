"""The error tree: every class has a code of its own."""

import pickle

import pytest

from freezeframe import errors


def _all(kind=errors.FreezeframeError):
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _all(child))]


def test_codes_are_unique():
    """No two errors share a machine code."""
    codes = [kind.code for kind in _all()]

    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("kind", _all(), ids=lambda kind: kind.__name__)
def test_each_error_crosses_processes(kind):
    """Code, remedy and details survive pickling."""
    error = pickle.loads(pickle.dumps(kind("Gone.", cause="Deleted.", remedy="Restore it.", file="a")))

    assert str(error) == "Gone. Deleted. Restore it."
    assert error.details == {"file": "a"}
    assert kind.code == error.to_json()["code"]


def test_a_code_can_be_refined():
    """Delta's own error class replaces the general code."""
    error = errors.CorruptLog("A gap.", code="DELTA_VERSIONS_NOT_CONTIGUOUS")

    assert error.error_code == "DELTA_VERSIONS_NOT_CONTIGUOUS"
