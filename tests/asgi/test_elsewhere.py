"""All tests of the service again, with the control database in PostgreSQL, and with the store in a bucket."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", ["postgresql", "bucket"])
def test_the_service_is_the_same_elsewhere(place):
    """What holds on one machine's disk holds there."""
    suites = [TESTS / "asgi", TESTS / "service"]
    options = ["-q", "-x", "-m", "not nightly and not spark", "--ignore", __file__]
    variables = {**os.environ, "FREEZEFRAME_TEST_PLACE": place}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *suites],
        env=variables,
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout[-4000:]
