"""What ``target-freezeframe --about`` tells, in the forms that Singer's tools read."""

from __future__ import annotations

import json
from importlib.metadata import metadata
from typing import Any, Literal

from freezeframe.singer.config import TargetConfig

NAME = "target-freezeframe"
AboutFormat = Literal["text", "json", "markdown"]
_DESCRIPTION = "A Singer target: a tap's output becomes streams of a freezeframe tenant, in one commit."
_CAPABILITIES = ("about", "activate-version", "hard-delete")


def version_line() -> str:
    """The name and the version of the target."""
    return f"{NAME} v{metadata('freezeframe')['Version']}"


def about(form: AboutFormat) -> str:
    """Name, version, capabilities and settings of the target."""
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
    """The settings as a Markdown table."""
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
