"""hotglue's paths: what a client that was written for them sends and expects."""

import base64
import io
import json
import re
import uuid
from pathlib import Path

import pandas as pd
import pytest
from gluestick.etl_utils import read_tenant_custom_mapping
from tests.working_copies import run_in_working_copy

import gluestick

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "migrate-from-hotglue.md"


@pytest.fixture
def place():
    """The path of a tenant that nobody has made."""
    return f"/tenant/dev/acme-{uuid.uuid4().hex[:8]}"


def _sent(api, place, form, name, content):
    if form == "raw":
        return api.put(f"{place}/snapshots?file={name}", content=content)
    if form == "multipart":
        return api.put(f"{place}/snapshots", files={"file": (name, content)})
    body = {"file": name, "content": base64.b64encode(content).decode()}
    return api.put(f"{place}/snapshots", json=body)


@pytest.mark.parametrize("form", ["raw", "multipart", "json"])
def test_a_file_in_each_form_comes_back_as_base64(api, place, form):
    """Written in any of the three forms, listed, read, and removed."""
    done = _sent(api, place, form, "mappings/a.bin", b"\x00\xff bytes")
    listed = api.get(f"{place}/snapshots").json()
    read = api.get(f"{place}/snapshots?file=mappings/a.bin").json()
    removed = api.delete(f"{place}/snapshots?file=mappings/a.bin")

    assert (done.status_code, listed, removed.status_code) == (200, ["mappings/a.bin"], 200)
    assert {"file": "mappings/a.bin", "content": base64.b64encode(b"\x00\xff bytes").decode()} == read
    assert api.get(f"{place}/snapshots").json() == []


@pytest.mark.parametrize("form", ["raw", "multipart", "json"])
def test_a_snapshot_file_is_the_stream(api, place, form):
    """Written as CSV it is a stream's whole content; it is read as CSV and as Parquet, and removed."""
    _sent(api, place, form, "Account.snapshot.csv", b"Id,City\n007,Bern\n")
    done = _sent(api, place, form, "Account.snapshot.csv", b"Id,City\n007,Thun\n8,\n")
    text = api.get(f"{place}/snapshots?file=Account.snapshot.csv").json()["content"]
    parquet = api.get(f"{place}/snapshots?file=Account.snapshot.parquet").json()["content"]

    assert (done.status_code, base64.b64decode(text)) == (200, b"Id,City\n007,Thun\n8,\n")
    assert base64.b64decode(parquet)[:4] == b"PAR1"
    assert api.get(f"{place}/snapshots").json() == ["Account.snapshot.csv"]
    assert api.get(f"{place}/snapshots?folder=mappings").json() == []
    assert api.delete(f"{place}/snapshots?file=Account.snapshot.csv").status_code == 200
    assert api.get(f"{place}/snapshots?file=Account.snapshot.csv").status_code == 404


def test_parquet_goes_in_as_it_came_out(api, place):
    """A stream's Parquet file replaces the stream by itself."""
    _sent(api, place, "raw", "A.snapshot.csv", b"Id\n007\n")
    content = base64.b64decode(api.get(f"{place}/snapshots?file=A.snapshot.parquet").json()["content"])

    assert _sent(api, place, "raw", "A.snapshot.parquet", content).status_code == 200
    text = api.get(f"{place}/snapshots?file=A.snapshot.csv").json()["content"]
    assert base64.b64decode(text) == b"Id\n007\n"


def test_more_rows_than_are_replaced_at_once_are_an_import(serve):
    """Over the limit the answer is 413 and says where they go."""
    served = serve(service_override_bytes_max=1024)
    with served.client() as api:
        answer = api.put("/tenant/dev/acme/snapshots?file=A.snapshot.csv", content=b"Id\n" + b"1\n" * 1000)

    assert answer.status_code == 413
    assert "import" in answer.json()["remedy"]


def test_configuration_mapping_and_metadata_are_parts_of_one_file(api, place):
    """Each is replaced alone; the others, and what scripts put beside them, stay."""
    api.put(f"{place}/config", json={"apiCredentials": {"a": 1}}).raise_for_status()
    mapping = {"Leads/Contact": {"name": "Name"}}
    api.put(f"{place}/mapping", json={"config": {"mapping": mapping}, "flow": "F1", "entityType": "taps"})
    api.put(f"{place}/metadata", json={"metadata": {"plan": "gold"}})
    patched = api.patch(f"{place}/config", json={"apiCredentials": None, "x": 2}).json()

    assert {"mapping": {"F1": mapping}} == api.get(f"{place}/mapping").json()
    assert api.get(f"{place}/metadata").json() == {"metadata": {"plan": "gold"}}
    assert set(patched) == {"x", "hotglue_mapping", "hotglue_metadata"}
    assert api.get(f"{place}/snapshots").json() == ["tenant-config.json"]


