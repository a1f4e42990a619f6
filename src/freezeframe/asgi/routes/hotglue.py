"""The paths of hotglue's API: its clients change the base URL and send the key as `x-api-key`."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request

from freezeframe.asgi.bodies import JsonObject, Named
from freezeframe.asgi.caller import CONDITIONAL, Calling, request_tenant_caller
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.parameters import BINARY, OCTETS, request_content
from freezeframe.asgi.routes.tenants import made_tenant
from freezeframe.asgi.routing import ResponseModel
from freezeframe.identifiers import EnvironmentName, FilePath
from freezeframe.service import hotglue
from freezeframe.service.operations.caller import TenantCaller
from freezeframe.store import Tenant
from freezeframe.store.model.update_options import Author
from freezeframe.store.transaction.conditions import file_subject

_PROBLEMS = to_openapi(400, 401, 403, 404, 409, 413, 422, 429, 431, 500, 503)
router = APIRouter(tags=["hotglue"], responses=_PROBLEMS, redirect_slashes=False)

EnvironmentPath = Annotated[str, Path(min_length=1, max_length=200, description="The environment.")]
TenantPath = Annotated[str, Path(min_length=1, max_length=200, description="The tenant's id.")]


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"schema": {"type": "object", "required": required, "properties": properties}}


FileName = Annotated[str, Query(min_length=1, max_length=800, description="The file's name.")]
_JSON = request_content({"application/json": {"schema": {"type": "object"}}})
_BASE64 = {"type": "string", "format": "byte", "description": "In base64."}
_UPLOAD = request_content(
    {
        OCTETS: BINARY,
        "multipart/form-data": _object(["file"], file=BINARY["schema"]),
        "application/json": _object(["content"], file={"type": "string"}, content=_BASE64),
    }
)
_TENANT = "/tenant/{env_id}/{tenant}"
_CHANGE: dict[str, Any] = {"dependencies": CONDITIONAL}


class FileContent(ResponseModel):
    """A file as base64."""

    file: str
    content: str


class FileDone(ResponseModel):
    """A file that was written or removed."""

    file: str


async def hotglue_caller(request: Request, env_id: EnvironmentPath, tenant: TenantPath) -> TenantCaller:
    """Return the caller of a request for one tenant, by hotglue's names."""
    return await request_tenant_caller(request, env_id, tenant)


HotglueCalling = Annotated[TenantCaller, Depends(hotglue_caller)]


@router.get("/tenants/{env_id}")
def hotglue_tenants(caller: Calling, env_id: EnvironmentPath) -> list[str]:
    """List the ids of all tenants of an environment."""
    return list(caller.access.all_tenants(EnvironmentName(env_id)))


@router.get(f"{_TENANT}/snapshots")
def hotglue_snapshots(
    caller: HotglueCalling,
    file: Annotated[str | None, Query(min_length=1, max_length=800, description="Give this file.")] = None,
    folder: Annotated[str, Query(max_length=800, description="Only names in this folder.")] = "",
) -> list[str] | FileContent:
    """List the names of a tenant's snapshot files, or give one of them as base64.

    A stream appears as `{stream}.snapshot.csv`.
    """
    tenant = caller.tenant("snapshots:read")
    if file is None:
        return hotglue.names(tenant, folder)
    path = FilePath(file)
    bytes_max = caller.service.settings.service_body_bytes_max
    content = hotglue.read(tenant, path, bytes_max, caller.note_unsealing)
    return FileContent(file=path, content=base64.b64encode(content).decode())


@router.put(f"{_TENANT}/snapshots", openapi_extra=_UPLOAD, **_CHANGE)
def hotglue_write(caller: HotglueCalling, body: Named) -> FileDone:
    """Upload a snapshot file; one named `{stream}.snapshot.csv` or `.parquet` replaces the stream's rows.

    The tenant is made if it is not there.
    """
    made = made_tenant(caller, caller.environment, caller.tenant_id)[0]
    tenant = caller.changing(made, hotglue.subject_of(made, body.name))
    bytes_max = caller.service.settings.service_override_bytes_max
    author = Author(caller.who, f"upload {body.name}")
    with caller.audit_change("file.write", body.name):
        hotglue.write(tenant, body.name, body.content, author, bytes_max)
    return FileDone(file=body.name)


