"""A worker's numbers at an address of its own."""

import httpx
import pytest

from freezeframe.errors import InvalidOption, SetupError
from freezeframe.observation import observe
from freezeframe.runs.metrics import serve_worker_metrics
from freezeframe.settings import Settings


@pytest.fixture
def serve(tmp_path):
    """A function that serves numbers at an address, until the test is over."""
    ends = []

    def start(address):
        ends.append(serve_worker_metrics(address, Settings(state_dir=tmp_path)))
        return ends[-1]

    yield start
    for one in ends:
        one.close()


def test_attempts_are_counted_by_how_they_ended(serve):
    """With their times; and how many Spark servers stand on the machine."""
    port = serve("127.0.0.1:0").port
    with observe("job") as operation:
        operation.outcome = "succeeded"
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text

    assert 'freezeframe_job_seconds_count{status="succeeded"} 1.0' in text
    assert "freezeframe_spark_up 0.0" in text


@pytest.mark.parametrize("address", ["9750", "127.0.0.1:x", ":9750"])
def test_what_is_no_address_is_refused(serve, address):
    """It names the host as well: nobody opens a port to the world by leaving it out."""
    with pytest.raises(InvalidOption):
        serve(address)


def test_an_address_that_is_taken_is_told(serve):
    """With what to do about it."""
    port = serve("127.0.0.1:0").port
    with pytest.raises(SetupError, match=str(port)):
        serve(f"127.0.0.1:{port}")