LEADS = {"Leads/Contact": {"name": "Name"}}
DEALS = {"Deals/Opportunity": {"id": "Id"}}
LISTED = {"sf": [{"source": "Leads", "target": "Contact", "fields": {"name": "Name"}}], "version": "1.0"}
READ_LEADS = ({"Leads": {"name": "Name"}}, {"Leads": "Contact"})
READ_DEALS = ({"Deals": {"id": "Id"}}, {"Deals": "Opportunity"})


@pytest.mark.parametrize(
    ("bodies", "kept", "read"),
    [
        ([{"config": {"mapping": {"F1": LEADS}}}], {"F1": LEADS}, READ_LEADS),
        ([{"config": {"mapping": {"F1": LEADS}}, "flow": "F1", "entityId": "x"}], {"F1": LEADS}, READ_LEADS),
        ([{"config": {"mapping": LEADS}, "flow": "F1"}], {"F1": LEADS}, READ_LEADS),
        (
            [{"config": {"mapping": {"F2": LEADS}}}, {"config": {"mapping": {"F1": DEALS}}}],
            {"F1": DEALS, "F2": LEADS},
            READ_DEALS,
        ),
        ([{"config": {"mapping": {"F1": item}}} for item in (LEADS, DEALS)], {"F1": DEALS}, READ_DEALS),
        ([{"config": {"mapping": LISTED}}], LISTED, READ_LEADS),
        ([{"config": {"mapping": item}} for item in ({"F1": DEALS}, LISTED)], LISTED, READ_LEADS),
        ([{"config": {"mapping": item}} for item in (LISTED, {"F1": DEALS})], {"F1": DEALS}, READ_DEALS),
    ],
)
def test_a_mapping_is_read_back_by_gluestick(api, place, bodies, kept, read):
    """Each form that hotglue documents is merged as it is; what gluestick's own reader makes of it."""
    for body in bodies:
        assert api.put(f"{place}/mapping", json=body).status_code == 200
    config = api.get(f"{place}/config").json()
    assert (api.get(f"{place}/mapping").json(), config["hotglue_mapping"]) == ({"mapping": kept},) * 2
    assert read == read_tenant_custom_mapping(config, flow_id="F1")


@pytest.mark.parametrize("body", [{"config": {"mapping": LEADS}}, {"config": {"mapping": {}}}, {"config": 1}])
def test_a_mapping_of_no_flow_is_refused(api, place, body):
    """One by source and target says nothing of whose it is; the answer has both forms."""
    answer = api.put(f"{place}/mapping", json=body)
    assert (answer.status_code, "FLOW" in answer.json()["remedy"]) == (400, True)


def test_all_tenants_are_one_array(api, place):
    """The list is flat, as hotglue's is."""
    _sent(api, place, "raw", "a", b"x")

    assert place.rpartition("/")[2] in api.get("/tenants/dev").json()


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"json": {"file": "a", "content": "not base64!"}}, 400),
        ({"json": {"file": "a", "content": "AA==", "more": 1}}, 400),
        ({"json": {"content": "AA=="}}, 422),
        ({"files": {"other": ("a", b"x")}}, 400),
        ({"content": b"--x", "headers": {"content-type": "multipart/form-data; boundary=y"}}, 400),
        ({"content": b"x"}, 422),
        ({"json": {"file": "../x", "content": "AA=="}}, 422),
        ({"json": {"file": "_freezeframe/log/0.json", "content": "AA=="}}, 422),
    ],
)
def test_an_upload_that_cannot_be_one(api, place, options, status):
    """What is not a file, has no name or leads elsewhere is refused, and nothing is kept."""
    _sent(api, place, "raw", "kept", b"x")
    answer = api.put(f"{place}/snapshots", **options)

    assert (status, "application/problem+json") == (answer.status_code, answer.headers["content-type"])
    assert api.get(f"{place}/snapshots").json() == ["kept"]


