"""Where a service under test keeps its store and its control database: on this disk, or elsewhere.

``FREEZEFRAME_TEST_PLACE`` says where the servers of all tests do: ``postgresql`` or ``bucket``.
"""

import os
import uuid
from contextlib import contextmanager, nullcontext

import pytest
from tests.buckets import made_bucket
from tests.control.conftest import made_database, postgresql_server  # noqa: F401 - a fixture

from freezeframe.control.database import database_url

PLACE = os.environ.get("FREEZEFRAME_TEST_PLACE", "")
on_this_disk = pytest.mark.skipif(PLACE == "bucket", reason="looks at the store's files on this disk")


@pytest.fixture(scope="session")
def bucket():
    """The name of a bucket on a server of this machine, which the usual variables lead to."""
    with made_bucket() as name:
        yield name


@contextmanager
def placed(request, tmp_path_factory, settings, place=PLACE):
    """Root, settings and the database's URL of a new service, by default where the variable says."""
    if place == "bucket":
        folder = tmp_path_factory.mktemp("beside")
        secret = folder / "secret"
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        given = {"service_secret_file": secret, "s3_conditional_writes": "trusted"}
        beside = settings.model_copy(update=given)
        # A bucket's variables end with it, or with the run where all servers are to be in buckets.
        found = nullcontext(request.getfixturevalue("bucket")) if place == PLACE else made_bucket()
        with found as name:
            yield f"s3://{name}/{uuid.uuid4().hex}", beside, f"sqlite:///{folder / 'control.db'}"
        return
    root = str(tmp_path_factory.mktemp("store"))
    if place == "postgresql":
        with made_database(request.getfixturevalue("postgresql_server")) as url:
            yield root, settings, url
        return
    assert place == "", "FREEZEFRAME_TEST_PLACE is postgresql or bucket"
    yield root, settings, database_url(settings, root)
