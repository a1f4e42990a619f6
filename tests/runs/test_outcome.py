"""The outcome of a run is a value that can be kept and read back, and cannot contradict itself."""

from pathlib import Path

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.runs.outcome import RunOutcome, parse_run_outcome


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


def test_an_outcome_comes_back_from_its_json():
    """All fields survive, paths as paths."""
    done = outcome(notebook=Path("/r/etl.ipynb"))
    assert done == parse_run_outcome(done.to_json())


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
