"""Spark's options for a store in a bucket: jars, endpoint, committer.

Hadoop's "magic" committer writes files directly under their final names and publishes them when the whole
write commits: a bucket cannot rename, and a lost task leaves no visible files.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from freezeframe.settings import Settings
from freezeframe.storage.location import S3Access

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
_SDK = "2.29.52"
PACKAGES = ",".join(
    (
        "org.apache.hadoop:hadoop-aws:3.4.2",
        "org.apache.spark:spark-hadoop-cloud_2.13:4.1.1",
        f"software.amazon.awssdk:s3-transfer-manager:{_SDK}",
        f"software.amazon.awssdk:sts:{_SDK}",
    )
)
"""What Spark needs for ``s3a://``, for Spark 4.1 and its Hadoop 3.4.2 with the SDK that it was built with."""
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
"""What ``PACKAGES`` name beyond that."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def own_jars(settings: Settings) -> list[Path]:
    """The jars of the settings' folder."""
    return [] if settings.spark_jars_dir is None else sorted(settings.spark_jars_dir.glob("*.jar"))


def is_bucket(settings: Settings) -> bool:
    """Whether the store of the settings is in a bucket."""
    return "://" in settings.root


def server_options(settings: Settings) -> dict[str, str]:
    """Start options of an own server, without secrets; empty without own jars and without a bucket.

    Where a store in a bucket has no jars of its own, Spark fetches ``PACKAGES``.
    ``spark.freezeframe.s3`` changes with the keys: a server holds on to those that it met first.
    """
    jars = own_jars(settings)
    if not jars and not is_bucket(settings):
        return {}
    access = S3Access.of(settings, os.environ)
    options = {f"spark.hadoop.{name}": value for name, value in {**_S3A, **access.hadoop_options()}.items()}
    named = {"spark.freezeframe.s3": access.digest} if is_bucket(settings) else {}
    fetched = {"spark.jars.packages": PACKAGES, "spark.jars.excludes": EXCLUDES}
    brought = {"spark.jars": ",".join(map(str, jars))} if jars else fetched
    return {**options, **named, **brought}


def bucket_variables(settings: Settings) -> dict[str, str]:
    """The key as variables of a server of ours, for sessions that are not ours."""
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
    """Spark options of a session, keys included; empty unless the store is in a bucket.

    ``server`` is where Spark is. To one elsewhere go the settings' own keys alone, and only where nobody
    can listen: this machine's own variables are no business of a server that has a role of its own.
    """
    if not is_bucket(settings):
        return {}
    access = S3Access.of(settings, os.environ)
    if not server.startswith("sc://"):
        return {**_S3A, **access.hadoop_options(), **access.hadoop_secrets()}
    has_own = bool(settings.s3_access_key_id)
    if has_own and _is_private(server):
        return {**_S3A, **access.hadoop_options(), **access.hadoop_secrets()}
    options = access.hadoop_options()
    del options["fs.s3a.aws.credentials.provider"]  # regardless of the server's settings
    return {**_S3A, **options}


def _is_private(server: str) -> bool:
    return "use_ssl=true" in server.lower() or (urlsplit(server).hostname or "") in _LOOPBACK
