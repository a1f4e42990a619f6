"""The JVM's stack is taken out of texts that people read, and found for the log."""

from freezeframe.engine.java import jvm_stack, without_jvm_stack
from freezeframe.errors import EngineUnavailable

FRAMES = "\tat org.apache.spark.A$.b(A.scala:1)\n\tat java.base/java.lang.Thread.run(Thread.java:9)"
STACK = f"org.apache.spark.SparkException\n{FRAMES}\nCaused by: java.io.IOException: two\n\nlines\n{FRAMES}"
TASK = f"Task 1 failed: java.io.IOException: disk\n{FRAMES}\n\t... 3 more\n\nDriver stacktrace:"


def test_a_text_loses_the_frames_of_the_jvm_alone():
    """What Spark says stays, also what it says of a failed task and what Python's own traceback says."""
    worker = 'ZeroDivisionError\n  File "u.py", line 6, in f\n    at = f(1)'
    assert without_jvm_stack(f"[A] b\n\nJVM stacktrace:\n{STACK}") == "[A] b"
    assert without_jvm_stack(TASK) == "Task 1 failed: java.io.IOException: disk\n"
    assert worker == without_jvm_stack(worker)


def test_a_traceback_goes_on_after_the_stack():
    """Each exception of a chain loses its stack, and none of the lines between them."""
    link = "\n\nThe above exception was the direct cause of the following exception:\n\nTraceback"
    chain = f"[A] b\n\nJVM stacktrace:\n{STACK}{link}\nE: [A] b\n\nJVM stacktrace:\n{STACK}\n"
    assert f"[A] b{link}\nE: [A] b" == without_jvm_stack(chain)


def test_the_stack_is_that_of_the_error_or_its_cause():
    """It is found behind an error of ours, is bounded, and an error without one has none."""
    outer = EngineUnavailable("Spark does not answer.")
    outer.__cause__ = RuntimeError(f"[A] b\n\nJVM stacktrace:\n{STACK}")
    assert jvm_stack(outer) == STACK
    assert jvm_stack(EngineUnavailable("Spark does not answer.")) == ""
    assert len(jvm_stack(RuntimeError("JVM stacktrace:\n" + "x" * 70_000))) == 65_536
