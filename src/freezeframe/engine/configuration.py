"""Every Spark option that the engine relies on, and every size at which it changes its plan.

Start options of a server, options of each own session, options of each write (which may run in a caller's
session), what a store in a bucket needs, and the variables that name a process its server. Of the start
options the user's ``spark-defaults.conf`` replaces those that are a choice.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from freezeframe.engine import pyspark_4_1
from freezeframe.engine.java import spark_version
from freezeframe.settings import Settings
from freezeframe.storage.location import S3Access
from freezeframe.storage.read_ahead import processors

_S3A = {
    # On disk this would need Hadoop's local file system, which writes a .crc file per data file.
    "fs.s3a.fast.upload.buffer": "bytebuffer",
    "fs.s3a.fast.upload.active.blocks": "2",
    "fs.s3a.multipart.size": "16M",
    # Names are never reused, so their absence need not be checked: a third fewer requests.
    "fs.s3a.performance.flags": "create,mkdir,delete",
    "fs.s3a.committer.name": "magic",
    "fs.s3a.committer.magic.track.commits.in.memory.enabled": "true",
    # Uploads of other jobs below the same folder must not be aborted.
    "fs.s3a.committer.abort.pending.uploads": "false",
}
_HADOOP, _SDK = "3.5.0", "2.35.4"
EXCLUDES = ",".join(
    (
        "software.amazon.awssdk:bundle",  # all of the SDK, 642 MB
        # Stores other than S3.
        *(
            f"org.apache.hadoop:hadoop-{item}"
            for item in ("azure*", "aliyun", "cos", "gcp", "huaweicloud", "tos")
        ),
        "org.apache.hadoop:hadoop-cl*",
        "com.google.cloud.bigdataoss:*",
        # PySpark brings these, some of them newer.
        "com.fasterxml.jackson.*:*",
        "com.squareup.*:*",
        "commons-codec:*",
        "io.netty:*",
        "joda-time:*",
        "org.apache.httpcomponents:*",
        "org.eclipse.jetty:*",
        "org.slf4j:*",
        # A faster TLS that only `fs.s3a.ssl.channel.mode` asks for.
        "org.wildfly.openssl:*",
    )
)
"""What these packages name beyond that."""


def s3_packages(release: str) -> str:
    """Return what a release of Spark needs for ``s3a://``: its own Hadoop, and the SDK that goes with it."""
    is_4_1 = release.startswith("4.1.")
    hadoop, sdk = (pyspark_4_1.HADOOP, pyspark_4_1.SDK) if is_4_1 else (_HADOOP, _SDK)
    return ",".join(
        (
            f"org.apache.hadoop:hadoop-aws:{hadoop}",
            # Its classes are the same in Spark 4.1 to 4.3.
            "org.apache.spark:spark-hadoop-cloud_2.13:4.1.2",
            f"software.amazon.awssdk:s3-transfer-manager:{sdk}",
            f"software.amazon.awssdk:sts:{sdk}",
        )
    )


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def own_jars(settings: Settings) -> list[Path]:
    """Return the jars of the settings' folder."""
    return [] if settings.spark_jars_dir is None else sorted(settings.spark_jars_dir.glob("*.jar"))


def is_bucket(settings: Settings) -> bool:
    """Return whether the store of the settings is in a bucket."""
    return "://" in settings.root


def server_options(settings: Settings) -> dict[str, str]:
    """Return start options of an own server, without secrets; empty without own jars and a bucket.

    Where a store in a bucket has no jars of its own, Spark fetches ``s3_packages``.
    ``spark.freezeframe.s3`` changes with the keys: a server holds on to those that it met first.
    """
    jars = own_jars(settings)
    if not jars and not is_bucket(settings):
        return {}
    access = S3Access.of(settings, os.environ)
    options = {f"spark.hadoop.{name}": value for name, value in {**_S3A, **access.hadoop_options()}.items()}
    named = {"spark.freezeframe.s3": access.digest} if is_bucket(settings) else {}
    fetched = {"spark.jars.packages": s3_packages(spark_version()), "spark.jars.excludes": EXCLUDES}
    brought = {"spark.jars": ",".join(map(str, jars))} if jars else fetched
    return {**options, **named, **brought}


