"""Every error a caller can meet, in one tree, grouped by what the caller does about it.

    FreezeframeError
    ├── TryAgain                    the same call may succeed later
    │   ├── ConflictError             a concurrent change of the same object won
    │   ├── StorageUnavailable        the storage refused or failed for now
    │   │   └── StorageFull             no space left
    │   ├── JobRevoked                the job stood still for so long that it was declared dead
    │   ├── EngineUnavailable         Spark could not be reached or died
    │   ├── RateLimited               the service was asked more often than it may be
    │   └── OutcomeUnknown            a commit was sent and no answer could be read back
    ├── FixTheRequest               the call itself must change
    │   ├── InvalidName               a tenant, stream or file name that cannot be one
    │   ├── NotFound                  what was named does not exist
    │   │   ├── TenantNotFound
    │   │   ├── StreamNotFound
    │   │   ├── FileNotFound            a tenant's file, by that path (then)
    │   │   ├── VersionNotFound         a version or moment that cannot be read (any more)
    │   │   └── InputNotFound           a folder or file to read from
    │   ├── BadInput                  the rows given cannot be taken
    │   │   ├── MissingColumn
    │   │   ├── NullKeyError
    │   │   ├── DuplicateKeyError
    │   │   ├── SchemaDriftError
    │   │   ├── UnreadableInput         a damaged or ragged file; file and line are named
    │   │   ├── OutsideWindow           rows that do not match their own ``replace_where``
    │   │   └── TooManyDeletions        a full extract that would delete more than it may
    │   ├── InvalidOption             an argument outside what it may be
    │   │   └── AlreadyExists           the name that something new was to have is taken
    │   ├── IdempotencyConflict       the id of another job
    │   ├── NotAuthenticated          the caller is not authenticated
    │   ├── NotAllowed                the caller lacks permission
    │   ├── PreconditionFailed        what is there is not what the request was made for
    │   ├── PreconditionRequired      the request lacks If-Match or If-None-Match
    │   ├── TooLarge                  more bytes than the service takes
    │   ├── UnreadableRequest         a request that cannot be read as what it says it is
    │   └── SetupError                the machine lacks something
    │       ├── MissingExtra            packages of an extra are not installed
    │       ├── JavaNotFound
    │       ├── JavaUnsupported
    │       ├── StorageNotShared        Spark and Python do not see the same files
    │       ├── StorageUnsuitable       the storage has no atomic create
    │       ├── PlatformUnsupported
    │       ├── SealingUnavailable      no master key, or not the one that sealed
    │       └── FormatTooNew            written by a newer freezeframe
    └── ReportDamage                stored data is not as it was written
        ├── CorruptLog                a log that cannot be one (carries Delta's error class)
        ├── UnsupportedTable          a protocol or feature this version does not know
        ├── CorruptData               a data file that is missing or damaged
        ├── UnsafePath              a link or device where only plain files and folders may be
        └── ForeignCommit             a table was changed around the tenant log

Each class has a stable machine ``code``; an instance may refine it (Delta's own error
classes, for example). A message says the problem, then the cause, then the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar


class FreezeframeError(Exception):
    """The root of the tree: catch it to catch all that freezeframe raises on purpose.

    ``problem``, ``cause`` and ``remedy`` are sentences; ``details`` holds the same facts
    as JSON values for programs.
    """

    code: ClassVar[str] = "FREEZEFRAME_ERROR"

    def __init__(
        self,
        problem: str,
        *,
        cause: str = "",
        remedy: str = "",
        code: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.cause = cause
        self.remedy = remedy
        self.error_code = code or type(self).code
        self.details = details

    def __str__(self) -> str:
        return " ".join(part for part in (self.problem, self.cause, self.remedy) if part)

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process boundaries (worker pools); the default would lose the keywords.
        state = {"cause": self.cause, "remedy": self.remedy, "code": self.error_code}
        return (_rebuild, (type(self), self.problem, {**state, **self.details}))

    def to_json(self) -> dict[str, Any]:
        """The error as ``{"code", "message", "problem", "cause", "remedy", "details"}``."""
        return {
            "code": self.error_code,
            "message": str(self),
            "problem": self.problem,
            "cause": self.cause,
            "remedy": self.remedy,
            "details": self.details,
        }


def kinds_of(root: type[FreezeframeError]) -> Iterator[type[FreezeframeError]]:
    """The class and all classes of errors below it."""
    yield root
    for below in root.__subclasses__():
        yield from kinds_of(below)


def _rebuild(kind: type[FreezeframeError], problem: str, state: dict[str, Any]) -> FreezeframeError:
    return kind(problem, **state)


class TryAgain(FreezeframeError):
    """The same call may succeed later."""

    code = "TRY_AGAIN"


class ConflictError(TryAgain):
    """Concurrent changes of the same object won more often than the commit was retried."""

    code = "CONFLICT"


class StorageUnavailable(TryAgain):
    """The storage failed or refused; nothing of this call is visible."""

    code = "STORAGE_UNAVAILABLE"


class StorageFull(StorageUnavailable):
    """No space (or quota) left; nothing of this call is visible."""

    code = "STORAGE_FULL"


class JobRevoked(TryAgain):
    """The job was declared dead (its heartbeat stopped) and can no longer be committed."""

    code = "JOB_REVOKED"


class EngineUnavailable(TryAgain):
    """Spark could not be started or reached, or it died during the call."""

    code = "ENGINE_UNAVAILABLE"


class OutcomeUnknown(TryAgain):
    """A commit was sent and its outcome could not be read back; staged files are kept."""

    code = "OUTCOME_UNKNOWN"


class RateLimited(TryAgain):
    """The service was asked more often than it may be; ``retry_after_seconds`` says when to ask again."""

    code = "RATE_LIMITED"


class FixTheRequest(FreezeframeError):
    """The call itself must change."""

    code = "BAD_REQUEST"


class InvalidName(FixTheRequest):
    """A tenant, stream or file name that cannot be one."""

    code = "INVALID_NAME"


class NotFound(FixTheRequest):
    """What was named does not exist."""

    code = "NOT_FOUND"


class TenantNotFound(NotFound):
    """The store has no tenant of that id in this environment."""

    code = "TENANT_NOT_FOUND"


class StreamNotFound(NotFound):
    """No stream of that name at that version."""

    code = "STREAM_NOT_FOUND"


class FileNotFound(NotFound):
    """No file of that path at that version of the tenant."""

    code = "FILE_NOT_FOUND"


class VersionNotFound(NotFound):
    """A version or moment that does not exist or can no longer be read."""

    code = "VERSION_NOT_FOUND"


class InputNotFound(NotFound):
    """A folder or file to read from that is not there."""

    code = "INPUT_NOT_FOUND"


class BadInput(FixTheRequest):
    """The rows given cannot be taken; nothing was written."""

    code = "BAD_INPUT"


class MissingColumn(BadInput):
    """A column that the call names is not in the rows."""

    code = "MISSING_COLUMN"


class NullKeyError(BadInput):
    """A key column holds a null, so the row could never be found again."""

    code = "NULL_KEY"


class DuplicateKeyError(BadInput):
    """Two rows of one batch share a key and the call forbids it."""

    code = "DUPLICATE_KEY"


class SchemaDriftError(BadInput):
    """A column's values do not fit the stored type without loss."""

    code = "SCHEMA_DRIFT"


