"""What each command prints with ``--json``; ``write_reference.py`` makes a page and a JSON Schema of it.

``OBJECTS`` has the objects by name: a line of ``field:type`` each. ``RESULTS`` has the type of what each
command prints. A type is ``str``, ``int``, ``num``, ``bool``, ``any``, or an object's name; ``[T]`` is an
array, ``{T}`` an object with values by name, ``T?`` may be null, ``A|B`` is one of both. A field ``name?``
may be left out.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import re
from dataclasses import fields
from datetime import datetime
from typing import Any, get_args, get_origin

from freezeframe.service.operations.catalogue import OPERATIONS

MEANINGS = {
    "tenant": "a tenant's id; of a tenant without a store, its directory",
    "tenant_version": "a version of the tenant",
    "stream_version": "a stream's own version: that of its Delta table",
    "version": "a version of the tenant, where the API prints the same; of `delta`, of the table",
    "timestamp": "the moment of a version, RFC 3339",
    "author": "who made a change",
    "job_id": "the job that made a change",
    "message": "why a change was made",
    "inserted, updated, unchanged, deleted": "rows by what an update did with them",
    "rows": "how many rows are stored",
    "key": "the columns of a stream's key; of `key create` and `key rotate`, what a client sends",
    "committed": "whether a version was made",
    "sealed": "whether a file is encrypted",
    "bytes": "a size in bytes",
    "seconds": "a duration in seconds",
    "findings": "what is damaged: file, code and problem",
    "created, started, finished, expires, revoked": "moments in RFC 3339",
}

_VERIFICATION = (
    "sound:bool tenant_version:int log_sha256:str entries:int streams:int data_files:int blobs:int "
    "findings:[Finding]"
)
_COUNTS = "inserted:int updated:int unchanged:int deleted:int"
_KEY = (
    "id:str name:str scopes:[str] environments:[str]? tenants:[str]? created:str created_by:str "
    "expires:str? revoked:str? last_used:str?"
)

OBJECTS = {
    "Error": "code:str message:str problem:str cause:str remedy:str details:{any}",
    "Warning": "problem:str remedy:str",
    "Counts": _COUNTS,
    "ProofReport": "verdict:str storage:str seed:int finished:str proofs:[ProofResult]",
    "ProofResult": "name:str verdict:str promise:str counts:{int} violations:[str] seconds:num",
    "Finding": "file:str code:str problem:str",
    "Tenant": "tenant:str",
    "TenantVersion": "tenant:str tenant_version:int",
    "TenantState": (
        "tenant:str tenant_version:int timestamp:str? tags:{int} retention:Policy streams:[Stream] "
        "files:[File]"
    ),
    "Version": (
        "tenant_version:int timestamp:str kind:str restored_version:int? author:str job_id:str? "
        "request_id:str message:str streams:{Counts} streams_dropped:[str] files_written:[str] "
        "files_deleted:[str] is_idle:bool tags:[str]"
    ),
    "TenantDiff": "before:int after:int streams:{StreamDiff} files:{FileDiff}",
    "StreamDiff": f"fate:str {_COUNTS}",
    "FileDiff": "fate:str sealed:bool text?:str?",
    "Restoration": (
        "restored_version:int tenant_version:int committed:bool streams:{StreamRestoration} "
        "files_written:[str] files_deleted:[str]"
    ),
    "StreamRestoration": "fate:str rows_before:int rows_after:int files_added:int files_removed:int",
    "DeletionPreview": "tenant:str tenant_version:int streams:[str] files:[str]",
    "Deletion": (
        "environment:str tenant:str versions:int streams:int files:int objects:int size_bytes:int keys:int"
    ),
    "Garbage": ("dry_run:bool files:int bytes:int floor:int versions_expired:int revoked:[str] names:[str]"),
    "TenantGarbage": "tenant:str files:int bytes:int versions_expired:int error:str",
    "Verification": _VERIFICATION,
    "TenantVerification": f"environment:str tenant:str {_VERIFICATION}",
    "ErasurePreview": "stream:str keys:int rows_now:int versions_lost:int",
    "Erasure": (
        "stream:str keys:int rows_erased:int tenant_version:int files_deleted:int bytes_deleted:int "
        "left:WhatIsLeft"
    ),
    "WhatIsLeft": "streams_read:int rows_read:int remaining:int elsewhere:[str] files:[str]",
    "Stream": "stream:str tenant_version:int stream_version:int key:[str] rows:int columns:int",
    "StreamChange": f"stream:str tenant_version:int timestamp:str {_COUNTS} job_id:str?",
    "Receipt": (
        f"stream:str {_COUNTS} tenant_version:int stream_version:int committed:bool columns_added:[str] "
        "columns_dropped:[str] null_keys_dropped:int bytes_written:int seconds:num engine:str "
        "columns_missing:[str]"
    ),
    "JobReceipt": (
        "tenant_version:int job_id:str? committed:bool seconds:num streams:{Receipt} files_written:[str] "
        "files_deleted:[str] repeated:bool"
    ),
    "Explanation": (
        "stream:str stream_version:int route:str engine:str reason:str counts:Counts? bytes_written:int "
        "vectors_from_bytes:int plain:bool files:[ExplainedFile]"
    ),
    "ExplainedFile": "file:str bytes:int rows:int deleted:int size_class:int fate:str reason:str",
    "Row": "stream:str key:{any} row:{any}? versions:[RowVersion] following:int? is_whole:bool",
    "RowVersion": (
        "tenant_version:int timestamp:str kind:str restored_version:int? author:str job_id:str? "
        "message:str change:str changed:[str] before:{any}? after:{any}?"
    ),
    "ExportedStream": "stream:str file:str schema:str?",
    "TablePath": "stream:str path:str stream_version:int duckdb:str polars:str delta_rs:str spark:str",
    "Retyping": (
        "stream:str column:str type_before:str type_after:str rows:int tenant_version:int committed:bool"
    ),
    "DroppedStream": "stream:str rows:int tenant_version:int",
    "ReleasedStream": "stream:str tenant_version:int",
    "AdoptedStream": "stream:str key:[str] tenant_version:int",
    "Repair": ("stream:str action:str versions:[int] tenant_version:int stream_version:int reason:str"),
    "FileContent": "path:str encoding:str content:str",
    "SavedFile": "path:str to:str bytes:int",
    "Table": (
        "version:int protocol?:Protocol metadata?:Metadata segment?:Segment files?:[TableFile] "
        "tombstones?:int transactions?:{int}"
    ),
    "Protocol": (
        "min_reader_version:int min_writer_version:int reader_features:[str]? writer_features:[str]?"
    ),
    "Metadata": "id:str partition_columns:[str] configuration:{str} schema:any",
    "Segment": "checkpoint_version:int? deltas:[str]",
    "TableFile": "path:str size:int partition_values:{any} deletion_vector:str?",
    "TableVersion": "version:int timestamp:str operation:str? engine_info:str? commit_info:{any}",
    "TableVerification": "sound:bool findings:[Finding]",
    "Checkpoint": "version:int actions:int parts:int bytes:int",
    "Run": (
        "status:str job_id:str job_root:str seconds:num tenant_version:int? receipt:JobReceipt? error:Error? "
        "log:str notebook:str? exit_code:int? made_tenant:bool similar_tenants:[str] remarks:[str] "
        "dry_run:DryRun?"
    ),
    "DryRun": "tenant_version:int streams:{StreamEffect} files:{FileEffect}",
    "StreamEffect": (
        f"fate:str {_COUNTS} key:[str] columns_added:{{str}} columns_dropped:{{str}} "
        "columns_retyped:{[str]} changes?:[{any}]"
    ),
    "FileEffect": "fate:str size_bytes:int? sealed:bool text?:str?",
    "Job": (
        "job_id:str environment:str tenant:str status:str schedule:str? group:str? priority:int attempts:int "
        "attempts_max:int cancel_requested:bool worker:str? created:str run_at:str started:str? "
        "finished:str? outcome:JobOutcome?"
    ),
    "JobOutcome": (
        "status?:str job_id?:str job_root?:str seconds?:num tenant_version?:int? receipt?:JobReceipt? "
        "error?:Error? log?:str notebook?:str? exit_code?:int? made_tenant?:bool "
        "similar_tenants?:[str] remarks?:[str] dry_run?:DryRun?"
    ),
    "JobGroup": (
        "group:str environment:str script:str dry_run:bool created:str jobs:int counts:{int} "
        "failures:[GroupFailure] effects?:GroupEffects"
    ),
    "GroupEffects": (
        "dry_runs:int changing:int inserted:int updated:int deleted:int failures:[FailureReason] "
        "unusual:[UnusualEffect] columns:[ColumnEffect]"
    ),
    "FailureReason": "error:str tenants:int named:[str]",
    "UnusualEffect": "tenant:str stream:str kind:str rows:int rows_before:int",
    "ColumnEffect": ("stream:str column:str change:str before:str? after:str? tenants:int named:[str]"),
    "GroupFailure": "tenant:str job_id:str status:str error:str",
    "LogLine": "line:str",
    "Migration": "tenant:str tenant_version:int? streams:[MigratedStream] files:[str]",
    "MigratedStream": "stream:str file:str key:[str] rows:int?",
    "Schedule": (
        "name:str environment:str tenant:str cron:str zone:str missed:str priority:int attempts_max:int "
        "enabled:bool created:str next_due:str? last_due:str?"
    ),
    "DeletedSchedule": "name:str tenant:str deleted:bool",
    "Key": _KEY,
    "NewKey": f"key:str {_KEY}",
    "RotatedMasterKey": "master_key:str tenants:int",
    "EndedSessions": "sessions_ended:int",
    "AuditEntry": (
        "number:int moment:str principal:str action:str subject:str? request_id:str? details:any hash:str"
    ),
    "AuditProof": (
        "is_whole:bool entries:int logged:int broken_at:int? reason:str head_number:int? head_hash:str"
    ),
    "Service": "url:str root:str workers:int pid:int sign_in?:str",
    "Check": "part:str ok:bool level:str found:str remedy:str",
    "SparkStatus": "spark:str servers:[SparkServer] runner:Runner? state_dir:str",
    "SparkStart": "servers:[SparkServer] runner:Runner?",
    "SparkServer": (
        "folder:str master:str spark_memory:str java:str port:int process:int watcher:int memory_bytes:int? "
        "started_at:num clients:int? idle_seconds:num is_retiring:bool log:str"
    ),
    "Runner": "process:int started:num jobs:[int] idle_seconds:num",
    "SparkStop": "stopped:int still_used:int",
    "SparkLog": "log:str lines:[str]",
    "Jars": "folder:str fetched:int kept:int bytes_fetched:int",
    "Pom": "pom:str",
    "SettingOrigin": "value:any origin:str place:str",
    "Setting": "setting:str value:any origin:str place:str",
    "ChangedSetting": "setting:str value:any file:str",
    "SettingFiles": "project:str? user:str?",
    "Project": "directory:str files:[str] next:[str]",
}

RESULTS = {
    "init": "Project",
    "run": "Run",
    "worker": "Job",
    "job submit": "Job|JobGroup",
    "job list": "[Job]",
    "job show": "Job",
    "job logs": "LogLine",
    "job cancel": "Job",
    "job retry": "Job",
    "job wait": "Job|JobGroup",
    "schedule create": "Schedule",
    "schedule list": "[Schedule]",
    "schedule enable": "Schedule",
    "schedule disable": "Schedule",
    "schedule delete": "DeletedSchedule",
    "tenant list": "[Tenant]",
    "tenant create": "TenantVersion",
    "tenant show": "TenantState",
    "tenant history": "[Version]",
    "tenant diff": "TenantDiff",
    "tenant restore": "Restoration",
    "tenant delete": "DeletionPreview|Deletion",
    "tenant clone": "TenantVersion",
    "tenant gc": "Garbage",
    "tenant verify": "Verification|[TenantVerification]",
    "tenant erase": "ErasurePreview|Erasure",
    "sql": "[{any}]",
    "stream list": "[Stream]",
    "stream show": "[{any}]",
    "stream history": "[StreamChange]",
    "stream changes": "[{any}]",
    "stream diff": "[{any}]",
    "stream restore": "Restoration",
    "stream path": "TablePath",
    "stream row": "Row",
    "stream explain": "Explanation",
    "stream import": "Receipt",
    "stream export": "ExportedStream",
    "stream retype": "Retyping",
    "stream drop": "DroppedStream",
    "stream release": "ReleasedStream",
    "stream adopt": "AdoptedStream",
    "stream repair": "Repair",
    "file list": "[File]",
    "file read": "FileContent|SavedFile",
    "file write": "File",
    "file patch": "File",
    "import": "[Receipt]",
    "migrate": "Migration",
    "export": "[ExportedStream]",
    "gc": "Garbage|[TenantGarbage]",
    "delta show": "Table",
    "delta history": "[TableVersion]",
    "delta verify": "TableVerification",
    "delta checkpoint": "Checkpoint",
    "serve": "Service",
    "key create": "NewKey",
    "key list": "[Key]",
    "key rotate": "NewKey",
    "key revoke": "Key",
    "key sign-out": "EndedSessions",
    "key rotate-master": "RotatedMasterKey",
    "audit list": "[AuditEntry]",
    "audit export": "AuditEntry",
    "audit verify": "AuditProof",
    "spark status": "SparkStatus",
    "spark start": "SparkStart",
    "spark stop": "SparkStop",
    "spark logs": "SparkLog",
    "doctor": "[Check]",
    "prove": "ProofReport",
    "config show": "{any}|{SettingOrigin}",
    "config get": "Setting",
    "config set": "ChangedSetting",
    "config path": "SettingFiles",
}


def _of_operations() -> None:
    """Add what the commands of the catalogue print: the API's own results, by their classes."""
    for operation in OPERATIONS:
        words = operation.commands[0] if operation.run and operation.commands else ""
        if words and words not in RESULTS:
            RESULTS[words] = "null" if operation.result is None else _add(operation.result)