def bucket_variables(settings: Settings) -> dict[str, str]:
    """Return the key as variables of a server of ours, for sessions that are not ours."""
    if not is_bucket(settings):
        return {}
    access = S3Access.of(settings, os.environ)
    named = {
        "AWS_ACCESS_KEY_ID": access.key_id,
        "AWS_SECRET_ACCESS_KEY": access.secret,
        "AWS_SESSION_TOKEN": access.token,
    }
    return {name: value for name, value in named.items() if value}


def session_options(settings: Settings, server: str) -> dict[str, str]:
    """Return Spark options of a session, keys included; empty unless the store is in a bucket.

    ``server`` is where Spark is. To one elsewhere go the settings' own keys alone, and only where nobody
    can listen: this machine's own variables are no business of a server that has a role of its own.
    """
    if not is_bucket(settings):
        return {}
    access = S3Access.of(settings, os.environ)
    if not server.startswith("sc://"):
        return {**_S3A, **access.hadoop_options(), **access.hadoop_secrets()}
    has_own = bool(settings.s3_access_key_id)
    if has_own and ("use_ssl=true" in server.lower() or (urlsplit(server).hostname or "") in _LOOPBACK):
        return {**_S3A, **access.hadoop_options(), **access.hadoop_secrets()}
    options = access.hadoop_options()
    del options["fs.s3a.aws.credentials.provider"]  # regardless of the server's settings
    return {**_S3A, **options}


SESSION_CONFIGURATION = {
    # A value that does not fit is an error, never a null.
    "spark.sql.ansi.enabled": "true",
    # Two columns that differ by case only are two columns.
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # What Spark infers about columns from each other grows with the square of their number, and no plan of
    # ours gains by it.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Dates before 1582 are taken and written as they are.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # A damaged or missing file is an error, never fewer rows.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}

_LOCAL_PLANNING = {
    # Both sides of a merge are partitioned by hand: re-planning between stages only adds latency. It has
    # nothing to improve either: rows are split by their whole key, so similar keys make no large task
    # (benchmarks/scale.py, skewed_1m: 1.2 times the processor of random keys, which are shorter).
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
_ADAPTIVE_PLANNING = {"spark.sql.adaptive.enabled": "true"}

LANDING_CONFIGURATION = {
    name: SESSION_CONFIGURATION[name]
    for name in (
        "spark.sql.parquet.outputTimestampType",
        "spark.sql.parquet.writeLegacyFormat",
        "spark.sql.parquet.datetimeRebaseModeInWrite",
        "spark.sql.parquet.int96RebaseModeInWrite",
    )
}
"""How a session writes files in the layout of stored ones; what another one wrote is written again."""

SCRIPT_CONFIGURATION = {"spark.sql.session.timeZone": "UTC", **LANDING_CONFIGURATION}
"""What a session for a script has: the machine's clock says nothing, and frames are written once."""

READ_OPTIONS = {
    "mergeSchema": "false",
    # Also in a session that the caller has configured.
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}

WRITE_OPTIONS = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Version 2 of the committer shows files of a task that is then run again.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "parquet.page.write-checksum.enabled": "true",
    # A task holds a row group as a whole when it writes and when it reads: with Parquet's own 128 MB two
    # tasks need more than a server of 600 MB has.
    "parquet.block.size": str(32 * 1024 * 1024),
}

SMALL_BYTES = 16 * 1024 * 1024
"""Files up to this many bytes together are sorted in one task, without a shuffle."""

PARTITIONS_MAX = 8
"""The most tasks a merge is split into only to use the cores, whatever the machine has."""

# Spark's own list (JavaModuleOptions): what it needs of the JDK's internals.
JAVA_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
    # One small machine, short jobs: the serial collector starts faster and keeps out of the way.
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    # C2 compiles what has run ten times as often as by default: most of what a job's queries bring is never
    # run again, and on two cores its compilation takes a core from the tasks (decision 0031).
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

FAIR_SCHEDULER = """\
<?xml version="1.0"?>
<allocations>
  <pool name="default">
    <schedulingMode>FAIR</schedulingMode>
    <weight>1</weight>
    <minShare>0</minShare>
  </pool>
</allocations>
"""
"""All jobs are in one pool, because merges share a session; in it they take turns by task."""

SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"

STARTED_PATTERN = r"Spark Connect server started at: \S*?:(\d+)\s"
"""How the server's log tells the port it was given."""

LOG_CONFIGURATION = """\
status = error
appender.file.type = Console
appender.file.name = console
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = console
logger.server.name = org.apache.spark.sql.connect.service.SparkConnectServer
logger.server.level = info
"""


_THIS_MACHINE_ONLY = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Other users of this machine reach the driver's ports as well. Spark makes the secret itself.
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}

