"""How far Spark is, as its server reports it, reaches the thread's watcher and never fails a question."""

from pyspark.sql.connect.shell.progress import StageInfo

from freezeframe import progress
from freezeframe.engine.connect import tell_stages


class Waits:
    """A watcher that writes down what is waited for."""

    def __init__(self, error=None):
        self.told = []
        self.error = error

    def wait_for(self, what):
        self.told.append(what)
        if self.error:
            raise self.error


STAGES = [StageInfo(1, 1200, 1200, 10, done=True), StageInfo(2, 30, 4, 10, done=False)]


def test_tasks_and_stages_are_counted_and_the_end_is_told():
    """A report tells what all stages have done together; at the end nothing is waited for."""
    waits = Waits()
    with progress.watched_by(waits):
        tell_stages(stages=STAGES, inflight_tasks=2, operation_id="1", done=False)
        tell_stages(stages=STAGES, inflight_tasks=0, operation_id="1", done=True)
        tell_stages(stages=None, inflight_tasks=0, operation_id=None, done=False)
    assert waits.told[:2] == ["Spark: 1,204 of 1,230 tasks, 1 of 2 stages", ""]
    assert len(waits.told) == 3


def test_a_watcher_that_fails_fails_no_question():
    """What it raises stays with it, and without a watcher nothing is told."""
    waits = Waits(OSError("full"))
    with progress.watched_by(waits):
        tell_stages(stages=STAGES, inflight_tasks=2, operation_id="1", done=False)
    tell_stages(stages=STAGES, inflight_tasks=2, operation_id="1", done=False)
    assert len(waits.told) == 1
