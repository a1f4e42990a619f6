"""Every operation of the API with a request that succeeds for who may: one row each, none left out.

``{name}`` in a path or body stands for something that ``prepared`` has put into the tenant.
"""

from dataclasses import dataclass, field

SCOPES = (
    "tenants:read",
    "snapshots:read",
    "snapshots:write",
    "snapshots:delete",
    "secrets:read",
    "jobs:read",
    "jobs:run",
)
ROWS = b"Id,City\n007,Bern\n"
CSV = {"content-type": "text/csv"}


@dataclass(frozen=True)
class Row:
    """How an operation is called, and what it needs."""

    scope: str
    query: str = ""
    json: object = None
    content: bytes | None = None
    headers: dict = field(default_factory=dict)
    fill: dict = field(default_factory=dict)
    status: tuple = (200, 201, 202, 204, 206)


T = "/api/v1/environments/{environment}/tenants/{tenant}"
H = "/tenant/{env_id}/{tenant}"

# Operations on one tenant.
TENANT_ROWS = {
    ("get", T): Row("tenants:read"),
    ("delete", T): Row("snapshots:delete", "?confirm={tenant}"),
    ("post", f"{T}/clone"): Row("snapshots:write", json={"tenant": "copy-{unique}"}),
    ("get", f"{T}/overview"): Row("snapshots:read"),
    ("get", f"{T}/bundle"): Row("snapshots:read", "?file=a.txt&stream=Account"),
    ("get", f"{T}/streams/{{stream}}/diff"): Row("snapshots:read", "?before=1"),
    ("get", f"{T}/streams/{{stream}}/sorted-rows"): Row("snapshots:read", "?by=City&descending=true"),
    ("get", f"{T}/streams/{{stream}}/statistics"): Row("snapshots:read"),
    ("get", f"{T}/streams/{{stream}}/rows/{{key}}/history"): Row("snapshots:read"),
    ("get", f"{T}/streams/{{stream}}/rows/{{key}}/origin"): Row("snapshots:read"),
    ("post", f"{T}/streams/{{stream}}/import-preview"): Row(
        "snapshots:write", "?key=Id&mode=full", content=ROWS, headers=CSV
    ),
    ("post", f"{T}/streams/{{stream}}/row-restorations"): Row(
        "snapshots:write", json={"version": 1, "keys": [{"Id": "{tag}"}]}
    ),
    ("post", f"{T}/streams/{{stream}}/erasures"): Row(
        "snapshots:read snapshots:delete", json={"keys": [{"Id": "{tag}"}]}
    ),
    ("post", f"{T}/streams/{{stream}}/row-changes"): Row(
        "snapshots:write", json={"key": {"Id": "{tag}"}, "values": {"City": "Chur"}}
    ),
    ("get", f"{T}/deliveries"): Row("snapshots:read"),
    ("get", f"{T}/streams/{{stream}}/deliveries/{{target}}"): Row("snapshots:read"),
    ("post", f"{T}/streams/{{stream}}/deliveries/{{target}}/retries"): Row("snapshots:write", json={}),
    ("get", f"{T}/streams"): Row("snapshots:read"),
    ("get", f"{T}/streams/{{stream}}"): Row("snapshots:read"),
    ("delete", f"{T}/streams/{{stream}}"): Row("snapshots:delete"),
    ("get", f"{T}/streams/{{stream}}/rows"): Row("snapshots:read", "?limit=5&where=City = 'Bern'"),
    ("get", f"{T}/streams/{{stream}}/changes"): Row("snapshots:read"),
    ("get", f"{T}/streams/{{stream}}/history"): Row("snapshots:read"),
    ("post", f"{T}/streams/{{stream}}/restore"): Row("snapshots:write", json={"version": 0}),
    ("get", f"{T}/streams/{{stream}}/export"): Row("snapshots:read", "?format=jsonl"),
    ("post", f"{T}/streams/{{stream}}/import"): Row("jobs:run", content=ROWS, headers=CSV),
    ("get", f"{T}/files"): Row("snapshots:read"),
    ("put", f"{T}/files/{{path}}"): Row("snapshots:write", content=b"new"),
    ("get", f"{T}/files/{{path}}"): Row("snapshots:read"),
    ("delete", f"{T}/files/{{path}}"): Row("snapshots:delete"),
    ("get", f"{T}/file-history"): Row("snapshots:read", "?path=a.txt"),
    ("post", f"{T}/folders"): Row("snapshots:write", json={"path": "folder"}),
    ("post", f"{T}/file-deletions"): Row("snapshots:delete", json={"paths": ["a.txt"]}),
    ("post", f"{T}/folder-moves"): Row("snapshots:write", json={"path": "deep", "target": "deeper"}),
    ("post", f"{T}/file-moves"): Row("snapshots:write", json={"path": "a.txt", "target": "b.txt"}),
    ("post", f"{T}/file-returns"): Row("snapshots:write", json={"path": "a.txt", "version": 0}),
    ("post", f"{T}/file-batches"): Row(
        "snapshots:write", json={"files": [{"blob": "{batched_id}", "path": "batched.txt"}]}
    ),
    ("post", f"{T}/blobs"): Row("snapshots:write", "?path=big.bin", content=b"data"),
    ("delete", f"{T}/blobs/{{blob_id}}"): Row("snapshots:write"),
    ("get", f"{T}/history"): Row("snapshots:read"),
    ("get", f"{T}/diff"): Row("snapshots:read", "?before=0&texts=true"),
    ("post", f"{T}/restorations"): Row("snapshots:write", json={"version": 0}),
    ("post", f"{T}/reversions"): Row("snapshots:read snapshots:write", json={"version": 1}),
    ("get", f"{T}/tags"): Row("snapshots:read"),
    ("put", f"{T}/tags/{{tag}}"): Row("snapshots:write", json={"version": 0}),
    ("delete", f"{T}/tags/{{tag}}"): Row("snapshots:delete"),
    ("get", f"{T}/policy"): Row("snapshots:read"),
    ("put", f"{T}/policy"): Row("admin", json={"keep_versions": 9}),
    ("get", f"{T}/jobs"): Row("jobs:read"),
    ("post", f"{T}/jobs"): Row("jobs:run", json={"script": "etl.py"}),
    ("get", f"{T}/jobs/{{job_id}}"): Row("jobs:read"),
    ("post", f"{T}/jobs/{{job_id}}/cancel"): Row("jobs:run"),
    ("post", f"{T}/jobs/{{job_id}}/publish"): Row("jobs:run", fill={"job_id": "{held_id}"}),
    ("post", f"{T}/jobs/{{job_id}}/discard"): Row("jobs:run", fill={"job_id": "{held_id}"}),
    ("get", f"{T}/jobs/{{job_id}}/logs"): Row("jobs:read"),
    ("post", f"{T}/jobs/{{job_id}}/repetitions"): Row("jobs:run"),
    ("post", f"{T}/jobs/{{job_id}}/dry-runs"): Row("jobs:run"),
    ("post", f"{T}/replays"): Row("jobs:run snapshots:read", json={"jobs": ["kept"], "script": "etl.py"}),
    ("get", f"{T}/jobs/{{job_id}}/changes"): Row("jobs:read"),
    ("get", f"{T}/jobs/{{job_id}}/notebook"): Row("jobs:read"),
    ("post", f"{T}/schedules"): Row(
        "jobs:run", json={"name": "n-{unique}", "script": "etl.py", "cron": "@daily"}
    ),
    ("patch", f"{T}/schedules/{{schedule}}"): Row("jobs:run", json={"enabled": False}),
    ("delete", f"{T}/schedules/{{schedule}}"): Row("jobs:run"),
    ("post", f"{T}/schedules/{{schedule}}/runs"): Row("jobs:run"),
    ("get", f"{T}/audit"): Row("admin"),
    ("get", f"{T}/audit/export"): Row("admin", "?format=csv"),
    ("get", f"{H}/snapshots"): Row("snapshots:read", "?file=a.txt"),
    ("put", f"{H}/snapshots"): Row("snapshots:write", "?file=new.txt", content=b"new"),
    ("delete", f"{H}/snapshots"): Row("snapshots:delete", "?file=a.txt"),
    ("get", f"{H}/config"): Row("snapshots:read"),
    ("put", f"{H}/config"): Row("snapshots:write", json={"a": 1}),
    ("patch", f"{H}/config"): Row("snapshots:write", json={"a": 1}),
    ("get", f"{H}/mapping"): Row("snapshots:read"),
    ("put", f"{H}/mapping"): Row("snapshots:write", json={"config": {"mapping": {}}, "flow": "f"}),
    ("get", f"{H}/metadata"): Row("snapshots:read"),
    ("put", f"{H}/metadata"): Row("snapshots:write", json={"a": "b"}),
}

