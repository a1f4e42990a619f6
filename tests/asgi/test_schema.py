"""Requests made up from the OpenAPI document, good and bad: no answer of 500, none that is not declared."""

import copy

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import booleans
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.asgi.operations import OPEN_ROWS, OTHER_ROWS, TENANT_ROWS
from tests.examples import examples

pytestmark = pytest.mark.long

REAL = {"environment": "dev", "env_id": "dev", "tenant": "acme", "stream": "Account", "path": "a.txt"}
CANARY = "canary-91d2f0aa77c3"
EXAMPLES = examples(150, 75)


def loaded_schema(serve, **bounds):
    """The schema of a server with two tenants, and the headers of a key for all of it or with bounds."""
    served = serve(service_requests_per_second=0)
    for name, content in (("acme", b"own"), ("globex", CANARY.encode())):
        place = served.tenant(name)
        with served.client() as api:
            api.put(f"{place}/files/a.txt", content=content).raise_for_status()
            csv = b"Id,City\n" + content + b",Bern\n"
            api.put(f"/tenant/dev/{name}/snapshots?file=Account.snapshot.csv", content=csv).raise_for_status()
    key = served.key(**bounds)
    document = copy.deepcopy(served.app.openapi())
    for item in (each for path in document["paths"].values() for each in path.values()):
        item.pop("security", None)  # else half of the requests have made-up keys beside the right one
    loaded = schemathesis.openapi.from_dict(document)
    loaded.config.update(base_url=served.url)
    return loaded, {"x-api-key": key}


@pytest.fixture(scope="module")
def schema(serve):
    """Of a key that may see one of the tenants."""
    return loaded_schema(serve, environments=["dev"], tenants=["acme"])


@pytest.fixture(scope="module")
def admins_schema(serve):
    """Of a key for everything."""
    return loaded_schema(serve)


@pytest.mark.sampled
@pytest.mark.parametrize("operation", [*TENANT_ROWS, *OTHER_ROWS, *OPEN_ROWS], ids=" ".join)
def test_any_request_is_answered_as_declared(schema, operation):
    """Whatever a client sends, the answer is declared, is no 500 and tells nothing of another tenant."""
    require_declared(*schema, operation, CANARY.encode())


@pytest.mark.nightly
@pytest.mark.parametrize("operation", [*TENANT_ROWS, *OTHER_ROWS, *OPEN_ROWS], ids=" ".join)
def test_any_request_of_an_admin_is_answered_as_declared(admins_schema, operation):
    """What gets past the checks of scopes and tenants reaches the code behind them."""
    require_declared(*admins_schema, operation)


def require_declared(loaded, headers, operation, unseen=None):
    """Send made-up requests of an operation; no answer may have the unseen bytes."""
    method, path = operation

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=loaded[path][method.upper()].as_strategy(), is_real=booleans())
    def check(case, is_real):
        if is_real and method != "delete":  # half of all requests get as far as something that is there
            names = case.path_parameters or {}
            names.update({name: value for name, value in REAL.items() if name in names})
        if path == "/api/v1/events":
            case.query = {**(case.query or {}), "seconds": 0}  # else it goes on for minutes
        answer = case.call(headers=headers)

        assert 500 > answer.status_code, answer.content
        assert unseen is None or unseen not in answer.content
        case.validate_response(
            answer,
            checks=[status_code_conformance, content_type_conformance, response_schema_conformance],
        )

    check()
