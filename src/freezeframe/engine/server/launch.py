"""Command line, environment and class path of a warm Spark server.

The order to start is a file in the server's folder that only its owner can read: it holds the token.
"""

import hashlib
import json
import os
import secrets
import sys
import time
import zipfile
from pathlib import Path

from freezeframe.engine.configuration import (
    FAIR_SCHEDULER,
    JAVA_OPTIONS,
    LOG_CONFIGURATION,
    SERVER_CLASS,
    STARTED_PATTERN,
    bucket_variables,
    python_worker_options,
    server_configuration,
)
from freezeframe.engine.java import Java, find_java, spark_jars, spark_version
from freezeframe.engine.server import watcher
from freezeframe.settings import Settings

NO_FOLDER = "/dev/null/relative_paths_are_not_resolved_on_the_server"
"""The working folder by Java's own word. Errors show it; no folder can be created below a device."""

# Of the process that starts in it; in Linux only.
_NAMESPACES = Path("/proc/self/ns")
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - a name
"""The environment variable that passes the token to the server."""

# A server with a short idle time is not that of a machine that runs jobs all day.
_LASTING_SECONDS = 60
_ARCHIVED_AFTER_IDLE_SECONDS = 10
CLASSES = "classes.lst"
"""The list of the classes that a server loads, in its work folder."""
# Loaded with the first job that moves rows through Spark.
_CLASS_OF_A_JOB = "org/apache/parquet/hadoop/ParquetFileReader"
# The C1 compiler is enough for a process of a minute.
_ARCHIVE_OPTIONS = ("-Xmx1g", "-XX:TieredStopAtLevel=1", "-Xshare:dump")
# Variables that would override the settings of Spark or Java.
_FOREIGN_VARIABLES = (
    *("SPARK_REMOTE", "SPARK_HOME", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS", "CLASSPATH"),
    # The server outlives the job that starts it, and serves other tenants' jobs.
    *("API_KEY", "TENANT", "JOB_ID", "JOB_ROOT", "ROOT", "ROOT_DIR"),
)


def write_launch(
    folder: Path, settings: Settings, master: str, java: Java, archive: Path | None, *, is_private: bool
) -> None:
    """Write ``launch.json``, the order that `engine.watcher` carries out, and what it names.

    Without ``archive`` the server loads its classes from their jars.
    """
    token = secrets.token_urlsafe(32)
    start = secrets.token_hex(8)
    work = folder / f"work-{start}"
    work.mkdir(mode=0o700)
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN_VARIABLES}
    # Spark looks up the machine's host name at start, which not every machine can resolve.
    local = {"SPARK_LOCAL_IP": "127.0.0.1"} if master.startswith("local") else {}
    python = worker_python(settings, master)
    workers = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python} if python else {}
    databases = {watcher.DATABASES_VARIABLE: str(folder / watcher.DATABASES)}
    launch = {
        "command": _command(settings, master, java, work, archive),
        "environment": {
            **local,
            **kept,
            **workers,
            **databases,
            TOKEN_VARIABLE: token,
            **bucket_variables(settings),
        },
        "started_pattern": STARTED_PATTERN,
        "idle_seconds": 0 if is_private else settings.spark_idle_seconds,
        "about": {
            "master": master,
            "spark_memory": settings.spark_memory,
            "java": f"{java.version} ({java.command})",
            "started_at": time.time(),
        },
        "remains": str(folder if is_private else work),
        "token": token,
        "start": start,
        "working_folder": str(_working_folder(work)),
        "class_sharing": _archive_order(settings, java, work, archive),
        "clear_remains": [sys.executable, "-m", "freezeframe.engine.server.job_database", str(folder)],
    }
    path = folder / "launch.json"
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(launch))


def _working_folder(work: Path) -> Path:
    """Return a folder in which nobody can create a file, for the server's process and its Python workers.

    A relative path that reaches the server must fail: in a folder that can be written jobs of all tenants
    would share it. Modes say nothing to root, and a file system without files does.
    """
    if _NAMESPACES.is_dir():
        return _NAMESPACES
    folder = work / "read-only"
    folder.mkdir(mode=0o500)
    return folder


