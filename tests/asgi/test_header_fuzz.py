"""Headers and paths of any bytes: no answer of 500, nothing of another tenant, every refusal a problem."""

import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.asgi.direct_app import DirectApp
from tests.asgi.operations import TENANT_ROWS, H, T, filled
from tests.examples import examples

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]  # at night on a busy machine

CANARY = b"canary-7a1be2209c5d"
VICTIM, OWN = "globex", "acme"
EXAMPLES = settings(max_examples=60, suppress_health_check=list(HealthCheck))

NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(2**31 - 2, 2**70),
    st.sampled_from(["", "0x1", "1e3", "+1", "٣", "1_0", "NaN"]),
).map(str)
TOKENS = st.sampled_from([
    "*", '"0"', 'W/"0"', '"', '""', "0", ",", '"0", "1"', "sha-256=:AAAA:", "sha-256=::", "sha-256=:=:",
    "bytes", "ü",
])  # fmt: skip
BYTES = st.binary(max_size=40).map(lambda raw: raw.translate(None, b"\r\n\0"))
KINDS = [
    "application/json", "application/x+json", "text/csv; charset=\xff", "multipart/form-data", "a/b", ";",
    "multipart/form-data; boundary=", "application/vnd.apache.arrow.stream",
]  # fmt: skip
VALUES = {
    "authorization": st.sampled_from(
        ["Bearer ", "Basic ", "bearer\t", "Bearer {key}", "Bearer {key} {key}", "{key}"]
    ),
    "x-api-key": st.sampled_from(["{key}", "{key}.", ".{key}", "{key}{key}", "a.b.c", "."]),
    "cookie": st.sampled_from(
        ["freezeframe_session=", "freezeframe_session=a; freezeframe_session=b", "=;=;"]
    ),
    "if-match": TOKENS,
    "if-none-match": TOKENS,
    "range": st.tuples(NUMBERS, NUMBERS).map(lambda pair: f"bytes={pair[0]}-{pair[1]}")
    | st.sampled_from(["bytes=0-0,2-3", "bytes=-", "items=0-1", "bytes=0-" + "9" * 400]),
    "if-range": TOKENS,
    "content-digest": TOKENS,
    "x-content-sha256": st.sampled_from(["", "0" * 64, "0" * 63, "g" * 64]),
    "content-length": NUMBERS,
    "transfer-encoding": st.sampled_from(["chunked", "identity", "gzip, chunked", "chunked, chunked"]),
    "content-encoding": st.sampled_from(["gzip", "br", "identity"]),
    "idempotency-key": st.sampled_from(["", "a" * 201, "k", "k\t", "ü"]),
    "accept": st.sampled_from(["*/*;q=9", "application/vnd.apache.arrow.stream", "a" * 300, ",;,"]),
    "content-type": st.sampled_from(KINDS),
    "host": st.sampled_from(["", "evil.example", "a:b:c", "[::1", "127.0.0.1:99999"]),
    "origin": st.sampled_from(["null", "https://evil.example", "http://", "\xff"]),
    "last-event-id": NUMBERS,
    "x-request-id": TOKENS,
    "x-forwarded-host": TOKENS,
    "x-http-method-override": st.sampled_from(["DELETE", "PUT"]),
}
HEADERS = st.lists(
    st.sampled_from(sorted(VALUES)).flatmap(
        lambda name: st.tuples(st.just(name), VALUES[name].map(lambda text: text.encode("utf-8")) | BYTES)
    ),
    min_size=1,
    max_size=4,
)
# What takes the tenant away, waits for events, or is too slow to be asked thousands of times.
ASKED = sorted(
    item
    for item in TENANT_ROWS
    if item != ("delete", T) and not item[1].endswith(("/events", "/logs", "/clone"))
)
# An operation without pages knows no cursor, and would say no more than that.
_LISTS = ("files", "streams/{stream}/rows", "streams/{stream}/changes", "streams/{stream}/history", "jobs")
PAGED = {("get", f"{T}/{name}") for name in (*_LISTS, "streams/{stream}/diff", "history", "audit")}
CURSORS = st.text("AZaz09-_=.", max_size=40) | st.sampled_from(["AAAA", "%00", "%ff", "null", "a" * 4001])
NAMES = [
    "..", ".", "", "%2e%2e", "%2E%2e%2F", "%252e%252e", "%00", "%ff", "%c0%ae", "\\", "%5c", ";", "*", "~",
    "%", "%zz", "api", "v1", "environments", "tenants", "streams", "files", "tenant", "dev", OWN, VICTIM,
    "Account", "snapshots", "rows", "diff", "_freezeframe", "CON", "a.txt", "%F0%9F%98%80", "%E2%80%AE",
    "a" * 300,
]  # fmt: skip
SEGMENTS = st.one_of(
    st.sampled_from(NAMES), st.text(max_size=6).map(lambda text: quote(text.encode("utf-8", "surrogatepass")))
)
PATHS = st.lists(SEGMENTS, max_size=9).map(lambda parts: "/" + "/".join(parts))
ROOTED = st.lists(SEGMENTS, max_size=4).map(
    lambda parts: f"/api/v1/environments/dev/tenants/{OWN}/" + "/".join(parts)
)


