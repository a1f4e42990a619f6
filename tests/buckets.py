"""A bucket on a server of this machine, as the usual variables lead to it."""

import contextlib
import uuid

import boto3
import pytest
from moto.server import ThreadedMotoServer


@contextlib.contextmanager
def made_bucket():
    """The name of a new bucket; Spark keeps what it learns of a name, so each name is used once."""
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
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    try:
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in variables.items():
                patch.setenv(variable, value)
            client().create_bucket(Bucket=name)
            yield name
    finally:
        server.stop()


def client():
    """A client that the variables lead to the bucket."""
    return boto3.client("s3", region_name="us-east-1")


def keys(bucket, prefix=""):
    """The keys of all objects."""
    pages = client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [one["Key"] for page in pages for one in page.get("Contents", ())]
