"""Write the modules of ``freezeframe.client`` that follow from the service's OpenAPI document.

Run as ``python tools/write_client.py``; with ``--check`` it writes nothing and fails where a module is
not what the document says.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import difflib
import keyword
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from freezeframe.asgi.application import create_application
from freezeframe.client.connection import TENANT
from freezeframe.control.database.database import ControlDatabase
from freezeframe.settings import Settings

FOLDER = Path(__file__).parent.parent / "src" / "freezeframe" / "client"
ORIGIN = "Written by tools/write_client.py; change the service's routes and models."
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_CHOICE = re.compile(r"Literal\[(?:'[^']*', ){5,}'[^']*'\]")
_CHOICES = {"tenants:read": "Scope", "queued": "JobStatus"}
_BASE_MEMBERS_MIN = 5
_WIDTH = 95
_DOCSTRING_WIDTH = 96


def main(arguments: list[str]) -> int:
    """Write the modules, or with ``--check`` compare them; 1 where one differs."""
    document = openapi()
    homes = _homes(document)
    modules = {"types/__init__.py": types_package(homes)}
    for tag in sorted(set(homes.values())):
        modules[f"types/{tag}.py"] = types_module(document, homes, tag)
    for tag in _tags(document):
        modules[f"{tag}.py"] = operations_module(document, tag)
    modules["operations.py"] = joined_module(document)
    stale = 0
    for name, text in modules.items():
        formatted = _formatted(text)
        file = FOLDER / name
        if "--check" not in arguments:
            file.parent.mkdir(exist_ok=True)
            file.write_text(formatted, encoding="utf-8")
        elif (found := file.read_text(encoding="utf-8") if file.exists() else "") != formatted:
            stale += 1
            lines = found.splitlines(keepends=True), formatted.splitlines(keepends=True)
            sys.stderr.writelines(difflib.unified_diff(*lines, str(file), "the document"))
    if stale:
        sys.stderr.write("Run: .venv/bin/python tools/write_client.py\n")
    return 1 if stale else 0


def openapi() -> dict[str, Any]:
    """The document of a service that serves nothing."""
    with tempfile.TemporaryDirectory() as root:
        database = ControlDatabase.open(f"sqlite:///{root}/control.db")
        document: dict[str, Any] = create_application(Settings(), root, database).openapi()
        database.close()
    return document


def types_package(homes: dict[str, str]) -> str:
    """All typed dictionaries, from one place."""
    lines = [f'"""What the service says and is told, as typed dictionaries.\n\n{ORIGIN}\n"""', ""]
    lines += [f"from freezeframe.client.types.{homes[name]} import {name}" for name in sorted(homes)]
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in sorted(homes)), "]"]
    return "\n".join(lines) + "\n"


def types_module(document: dict[str, Any], homes: dict[str, str], tag: str) -> str:
    """The answers and bodies of the operations of one noun as typed dictionaries."""
    schemas = {
        name: schema for name, schema in document["components"]["schemas"].items() if homes[name] == tag
    }
    classes = [line for name in sorted(schemas) for line in _typed_dictionary(name, schemas)]
    body = "\n".join(classes)
    for text in sorted(set(_CHOICE.findall(body)), key=len):  # what is chosen from is written once
        body = f"\n\n{_choice_name(text)} = {text}{body.replace(text, _choice_name(text))}"
    elsewhere = [name for name in sorted(homes) if homes[name] != tag and _is_used(name, body)]
    words = [one for one in ("TYPE_CHECKING", "Any", "Literal", "NotRequired") if _is_used(one, body)]
    words = (["TYPE_CHECKING"] if elsewhere else []) + words + ["TypedDict"]
    lines = [f'"""What the service says and is told of {tag}.\n\n{ORIGIN}\n"""', ""]
    lines += ["from __future__ import annotations", "", f"from typing import {', '.join(words)}", ""]
    if elsewhere:  # modules name each other's types
        lines.append("if TYPE_CHECKING:")
        lines += [f"    from freezeframe.client.types.{homes[name]} import {name}" for name in elsewhere]
    return "\n".join([*lines, body]) + "\n"


def _typed_dictionary(name: str, schemas: dict[str, dict[str, Any]]) -> Iterator[str]:
    schema = schemas[name]
    required, members = set(schema.get("required", ())), schema.get("properties", {})
    base = next(
        (one for one, other in schemas.items() if one != name and _extends(schema, other)), "TypedDict"
    )
    known = schemas.get(base, {}).get("properties", {})
    yield from ("", "", f"class {name}({base}):")
    yield from (f'    """{_first_line(schema.get("description", name))}"""', "")
    for member, kind in ((member, kind) for member, kind in members.items() if member not in known):
        typed = _type(kind)
        yield f"    {member}: {typed if member in required else f'NotRequired[{typed}]'}"


def _extends(schema: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a schema begins with all members of another one of more than a few, and has more."""
    members, others = (list(one.get("properties", {}).items()) for one in (schema, other))
    required, also = (set(one.get("required", ())) for one in (schema, other))
    is_prefix = members[: len(others)] == others and len(members) > len(others) >= _BASE_MEMBERS_MIN
    return is_prefix and {name for name, _ in others} & required == also


