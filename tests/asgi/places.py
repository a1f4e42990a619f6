"""Where a service under test keeps its store and its control database: on this disk, or elsewhere.

``FREEZEFRAME_TEST_PLACE`` says where the servers of all tests do: ``postgresql`` or ``bucket``.
"""

import os
import uuid
from contextlib import contextmanager

import boto3
import pytest
from moto.server import ThreadedMotoServer
from tests.control.conftest import made_database, postgresql_server  # noqa: F401 - a fixture

from freezeframe.control.place import database_url

PLACE = os.environ.get("FREEZEFRAME_TEST_PLACE", "")
on_this_disk = pytest.mark.skipif(PLACE == "bucket", reason="looks at the store's files on this disk")


@pytest.fixture(scope="module")
def bucket():
    """The name of a bucket on a server of this machine, which the usual variables lead to."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="served")
        yield "served"
    server.stop()


@contextmanager
def placed(request, tmp_path_factory, settings):
    """Root, settings and the database's URL of a new service, where ``FREEZEFRAME_TEST_PLACE`` says."""
    if PLACE == "bucket":
        folder = tmp_path_factory.mktemp("beside")
        secret = folder / "secret"
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        root = f"s3://{request.getfixturevalue('bucket')}/{uuid.uuid4().hex}"
        beside = settings.model_copy(update={"service_secret_file": secret})
        yield root, beside, f"sqlite:///{folder / 'control.db'}"
        return
    root = str(tmp_path_factory.mktemp("store"))
    if PLACE == "postgresql":
        with made_database(request.getfixturevalue("postgresql_server")) as url:
            yield root, settings, url
        return
    assert PLACE == "", "FREEZEFRAME_TEST_PLACE is postgresql or bucket"
    yield root, settings, database_url(settings, root)
