"""Exit codes: every error class has one, and it is the one that the documentation names."""

import pytest

from freezeframe import errors
from freezeframe.cli.terminal.exit_codes import exit_code


def _classes(root):
    yield root
    for child in root.__subclasses__():
        yield from _classes(child)


@pytest.mark.parametrize("kind", list(_classes(errors.FreezeframeError)), ids=lambda kind: kind.__name__)
def test_every_error_has_a_code(kind):
    """0 is never an error's; what is not there is 4, a conflict 3, a wrong call 2, all else 1."""
    expected = 1
    if issubclass(kind, errors.NotFound):
        expected = 4
    elif issubclass(kind, errors.ConflictError | errors.IdempotencyConflict):
        expected = 3
    elif issubclass(kind, errors.FixTheRequest):
        expected = 2

    assert exit_code(kind("what happened")) == expected