# Operations that list, or that concern no tenant at all.
OTHER_ROWS = {
    ("get", "/api/v1/environments"): Row("tenants:read"),
    ("get", "/api/v1/environments/{environment}/tenants"): Row("tenants:read"),
    ("post", "/api/v1/environments/{environment}/tenants"): Row(
        "snapshots:write", json={"tenant": "made-{unique}"}
    ),
    ("get", "/api/v1/environments/{environment}/overviews"): Row(
        "snapshots:read", "?tenant={tenant}&tenant=globex"
    ),
    ("get", "/api/v1/environments/{environment}/overview"): Row("snapshots:read"),
    ("get", "/api/v1/environments/{environment}/found-rows"): Row("snapshots:read", "?text=canary"),
    ("get", "/api/v1/environments/{environment}/jobs"): Row("jobs:read"),
    ("post", "/api/v1/environments/{environment}/job-groups"): Row(
        "jobs:run", json={"script": "etl.py", "tenants": ["{tenant}"]}
    ),
    ("get", "/api/v1/environments/{environment}/job-groups/{group}"): Row("jobs:read"),
    ("get", "/api/v1/environments/{environment}/job-groups/{group}/effects"): Row("jobs:read"),
    ("post", "/api/v1/environments/{environment}/job-groups/{group}/publish"): Row("jobs:run"),
    ("post", "/api/v1/environments/{environment}/job-groups/{group}/discard"): Row("jobs:run"),
    ("post", "/api/v1/environments/{environment}/job-groups/{group}/cancel"): Row("jobs:run"),
    ("get", "/api/v1/environments/{environment}/schedules"): Row("jobs:read"),
    ("get", "/api/v1/scripts"): Row("jobs:run"),
    ("get", "/api/v1/events"): Row("tenants:read", "?environment={environment}&seconds=0"),
    ("get", "/api/v1/keys"): Row("admin"),
    ("get", "/api/v1/audit"): Row("admin"),
    ("get", "/api/v1/audit/proof"): Row("admin"),
    ("get", "/api/v1/audit/export"): Row("admin"),
    ("post", "/api/v1/keys"): Row("admin", json={"name": "made", "scopes": ["tenants:read"]}),
    ("post", "/api/v1/keys/{key_id}/rotate"): Row("admin", json={}),
    ("delete", "/api/v1/keys/{key_id}"): Row("admin"),
    ("get", "/api/v1/session"): Row(""),
    ("delete", "/api/v1/session"): Row(""),
    ("get", "/tenants/{env_id}"): Row("tenants:read"),
}

# Operations that answer whoever asks.
OPEN_ROWS = {
    ("post", "/api/v1/session"),
    ("get", "/api/v1/session/ways"),
    ("get", "/api/v1/session/provider"),
    ("get", "/api/v1/session/provider/return"),
    ("get", "/health"),
    ("get", "/health/live"),
    ("get", "/health/ready"),
    ("get", "/metrics"),
}


def operations(document):
    """All operations of an OpenAPI document, as method and path."""
    return {(method, path) for path, methods in document["paths"].items() for method in methods}


def filled(text, **names):
    """The text with its names filled in; others stay."""
    for name, value in names.items():
        text = text.replace("{" + name + "}", value)
    return text
