"""What a script waits for is told to whoever watches its run."""

import pytest

from freezeframe import progress
from freezeframe.runs.process.script_process import WaitingFile
from freezeframe.settings import load_settings

SLOW = """
import freezeframe
freezeframe.spark().range(0, 1, 1, 1).selectExpr("reflect('java.lang.Thread', 'sleep', 4000L)").collect()
"""


class Waits:
    """A watcher that writes down what is waited for, once."""

    def __init__(self):
        self.told = []

    def wait_for(self, what):
        if self.told[-1:] != [what]:
            self.told.append(what)


@pytest.mark.spark
def test_a_run_tells_how_far_spark_is(runs, spark_settings):
    """The tasks of a question that takes long are told while the script waits, then that it goes on."""
    waits = Waits()
    with progress.watched_by(waits):
        outcome = runs.run(SLOW + "import time; time.sleep(1.5)", settings=load_settings())
    assert outcome.status == "succeeded", outcome.error
    assert "Spark: 0 of 1 tasks, 0 of 1 stages" in waits.told
    assert waits.told[-1] == ""


def test_a_folder_that_is_gone_tells_nothing(tmp_path):
    """Writing there is no error of the script's, and reading says that nothing is waited for."""
    waiting = WaitingFile(tmp_path / "gone")
    waiting.wait_for("Spark")
    assert waiting.read() == ""
    waiting = WaitingFile(tmp_path)
    waiting.wait_for("Spark: é")
    waiting.begin("reading", "rows", 1)
    waiting.advance(1)
    assert WaitingFile(tmp_path).read() == "Spark: é"