class UnreadableInput(BadInput):
    """An input file is damaged, ragged or of another kind; the message names file and line."""

    code = "UNREADABLE_INPUT"


class OutsideWindow(BadInput):
    """Rows of the batch do not match the ``replace_where`` they came with."""

    code = "OUTSIDE_WINDOW"


class TooManyDeletions(BadInput):
    """A full extract lacks more of the stored rows than ``max_delete_ratio`` allows, or all of them."""

    code = "TOO_MANY_DELETIONS"


class InvalidOption(FixTheRequest):
    """An argument or setting outside what it may be."""

    code = "INVALID_OPTION"


class AlreadyExists(InvalidOption):
    """The name that something new was to have is taken; what has it stays as it is."""

    code = "ALREADY_EXISTS"


class IdempotencyConflict(FixTheRequest):
    """A job id is used again for something that its first job did not do."""

    code = "IDEMPOTENCY_CONFLICT"


class NotAuthenticated(FixTheRequest):
    """The caller is not authenticated: no key or session, or one that is not valid."""

    code = "NOT_AUTHENTICATED"


class NotAllowed(FixTheRequest):
    """The caller is authenticated but lacks permission."""

    code = "NOT_ALLOWED"


class PreconditionFailed(FixTheRequest):
    """What is there is not what the request was made for; nothing was changed."""

    code = "PRECONDITION_FAILED"


class PreconditionRequired(FixTheRequest):
    """The service takes a change of what is there only with ``If-Match``; nothing was changed."""

    code = "PRECONDITION_REQUIRED"


class TooLarge(FixTheRequest):
    """More bytes than the service takes at once; nothing was changed."""

    code = "TOO_LARGE"


class UnreadableRequest(FixTheRequest):
    """A request that cannot be read as what it says it is: its JSON, its encoding, its length or digest."""

    code = "UNREADABLE_REQUEST"


class SetupError(FixTheRequest):
    """The machine or its configuration lacks something; the remedy says what to do."""

    code = "SETUP"


class MissingExtra(SetupError):
    """A part of freezeframe was used whose packages are not installed (``freezeframe[service]``)."""

    code = "MISSING_EXTRA"


class JavaNotFound(SetupError):
    """No Java runtime where Spark has to be started."""

    code = "JAVA_NOT_FOUND"


class JavaUnsupported(SetupError):
    """A Java runtime that this Spark does not run on."""

    code = "JAVA_UNSUPPORTED"


class StorageNotShared(SetupError):
    """The Spark server and this process do not see the same files."""

    code = "STORAGE_NOT_SHARED"


class StorageUnsuitable(SetupError):
    """The storage has no atomic create-if-absent, so commits could be lost on it."""

    code = "STORAGE_UNSUITABLE"


class PlatformUnsupported(SetupError):
    """An operating system whose file system promises are not enough."""

    code = "PLATFORM_UNSUPPORTED"


class SealingUnavailable(SetupError):
    """No usable master key, so nothing can be sealed or unsealed; nothing was written or returned."""

    code = "SEALING_UNAVAILABLE"


class FormatTooNew(SetupError):
    """The directory was written by a newer freezeframe."""

    code = "FORMAT_TOO_NEW"


class ReportDamage(FreezeframeError):
    """Stored data is not as it was written; nothing was returned as rows."""

    code = "DAMAGE"


class CorruptLog(ReportDamage):
    """A transaction log that cannot be one; ``error_code`` is Delta's error class where it has one."""

    code = "CORRUPT_LOG"


class UnsupportedTable(ReportDamage):
    """A protocol version or table feature that this version does not know, refused by name."""

    code = "UNSUPPORTED_TABLE"


class CorruptData(ReportDamage):
    """A data file or deletion vector that is missing or damaged."""

    code = "CORRUPT_DATA"


class UnsafePath(ReportDamage):
    """A symbolic link, device or pipe where only plain files and folders may be; it was not followed."""

    code = "UNSAFE_PATH"


class ForeignCommit(ReportDamage):
    """A stream's table was changed around the tenant log; writes wait for ``stream repair``."""

    code = "FOREIGN_COMMIT"
