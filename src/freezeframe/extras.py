"""Packages that freezeframe needs: those of extras (``freezeframe[service]``), and their releases."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version

from freezeframe.errors import MissingExtra, SetupError

_PART = {
    "excel": "An Excel workbook",
    "jobs": "The queue of jobs and its schedules",
    "notebooks": "Running a notebook",
    "otel": "Spans of OpenTelemetry",
    "postgresql": "A control database in PostgreSQL",
    "s3": "A store in a bucket",
    "service": "The REST service",
}
_PACKAGES = {
    "excel": ("xlsxwriter",),
    "jobs": ("alembic", "croniter", "prometheus_client", "sqlalchemy"),
    "notebooks": ("IPython", "ipykernel", "nbformat", "papermill", "traitlets"),
    "otel": ("opentelemetry",),
    "postgresql": ("psycopg",),
    "s3": ("obstore",),
    "service": (
        "authlib",
        "fastapi",
        "httpx",
        "joserfc",
        "multipart",
        "python_multipart",
        "starlette",
        "uvicorn",
    ),
}
_EXTRA = {package: extra for extra, packages in _PACKAGES.items() for package in packages}


@contextmanager
def requires_extra(extra: str) -> Iterator[None]:
    """Import packages of an extra in this block."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_extra(error, extra) or error from error


def missing_extra(error: ModuleNotFoundError, part: str | None = None) -> MissingExtra | None:
    """Return the error for a package that an extra brings; None if no extra brings it.

    ``part`` is the extra that was needed, if another extra brings the package as well.
    """
    package = (error.name or "").partition(".")[0]
    extra = _EXTRA.get(package)
    if extra is None:
        return None
    wanted = part or extra
    return MissingExtra(
        f"{_PART[wanted]} needs the extra '{wanted}', which is not installed.",
        cause=f"There is no package {package}.",
        remedy=f"pip install 'freezeframe[{wanted}]'",
        extra=wanted,
        package=package,
    )


def installed_version(name: str) -> str | None:
    """Return the version of a package; None if it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        # PySpark's client alone does where Spark is elsewhere.
        return installed_version("pyspark-client") if name == "pyspark" else None


@cache
def unfit_packages() -> dict[str, str]:
    """Return what is wrong with a package that freezeframe needs, by its name."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - hundredths of a second, once

    wrong = {}
    for requirement in map(Requirement, requires("freezeframe") or ()):
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        found = installed_version(requirement.name)
        if found is None:
            wrong[requirement.name] = f"{requirement.name} is not installed"
        elif not requirement.specifier.contains(found, prereleases=True):
            wrong[requirement.name] = f"{requirement.name} is {found}, needed is {requirement.specifier}"
    return wrong


def require_release(name: str) -> None:
    """Refuse a library of a release that freezeframe does not work with, at the first call that needs it.

    Raises:
        SetupError: another release is installed than pyproject.toml allows, or none.
    """
    if wrong := unfit_packages().get(name):
        raise SetupError(
            f"This needs another release of {name}.",
            cause=f"In this environment {wrong}.",
            remedy="pip install --upgrade freezeframe, which installs it; freezeframe doctor checks all.",
            package=name,
        )


_TESTED = {("4.1", "2"), ("4.2", "2"), ("4.3", "2"), ("4.3", "3")}


def untested_pair() -> str | None:
    """Return PySpark and pandas as installed, where these two are not tested together; None otherwise."""
    spark, pandas = installed_version("pyspark") or "", installed_version("pandas") or ""
    pair = (".".join(spark.split(".")[:2]), pandas.partition(".")[0])
    return None if pair in _TESTED else f"PySpark {spark} beside pandas {pandas}"