def _add(result: type[Any]) -> str:
    """Add a class of results and those inside of it; its name."""
    OBJECTS[result.__name__] = " ".join(f"{one.name}:{_word(one.type)}" for one in fields(result))
    return result.__name__


def _word(kind: Any) -> str:
    """A field's type, as ``OBJECTS`` writes it."""
    inner = get_args(kind)
    if type(None) in inner:
        return f"{_word(inner[0])}?"
    if get_origin(kind) in {list, dict}:
        return f"[{_word(inner[0])}]" if get_origin(kind) is list else f"{{{_word(inner[1])}}}"
    plain = {str: "str", int: "int", float: "num", bool: "bool", datetime: "str"}
    return plain.get(kind) or _add(kind)


_of_operations()

_PLAIN: dict[str, dict[str, Any]] = {
    "null": {"type": "null"},
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "num": {"type": "number"},
    "bool": {"type": "boolean"},
    "any": {},
}


def schema() -> dict[str, Any]:
    """The JSON Schema: ``$defs`` has the objects, and the result of each command by its words."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What freezeframe's commands print with --json",
        "$defs": {
            **{name: _object(fields) for name, fields in OBJECTS.items()},
            **{command: _type(result) for command, result in RESULTS.items()},
        },
    }


def page(origin: str) -> str:
    """The page for people: the words that all objects share, the result of each command, the objects."""
    lines = ["# JSON output", "", origin.strip(), "", *_WORDS, "| field | meaning |", "| --- | --- |"]
    lines += [f"| {_code(names)} | {meaning} |" for names, meaning in MEANINGS.items()]
    lines += ["", "## Commands", "", "| command | prints |", "| --- | --- |"]
    lines += [f"| `{command}` | {_named(result)} |" for command, result in RESULTS.items()]
    lines += ["", "## Objects", ""]
    for name, members in OBJECTS.items():
        lines += [f"### {name}", "", "| field | type |", "| --- | --- |"]
        for field in members.split():
            label, _, kind = field.partition(":")
            told = "`, optional" if label.endswith("?") else "`"
            lines.append(f"| `{label.removesuffix('?')}{told} | {_named(kind)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


_WORDS = [
    "With `--json` a command prints one JSON value on standard output, on one line. `job logs`, `worker` and",
    '`serve` print a line for each event. Errors go to standard error as `{"error": Error}`, warnings as',
    '`{"warning": Warning}`; the exit code is the same as without `--json`.',
    "",
    "The names of fields are snake_case, and a field of one name means the same in every command. Names",
    "that belong to you or to Delta are given as they are: columns, streams, paths, tags, table properties,",
    "and what a table's writer noted (`commit_info`). New fields may be added.",
    "[json-output.schema.json](json-output.schema.json) is the same as JSON Schema: `$defs` has each command",
    "by its words, for example `#/$defs/stream list`.",
    "",
]


def _object(fields: str) -> dict[str, Any]:
    pairs = [field.partition(":")[::2] for field in fields.split()]
    return {
        "type": "object",
        "properties": {name.removesuffix("?"): _type(kind) for name, kind in pairs},
        "required": [name for name, _ in pairs if not name.endswith("?")],
        "additionalProperties": False,
    }


def _type(text: str) -> dict[str, Any]:
    if "|" in text:
        return {"anyOf": [_type(item) for item in text.split("|")]}
    if text.endswith("?"):
        return {"anyOf": [_type(text[:-1]), {"type": "null"}]}
    if text.startswith("["):
        return {"type": "array", "items": _type(text[1:-1])}
    if text.startswith("{"):
        return {"type": "object", "additionalProperties": _type(text[1:-1])}
    return _PLAIN.get(text) or ({"$ref": f"#/$defs/{text}"} if text in OBJECTS else {})


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _named(kind: str) -> str:
    """A type in words, with links to the objects."""
    words = {
        "null": "null",
        "str": "text",
        "int": "whole number",
        "num": "number",
        "bool": "true or false",
        "any": "any value",
    }
    if "|" in kind:
        return " or ".join(_named(item) for item in kind.split("|"))
    if kind.endswith("?"):
        return f"{_named(kind[:-1])}, or null"
    if kind.startswith("["):
        return f"array of {_named(kind[1:-1])}"
    if kind.startswith("{"):
        return f"{_named(kind[1:-1])} by name"
    return words.get(kind) or f"[{kind}](#{re.sub('[^a-z]', '', kind.lower())})"