def _choice_name(text: str) -> str:
    """The name of a long choice, as the service calls it."""
    return _CHOICES[text.split("'")[1]]


def _homes(document: dict[str, Any]) -> dict[str, str]:
    """The noun in whose module a type is: the first one whose operations speak of it."""
    schemas = document["components"]["schemas"]
    homes: dict[str, str] = {}

    def visit(value: Any, tag: str) -> None:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            if name in schemas and name not in homes:
                homes[name] = tag
                visit(schemas[name], tag)
            for inner in value.values():
                visit(inner, tag)
        elif isinstance(value, list):
            for inner in value:
                visit(inner, tag)

    for _, _, operation in _operations(document):
        visit(operation, operation["tags"][0])
    return {name: homes.get(name, "any") for name in schemas}


def _is_for_browsers(operation: dict[str, Any]) -> bool:
    """Whether all that it does is to send whoever asks elsewhere."""
    return not any(status.startswith("2") for status in operation["responses"])


def operations_module(document: dict[str, Any], tag: str) -> str:
    """The operations of one noun, as methods."""
    methods = [
        line
        for path, method, operation in _operations(document)
        if tag in operation["tags"] and not _is_for_browsers(operation)
        for line in _method(path, method, operation)
    ]
    body = "\n".join(methods)
    names = [name for name in sorted(document["components"]["schemas"]) if _is_used(name, body)]
    lines = [
        f'"""The service\'s operations on {tag}.\n\n{ORIGIN}\n"""',
        "",
        "from __future__ import annotations",
        "",
    ]
    if "Iterator[" in body:
        lines.append("from collections.abc import Iterator")
    used = [name for name in ("Any", "Literal", "cast") if _is_used(name, body)]
    lines += [f"from typing import {', '.join(used)}"] if used else []
    imported = ["Connection", "Content", "TENANT", "path_of"]
    imported = sorted(name for name in imported if name == "Connection" or _is_used(name, body))
    lines += ["", f"from freezeframe.client.connection import {', '.join(imported)}"]
    lines += (
        ["from freezeframe.client.types import (", *(f"    {name}," for name in names), ")"] if names else []
    )
    lines += [
        "",
        "",
        f"class {tag.capitalize()}Operations:",
        f'    """Operations on {tag}; see ``Client``."""',
        "",
    ]
    lines += ["    _connection: Connection", "", body]
    return "\n".join(lines) + "\n"


def joined_module(document: dict[str, Any]) -> str:
    """All operations in one class."""
    tags = _tags(document)
    lines = [
        f'"""All operations of the service.\n\n{ORIGIN}\n"""',
        "",
        "from __future__ import annotations",
        "",
    ]
    lines += [f"from freezeframe.client.{tag} import {tag.capitalize()}Operations" for tag in tags]
    lines += ["", "", "class Operations("]
    lines += [f"    {tag.capitalize()}Operations," for tag in tags]
    lines += ["):", '    """What a service can be asked, by name; see ``Client``."""']
    return "\n".join(lines) + "\n"