@router.delete(f"{_TENANT}/snapshots", **_CHANGE)
def hotglue_delete(caller: HotglueCalling, file: FileName) -> FileDone:
    """Remove a snapshot file, or the stream that its name means."""
    path = FilePath(file)
    found = caller.access.tenant(caller.environment, caller.tenant_id, "snapshots:delete")
    tenant = caller.changing(found, hotglue.subject_of(found, path))
    with caller.audit_change("file.delete", path):
        hotglue.delete(tenant, path, Author(caller.who, f"delete {path}"))
    return FileDone(file=path)


@router.get(f"{_TENANT}/config")
def hotglue_config(caller: HotglueCalling) -> dict[str, Any]:
    """The tenant's configuration: its file `tenant-config.json`."""
    return hotglue.config(caller.tenant("snapshots:read"), caller.note_unsealing)


@router.put(f"{_TENANT}/config", openapi_extra=_JSON, **_CHANGE)
def hotglue_set_config(caller: HotglueCalling, body: JsonObject) -> dict[str, Any]:
    """Replace the tenant's configuration, all of it."""
    with _config_change(caller, reads=False) as tenant:
        return hotglue.set_config(tenant, body, Author(caller.who, "set config"))


@router.patch(f"{_TENANT}/config", openapi_extra=_JSON, **_CHANGE)
def hotglue_patch_config(caller: HotglueCalling, body: JsonObject) -> dict[str, Any]:
    """Change the tenant's configuration by a merge patch (RFC 7396)."""
    with _config_change(caller) as tenant:
        return hotglue.patch_config(tenant, body, Author(caller.who, "patch config"), caller.note_unsealing)


@router.get(f"{_TENANT}/mapping")
def hotglue_mapping(caller: HotglueCalling) -> dict[str, Any]:
    """The field mappings of all of the tenant's flows."""
    return hotglue.member(caller.tenant("snapshots:read"), hotglue.MAPPING, caller.note_unsealing)


@router.put(f"{_TENANT}/mapping", openapi_extra=_JSON, **_CHANGE)
def hotglue_set_mapping(caller: HotglueCalling, body: JsonObject) -> dict[str, Any]:
    """Merge field mappings: `{"config": {"mapping": {FLOW: {"SOURCE/TARGET": {…}}}}}`.

    Those of a flow are replaced, others stay. With `flow` the mapping may be that flow's alone. One of
    `"version": "1.0"` (a list for each connector) replaces a mapping without it, and the other way round.
    """
    configuration = body.get("config")
    mapping = hotglue.flow_mappings(
        configuration.get("mapping") if isinstance(configuration, dict) else None, body.get("flow")
    )
    author = Author(caller.who, f"set mapping of {', '.join(mapping)}"[:200])
    with _config_change(caller) as tenant:
        return hotglue.merge_mapping(tenant, mapping, author, caller.note_unsealing)


@router.get(f"{_TENANT}/metadata")
def hotglue_metadata(caller: HotglueCalling) -> dict[str, Any]:
    """The tenant's metadata."""
    return hotglue.member(caller.tenant("snapshots:read"), hotglue.METADATA, caller.note_unsealing)


@router.put(f"{_TENANT}/metadata", openapi_extra=_JSON, **_CHANGE)
def hotglue_set_metadata(caller: HotglueCalling, body: JsonObject) -> dict[str, Any]:
    """Replace the tenant's metadata, all of it."""
    value = body["metadata"] if set(body) == {"metadata"} and isinstance(body["metadata"], dict) else body
    with _config_change(caller) as tenant:
        return hotglue.set_metadata(tenant, value, Author(caller.who, "set metadata"), caller.note_unsealing)


@contextmanager
def _config_change(caller: TenantCaller, *, reads: bool = True) -> Iterator[Tenant]:
    """Open the tenant for an audited change of its configuration; create it, as hotglue's clients do not.

    With ``reads`` the response shows what the configuration had before, which needs the right to read.
    """
    made = made_tenant(caller, caller.environment, caller.tenant_id)[0]
    tenant = caller.changing(made, file_subject(hotglue.CONFIG_FILE))
    if reads:
        caller.tenant("snapshots:read")
    with caller.audit_change("file.write", hotglue.CONFIG_FILE):
        yield tenant