_SERVING = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    # The system picks a free port; the log says which.
    "spark.connect.grpc.binding.port": "0",
    # Jobs have databases of their own in it, which end with them.
    "spark.sql.catalogImplementation": "in-memory",
    # No job shares views under a well-known name; jobs are refused such views (job_database).
    "spark.sql.globalTempDatabase": "freezeframe_refuses_global_views",
    # Its client's connection goes with the client. The query of a killed one is interrupted, and one
    # that a living client waits for, or reads slowly, has its connection for as long as it takes.
    "spark.connect.execute.manager.detachedTimeout": "3s",
    "spark.connect.execute.manager.maintenanceInterval": "1s",
    "spark.connect.execute.reattachable.senderMaxStreamDuration": "0",
    "spark.connect.execute.reattachable.senderMaxStreamSize": "0",
}
"""What makes a Spark the server of many jobs; no file of the user replaces it."""

_DEFAULTS = {
    "spark.app.name": "freezeframe",
    # Otherwise a small job waits until an earlier large one has no more tasks to start.
    "spark.scheduler.mode": "FAIR",
    "spark.ui.showConsoleProgress": "false",
    # Checksums are in the Parquet pages; a .crc beside each file would only be litter.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Files are the owner's alone: Hadoop sets their mode itself, whatever the process's umask is.
    "spark.hadoop.fs.permissions.umask-mode": "077",
    "spark.cleaner.periodicGC.interval": "10min",
    # Frames of a script outlive its pauses; the sessions of killed jobs are ended (job_remains).
    "spark.connect.session.manager.defaultSessionTimeout": "7d",
    **SCRIPT_CONFIGURATION,
}