def _method(path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    parameters = operation.get("parameters", [])
    in_path = [one for one in parameters if one["in"] == "path"]
    # In the order of the path, not of the route's dependencies.
    in_path.sort(key=lambda one: path.index("{" + one["name"] + "}"))
    named = [one for one in parameters if one["in"] in {"query", "header"}]
    body_kind, body_type = _body(operation)
    answer_kind, answer_type = _answer(method, operation)
    signature = ["self", *(f"{_identifier(one)}: str" for one in in_path)]
    if body_kind:
        signature.append(f"{'body' if body_kind == 'json' else 'content'}: {body_type}")
    chooses_kind = len(_raw_kinds(operation)) > 1 and body_kind in _RAW_KINDS
    if named or chooses_kind:
        signature.append("*")
    signature += [f"{_identifier(one)}: {_optional(one)}" for one in sorted(named, key=_is_optional)]
    if chooses_kind:
        signature.append(f'content_type: str = "{body_kind}"')
    yield f"    def {operation['operationId']}({', '.join(signature)}) -> {answer_type}:"
    yield from _docstring(operation)
    template = f'TENANT + "{path.removeprefix(TENANT)}"' if path.startswith(f"{TENANT}/") else f'"{path}"'
    yield f"        place = path_of({', '.join([template, *map(_identifier, in_path)])})"
    for kind in ("query", "header"):
        chosen = [one for one in named if one["in"] == kind]
        if chosen:
            values = ", ".join(f'"{one["name"]}": {_identifier(one)}' for one in chosen)
            yield f"        {_VARIABLE[kind]} = {{{values}}}"
    given = [
        f"{_VARIABLE[k]}={_VARIABLE[k]}" for k in ("query", "header") if any(one["in"] == k for one in named)
    ]
    if body_kind == "json":
        given.append("body=body")
    elif body_kind:
        kind = "content_type" if chooses_kind else f'"{body_kind}"'
        given += ["content=content", f"content_type={kind}"]
    call = f"self._connection.{answer_kind}({', '.join([repr(method.upper()), 'place', *given])})"
    is_cast = answer_kind == "json" and answer_type != "Any"
    yield f'        return cast("{answer_type}", {call})' if is_cast else f"        return {call}"
    yield ""


_VARIABLE = {"query": "query", "header": "headers"}


def _docstring(operation: dict[str, Any]) -> Iterator[str]:
    text = operation.get("description", operation["summary"]).strip()
    first, _, rest = text.partition("\n")
    if len(first) > _DOCSTRING_WIDTH:  # what does not fit the first line says more below it
        first, _, more = first.partition("; " if "; " in first else ", ")
        first, rest = f"{first}.", f"\n{more[0].upper()}{more[1:]}\n{rest}"
    lines = [first]
    for paragraph in filter(str.strip, rest.split("\n\n")):
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), _DOCSTRING_WIDTH)]
    yield f'        """{lines[0]}' + ('"""' if len(lines) == 1 else "")
    for line in lines[1:]:
        yield f"        {line}" if line else ""
    if len(lines) > 1:
        yield '        """'


def _body(operation: dict[str, Any]) -> tuple[str, str]:
    content = operation.get("requestBody", {}).get("content", {})
    for kind, described in content.items():
        if kind != "application/json":
            return ("application/octet-stream" if kind not in _RAW_KINDS else kind), "Content"
        if len(content) == 1:
            return "json", _type(described["schema"])
    return "", ""


def _raw_kinds(operation: dict[str, Any]) -> list[str]:
    return list(operation.get("requestBody", {}).get("content", {}))


_RAW_KINDS = {"application/offset+octet-stream", "application/octet-stream", "text/csv"}


def _answer(method: str, operation: dict[str, Any]) -> tuple[str, str]:
    if method in {"head", "options"}:
        return "headers", "dict[str, str]"
    good = next(one for status, one in operation["responses"].items() if status.startswith("2"))
    content = good.get("content", {})
    if "application/json" in content:
        return "json", _type(content["application/json"].get("schema", {}))
    if "text/event-stream" in content:
        return "lines", "Iterator[str]"
    return ("content", "bytes") if content else ("headers", "dict[str, str]")


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema or "oneOf" in schema:
        kinds = [_type(one) for one in schema.get("anyOf", schema.get("oneOf"))]
        return " | ".join(dict.fromkeys(kinds))
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    if schema.get("type") == "array":
        return f"list[{_type(schema.get('items', {}))}]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {_type(values) if isinstance(values, dict) else 'Any'}]"
    return _SCALARS.get(schema.get("type", ""), "Any")


def _optional(parameter: dict[str, Any]) -> str:
    typed = _type(parameter["schema"])
    if not _is_optional(parameter):
        return typed
    return f"{typed if 'None' in typed.split(' | ') else f'{typed} | None'} = None"


def _is_optional(parameter: dict[str, Any]) -> bool:
    return not parameter.get("required", False)


def _identifier(parameter: dict[str, Any]) -> str:
    name = str(parameter["name"]).replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) or name in {"format", "range"} else name


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            yield path, method, operation


def _tags(document: dict[str, Any]) -> list[str]:
    return sorted({tag for _, _, operation in _operations(document) for tag in operation["tags"]})


def _is_used(name: str, text: str) -> bool:
    """Whether the code has the name; what docstrings say does not count."""
    return name in re.findall(r"\w+", re.sub(r'""".*?"""', "", text, flags=re.DOTALL))


def _first_line(text: str) -> str:
    line = " ".join(text.split("\n\n", maxsplit=1)[0].split()).replace("`", "``")
    return line if len(line) < _WIDTH else line.partition(";")[0].removesuffix(".") + "."


def _formatted(text: str) -> str:
    # As the repository's other modules are: written once, sorted and wrapped by the same tool.
    place = FOLDER / "generated.py"
    ruff = Path(sys.executable).parent / "ruff"
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        text = subprocess.run(  # noqa: S603 - our own tool on our own text
            [ruff, *command, "--stdin-filename", place, "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
