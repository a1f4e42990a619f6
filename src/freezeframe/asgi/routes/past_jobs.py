"""Jobs that have ended: run again, and the notebook as it was executed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from fastapi.responses import FileResponse

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.jobs import Job
from freezeframe.asgi.problems import declared
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.asgi.routes.streams import attachment, job_location
from freezeframe.service.past_jobs import executed_notebook, repeated_order

router = tenant_router("jobs")
_NOTEBOOK = "application/x-ipynb+json"
JobId = Annotated[str, Path(min_length=1, max_length=500, description="The job's id.")]


@router.post("/jobs/{job_id}/repetitions", status_code=202)
def repeat_job(caller: TenantCalling, job_id: JobId, response: Response) -> Job:
    """Run a job again that has ended: the same script and parameters, under an id of its own."""
    caller.tenant("jobs:run")
    past = caller.service.jobs.get(caller.job(job_id))
    order = repeated_order(past, caller.service.settings)
    job = caller.job(caller.new_id())
    with caller.noting("job.run", job.job_id, script=order.script, repeats=job_id):
        queued = caller.service.jobs.submit(job, order, caller.who)
    response.headers["Location"] = job_location(caller, queued.job_id)
    return Job(**caller.service.jobs.told(queued))


@router.get(
    "/jobs/{job_id}/notebook",
    response_class=FileResponse,
    responses={
        200: {"content": {_NOTEBOOK: {"schema": {"type": "string", "format": "binary"}}}},
        **declared(404),
    },
)
def download_notebook(caller: TenantCalling, job_id: JobId) -> FileResponse:
    """Download a job's notebook as it was executed, with what its cells showed."""
    caller.tenant("jobs:read")
    job = caller.service.jobs.get(caller.job(job_id))
    notebook = executed_notebook(job)
    headers = {"Content-Disposition": attachment(notebook.name)}
    return FileResponse(notebook, media_type=_NOTEBOOK, headers=headers)
