"""A bucket on a server of this machine, as the usual variables lead to it."""

import contextlib
import threading
import time
import uuid

import boto3
import pytest
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server


class OneCreatorAtATime:
    """The server's application: it looks whether a name is free and then takes it; here both are one step."""

    def __init__(self):
        self._application = DomainDispatcherApplication(create_backend_app)
        self._creating = threading.Lock()

    def __call__(self, environ, start_response):
        creates = environ.get("HTTP_IF_NONE_MATCH") == "*"
        with self._creating if creates else contextlib.nullcontext():
            return self._application(environ, start_response)


class LateCreators:
    """A planted fault: a log's name that was free a moment ago is taken over, without another look.

    Of logs only, since a storage that is all like this is refused by the probe.
    """

    def __init__(self):
        self._application = DomainDispatcherApplication(create_backend_app)
        self._taken = set()

    def __call__(self, environ, start_response):
        name = environ["PATH_INFO"]
        is_entry = "/_freezeframe/log/" in name and environ.get("HTTP_IF_NONE_MATCH") == "*"
        if is_entry and name not in self._taken:
            time.sleep(0.02)
            self._taken.add(name)
            del environ["HTTP_IF_NONE_MATCH"]
        return self._application(environ, start_response)


@contextlib.contextmanager
def made_bucket(application=OneCreatorAtATime):
    """The name of a new bucket; Spark keeps what it learns of a name, so each name is used once."""
    server = make_server("127.0.0.1", 0, application(), threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
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
        server.shutdown()
        thread.join()
        server.server_close()


def client():
    """A client that the variables lead to the bucket."""
    return boto3.client("s3", region_name="us-east-1")


def keys(bucket, prefix=""):
    """The keys of all objects."""
    pages = client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [one["Key"] for page in pages for one in page.get("Contents", ())]
