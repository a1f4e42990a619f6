"""Spark's errors as this library's, with a remedy."""

import contextlib
import re
from collections.abc import Iterator
from urllib.parse import unquote

import grpc
from pyspark.errors import PySparkException, PythonException

from freezeframe import errors
from freezeframe.engine.java import without_jvm_stack
from freezeframe.errors import (
    BadInput,
    CorruptData,
    EngineUnavailable,
    FreezeframeError,
    InvalidOption,
    SchemaDriftError,
    SetupError,
    StorageFull,
    StorageUnavailable,
    VersionNotFound,
)
from freezeframe.storage import LocalStorage
from freezeframe.storage.read_ahead import deletion_of

SparkError = PySparkException
"""What PySpark raises, for the commands, which import nothing of it."""

_CAUSE_MAX = 1_000
_ERROR_CLASS = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
_MISSING_FILE = re.compile(
    r"(?:NOT_EXIST|PATH_NOT_FOUND|FileNotFoundException).*?file:/+([^\n]+?\.parquet)", re.DOTALL
)
_RAISED = re.compile(r"^freezeframe\.errors\.(\w+): (.+)$", re.MULTILINE)
_SQLSTATE = re.compile(r"SQLSTATE: (\w{5})")
# The classes of SQL's standard for what is not supported, cardinality, data, constraints, syntax and names;
# P0 is Spark's for an error that a query raises.
_FAULTS_OF_REQUEST = ("0A", "21", "22", "23", "42", "P0")
# An ended session or server: the same request can be repeated on the next one.
_GONE = (
    "StatusCode.UNAVAILABLE",
    "Connection refused",
    "Connection reset",
    "Socket closed",
    "recvmsg:",
    "SESSION_NOT_FOUND",
    "SESSION_CLOSED",
    "SESSION_CHANGED",
    "OPERATION_NOT_FOUND",
    "OPERATION_ABANDONED",
    "RetriesExceeded",
    "RETRIES_EXCEEDED",
    "Cannot invoke RPC on closed channel",
    "SparkContext was shut down",
    "stopped SparkContext",
    "has been shut down",
    "No active or default Spark session found",
)
# Words of Spark or the system, by what they mean and what to do; the first that fits decides.
_SIGNS: tuple[tuple[type[FreezeframeError], str, str, tuple[str, ...]], ...] = (
    (
        SetupError,
        "Spark lacks the jars that a store in a bucket needs.",
        "Start Spark with the package org.apache.spark:spark-hadoop-cloud_2.13 (spark.jars.packages).",
        ("org.apache.hadoop.fs.s3a.S3AFileSystem not found", 'No FileSystem for scheme "s3a"'),
    ),
    (
        SetupError,
        "The Spark server does not take this token.",
        "Correct the token in FREEZEFRAME_SPARK: sc://host:port/;token=...",
        ("StatusCode.UNAUTHENTICATED",),
    ),
    (
        SetupError,
        "The Spark server cannot be spoken to over TLS.",
        "Check the address; an authority of your own is named by GRPC_DEFAULT_SSL_ROOTS_FILE_PATH.",
        ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "Ssl handshake failed", "SSL_ERROR_SSL"),
    ),
    (
        SetupError,
        "Spark's workers cannot run freezeframe's functions.",
        "Install it in the workers' Python (FREEZEFRAME_SPARK_PYTHON), or send it by session.addArtifacts.",
        ("No module named 'freezeframe", "No module named 'pyarrow", "PYTHON_VERSION_MISMATCH"),
    ),
    (
        EngineUnavailable,
        "Spark does not answer.",
        "Run the call again; if Spark was killed, raise FREEZEFRAME_SPARK_MEMORY or free memory first.",
        _GONE,
    ),
    (
        StorageFull,
        "There is no space left where Spark writes.",
        "Free space or raise the quota, then run the same call again; nothing was changed.",
        ("No space left on device", "Disk quota exceeded", "QuotaExceeded"),
    ),
    (
        InvalidOption,
        "The requested rows are more than Spark returns at once.",
        "Collect fewer rows or columns, write the frame to a stream, or raise spark.driver.maxResultSize.",
        ("spark.driver.maxResultSize", "maxResultSize"),
    ),
    (
        EngineUnavailable,
        "Spark ran out of memory.",
        "Raise FREEZEFRAME_SPARK_MEMORY, or send smaller batches.",
        ("OutOfMemoryError", "Java heap space", "UNABLE_TO_ACQUIRE_MEMORY", "SparkOutOfMemory"),
    ),
    (
        CorruptData,
        "A Parquet file cannot be read.",
        (
            "Read the stream again, if gc or an erasure ran meanwhile. Else `freezeframe delta verify` names "
            "what is damaged, to be restored from a backup."
        ),
        (
            "FILE_NOT_EXIST",
            "PATH_NOT_FOUND",
            "CANNOT_READ_FILE",
            "FAILED_READ_FILE",
            "FileNotFoundException",
            "CANNOT_READ_FILE_FOOTER",
            "is not a Parquet file",
            "CONVERT_COLUMN_TYPE",
            "COLUMN_DATA_TYPE_MISMATCH",
            "corrupt",
        ),
    ),
    (
        SchemaDriftError,
        "A value does not fit the type of its column.",
        "Cast the column to the stored type before the update.",
        (
            "CAST_OVERFLOW",
            "CAST_INVALID_INPUT",
            "NUMERIC_VALUE_OUT_OF_RANGE",
            "ARITHMETIC_OVERFLOW",
            # Of a date beyond the year 294246 as a moment; Spark has no error class for it.
            "ArithmeticException: long overflow",
        ),
    ),
    (
        BadInput,
        "Spark cannot write this frame as Parquet.",
        "Rename or convert the columns that the cause names.",
        ("UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE", "COLUMN_ALREADY_EXISTS", "AMBIGUOUS_REFERENCE"),
    ),
    (
        StorageUnavailable,
        "Spark may not write there.",
        "Give the user that runs Spark the right to write into the tenant's directory.",
        ("Permission denied", "AccessDenied", "Mkdirs failed"),
    ),
)


