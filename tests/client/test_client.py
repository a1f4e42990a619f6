"""The generated client against a running service: values in and out, problems as errors."""

import base64
import importlib.util
import json
import uuid
from pathlib import Path

import pytest
from tests.asgi.conftest import serve, served  # noqa: F401 - fixtures

from freezeframe import errors
from freezeframe.client import Client

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def client(served):  # noqa: F811 - the fixture
    """A client that may do everything, and a tenant of its own."""
    with Client(served.url, served.key()) as found:
        yield found


@pytest.fixture
def acme(client):
    """A new tenant's id."""
    name = f"acme-{uuid.uuid4().hex[:8]}"
    assert name == client.create_tenant("dev", {"tenant": name}, idempotency_key=name)["tenant"]
    return name


@pytest.mark.parametrize("name", ["write_client", "write_api"])
def test_what_is_generated_is_what_the_document_says(name):
    """Whoever changes a route writes the client and the page of the API anew."""
    specification = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    writer = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(writer)

    assert writer.main(["--check"]) == 0


def test_files_and_versions(client, acme):
    """Bytes go in and come out, by path and by version; booleans and names survive the URL."""
    client.write_file("dev", acme, "a b/ü.txt", b"one")
    client.write_file("dev", acme, "a b/ü.txt", b"two", message="second", sealed=False)

    assert (
        client.read_file("dev", acme, "a b/ü.txt"),
        client.read_file("dev", acme, "a b/ü.txt", tenant_version=0),
    ) == (b"two", b"one")
    assert [one["path"] for one in client.list_files("dev", acme, recursive=True)["files"]] == ["a b/ü.txt"]
    assert [one["message"] for one in client.list_history("dev", acme)["versions"]] == ["second", ""]
    assert client.restore_tenant("dev", acme, {"version": 0}, if_match='"1"')["committed"]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda client, _: client.show_tenant("dev", "nobody"), errors.TenantNotFound),
        (lambda client, acme: client.show_stream("dev", acme, "Account"), errors.StreamNotFound),
        (lambda client, acme: client.read_file("dev", acme, "a.txt"), errors.FileNotFound),
        (lambda client, acme: client.write_file("dev", acme, "../x", b""), errors.InvalidName),
        (
            lambda client, acme: client.write_file("dev", acme, "a", b"", if_match='"1"'),
            errors.PreconditionFailed,
        ),
        (lambda client, acme: client.list_history("dev", acme, limit=0), errors.InvalidOption),
        (lambda client, acme: client.show_job("dev", acme, "none"), errors.NotFound),
    ],
)
def test_a_problem_is_the_librarys_own_error(client, acme, call, kind):
    """What the service refuses is raised as the class with its code, its cause and its remedy."""
    with pytest.raises(kind) as caught:
        call(client, acme)

    assert caught.value.remedy
    assert caught.value.details["request_id"]


def test_who_is_not_known_and_who_is_not_there(served):  # noqa: F811 - the fixture
    """A wrong key and a service that is not there are errors of their own."""
    with Client(served.url, "a.b") as client, pytest.raises(errors.NotAuthenticated):
        client.list_environments()
    with Client("http://127.0.0.1:1", "a.b") as client, pytest.raises(errors.StorageUnavailable):
        client.list_environments()


def test_logs_come_as_lines(client, acme):
    """The events of a job that has ended are told to their end."""
    job = client.import_stream("dev", acme, "Account", b"Id\n1\n", key=["Id"])
    client.cancel_job("dev", acme, job["job_id"])

    assert [line for line in client.follow_logs("dev", acme, job["job_id"]) if line] == [
        "event: status",
        "data: cancelled",
    ]


def test_rows_of_any_size_come_by_an_upload(client, acme):
    """An upload for an import is begun, sent and named; Arrow and other kinds are told by their type."""
    rows = b"Id\n1\n"
    metadata = f"purpose {base64.b64encode(b'import').decode()}"
    upload = client.begin_upload("dev", acme, upload_length=len(rows), upload_metadata=metadata)
    client.continue_upload("dev", acme, upload["id"], rows, upload_offset=0)
    source = json.dumps({"upload": upload["id"], "kind": "csv"}).encode()
    job = client.import_stream("dev", acme, "Account", source, key=["Id"], content_type="application/json")

    assert job["status"] == "queued"
    with pytest.raises(errors.UnreadableInput):
        client.import_stream("dev", acme, "A", b"x", content_type="application/vnd.apache.arrow.stream")