@pytest.fixture(scope="module")
def world(serve):
    """An application with two tenants, of which the key may see one."""
    served = serve(service_requests_per_second=0)
    for name, content in ((OWN, b"own"), (VICTIM, CANARY)):
        place = served.tenant(name)
        with served.client() as api:
            api.put(f"{place}/files/a.txt", content=content).raise_for_status()
            csv = b"Id,City\n" + content + b",Bern\n"
            api.put(f"/tenant/dev/{name}/snapshots?file=Account.snapshot.csv", content=csv).raise_for_status()
    app = DirectApp(served.app)
    yield app, served.key(environments=["dev"], tenants=[OWN]).encode(), served
    app.close()


def _require_harmless(told, method):
    assert 100 < told.status < 500, (told.status, told.body)
    assert CANARY not in told.body
    assert CANARY.decode() not in str(told.headers)
    assert told.headers["x-request-id"]
    if told.status >= 400 and method.lower() != "head":
        assert told.headers["content-type"] == "application/problem+json", told
        assert json.loads(told.body)["code"]


@settings(EXAMPLES, max_examples=examples(20_000, 333))
@given(operation=st.sampled_from(ASKED), headers=HEADERS, cursor=st.none() | CURSORS)
@example(
    operation=("get", f"{T}/files/{{path}}"), headers=[("range", b"bytes=0-" + b"9" * 5000)], cursor=None
)
@example(operation=("put", f"{T}/files/{{path}}"), headers=[("content-length", "٣".encode())], cursor=None)
@example(operation=("put", f"{H}/snapshots"), headers=[("content-type", b"multipart/form-data")], cursor=None)
def test_headers_of_any_bytes_are_answered(world, operation, headers, cursor):
    """Whatever stands in a header or cursor, the answer is a good one or a problem."""
    app, key, _ = world
    method, path = operation
    row = TENANT_ROWS[operation]
    names = {"stream": "Account", "path": "a.txt", "tag": "t", "key": "1", "job_id": "j", "blob_id": "0" * 32}
    target = filled(path + row.query, environment="dev", env_id="dev", tenant=OWN, unique="u", **names)
    if cursor is not None and operation in PAGED:
        target += ("&" if "?" in target else "?") + f"cursor={quote(cursor, safe='%')}"
    sent = {name.encode(): value.encode("latin-1") for name, value in row.headers.items()}
    body = row.content or b""
    if row.json is not None:
        sent[b"content-type"] = b"application/json"
        body = filled(json.dumps(row.json), unique="u").encode()
    pairs = [(name, value) for name, value in sent.items() if name.decode() not in dict(headers)]
    given = [(name.encode(), value.replace(b"{key}", key)) for name, value in headers]
    if not {"x-api-key", "authorization"} & dict(headers).keys():
        given.append((b"x-api-key", key))
    _require_harmless(app.ask(method, quote(target, safe="/?&=%:;,+!*'()"), [*pairs, *given], body), method)


@EXAMPLES
@given(
    method=st.sampled_from(["get", "put", "post", "delete", "patch", "head", "options", "trace", "X"]),
    target=PATHS | ROOTED,
)
@example(method="get", target=f"/api/v1/environments/dev/tenants/{OWN}/files/..%2f..%2f{VICTIM}%2fa.txt")
@example(method="get", target=f"/tenant/dev/{OWN}%2f..%2f{VICTIM}/snapshots")
def test_paths_of_any_bytes_are_answered(world, method, target):
    """However a path is spelled, it leads to what is the key's own or nowhere."""
    app, key, _ = world
    if method == "delete" and target.rstrip("/").endswith(f"tenants/{OWN}"):
        return
    _require_harmless(app.ask(method, target, [(b"x-api-key", key)]), method)
