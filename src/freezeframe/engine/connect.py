"""A Spark Connect session for the engine, wherever the setting ``spark`` says that Spark is.

Spark is spoken to over Connect only, never through a JVM in this process: ``auto`` and ``spark://`` go to the
warm server, ``local`` to a server of this process alone, ``sc://`` to the server named. The session of the
process (``process_session``) is made here as well, with settings for frames of a script in place of those
for merges.
"""

import atexit
import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import grpc
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql.connect import proto
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import CachedRelation, LogicalPlan
from pyspark.sql.connect.readwriter import DataFrameReader
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.shell.progress import StageInfo
from pyspark.sql.connect.streaming.readwriter import DataStreamReader

from freezeframe import progress
from freezeframe.engine.configuration import (
    READ_OPTIONS,
    REMOTE,
    SCRIPT_CONFIGURATION,
    WRITE_OPTIONS,
    foreign_remote,
    local_master,
    own_remote,
    session_configuration,
    session_options,
    warm_master,
)
from freezeframe.engine.java import spark_version
from freezeframe.engine.plans.parquet_files import exact_path, local_folder
from freezeframe.engine.plans.python_tasks import workers_of
from freezeframe.engine.plans.write_batch import set_configs
from freezeframe.engine.relative_paths import RelativePaths
from freezeframe.engine.server.job_database import JobDatabase, require_own
from freezeframe.engine.server.launch import TOKEN_VARIABLE
from freezeframe.engine.server.server import Attachment, Progress, attach
from freezeframe.engine.spark_errors import deletion_error, raised_error, spark_errors, translate_error
from freezeframe.errors import InvalidOption, SetupError, StorageNotShared
from freezeframe.settings import Settings
from freezeframe.version import __version__


def tell_stages(
    stages: Iterable[StageInfo] | None,
    inflight_tasks: int,  # noqa: ARG001 - Spark gives its arguments by these names
    operation_id: str | None,  # noqa: ARG001
    done: bool,  # noqa: FBT001
) -> None:
    """Report stages to this thread's watcher; for ``SparkSession.registerProgressHandler``."""
    # Spark calls it between two responses: an error here would fail the query.
    with suppress(Exception):
        progress.wait_for("" if done else _describe(list(stages or ())))


def _describe(stages: list[StageInfo]) -> str:
    tasks = sum(stage.num_tasks for stage in stages)
    ended = sum(stage.num_completed_tasks for stage in stages)
    return f"Spark: {ended:,} of {tasks:,} tasks, {sum(item.done for item in stages)} of {len(stages)} stages"


_PREFIX = ".freezeframe-probe-"


