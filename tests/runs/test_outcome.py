"""The outcome of a run is a value that cannot contradict itself."""

from pathlib import Path

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.runs.request import RunOutcome


def outcome(**changes):
    given = {
        "status": "succeeded",
        "job_id": "1",
        "job_root": Path("/r"),
        "seconds": 1.0,
        "tenant_version": 3,
        "receipt": {"streams": {}},
        "error": None,
        "log": Path("/r/script.log"),
        "notebook": None,
        "exit_code": 0,
    }
    return RunOutcome(**{**given, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "done"},
        {"receipt": None},
        {"error": {"code": "X"}},
        {"status": "failed"},
        {"status": "failed", "receipt": None, "error": None},
    ],
)
def test_an_outcome_cannot_contradict_itself(changes):
    """A success has a receipt and no error, anything else the reverse."""
    with pytest.raises(InvalidOption):
        outcome(**changes)
