"""The scripts that jobs may run."""

from __future__ import annotations

from freezeframe.asgi.dependencies.caller import Calling
from freezeframe.asgi.models.jobs import Script, ScriptList, ScriptParameter
from freezeframe.asgi.routes.routing import api_router
from freezeframe.service.jobs.jobs import list_scripts as found_scripts

router = api_router("jobs")


@router.get("/scripts")
def list_scripts(caller: Calling) -> ScriptList:
    """List the scripts in the service's folder by name, at most 500, with the parameters they declare."""
    caller.principal.require("jobs:run")
    return ScriptList(
        scripts=[
            Script(
                script=script.name,
                description=script.header.description,
                parameters=None
                if script.header.parameters is None
                else [ScriptParameter.of(declared) for declared in script.header.parameters],
                problem=script.problem or None,
            )
            for script in found_scripts(caller.service.settings.service_scripts_dir)
        ]
    )