def has_our_files(process: int, variable: str) -> bool:
    """Return whether a process of this machine sees the same files as this one: the same mounts and root.

    ``variable`` is one of its environment that no other process has (``NAME=value``): the number may be
    another process's in another view of the processes. False where the system does not tell.
    """
    other = Path(f"/proc/{process}")
    try:
        return (
            variable.encode() in (other / "environ").read_bytes().split(b"\0")
            and (other / "ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink()
            and os.path.samestat((other / "root").stat(), Path("/proc/self/root").stat())
        )
    except OSError:
        return False


def require_shared(session: Any, folder: Path, memory: Path) -> None:
    """Check that the server reads what we write in ``folder``, and the other way round.

    Args:
        session: a session on the server, classic or Connect.
        folder: an existing folder of this machine.
        memory: a private folder in which the answer is remembered.
    """
    start = session.conf.get("spark.app.id", "")
    identity = hashlib.sha256(f"{start}\n{folder.resolve()}".encode()).hexdigest()[:32]
    remembered = memory / f"{identity}.shared"
    if start and remembered.exists():
        return
    # Hidden names, so that readers of the folder ignore probes.
    probe = folder / f"{_PREFIX}{uuid.uuid4().hex}"
    probe.mkdir(mode=0o777)
    try:
        _exchange(session, probe)
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    for old in memory.glob("*.shared"):
        with contextlib.suppress(FileNotFoundError):  # another process forgets the same answers
            if old.read_text() != start:
                old.unlink(missing_ok=True)
    remembered.write_text(str(start))


@contextlib.contextmanager
def requiring_sight(files: Sequence[str]) -> Iterator[None]:
    """Raise ``StorageNotShared`` for a file that this process sees and Spark does not."""
    try:
        yield
    except PySparkException as error:
        paths = [local_folder(file) for file in files]
        if error.getCondition() != "PATH_NOT_FOUND" or not all(path and path.exists() for path in paths):
            raise
        raise _not_shared(Path(files[0]).parent, str(error).split("\n", 1)[0]) from error


def _exchange(session: Any, probe: Path) -> None:
    word = uuid.uuid4().hex
    # No leading underscore or dot, because Spark ignores such files.
    (probe / "client.txt").write_text(word)
    try:
        rows = session.read.options(**READ_OPTIONS).text(exact_path(str(probe / "client.txt"))).collect()
        if [row[0] for row in rows] != [word]:
            raise _not_shared(probe.parent, "Spark read other content than this process wrote.")
        # A frame over a file transfers the token to the server's own writer.
        frame = session.read.options(**READ_OPTIONS).text(exact_path(str(probe / "client.txt")))
        options = {name: value for name, value in WRITE_OPTIONS.items() if name.startswith("mapreduce")}
        frame.write.options(**options).text(str(probe / "server"))
    except PySparkException as error:
        if translate_error(error).details.get("is_gone"):
            raise  # a dead server says nothing about shared files
        raise _not_shared(probe.parent, str(error).split("\n", 1)[0]) from error
    answers = [path.read_text().strip() for path in (probe / "server").glob("*.txt")]
    if answers != [word]:
        raise _not_shared(probe.parent, "The file that Spark wrote is missing here.")


def _not_shared(folder: Path, cause: str) -> StorageNotShared:
    return StorageNotShared(
        f"Spark does not see the files of {folder}.",
        cause=cause,
        remedy="Use a folder that both see under the same path, an object store, or FREEZEFRAME_SPARK=auto"
        " and frames of its session.",
    )


# Waits of 0.05, 0.2, 0.8 and then 2 s: some eight seconds for a server that is being restarted.
_RETRIES_MAX = 6
_BACKOFF_MAX_MS = 2_000
# PySpark logs errors to them, as JSON with the JVM's stack, and raises them as well.
_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


class _DistantPolicy(DefaultPolicy):
    """Retry policy for a remote server: Spark's retriable errors, for seconds in place of ten minutes."""

    def __init__(self) -> None:
        super().__init__(max_retries=_RETRIES_MAX, max_backoff=_BACKOFF_MAX_MS)

    def to_state(self) -> RetryPolicyState:
        return _QuietState(self)


class _QuietState(RetryPolicyState):
    """Gives up by not trying again: Spark would give up with a warning beside the error."""

    def can_retry(self, exception: BaseException) -> bool:
        return self._attempt < (self.policy.max_retries or 0) and super().can_retry(exception)


class _LoopbackPolicy(_DistantPolicy):
    """Retry policy for a local server: Spark's retriable errors except an unreachable server."""

    def can_retry(self, e: BaseException) -> bool:
        is_gone = isinstance(e, grpc.RpcError) and e.code() == grpc.StatusCode.UNAVAILABLE
        return not is_gone and super().can_retry(e)


class _Session(SparkSession):
    """Closed by its opener: Spark's finalizer can wait for itself (SPARK-55362)."""

    def __init__(self, url: str, *, is_local: bool, paths: RelativePaths) -> None:
        channel = DefaultChannelBuilder(url)
        channel.add_interceptor(_Requests(is_local=is_local, paths=paths))
        super().__init__(connection=channel)
        self.paths = paths
        # A compressed plan cannot be looked at, and on the way to this machine none has to be short.
        self.client._plan_compression_threshold = -1  # noqa: SLF001
        self.client._plan_compression_algorithm = "NONE"  # noqa: SLF001
        self.client._handle_error = _naming_deletions(self.client._handle_error)  # type: ignore[method-assign]  # noqa: SLF001

    @property
    def read(self) -> DataFrameReader:
        """The reader, whose relative paths are those of the moment of the call."""
        return _Reader(self)

    @property
    def readStream(self) -> DataStreamReader:  # noqa: N802 - Spark's name
        """The reader of streams; as ``read``."""
        return _StreamReader(self)

    def __del__(self) -> None:
        pass


def _naming_deletions(handle: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    """Return the client's handler of errors; it says which missing files were deleted with their versions.

    A frame is lazy: gc or an erasure may have come between its making and its evaluation.
    """

    def handled(*arguments: Any, **named: Any) -> NoReturn:
        try:
            handle(*arguments, **named)
        except PySparkException as error:
            raise (deletion_error(error) or raised_error(error) or error) from None

    return handled


class _Reader(DataFrameReader):
    """A frame is lazy, and a script can change its folder before it is computed."""

    def _df(self, plan: LogicalPlan) -> DataFrame:
        return super()._df(_resolved(plan, self._client))


class _StreamReader(DataStreamReader):
    def _df(self, plan: LogicalPlan) -> DataFrame:
        return super()._df(_resolved(plan, self._client))


def _resolved(plan: LogicalPlan, session: Any) -> LogicalPlan:
    relation = plan.plan(session.client)
    session.paths.resolve(relation)
    return CachedRelation(relation)


class _Requests(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """What every request of a session passes on its way to the server, also those of its clones.

    Relative paths become absolute, and on a server of this machine nothing is created that all jobs see.
    """

    def __init__(self, *, is_local: bool, paths: RelativePaths) -> None:
        self._is_local = is_local
        self._paths = paths

    def intercept_unary_unary(self, continuation: Any, call: Any, request: Any) -> Any:
        """Send a request with one answer: questions about a plan, settings."""
        return continuation(call, self._checked(request))

    def intercept_unary_stream(self, continuation: Any, call: Any, request: Any) -> Any:
        """Send a request with many answers: a plan to execute."""
        return continuation(call, self._checked(request))

    def _checked(self, request: Any) -> Any:
        if self._is_local and isinstance(request, proto.ExecutePlanRequest):
            require_own(request)
        if isinstance(request, proto.ExecutePlanRequest | proto.AnalyzePlanRequest | proto.ConfigRequest):
            self._paths.resolve(request)
        return request


@dataclass(slots=True)
class Connection:
    """An open session, and the hold on the server behind it if that is one of ours."""

    session: SparkSession
    attachment: Attachment | None
    shared_name: Path | None = None
    """Where the session's id stands if other processes use the session as well."""
    database: JobDatabase | None = None
    """The job's own in the catalog that the server's jobs share."""
    is_one_process: bool = False
    """Whether the server reads and writes files by itself, without executors elsewhere."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Where Spark's own builder finds the server."""
    _workers: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        # A channel that is still open when the interpreter goes down waits for threads that are gone.
        atexit.register(self.close)

    def is_alive(self) -> bool:
        """Return whether the server is known to run, without asking it; one elsewhere may."""
        return self.attachment is None or self.attachment.is_alive()

    def sees_our_files(self) -> bool:
        """Return whether the server is known to see this machine's files; the server is not asked."""
        if self.attachment is None or not self.is_one_process:
            return False
        address = self.attachment.address
        return has_our_files(address.process, f"{TOKEN_VARIABLE}={address.token}")

    def workers(self) -> tuple[str, int]:
        """Return the version of the package in Spark's Python workers (empty: none), and their user.

        One task is asked, once; workers of a server of ours on this machine are as this process is.
        """
        if self.sees_our_files() and self.attachment is not None:
            return __version__, os.getuid()
        if self._workers is None:
            try:
                self._workers = workers_of(self.session)
            except Exception as error:  # such as another Python, or none with PyArrow
                is_sparks = isinstance(error, PySparkException | grpc.RpcError)
                if is_sparks and translate_error(error).details.get("is_gone"):
                    raise
                self._workers = "", -1
        return self._workers

    def takes_keys(self) -> bool:
        """Return whether keys of a bucket may be sent there, as to every server of ours."""
        return self.attachment is not None

    def is_of_same_server(self, session: Any) -> bool:
        """Return whether a session is on the same server of ours: no other has its token."""
        is_ours = self.attachment is not None and isinstance(session, SparkSession)
        return is_ours and session.client.token == self.attachment.address.token  # type: ignore[union-attr]

    def log_tail(self) -> str:
        """Return the end of the server's log, if readable."""
        return self.attachment.log_tail() if self.attachment else ""

    def abandon(self) -> None:
        """Drop a connection without a request to a server that does not answer."""
        if self.shared_name:
            # The next caller creates another one, because Spark refuses the id of an ended session.
            self.shared_name.unlink(missing_ok=True)
        self._leave()

    def _leave(self) -> None:
        atexit.unregister(self.close)
        self.session.client.close()
        if self.attachment:
            self.attachment.close()

    def close(self) -> None:
        """Release the server, and end the session unless it is shared; a private server stops."""
        if self.shared_name:
            self._leave()
            return
        # An ended server needs no release request.
        ended = (PySparkException, grpc.RpcError, ValueError)
        # An interpreter that goes down starts no thread; the server's watcher drops the database then.
        with contextlib.suppress(*ended, RuntimeError):
            if self.database:
                if self.session.is_stopped:  # by a script
                    self.session = _session(self.variables[REMOTE], {}, is_local=True, has_our_paths=False)
                self.database.leave(self.session)
        with contextlib.suppress(*ended, RuntimeError):
            self.session.client.release_session()
        self._leave()


def connect(
    settings: Settings, progress: Progress, *, is_shared: bool = False, is_process: bool = False
) -> Connection:
    """Open a session, starting a local server first if the settings ask for one and none runs.

    With ``is_shared`` it is the session that all processes use on a server of ours, by an id that stands
    in the server's folder. A server elsewhere gives each process its own. With ``is_process`` it is meant
    for a script: as Spark has it, in UTC, and writing Parquet as streams have it.
    """
    where = _where(settings)
    master = local_master() if where == "local" else warm_master(where)
    options = {**session_configuration(master), **session_options(settings, where)}
    if is_process:
        # Servers started by this package already have the settings of a script's session.
        ours = SCRIPT_CONFIGURATION if where.startswith("sc://") else {}
        options = {**ours, **session_options(settings, where)}
    if where.startswith("sc://"):
        return Connection(_session_elsewhere(where, options), None, variables={REMOTE: where})
    if where == "local":
        attachment = attach(settings, local_master(), progress, is_private=True)
        return _attach_server(attachment, options, is_one_process=True)
    if master is not None:
        attachment = attach(settings, master, progress)
        kinds = {"is_one_process": where == "auto", "is_shared": is_shared, "is_one_job": not is_shared}
        return _attach_server(attachment, options, **kinds)
    raise InvalidOption(
        f"FREEZEFRAME_SPARK cannot be '{where}'.",
        remedy="Use auto, local, sc://host:port or spark://host:port.",
    )


def is_own_session(session: Any) -> bool:
    """Return whether a session was made by this library, and not by the script."""
    return isinstance(session, _Session)


def address_of(session: Any) -> str:
    """Return where a script's Connect session has its Spark; empty where that is not told by an address."""
    builder = session.client._builder  # noqa: SLF001 - Spark has no other way
    return f"sc{builder.url.geturl()[4:]}" if type(builder) is DefaultChannelBuilder else ""


def can_share(settings: Settings) -> bool:
    """Return whether the settings mean a server of ours that several processes use."""
    return warm_master(_where(settings)) is not None


def _where(settings: Settings) -> str:
    """Return the setting, or Spark's own variable where the setting is open."""
    remote = foreign_remote(os.environ)
    return remote if remote and settings.spark == "auto" else settings.spark


def _attach_server(
    attachment: Attachment,
    options: Mapping[str, str],
    *,
    is_one_process: bool,
    is_shared: bool = False,
    is_one_job: bool = False,
) -> Connection:
    # Processes with different session settings must not share a session.
    digest = hashlib.sha256(repr(sorted(options.items())).encode()).hexdigest()[:16]
    name = attachment.folder / f"session-{digest}" if is_shared else None
    try:
        session_id = _agreed_id(name) if name else str(uuid.uuid4())
        url = attachment.address.url
        session = _session(
            f"{url};session_id={session_id}", options, is_local=True, has_our_paths=is_one_process
        )
        with spark_errors():
            database = JobDatabase.enter(session, attachment.folder) if is_one_job else None
    except BaseException:
        attachment.close()
        raise
    return Connection(session, attachment, name, database, is_one_process, own_remote(url))


def _agreed_id(name: Path) -> str:
    """Return the id in the file, which the first process writes; a new one if it is damaged."""
    try:
        with name.open("x") as file:
            file.write(str(uuid.uuid4()))
    except FileExistsError:
        with contextlib.suppress(ValueError, FileNotFoundError):
            return str(uuid.UUID(name.read_text()))
        return str(uuid.uuid4())
    return name.read_text()


def _session_elsewhere(url: str, options: Mapping[str, str]) -> SparkSession:
    session = _session(url, options, is_local=False, has_our_paths=False)
    try:
        with spark_errors():
            theirs = session.version
        _require_same_release(theirs, spark_version())
    except BaseException:
        session.client.close()
        raise
    return session


def _session(url: str, options: Mapping[str, str], *, is_local: bool, has_our_paths: bool) -> SparkSession:
    session = _Session(url, is_local=is_local, paths=RelativePaths(has_our_paths))
    for name in _ERROR_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    session.registerProgressHandler(tell_stages)  # type: ignore[arg-type]
    # By default a dead server is retried for ten minutes; a server on this machine is dead at once.
    session.client.set_retry_policies([_LoopbackPolicy() if is_local else _DistantPolicy()])
    if options:
        with spark_errors():
            set_configs(session.client, options)
    return session


def _require_same_release(theirs: str, ours: str) -> None:
    if theirs.split(".")[:2] != ours.split(".")[:2]:
        raise SetupError(
            f"The Spark server is of version {theirs}, and PySpark here of {ours}.",
            cause="Releases of Spark read and write differently, and updates are tested with one release.",
            remedy=f"Use a server of Spark {'.'.join(ours.split('.')[:2])}.",
        )
