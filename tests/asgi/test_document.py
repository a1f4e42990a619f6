"""The OpenAPI document says what the service answers, in words that generators of clients know."""

import inspect
import json
import uuid

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from tests.asgi.operations import filled
from tests.asgi.routes.test_log_streams import waiting_log
from tests.examples import by_turns

from freezeframe.asgi.routes.parameters import update_options
from freezeframe.store.model.update_options import UpdateOptions

METHODS = {"get", "put", "post", "patch", "delete"}
# The media types of bodies that generators make code for; an operation with none of them is left out.
KNOWN_BODIES = {"application/json", "application/octet-stream", "multipart/form-data"}
NO_MOMENTS = (
    "5",
    "1764158400",
    "20261126",
    "2026-W48",
    "1e9",
    "yesterday",
    "2026-11-26T25:00",
    "2026-11-26T",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "\u0662\u0660\u0662\u0666-11-26",
)


@pytest.fixture(scope="module")
def document(served):
    return served.app.openapi()


def operations(document):
    """Each operation with its path and method."""
    return [
        (path, method, item) for path, found in document["paths"].items() for method, item in found.items()
    ]


def address(path):
    """The path with some name in each of its places."""
    names = {part[1:-1]: "acme" for part in path.split("/") if part.startswith("{")}
    return filled(path, **{**names, "environment": "dev", "env_id": "dev"})


def test_the_document_is_valid(document):
    """By the specification's own schema; it is OpenAPI 3.1, which generators know."""
    validate(document)

    assert document["openapi"] == "3.1.0"


def test_every_operation_can_become_a_function(document):
    """Each has an id that is a name and only its own, a body of a known type, and says what it answers."""
    found = operations(document)

    assert len(found) == len({item["operationId"] for _, _, item in found})
    for _, method, item in found:
        name, body = item["operationId"], item.get("requestBody", {}).get("content", {})
        assert name.isidentifier()
        assert item["description"], name
        assert not body or KNOWN_BODIES & set(body), name
        assert "500" in item["responses"], name
        parameters = {each["name"] for each in item.get("parameters", ())}
        if "if-match" in parameters and method != "get":
            assert {"412", "428"} <= set(item["responses"]), name
        assert "422" in item["responses"] or not item.get("parameters"), name
        contents = [each.get("content", {}) for each in item["responses"].values()]
        assert not any("content" in each for status, each in item["responses"].items() if status[0] == "3"), (
            name
        )
        for kind, content in [pair for each in [body, *contents] for pair in each.items()]:
            assert content.get("schema"), (name, kind)


@pytest.mark.sampled
def test_allow_names_all_methods_of_a_path(document, served):
    """Whatever is sent to a path in vain (by night all methods), Allow tells all that can be sent there."""
    named, right = {}, {}
    with served.client() as client:
        for number, (path, found) in enumerate(document["paths"].items()):
            for method in by_turns(sorted(METHODS - set(found)), number):
                answer = client.request(method, address(path))
                assert answer.status_code == 405, (method, path)
                assert answer.json()["code"] == "METHOD_NOT_ALLOWED", (method, path)
                named[method, path] = set(answer.headers["allow"].lower().split(", "))
                right[method, path] = set(found) | ({"head"} if "get" in found else set())

    assert named == right


def test_what_is_no_moment_is_refused(document, api, acme):
    """A number is none either, in no parameter that is described as one."""
    tenant = acme.rpartition("/")[2]
    moments = [
        (path, parameter["name"])
        for path, _, item in operations(document)
        for parameter in item.get("parameters", ())
        if "date-time" in json.dumps(parameter["schema"])
    ]
    for path, name in moments:
        place, others = address(path.replace("{tenant}", tenant)), {"by": "Id"} if "sorted" in path else {}
        for text in NO_MOMENTS:
            answer = api.get(place, params={**others, name: text})
            assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST"), (path, name, text)
            assert f"query.{name}" in answer.json()["title"]

    assert {name for _, name in moments} == {"as_of", "since", "until"}