_LOCAL_DEFAULTS = {
    "spark.ui.enabled": "false",
    # Of what a UI would show Spark keeps a thousand jobs, stages and queries, also where there is none.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
    # Out of memory, a task fails; by default it would end the Java in which all jobs have their driver.
    "spark.executor.killOnFatalError.depth": "0",
}
_RESULT_SHARE = 4
_RESULT_BYTES_MAX = 1024**3
_SMALL_HEAP_BYTES = 4 * 1024**3
# A shuffle of a script's frame: adaptive planning joins small partitions, and never splits one of these.
_PARTITIONS_PER_CORE = 4
_UNITS = {"": 1024**2, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_LISTS = ("spark.jars", "spark.jars.packages")
# A socket's path has 103 bytes at most on all systems, and Spark's names of sockets have 42 and a separator.
_SOCKET_FOLDER_MAX = 60
_PROPERTY = re.compile(r"\s*((?:\\.|[^\\\s=:#!])(?:\\.|[^\\\s=:])*)(?:\s*[=:]\s*|\s+)(.*)")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n\s*")


def cores() -> int:
    """Return the number of tasks that this machine runs concurrently."""
    return min(processors(), PARTITIONS_MAX)


def local_master() -> str:
    """Return the master URL of a local Spark, with one task per core."""
    return f"local[{cores()}]"


def warm_master(spark: str) -> str | None:
    """Return the warm server's master URL by the setting ``spark``; None for no warm server."""
    if spark == "auto":
        return local_master()
    return spark if spark.startswith("spark://") else None


REMOTE = "SPARK_REMOTE"
"""Spark's own variable. A run, and a process whose session the library made, set it to the address of a
server of ours and say so in a second variable: then the setting ``spark`` still decides."""
OWN_REMOTE = "FREEZEFRAME_OWN_REMOTE"


def foreign_remote(environment: Mapping[str, str]) -> str:
    """Return the user's server in ``SPARK_REMOTE``; empty without one.

    Spark's ``local[2]`` there names none: it asks for a server on this machine, which ``auto`` is.
    """
    remote = environment.get(REMOTE, "")
    return "" if remote == environment.get(OWN_REMOTE) or remote.startswith("local") else remote


def own_remote(url: str) -> dict[str, str]:
    """Return the variables that name a server of ours."""
    return {REMOTE: url, OWN_REMOTE: url}


def server_configuration(settings: Settings, master: str) -> dict[str, str]:
    """Return start options of a warm server, without the token, which is passed in the environment.

    The user's file replaces our defaults; lists of jars are joined.
    """
    is_local = master.startswith("local")
    theirs, given = user_defaults(), server_options(settings)
    options = {
        **_DEFAULTS,
        **(_local_defaults(settings.spark_memory, cores()) if is_local else {}),
        **theirs,
        **given,
        **_SERVING,
        # A cluster's executors must reach the driver, and share the cluster's secret with it.
        **(_THIS_MACHINE_ONLY if is_local else {}),
        "spark.master": master,
        "spark.driver.memory": settings.spark_memory,
    }
    for name in _LISTS:
        if theirs.get(name) and given.get(name):
            options[name] = f"{given[name]},{theirs[name]}"
    return options


def python_worker_options(folder: Path) -> dict[str, str]:
    """Return the options of Python workers on this machine; ``folder`` is private, for their sockets."""
    options = {"spark.python.daemon.module": "freezeframe.engine.server.python_daemon"}
    if len(os.fsencode(folder)) <= _SOCKET_FOLDER_MAX:
        # By TCP the first bytes of a task come 40 ms late: they wait for an acknowledgement.
        options["spark.python.unix.domain.socket.enabled"] = "true"
        options["spark.python.unix.domain.socket.dir"] = str(folder)
    return options


def user_defaults() -> dict[str, str]:
    """Return the options of ``spark-defaults.conf`` in the folder of ``SPARK_CONF_DIR``, as written there."""
    file = Path(os.environ.get("SPARK_CONF_DIR", ""), "spark-defaults.conf")
    if not os.environ.get("SPARK_CONF_DIR") or not file.is_file():
        return {}
    lines = _CONTINUED.sub(r"\1", file.read_text(encoding="utf-8", errors="replace")).splitlines()
    found = [match for line in lines if (match := _PROPERTY.fullmatch(line))]
    return {match[1]: match[2].strip() for match in found}


def session_configuration(master: str | None) -> dict[str, str]:
    """Return the options of the engine's own sessions; ``master`` is that of a server of ours."""
    is_local = master is not None and master.startswith("local")
    return {**SESSION_CONFIGURATION, **(_LOCAL_PLANNING if is_local else _ADAPTIVE_PLANNING)}


def _local_defaults(memory: str, processors: int) -> dict[str, str]:
    # The size that Java takes for its heap; a number alone means MiB, as for Spark.
    found = re.fullmatch(r"(\d+)([bkmgt]?)b?", memory.strip().lower())
    heap = int(found[1]) * _UNITS[found[2]] if found else _SMALL_HEAP_BYTES
    options = {
        **_LOCAL_DEFAULTS,
        "spark.sql.shuffle.partitions": str(_PARTITIONS_PER_CORE * processors),
        # Results of all jobs are held in this heap before they are sent.
        "spark.driver.maxResultSize": str(min(heap // _RESULT_SHARE, _RESULT_BYTES_MAX)),
    }
    if heap <= _SMALL_HEAP_BYTES:
        # By the size of the heap Spark would choose pages of 64 MB, which a join of a thousand rows fills
        # the young generation with: 105 ms of collections a question, and 6 with these. A task has 8,192
        # pages at most, which is more than such a heap.
        options["spark.buffer.pageSize"] = "1m"
    return options