def _page_requests():
    """Each documented request that the page lists: method, path, and whether it says that it is served."""
    table = PAGE.read_text(encoding="utf-8").partition("| documented request |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        requests, answer = line.strip("| ").split(" | ")
        methods, last = [], ""
        for text in re.findall("`([^`]+)`", requests):
            method, _, path = text.partition(" ")
            methods.append(method)
            if path:
                last = path.replace("…", last.rpartition("/")[0] if last else "")
                yield from ((each, last, answer == "served") for each in methods)
                methods = []


def _parts(path):
    return re.sub(r"\{\w+\}", "{}", path)


def test_the_page_lists_what_is_served_and_what_is_not(api):
    """Each route of hotglue's is in the page, and what it calls not served answers as an unknown address."""
    listed = list(_page_requests())
    served = {(method, _parts(path)) for method, path, is_served in listed if is_served}
    paths = api.get("/openapi.json").json()["paths"].items()
    routes = {
        (method.upper(), _parts(path))
        for path, methods in paths
        for method, route in methods.items()
        if "hotglue" in route["tags"]
    }
    missing = [(method, path) for method, path, is_served in listed if not is_served]
    answers = {api.request(method, re.sub(r"\{\w+\}", "x", path)).status_code for method, path in missing}
    assert (served, len(served), len(missing), answers) == (routes, 11, 12, {404})


def _csv(text):
    return base64.b64encode(text.encode()).decode()


def test_documented_requests_reach_an_unchanged_script_and_come_back(api, served, place, tmp_path):
    """What clients write is what gluestick's own functions read in a run, and what it writes they read."""
    deals = pd.DataFrame({"id": [1, 2], "stage": ["new", "won"]})
    mapping = {"config": {"mapping": {"F1": LEADS}}, "entityType": "taps", "entityId": "sf", "flow": "F1"}
    requests = [
        ("PUT", "config", {"json": {"apiCredentials": {"key": "k"}}}),
        ("PATCH", "config", {"json": {"importCredentials": {"token": "t"}}}),
        ("PUT", "mapping", {"json": mapping}),
        ("PUT", "metadata", {"json": {"metadata": {"plan": "gold"}}}),
        ("PUT", "snapshots", {"json": {"file": "Account.snapshot.csv", "content": _csv("Id,N\n1,a\n")}}),
        ("PUT", "snapshots?file=Deal.snapshot.parquet", {"content": deals.to_parquet(index=False)}),
        ("PUT", "snapshots", {"files": {"file": ("maps/ids.csv", b"id,RemoteId\n1,r1\n")}}),
        ("PUT", "snapshots?file=gone.txt", {"content": b"x"}),
        ("DELETE", "snapshots?file=gone.txt", {}),
    ]
    answers = [api.request(method, f"{place}/{path}", **options) for method, path, options in requests]
    assert [(answer.status_code, type(answer.json())) for answer in answers] == [(200, dict)] * len(requests)
    seen = {}

    def script(folder):
        config = json.loads((folder / "tenant-config.json").read_text())
        seen["mapping"] = read_tenant_custom_mapping(config, flow_id="F1")
        seen["plan"] = config["hotglue_metadata"]["metadata"]["plan"]
        seen["keys"] = [config[name] for name in ("apiCredentials", "importCredentials")]
        seen["ids"] = pd.read_csv(folder / "maps" / "ids.csv")["RemoteId"].tolist()
        seen["accounts"] = gluestick.read_snapshots("Account", str(folder))["N"].tolist()
        later = pd.DataFrame({"id": [2, 3], "stage": ["lost", "new"]})
        seen["deals"] = gluestick.snapshot_records(later, "Deal", str(folder))["stage"].tolist()
        (folder / "maps" / "ids.csv").write_text("id,RemoteId\n1,r1\n3,r3\n")
        config["hotglue_metadata"]["metadata"]["plan"] = "platinum"
        (folder / "tenant-config.json").write_text(json.dumps(config))

    tenant = served.service.stores.environment("dev").tenant(place.rpartition("/")[2])
    run_in_working_copy(tenant, tmp_path, script)
    assert seen == {
        "mapping": READ_LEADS,
        "plan": "gold",
        "keys": [{"key": "k"}, {"token": "t"}],
        "ids": ["r1"],
        "accounts": ["a"],
        "deals": ["new", "lost", "new"],
    }

    def got(name):
        return base64.b64decode(api.get(f"{place}/snapshots?file={name}").json()["content"])

    names = ["Account.snapshot.csv", "Deal.snapshot.parquet", "maps/ids.csv", "tenant-config.json"]
    assert (api.get(f"{place}/snapshots").json(), api.get(f"{place}/snapshots?folder=maps").json()) == (
        names,
        ["maps/ids.csv"],
    )
    assert got("Account.snapshot.csv") == b"Id,N\n1,a\n"
    assert got("maps/ids.csv").endswith(b"3,r3\n")
    assert pd.read_parquet(io.BytesIO(got("Deal.snapshot.parquet")))["id"].tolist() == [1, 2, 3]
    assert tenant.stream("Deal").read()["stage"].tolist() == ["new", "lost", "new"]
    assert api.get(f"{place}/metadata").json() == {"metadata": {"plan": "platinum"}}
    assert api.get(f"{place}/mapping").json() == {"mapping": {"F1": LEADS}}
    assert set(api.get(f"{place}/config").json()) == {
        *("apiCredentials", "importCredentials", "hotglue_mapping", "hotglue_metadata")
    }
