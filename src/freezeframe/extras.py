"""Optional dependencies (extras), such as ``freezeframe[service]``, and the error where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from freezeframe.errors import MissingExtra

_PART = {
    "jobs": "The queue of jobs and its schedules",
    "notebooks": "Running a notebook",
    "otel": "Spans of OpenTelemetry",
    "postgresql": "A control database in PostgreSQL",
    "s3": "A store in a bucket",
    "service": "The REST service",
}
_PACKAGES = {
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
