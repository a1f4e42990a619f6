# ruff: noqa: E501 - pools of values read better on one line
"""Made-up requests of a key for one tenant: no answer of 500, and nothing of another tenant in any of them."""

import collections
import sys
from contextlib import suppress

import pyarrow as pa
import pytest
from tests.asgi.direct_app import DirectApp
from tests.asgi.request_fuzz import FOREIGN, NEVER, OWN, ROWS, Requests

from freezeframe.errors import AlreadyExists

pytestmark = [
    pytest.mark.long,
    # Starlette leaves the file of a form that breaks off within it to the garbage collector.
    pytest.mark.filterwarnings("ignore:Unclosed file <tempfile.SpooledTemporaryFile:ResourceWarning"),
]

CANARY = "canary-5d1c0e77b2"
FEW, MANY = 250, 20_000
SEEDED_EVERY = 200


def seeded(tenant, mark):
    """A tenant with something in every kind of place, each marked."""
    stream = tenant.stream("Account")
    stream.update(ROWS, "Id", override=tenant.stream("Account").version() >= 0)
    tenant.stream(f"Lead{mark}").update(
        pa.table({"Id": ["1"], f"c{mark}": [mark or "x"]}), "Id", override=True
    )
    tenant.files.write("a.txt", f"text {mark}".encode())
    tenant.files.write(f"notes/b{mark}.json", b"{}")
    tenant.files.write(
        "tenant-config.json", f'{{"hotglue_metadata": {{"metadata": {{"m": "{mark}"}}}}}}'.encode()
    )
    with tenant.job(message=f"message {mark}", who=f"who {mark}") as job:
        job.files.write("told.txt", b"x")
    with suppress(AlreadyExists):  # a request may have given the name to another version
        tenant.tag(f"one{mark}", 0)


@pytest.fixture(scope="module")
def fuzzed(serve):
    """A server with the key's tenant, and another one with a canary in its rows, names, tags and messages."""
    served = serve(service_requests_per_second=0)
    for name, mark in ((OWN, ""), (FOREIGN, f"-{CANARY}")):
        served.tenant(name)
        seeded(served.service.stores.environment("dev").tenant(name), mark)
    application = DirectApp(served.app)
    yield served, application
    application.close()


def fuzz(served, application, seed, count):
    """Send so many requests; how often each status was the answer."""
    stores, statuses = served.service.stores, collections.Counter()
    foreign = stores.environment("dev").tenant(FOREIGN)
    before = foreign.version
    requests = Requests(served.app.openapi(), seed)
    key = served.key("tenants:read", "snapshots:read", "snapshots:write", "snapshots:delete", "jobs:read",
                     "jobs:run", tenants=[OWN])  # fmt: skip
    for number in range(count):
        if number % SEEDED_EVERY == SEEDED_EVERY - 1:
            seeded(stores.environment("dev").tenant(OWN), "")
        method, target, headers, body = requests.next()
        answer = application.ask(method, target, [(b"x-api-key", key.encode()), *headers], body)
        statuses[answer.status] += 1
        told = f"{number}: {method} {target} {headers} {body[:300]!r}: {answer.status} {answer.body[:500]!r}"
        assert 100 < answer.status < 500, told
        assert CANARY.encode() not in answer.body, told
        assert CANARY not in str(answer.headers), told
        sent = dict(headers)
        if method != "GET" and sent.get(b"if-match") == NEVER.encode() and b"idempotency-key" not in sent:
            assert answer.status >= 400, told
        requests.learn(answer.body, answer.headers.get("etag", ""))
    assert before == foreign.version
    return statuses


def test_made_up_requests_are_answered(fuzzed):
    """A few hundred, the same in every run; most kinds of answers are among them."""
    statuses = fuzz(*fuzzed, 1, FEW)
    assert statuses.total() == FEW
    assert {200, 400, 404, 422} <= set(statuses)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_many_made_up_requests_are_answered(fuzzed):
    """Twenty thousand, with deletes of all but tenants; afterwards the tenant's audit is whole."""
    statuses = fuzz(*fuzzed, 20_261_122, MANY)
    sys.stderr.write(f"{dict(sorted(statuses.items()))}\n")
    assert statuses.total() == MANY
