"""Spark's errors as those that say what to do."""

import grpc
import pytest
from pyspark.errors import PySparkException, PythonException
from pyspark.errors.exceptions.captured import CapturedException

from freezeframe.engine.spark_errors import (
    cause_of,
    machine_error,
    raised_errors,
    spark_errors,
    translate_error,
)
from freezeframe.errors import (
    BadInput,
    CorruptData,
    EngineUnavailable,
    InvalidOption,
    SchemaDriftError,
    StorageFull,
    StorageUnavailable,
    TenantNotFound,
)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Job aborted due to stage failure: java.io.IOException: No space left on device", StorageFull),
        ("java.io.IOException: Disk quota exceeded", StorageFull),
        ("java.lang.OutOfMemoryError: Java heap space", EngineUnavailable),
        ("serialized results (1026 MiB) is bigger than spark.driver.maxResultSize (1 GiB)", InvalidOption),
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file", CorruptData),
        ("[PATH_NOT_FOUND] Path does not exist: file:/a.parquet.", CorruptData),
        ("file:/a.parquet is not a Parquet file. Expected magic number at tail", CorruptData),
        ("[CAST_OVERFLOW] The value 1099511627776L cannot be cast to INT", SchemaDriftError),
        ("[NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION]", SchemaDriftError),
        ("[UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE] The Parquet datasource doesn't support", BadInput),
        ("java.io.IOException: Permission denied", StorageUnavailable),
        ("Mkdirs failed to create file:/a", StorageUnavailable),
        ("[SOMETHING_NEW] nobody has seen this before", EngineUnavailable),
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", BadInput),
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column. SQLSTATE: 42703", BadInput),
        ("[USER_RAISED_EXCEPTION] no rows today SQLSTATE: P0001", BadInput),
    ],
)
def test_words_decide_the_class(said, expected):
    """Each sign leads to the class whose remedy helps; what is not known is not a fault of the data."""
    error = translate_error(PySparkException(said))
    assert (expected, said, True) == (type(error), error.cause, bool(error.remedy))
    assert not error.details.get("is_gone")


@pytest.mark.parametrize(
    "said",
    [
        "<_InactiveRpcError status = StatusCode.UNAVAILABLE, failed to connect to all addresses>",
        "[INVALID_HANDLE.SESSION_NOT_FOUND] The handle is invalid. Session not found.",
        "[INVALID_HANDLE.SESSION_CLOSED] The handle is invalid. Session was closed.",
        "Cannot invoke RPC on closed channel!",
        "org.apache.spark.SparkException: Job 3 cancelled because SparkContext was shut down",
        "[INTERNAL_ERROR] No active or default Spark session found SQLSTATE: XX000",
    ],
)
def test_a_server_that_is_gone_may_be_asked_anew(said):
    """Only when the server or the session is no more does asking again on another one make sense."""
    error = translate_error(PySparkException(said))
    assert (EngineUnavailable, True) == (type(error), error.details["is_gone"])


def test_a_call_that_must_change_is_not_to_be_repeated():
    """Spark's class of the error is named; an error without one keeps Spark's message."""
    error = translate_error(PySparkException("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"))
    assert "DIVIDE_BY_ZERO" in error.problem
    assert "again" not in error.remedy.replace("fails again", "")
    failed = translate_error(PythonException("Traceback: KeyError: 'Amount'"))
    assert (failed.error_code, "KeyError" in failed.cause) == ("SCRIPT_FAILED", True)


def test_the_stack_of_the_server_is_left_out():
    """A cause is what Spark said, in bounds; the stack is in the server's log."""
    assert cause_of(PySparkException("[A] b\n\nJVM stacktrace:\njava.lang.Exception\n\tat c")) == "[A] b"
    assert len(cause_of(PySparkException("x" * 5000))) == 1000


def test_what_spark_raises_is_the_origin():
    """The error of Spark stays reachable behind ours."""
    origin = PySparkException("[CAST_OVERFLOW]")
    with pytest.raises(SchemaDriftError) as caught, spark_errors():
        raise origin
    assert origin is caught.value.__cause__


def test_a_failing_channel_is_translated():
    """gRPC raises past PySpark at times."""
    with pytest.raises(EngineUnavailable), spark_errors():
        raise grpc.RpcError("StatusCode.UNAVAILABLE")
    with pytest.raises(EngineUnavailable) as caught, spark_errors():
        raise ValueError("Cannot invoke RPC on closed channel!")
    assert caught.value.details["is_gone"]


def test_an_error_of_ours_that_ended_a_worker_is_raised():
    """Spark's own is about a Python data source, in a classic session as over Connect; others pass."""
    assert issubclass(CapturedException, PySparkException)
    told = "[PYTHON_DATA_SOURCE_ERROR] Failed to plan:\nfreezeframe.errors.TenantNotFound: No tenant 'a'.\n"
    with pytest.raises(TenantNotFound, match="No tenant 'a'"), raised_errors():
        raise PySparkException(told)
    with pytest.raises(PySparkException, match="no such column"), raised_errors():
        raise PySparkException("no such column")


def test_errors_that_are_not_sparks_pass():
    """Our own errors and ordinary ones go through as they are."""
    for error in (InvalidOption("no"), ValueError("another"), KeyError("x")):
        with pytest.raises(type(error)) as caught, spark_errors():
            raise error
        assert error is caught.value


def test_a_script_is_told_of_the_machine_apart_from_what_it_asked_for():
    """Memory, disk and a server that is gone are the machine's; a path or a cast is the script's own."""
    assert isinstance(machine_error(PySparkException("Java heap space")), EngineUnavailable)
    assert isinstance(machine_error(PySparkException("No space left on device")), StorageFull)
    assert isinstance(machine_error(PySparkException("than spark.driver.maxResultSize (1 g)")), InvalidOption)
    for said in ("[PATH_NOT_FOUND] /a", "[CAST_OVERFLOW] 1", "[SOMETHING_NEW] a", "Permission denied"):
        assert machine_error(PySparkException(said)) is None
