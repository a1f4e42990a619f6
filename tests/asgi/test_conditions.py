"""A change under a condition that does not hold is never made, whatever the operation."""

import pytest
from tests.asgi.operations import ROWS, filled

CONDITIONS = {"if-match", "if-none-match"}
WRITING = {"put", "post", "patch", "delete"}


@pytest.fixture
def stream(api, acme):
    """The path of a stream with two versions."""
    place = f"/tenant/dev/{acme.rpartition('/')[2]}/snapshots?file=Account.snapshot.csv"
    for rows in (ROWS, ROWS + b"8,Thun\n"):
        api.put(place, content=rows).raise_for_status()
    return f"{acme}/streams/Account"


def test_a_stream_is_restored_only_as_it_was_seen(api, stream):
    """The tag is the stream's: of a version before it is 412, of the newest the change is made."""
    seen = api.get(stream).headers["etag"]
    statuses = [
        api.post(f"{stream}/restore", json={"version": 0}, headers={name: tag}).status_code
        for name, tag in (("if-match", '"0"'), ("if-none-match", "*"), ("if-match", seen), ("if-match", seen))
    ]

    assert statuses == [412, 412, 200, 412]


def test_a_condition_of_a_blob_needs_the_files_path(api, acme):
    """Without the path there is nothing to compare; a blob under a path is compared before it is sent."""
    api.put(f"{acme}/files/a.txt", content=b"a").raise_for_status()
    place = f"{acme}/blobs"
    none, never = {"if-none-match": "*"}, {"if-match": '"never"'}
    bare = [api.post(place, content=b"x", headers=one) for one in (none, never)]
    named = [api.post(f"{place}?path=a.txt", content=b"x", headers=one) for one in (none, never)]

    assert [one.status_code for one in bare] == [422, 422]
    assert [one.status_code for one in named] == [412, 412]


def test_a_condition_that_an_operation_does_not_know_is_refused(served, api, acme):
    """It would be ignored, and the change made: 422 before anything else is looked at."""
    known, refused = set(), set()
    for path, found in served.app.openapi()["paths"].items():
        for method in WRITING & set(found):
            headers = {one["name"] for one in found[method].get("parameters", ()) if one["in"] == "header"}
            if headers >= CONDITIONS:
                known.add(path)
                continue
            names = {part[1:-1]: "nothing" for part in path.split("/") if part.startswith("{")}
            for name in CONDITIONS:
                answer = api.request(method, filled(path, **names), headers={name: '"0"'})
                assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST"), (method, path)
                assert name in answer.json()["title"]
            refused.add(path)

    assert len(known) > 10
    assert len(refused) > 10
