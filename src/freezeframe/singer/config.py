"""The settings of ``target-freezeframe``, from JSON files and the environment, and its ``--about``."""

import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import metadata
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from freezeframe.configuration.names import nearest
from freezeframe.errors import InputNotFound, InvalidOption
from freezeframe.storage.read_ahead import reads_of

ENVIRONMENT = "ENV"
"""The place in ``--config`` that means environment variables."""
VARIABLE_PREFIX = "TARGET_FREEZEFRAME_"


class TargetConfig(BaseModel):
    """What can be set for the target. Frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: str = Field(description="The tenant whose streams the tap's rows become.")
    root: str | None = Field(
        default=None,
        description="The store: a directory, or `s3://bucket/prefix`. Without it freezeframe's own setting.",
    )
    environment: str | None = Field(
        default=None,
        description="Whose tenants of the store are meant. Without it freezeframe's own setting.",
    )
    create_tenant: bool = Field(default=True, description="Whether a tenant that is missing is made.")
    engine: Literal["spark", "auto"] | None = Field(
        default=None,
        description="Who searches and merges stored rows: `spark`, or `auto` (the target's own process where "
        "it can). Without it freezeframe's own setting, which is `spark`.",
    )
    load_method: Literal["upsert", "overwrite"] = Field(
        default="upsert",
        description="`upsert`: rows are brought in by key. `overwrite`: the rows of the run replace the "
        "content of each stream.",
    )
    nulls: Literal["overwrite", "keep"] = Field(
        default="overwrite",
        description="What a null, or a column that a record lacks, does to the stored value of an upsert.",
    )
    on_drift: Literal["error", "string"] = Field(
        default="error",
        description="What to do with a column whose values do not fit the stored type: `error` refuses the "
        "run, `string` keeps old and new values as text from then on.",
    )
    keyless: Literal["refuse", "append"] = Field(
        default="refuse",
        description="What to do with the rows of a stream without `key_properties`: `append` keeps those of "
        "every run, under the key `_sdc_run_id` and `_sdc_row`.",
    )
    run_id: str | None = Field(
        default=None,
        description="An id of this run, such as the job's. A run that comes again with the same id and the "
        "same records changes nothing. Without it each run has an id of its own.",
    )
    hard_delete: bool | None = Field(
        default=None,
        description="What an ACTIVATE_VERSION does with rows that are gone: true removes them, false marks "
        "them in the column `_deleted`. Without it a stream goes on as it began, and begins with true. True "
        "also removes rows that have a value in `_sdc_deleted_at`.",
    )
    max_delete_ratio: float | None = Field(
        default=None,
        description="The largest share of the stored rows that an ACTIVATE_VERSION may delete; 0.5 without "
        "it, 1 allows all.",
    )
    state_file: str = Field(
        default="singer/state.json", description="The tenant's file that keeps the last STATE."
    )
    batch_size_rows: int = Field(
        default=10_000, ge=1, description="How many records of a stream are held in memory."
    )
    batch_size_bytes: int = Field(
        default=8 * 1024 * 1024, ge=1, description="How many bytes of a stream's records are held in memory."
    )


def load_config(sources: Sequence[str], variables: Mapping[str, str] = os.environ) -> TargetConfig:
    """Return the settings of JSON files, a later one over an earlier one, under those of ``ENV``.

    A value of null counts as one that is not given.
    """
    settings: dict[str, Any] = {}
    for source in sources:
        if source != ENVIRONMENT:
            settings |= {name: value for name, value in _read(Path(source)).items() if value is not None}
    if ENVIRONMENT in sources:
        names = {f"{VARIABLE_PREFIX}{name.upper()}": name for name in TargetConfig.model_fields}
        settings |= {
            names[variable]: value for variable, value in variables.items() if variable in names and value
        }
    known = list(TargetConfig.model_fields)
    if unknown := next((name for name in settings if name not in known), None):
        near = nearest(unknown, known)
        raise InvalidOption(
            f"{unknown!r} is not a setting of target-freezeframe.",
            remedy=f"Did you mean {' or '.join(near)}?" if near else "target-freezeframe --about lists them.",
            setting=unknown,
        )
    try:
        return TargetConfig(**settings)
    except ValidationError as error:
        raise _invalid(error) from error


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise InputNotFound(
            f"There is no file {file}.", remedy="Check the path after --config.", path=str(file)
        )
    with reads_of(str(file)):
        content = file.read_bytes()
    try:
        found = json.loads(content)
    except ValueError as error:
        raise _no_object(file, f"It is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise _no_object(file, "It holds another JSON value.")
    return found


def _no_object(file: Path, cause: str) -> InvalidOption:
    return InvalidOption(
        f"{file} holds no settings.",
        cause=cause,
        remedy='Write a JSON object, such as {"root": "data", "tenant": "acme"}.',
        path=str(file),
    )


def _invalid(error: ValidationError) -> InvalidOption:
    first = error.errors(include_url=False, include_context=False)[0]
    name = str(first["loc"][0])
    described = TargetConfig.model_fields[name].description
    if first["type"] == "missing":
        return InvalidOption(
            f"The setting {name!r} is missing.",
            remedy=f"Set it in the file after --config. {described}",
            setting=name,
        )
    return InvalidOption(
        f"The setting {name!r} cannot be {first['input']!r}.",
        cause=f"{first['msg']}.",
        remedy=f"Correct it. {described}",
        setting=name,
    )


NAME = "target-freezeframe"
AboutFormat = Literal["text", "json", "markdown"]
_DESCRIPTION = "A Singer target: a tap's output becomes streams of a freezeframe tenant, in one commit."
_CAPABILITIES = ("about", "activate-version", "hard-delete")


def version_line() -> str:
    """Return the name and the version of the target."""
    return f"{NAME} v{metadata('freezeframe')['Version']}"


def about(form: AboutFormat) -> str:
    """Return name, version, capabilities and settings of the target."""
    facts = {
        "name": NAME,
        "description": _DESCRIPTION,
        "version": metadata("freezeframe")["Version"],
        "supported_python_versions": metadata("freezeframe")["Requires-Python"],
        "capabilities": list(_CAPABILITIES),
        "settings": TargetConfig.model_json_schema(),
    }
    if form == "json":
        return json.dumps(facts, indent=2)
    return _markdown() if form == "markdown" else _text(facts)


def settings_table() -> str:
    """Return the settings as a Markdown table."""
    lines = ["| setting | default | meaning |", "| --- | --- | --- |"]
    for name, field in TargetConfig.model_fields.items():
        default = "required" if field.is_required() else "" if field.default is None else f"`{field.default}`"
        lines.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join(lines)


def _markdown() -> str:
    capabilities = "\n".join(f"* `{name}`" for name in _CAPABILITIES)
    parts = (f"# `{NAME}`", _DESCRIPTION, "## Capabilities", capabilities, "## Settings", settings_table())
    return "\n\n".join(parts)


def _text(facts: dict[str, Any]) -> str:
    lines = [
        f"{name.replace('_', ' ').title()}: {value}" for name, value in facts.items() if name != "settings"
    ]
    settings = [f"  {name}: {field.description}" for name, field in TargetConfig.model_fields.items()]
    return "\n".join([*lines, "Settings:", *settings])
