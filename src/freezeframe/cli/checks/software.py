"""Checks of programs: Python, the pinned packages, Java, Spark."""

from __future__ import annotations

import platform
import socket
from importlib.metadata import PackageNotFoundError, requires, version
from urllib.parse import urlsplit

from packaging.requirements import Requirement

from freezeframe.cli.checks.machine import Finding
from freezeframe.settings import Settings

_NAMED = ("pyspark", "pandas", "pyarrow")
_INSTALL = "pip install --upgrade freezeframe"
_CONNECT_SECONDS = 3.0
_CONNECT_PORT = 15002
_MASTER_PORT = 7077


def python() -> Finding:
    """The Python that runs this, and its system."""
    return Finding("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def packages() -> Finding:
    """Check that each package has a version that this freezeframe was tested with."""
    wrong = []
    for requirement in map(Requirement, requires("freezeframe") or ()):
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        found = _package_version(requirement.name)
        if found is None:
            wrong.append(f"{requirement.name} is not installed")
        elif not requirement.specifier.contains(found, prereleases=True):
            wrong.append(f"{requirement.name} is {found}, needed is {requirement.specifier}")
    if wrong:
        return Finding("Packages", "error", "; ".join(wrong), _INSTALL)
    named = ", ".join(f"{name} {_package_version(name)}" for name in _NAMED)
    return Finding("Packages", "ok", f"freezeframe {version('freezeframe')}, {named}")


def installed_version(name: str) -> str | None:
    """The version of a package; None if it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _package_version(name: str) -> str | None:
    """As ``installed_version``; of PySpark the client as well, where Spark is elsewhere."""
    return installed_version(name) or (installed_version("pyspark-client") if name == "pyspark" else None)


def java(settings: Settings) -> Finding:
    """Check the Java that would start Spark; a remote server needs none here."""
    from freezeframe.engine.java import find_java

    if settings.spark.startswith("sc://"):
        return Finding("Java", "ok", f"not needed: Spark is at {settings.spark.partition(';')[0]}")
    found = find_java()
    return Finding("Java", "ok", f"Java {found.version} ({found.command})")


def spark(settings: Settings) -> Finding:
    """Check that Spark runs, or that the first job can start it."""
    from freezeframe.engine.server.server import standings

    if "://" in settings.spark:
        return _remote(settings.spark)
    if settings.spark == "local":
        return Finding("Spark", "ok", "started by each job for itself")
    running = standings(settings)
    if not running:
        return Finding("Spark", "ok", "no warm server runs; the first job starts one")
    first = running[0]
    return Finding("Spark", "ok", f"a warm server runs: process {first.process}, {first.spark_memory}")


def jars(settings: Settings) -> Finding:
    """Check that Spark has the jars to reach a store in a bucket."""
    from freezeframe.engine.configuration import PACKAGES, is_bucket, own_jars

    folder = settings.spark_jars_dir
    if found := own_jars(settings):
        return Finding("Spark's jars", "ok", f"{len(found)} jars in {folder}")
    if not is_bucket(settings):
        return Finding("Spark's jars", "ok", "none, and none are needed: the store is not a bucket")
    if settings.spark.startswith("sc://"):
        return Finding("Spark's jars", "ok", "none here: the server elsewhere brings its own")
    if folder is not None:
        remedy = "put the jars there, or leave spark_jars_dir out"
        return Finding("Spark's jars", "error", f"none in {folder}, and the store is in a bucket", remedy)
    return Finding("Spark's jars", "ok", f"Spark fetches {PACKAGES} at its first start")


def started_spark(settings: Settings) -> Finding:
    """Check that Spark answers a query; starts the warm server if none runs."""
    from freezeframe.engine.connect import connect

    connection = connect(settings, lambda _: None)
    try:
        count = connection.session.range(1).count()
    finally:
        connection.close()
    return Finding("Spark", "ok", f"Spark {connection.session.version} answers ({count} row)")


def _remote(url: str) -> Finding:
    place = urlsplit(url.partition("/;")[0])
    port = place.port or (_CONNECT_PORT if place.scheme == "sc" else _MASTER_PORT)
    where = f"{place.hostname}:{port}"
    try:
        socket.create_connection((place.hostname or "", port), _CONNECT_SECONDS).close()
    except OSError as error:
        return Finding(
            "Spark", "error", f"{where} cannot be reached: {error}", "freezeframe config get spark"
        )
    return Finding("Spark", "ok", f"{where} listens")