@contextlib.contextmanager
def spark_errors() -> Iterator[None]:
    """Convert Spark's errors in the block to typed errors, with Spark's message as the cause."""
    try:
        yield
    except (PySparkException, grpc.RpcError) as error:
        raise translate_error(error) from error
    except ValueError as error:
        # gRPC raises it for a closed channel.
        if "closed channel" not in str(error):
            raise
        raise EngineUnavailable("Spark's session is closed.", is_gone=True) from error


def deletion_error(error: BaseException) -> VersionNotFound | None:
    """Return the error where Spark misses a file of this machine that was deleted with its versions."""
    missing = _MISSING_FILE.search(str(error))
    return missing and deletion_of(LocalStorage("/"), unquote(missing[1]).lstrip("/"))


def raised_error(error: BaseException) -> FreezeframeError | None:
    """Return the error of this library that ended a Python worker of Spark, as its traceback tells it."""
    found = _RAISED.search(str(error))
    kind = getattr(errors, found[1], None) if found else None
    return kind(found[2].strip()) if found and kind is not None else None


@contextlib.contextmanager
def raised_errors() -> Iterator[None]:
    """Raise this library's own errors in place of Spark's in which they ended a Python worker."""
    try:
        yield
    except PySparkException as error:
        raise (raised_error(error) or error) from None


def translate_error(error: Exception) -> FreezeframeError:
    """Return the typed error for one of Spark's errors."""
    found = deletion_error(error) or _translate_known(error)
    if found is not None:
        return found
    if isinstance(error, PythonException):
        return FreezeframeError(
            "A Python function of the frame failed.",
            cause=cause_of(error),
            remedy="Correct the function, or the rows that it is given; nothing was changed.",
            code="SCRIPT_FAILED",
        )
    if is_fault_of_request(error):
        return BadInput(
            f"Spark cannot compute the frame: {error_class(error) or 'it has refused the query'}.",
            cause=cause_of(error),
            remedy="Change the frame or its data as Spark's message says; the same call fails again.",
        )
    return EngineUnavailable(
        "Spark could not carry out a step of the update.",
        cause=cause_of(error),
        remedy="Nothing was changed. If the cause is a lost executor or connection, run the call again;"
        " otherwise correct the cause first.",
    )


def error_class(error: BaseException) -> str:
    """Return Spark's name for the kind of an error; empty where it has none."""
    named = error.getCondition() if isinstance(error, PySparkException) else None
    found = _ERROR_CLASS.search(str(error))
    return named or (found[1] if found else "")


def is_fault_of_request(error: BaseException) -> bool:
    """Return whether Spark says by its SQLSTATE that the query or its data must change."""
    named = error.getSqlState() if isinstance(error, PySparkException) else None
    found = _SQLSTATE.search(str(error))
    return (named or (found[1] if found else "")).startswith(_FAULTS_OF_REQUEST)


def machine_error(error: BaseException) -> FreezeframeError | None:
    """Return the typed error for a failure of the machine or its set-up; None for the script's own."""
    found = _translate_known(error)
    return found if isinstance(found, SetupError | EngineUnavailable | StorageFull | InvalidOption) else None


def _translate_known(error: BaseException) -> FreezeframeError | None:
    message = str(error)
    for kind, problem, remedy, signs in _SIGNS:
        if any(sign in message for sign in signs):
            found = kind(problem, cause=cause_of(error), remedy=remedy)
            found.details["is_gone"] = signs is _GONE
            return found
    return None


def cause_of(error: BaseException) -> str:
    """Return Spark's message without the server's stack."""
    return without_jvm_stack(str(error)).strip()[:_CAUSE_MAX]
