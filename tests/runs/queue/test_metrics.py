"""A worker's numbers at an address of its own."""

import json

import httpx
import pyarrow as pa
import pytest

import freezeframe as ff
from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.errors import InvalidOption, SetupError
from freezeframe.observation import observe
from freezeframe.runs.queue.metrics import serve_worker_metrics
from freezeframe.settings import Settings


@pytest.fixture
def serve(tmp_path):
    """A function that serves numbers at an address, until the test is over."""
    ends = []

    def start(address):
        ends.append(serve_worker_metrics(address, Settings(state_dir=tmp_path)))
        return ends[-1]

    yield start
    for end in ends:
        end.close()


def test_attempts_are_counted_by_how_they_ended(serve):
    """With their times; and how many Spark servers stand on the machine."""
    port = serve("127.0.0.1:0").port
    with observe("job") as operation:
        operation.outcome = "succeeded"
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text

    assert 'freezeframe_job_seconds_count{status="succeeded"} 1.0' in text
    assert "freezeframe_spark_up 0.0" in text


def test_updates_are_counted_by_engine(serve, tmp_path):
    """From the receipt of a job that has ended; one that found its work done, or failed, wrote nothing."""
    database = ControlDatabase.open(f"sqlite:///{tmp_path}/control.db")
    queue, tenant = JobQueue(database), ff.open(tmp_path / "store", engine="auto").tenant("acme", create=True)
    tenant.stream("Account").update(pa.table({"Id": [1]}), key="Id")
    receipts = []
    for _ in range(2):
        with tenant.job("j-1") as job:
            job.stream("Account").update(pa.table({"Id": [1, 2]}), key="Id")
        receipts.append(job.receipt.to_json())
    server = serve("127.0.0.1:0")
    for number, receipt in enumerate([*receipts, None]):
        queue.submit(Submission("{}", environment="dev", tenant="acme", job_id=f"j-{number}"))
        outcome = json.dumps({"receipt": receipt})
        server.count_job(queue.finish(queue.claim("w"), "succeeded", outcome))
    text = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text
    database.close()

    written = receipts[0]["streams"]["Account"]["bytes_written"]
    assert [item["repeated"] for item in receipts] == [False, True]
    assert 'freezeframe_updates_total{engine="process",environment="dev"} 1.0' in text
    assert f'freezeframe_written_bytes_total{{engine="process",environment="dev"}} {float(written)}' in text
    assert "freezeframe_spark_clients 0.0" in text


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
