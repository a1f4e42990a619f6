"""Every error a caller can meet, in one tree, grouped by what the caller does about it.

Below ``FreezeframeError`` are three branches: ``TryAgain`` (the same call may succeed later),
``FixTheRequest`` (the call itself must change) and ``ReportDamage`` (stored data is not as it was written).
``docs/reference/errors.md`` lists all classes. A message says the problem, then the cause, then the remedy.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar


class FreezeframeError(Exception):
    """The root of the tree: catch it to catch all that freezeframe raises on purpose.

    ``problem``, ``cause`` and ``remedy`` are sentences; ``details`` holds the same facts
    as JSON values for programs. A class's ``code`` is stable and follows from its name: ``StorageFull`` has
    ``STORAGE_FULL``. An instance may refine it (Delta's own error classes, for example).
    """

    code: ClassVar[str] = "FREEZEFRAME_ERROR"

    def __init_subclass__(cls) -> None:
        if "code" not in cls.__dict__:
            cls.code = re.sub(r"(?<=.)(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).upper()

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


class ConflictError(TryAgain):
    """Concurrent changes of the same object won more often than the commit was retried."""


class StorageUnavailable(TryAgain):
    """The storage failed or refused; nothing of this call is visible."""


class StorageFull(StorageUnavailable):
    """No space (or quota) left; nothing of this call is visible."""


class JobRevoked(TryAgain):
    """The job was declared dead (its heartbeat stopped) and can no longer be committed."""


class EngineUnavailable(TryAgain):
    """Spark could not be started or reached, or it died during the call."""


class OutcomeUnknown(TryAgain):
    """A commit was sent and its outcome could not be read back; staged files are kept."""


class RateLimited(TryAgain):
    """The service was asked more often than it may be; ``retry_after_seconds`` says when to ask again."""


class FixTheRequest(FreezeframeError):
    """The call itself must change."""

    code = "BAD_REQUEST"


class InvalidName(FixTheRequest):
    """A tenant, stream or file name that cannot be one."""


class NotFound(FixTheRequest):
    """What was named does not exist."""


class TenantNotFound(NotFound):
    """The store has no tenant of that id in this environment."""


class StreamNotFound(NotFound):
    """No stream of that name at that version."""


class FileNotFound(NotFound):
    """No file of that path at that version of the tenant."""


class VersionNotFound(NotFound):
    """A version or moment that does not exist or can no longer be read."""


class InputNotFound(NotFound):
    """A folder or file to read from that is not there."""


class BadInput(FixTheRequest):
    """The rows given cannot be taken; nothing was written."""


class MissingColumn(BadInput):
    """A column that the call names is not in the rows."""

    @classmethod
    def refuse(
        cls,
        names: Iterable[str],
        columns: Sequence[str],
        problem: str = "There is no column {}.",
        remedy: str = "Name one of them; upper and lower case matter.",
    ) -> None:
        """Raise the error for the first of ``names`` that is none of ``columns``, in the place of ``{}``."""
        absent = next((name for name in names if name not in columns), None)
        if absent is not None:
            raise cls(
                problem.replace("{}", repr(absent)),
                cause=f"The columns are {', '.join(map(repr, columns)) or 'none at all'}.",
                remedy=remedy,
                column=absent,
            )


class NullKeyError(BadInput):
    """A key column holds a null, so the row could never be found again."""


class DuplicateKeyError(BadInput):
    """Two rows of one batch share a key and the call forbids it."""


class SchemaDriftError(BadInput):
    """A column's values do not fit the stored type without loss."""


class UnreadableInput(BadInput):
    """An input file is damaged, ragged or of another kind; the message names file and line."""


class OutsideWindow(BadInput):
    """Rows of the batch do not match the ``replace_where`` they came with."""


class TooManyDeletions(BadInput):
    """A full extract lacks more of the stored rows than ``max_delete_ratio`` allows, or all of them."""


class InvalidOption(FixTheRequest):
    """An argument or setting outside what it may be."""


class TypeMismatch(InvalidOption):
    """A condition on rows does not fit the type of a column."""


class AlreadyExists(InvalidOption):
    """The name that something new was to have is taken; what has it stays as it is."""


class IdempotencyConflict(FixTheRequest):
    """A job id is used again for something that its first job did not do."""


class NotAuthenticated(FixTheRequest):
    """The caller is not authenticated: no key or session, or one that is not valid."""


class NotAllowed(FixTheRequest):
    """The caller is authenticated but lacks permission."""


class PreconditionFailed(FixTheRequest):
    """What is there is not what the request was made for; nothing was changed."""


class PreconditionRequired(FixTheRequest):
    """The service takes a change of what is there only with ``If-Match``; nothing was changed."""


class TooLarge(FixTheRequest):
    """More bytes than the service takes at once; nothing was changed."""


class UnreadableRequest(FixTheRequest):
    """A request that cannot be read as what it says it is: its JSON, its encoding, its length or digest."""


class SetupError(FixTheRequest):
    """The machine or its configuration lacks something; the remedy says what to do."""


class MissingExtra(SetupError):
    """A part of freezeframe was used whose packages are not installed (``freezeframe[service]``)."""


class JavaNotFound(SetupError):
    """No Java runtime where Spark has to be started."""


class JavaUnsupported(SetupError):
    """A Java runtime that this Spark does not run on."""


class StorageNotShared(SetupError):
    """The Spark server and this process do not see the same files."""


class StorageUnsuitable(SetupError):
    """The storage has no atomic create-if-absent, so commits could be lost on it."""


class PlatformUnsupported(SetupError):
    """An operating system whose file system promises are not enough."""


class SealingUnavailable(SetupError):
    """No usable master key, so nothing can be sealed or unsealed; nothing was written or returned."""


class FormatTooNew(SetupError):
    """The directory was written by a newer freezeframe."""


class ReportDamage(FreezeframeError):
    """Stored data is not as it was written; nothing was returned as rows."""

    code = "DAMAGE"


class CorruptLog(ReportDamage):
    """A transaction log that cannot be one; ``error_code`` is Delta's error class where it has one."""


class UnsupportedTable(ReportDamage):
    """A protocol version or table feature that this version does not know, refused by name."""


class CorruptData(ReportDamage):
    """A data file or deletion vector that is missing or damaged."""


class UnsafePath(ReportDamage):
    """A symbolic link, device or pipe where only plain files and folders may be; it was not followed."""


class ForeignCommit(ReportDamage):
    """A stream's table was changed around the tenant log; writes wait for ``stream repair``."""
