"""Which Java and which Spark are here, and the stacks that a JVM leaves in errors."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from freezeframe.engine.java import (
    find_java,
    jvm_stack,
    spark_home,
    spark_jars,
    spark_version,
    without_jvm_stack,
)
from freezeframe.errors import EngineUnavailable, JavaNotFound, JavaUnsupported


def fake_java(folder, text):
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    command.chmod(0o755)
    return command


@pytest.fixture
def sparks_own_path():
    """What spark-submit and Spark's shell put on the path before all else."""
    return os.pathsep.join(map(str, sorted((spark_home() / "python/lib").glob("*.zip"), reverse=True)))


def test_jars_are_found_from_sparks_own_archive(sparks_own_path):
    """In what spark-submit starts PySpark is loaded from it, and not from the package that has the jars."""
    code = "import pyspark, freezeframe.engine.java as java; print(pyspark.__file__, java.spark_jars())"
    environment = {**os.environ, "PYTHONPATH": sparks_own_path}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    loaded, jars = done.stdout.split()
    assert "pyspark.zip" in loaded
    assert str(spark_jars()) == jars


def test_no_java_is_one_error_with_the_remedy(tmp_path):
    """A machine without Java is told what to install."""
    with pytest.raises(JavaNotFound, match="openjdk-17-jre-headless"):
        find_java({"PATH": str(tmp_path)}, installed=())


def test_an_old_java_is_named(tmp_path):
    """A Java that Spark does not run on is named with its version."""
    command = fake_java(tmp_path, 'java version "1.8.0_392"')
    with pytest.raises(JavaUnsupported) as caught:
        find_java({"PATH": str(command.parent)}, installed=())
    assert f"{command} is Java 8" in str(caught.value)


def test_a_command_that_tells_no_version_is_no_java(tmp_path):
    """A broken java on the path is told apart from an old one."""
    command = fake_java(tmp_path, "Segmentation fault")
    with pytest.raises(JavaUnsupported, match="no Java that answers"):
        find_java({"PATH": str(command.parent)}, installed=())


def test_java_home_comes_first(tmp_path):
    """What the user chose by JAVA_HOME is taken before what is on the path."""
    chosen = fake_java(tmp_path / "chosen", 'openjdk version "21.0.2" 2024-01-16')
    other = fake_java(tmp_path / "other", 'openjdk version "17.0.15" 2025-04-15')
    java = find_java({"JAVA_HOME": str(tmp_path / "chosen"), "PATH": str(other.parent)}, installed=())
    assert (chosen, 21) == (java.command, java.version)


def test_an_installed_java_is_found_behind_an_unsupported_one(tmp_path):
    """A Java 25 on the path does not hide the Java 17 that the system has as well."""
    newest = fake_java(tmp_path / "newest", 'openjdk version "25" 2025-09-16')
    fake_java(tmp_path / "jvm" / "java-17-openjdk", 'openjdk version "17.0.15" 2025-04-15')
    java = find_java({"PATH": str(newest.parent)}, installed=((tmp_path / "jvm", "*{version}*/bin/java"),))
    assert java.version == 17


SOURCE = Path(__file__).parents[2] / "src"
ASK = """
from freezeframe.engine.java import spark_jars, spark_version
from freezeframe.errors import SetupError
try:
    print(spark_version())
    spark_jars()
except SetupError as error:
    print(error.problem)
"""


def test_spark_is_found_with_its_jars():
    """As pip names it; the jars are beside the package."""
    assert pyspark.__version__ == spark_version()
    assert [] != list(spark_jars().glob("spark-connect_*.jar"))


@pytest.mark.parametrize(
    ("installed", "told"),
    [("pyspark_client", ["4.1.1", "There is no Spark to start here."]), ("", ["PySpark is not installed."])],
)
def test_the_client_is_known_and_starts_nothing(tmp_path, installed, told):
    """In a Python without site packages, where only the named package is there."""
    if installed:
        (tmp_path / "pyspark").mkdir()
        (tmp_path / "pyspark" / "__init__.py").touch()
        metadata = tmp_path / f"{installed}-4.1.1.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text("Metadata-Version: 2.1\nName: pyspark-client\nVersion: 4.1.1\n")
    done = subprocess.run(
        [sys.executable, "-S", "-c", ASK],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{SOURCE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told == done.stdout.splitlines(), done.stderr


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