def _command(settings: Settings, master: str, java: Java, work: Path, archive: Path | None) -> list[str]:
    properties = work / "spark.properties"
    pools = work / "pools.xml"
    pools.write_text(FAIR_SCHEDULER)
    configuration = server_configuration(settings, master)
    first_jars = [str(_first_jar(work))] if master.startswith("local") else []
    jars = [*filter(None, [configuration.get("spark.jars")]), *first_jars]
    configuration = {
        "spark.local.dir": str(work),
        "spark.sql.warehouse.dir": str(work / "spark-warehouse"),
        "spark.scheduler.allocation.file": pools.as_uri(),
        **worker_options(settings, master, work.parent),
        **configuration,
        **({"spark.jars": ",".join(jars)} if jars else {}),
    }
    properties.write_text("".join(f"{name} {value}\n" for name, value in configuration.items()))
    log_configuration = work / "log4j2.properties"
    log_configuration.write_text(LOG_CONFIGURATION)
    return [
        str(java.command),
        "-Xms128m",  # Java's own choice, a 64th of the machine's memory, is never given back
        f"-Xmx{settings.spark_memory}",
        *JAVA_OPTIONS,
        *_class_sharing(settings, archive, work),
        f"-Dlog4j2.configurationFile={log_configuration.as_uri()}",
        f"-Djava.io.tmpdir={work}",
        f"-Duser.dir={NO_FOLDER}",
        f"-XX:ErrorFile={work}/hs_err_pid%p.log",
        "-cp",
        f"{spark_jars()}/*",
        "org.apache.spark.deploy.SparkSubmit",
        "--properties-file",
        str(properties),
        "--class",
        SERVER_CLASS,
        "spark-internal",
    ]


def worker_options(settings: Settings, master: str, folder: Path) -> dict[str, str]:
    """Return the options of Python workers that run on this machine with this process's Python."""
    is_ours = master.startswith("local") and worker_python(settings, master) == sys.executable
    return python_worker_options(folder) if is_ours else {}


def _first_jar(work: Path) -> Path:
    """Return an empty jar, which Spark fetches from itself at its start, over an encrypted connection.

    What encrypts is set up by the class loader of the thread that first needs it. A task holds its class
    loader while it asks the driver for a class: both would wait for each other for two minutes, and the
    first job of a new server would fail.
    """
    jar = work / "first.jar"
    zipfile.ZipFile(jar, "w").close()
    return jar


def _class_sharing(settings: Settings, archive: Path | None, work: Path) -> list[str]:
    """Return the options to load classes from an archive, which halves the cost of a start and a first job.

    Where none was made yet, the classes that are loaded are listed, which costs nothing that can be measured.
    """
    if archive is None:
        return []
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}"]
    return [f"-XX:DumpLoadedClassList={work / CLASSES}"] if _is_lasting(settings) else []


def is_archive_awaited(settings: Settings) -> bool:
    """Return whether a server of these settings still has to archive its classes."""
    return _is_lasting(settings) and not class_archive(settings.state_dir, find_java()).exists()


def _is_lasting(settings: Settings) -> bool:
    return settings.spark_idle_seconds >= _LASTING_SECONDS


def _archive_order(
    settings: Settings, java: Java, work: Path, archive: Path | None
) -> dict[str, object] | None:
    """Return how `engine.watcher` has the archive made, if it is to be made."""
    if archive is None or archive.exists() or not _is_lasting(settings):
        return None
    whole, draft = work / "classes-whole.lst", work / "classes.jsa"
    return {
        "after_idle_seconds": _ARCHIVED_AFTER_IDLE_SECONDS,
        "needed_class": _CLASS_OF_A_JOB,
        "classes": str(work / CLASSES),
        "classes_whole": str(whole),
        "draft": str(draft),
        "archive": str(archive),
        "log": str(work / "archive.log"),
        "command": archive_command(java, whole, draft),
    }


def archive_command(java: Java, classes: Path, draft: Path) -> list[str]:
    """Return the command that writes an archive of the classes of a list."""
    options = [option for option in JAVA_OPTIONS if not option.startswith("-Xshare")]
    return [
        *(str(java.command), *_ARCHIVE_OPTIONS, *options),
        *(f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={draft}"),
        *("-cp", f"{spark_jars()}/*"),
    ]


def class_archive(state: Path, java: Java) -> Path:
    """Return the path of the classes that servers with this Java, these jars and these options share.

    It is in the state folder, unless the installation has one, as an image does.
    """
    options = " ".join(JAVA_OPTIONS)
    identity = f"{java.command.resolve()} {java.version} {spark_jars()} {spark_version()} {options}"
    name = f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"
    installed = Path(sys.prefix) / "share" / "freezeframe" / name
    return installed if installed.exists() else state / name


def worker_python(settings: Settings, master: str, own: str = sys.executable) -> str:
    """Return the Python that a server runs functions of jobs with: ``own``, unless one is named.

    Empty on a cluster, whose machines have one of their own.
    """
    named = settings.spark_python or os.environ.get("PYSPARK_PYTHON", "")
    return named or (own if master.startswith("local") else "")