@pytest.mark.parametrize(
    "text", ["2026-11-26", "2026-11-26T10:00:00Z", "2026-11-26 10:00:00.5", "2026-11-26t10:00+01:00"]
)
def test_a_moment_has_a_date_and_perhaps_a_time(api, text):
    """RFC 3339, and what people write for it."""
    assert api.get("/api/v1/audit", params={"until": text}).status_code == 200


def messages(answer):
    """The messages of a stream, as a browser's EventSource has them."""
    found = []
    for block in answer.text.split("\n\n"):
        fields = [line.partition(": ")[::2] for line in block.splitlines() if not line.startswith(":")]
        data = "\n".join(value for name, value in fields if name == "data")
        if fields:
            found.append({**dict(fields), "data": data})
    return found


def require_described(described, found):
    """Check each message by the schema, and its JSON by the schema of the content."""
    schema = described["responses"]["200"]["content"]["text/event-stream"]["schema"]
    for message in found:
        Draft202012Validator(schema).validate(message)
        own = next(
            item for item in schema["oneOf"] if item["properties"]["event"]["const"] == message["event"]
        )
        if "contentSchema" in own["properties"]["data"]:
            content = Draft202012Validator(own["properties"]["data"]["contentSchema"])
            content.validate(json.loads(message["data"]))


def test_messages_of_streams_are_as_described(document, served, api):
    """A job's log, an environment's events and the rows of a search."""
    tenant = served.tenant(f"told-{uuid.uuid4().hex[:8]}")
    name = tenant.rpartition("/")[2]
    hotglue = f"/tenant/dev/{name}/snapshots"
    api.put(hotglue, params={"file": "A.snapshot.csv"}, content=b"Id\n007\n").raise_for_status()
    log = waiting_log(served, tenant)
    api.post(log.replace("/logs", "/cancel")).raise_for_status()
    streams = {
        "follow_logs": (log, {}),
        "follow_events": ("/api/v1/events", {"environment": "dev", "tenant": name, "seconds": 2}),
        "find_rows": ("/api/v1/environments/dev/found-rows", {"text": "007", "tenant": name}),
    }
    described = {entry["operationId"]: entry for _, _, entry in operations(document)}
    kinds = {}
    for operation, (place, query) in streams.items():
        found = messages(api.get(place, params=query))
        if operation == "follow_events" and "version" not in {item["event"] for item in found}:
            found += messages(api.get(place, params=query | {"seconds": 30}))  # beside other work
        require_described(described[operation], found)
        kinds[operation] = {item["event"] for item in found} - {"job"}  # its end may be told in time

    assert kinds == {
        "follow_logs": {"status"},
        "follow_events": {"anew", "version"},
        "find_rows": {"row", "progress", "end"},
    }


def test_plain_octets_say_what_they_are(api, acme):
    """A generated client sends octets; `kind` names the format, and belongs to them alone."""
    content = b"Id,City\n7,Bern\n"
    octets = {"content-type": "application/octet-stream"}
    preview = f"{acme}/streams/A/import-preview?key=Id"
    seen = api.post(f"{preview}&kind=csv", content=content, headers=octets)
    made = api.post(f"{acme}/streams/A/import?key=Id&kind=csv", content=content, headers=octets)
    bare = api.post(preview, content=content, headers=octets)
    both = api.post(f"{preview}&kind=csv", content=content, headers={"content-type": "text/csv"})

    assert (seen.status_code, [item["name"] for item in seen.json()["columns"]]) == (200, ["Id", "City"])
    assert made.status_code == 202
    assert [(item.status_code, item.json()["code"]) for item in (bare, both)] == [
        (422, "INVALID_REQUEST")
    ] * 2


def test_an_import_has_every_option_of_an_update():
    """What Python takes the service takes, under the same names."""
    assert set(UpdateOptions.__annotations__) == set(inspect.signature(update_options).parameters)
