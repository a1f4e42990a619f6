"""Requests of runs, what they resolve to, and the outcome of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from freezeframe.clock import moment, rfc3339
from freezeframe.errors import InputNotFound, InvalidOption, TenantNotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.script.tenants import shared_engine, storage_at
from freezeframe.settings import Settings
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenant_log.lease import HeldCommit
from freezeframe.store.transaction.dry_run import DryRun

# A run request: script, tenant, input, parameters and limits.
#
# A request is a value: it is kept in the queue, sent by the service and read by a worker on another day,
# so it holds nothing open and can be written as JSON and read back.

Scalar = str | int | float | bool | None

SCRIPT_SUFFIXES = (".py", ".ipynb")
JOB_ID_LENGTH_MAX = 500
PARAMETER_NAME_LENGTH_MAX = 100
# Linux limits an environment variable to 128 KiB.
PARAMETER_BYTES_MAX = 100_000
_TEXTS = ("root", "job_id", "flow", "connector_id", "job_type", "sync_type", "message", "who", "token")
_LATER = ("dry_run", "then", "keep_on_failure", "hold", "checks")
_PATHS = ("script", "input_dir", "config", "state", "catalog", "job_root")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run of a script for a tenant of the store at ``root``.

    ``job_id`` is the caller's and unique for each run: the same id again is answered and not run again.
    ``parameters`` reach the script by ``parameters.json`` and by variables named ``PARAM_`` and their name;
    nothing else of a request names a variable. ``config``, ``state`` and ``catalog`` are files to be laid
    beside ``sync-output``; ``job_root`` is a new or empty folder to run in, in place of one
    in the store. Limits of None are none. A ``dry_run`` commits nothing: its outcome has what would change.
    ``then`` are commands that send the script's output to its target before the commit (those of the script's
    header, if none are given): one that fails fails the job, unless ``keep_on_failure``. With ``hold``
    the job is not committed at its end: it waits to be published or discarded. So does one that fails one of
    the ``checks`` of the script's header, conditions by stream on what it would commit.
    ``token`` names this one run of the job, so that it can be revoked
    at any time (``runs.queue.attempt``); a run of a request without a token makes one.
    """

    root: str
    environment: str
    tenant: str
    script: Path
    job_id: str
    flow: str = ""
    input_dir: Path | None = None
    parameters: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    connector_id: str = ""
    job_type: str = ""
    sync_type: str = ""
    timeout_seconds: float | None = None
    memory_bytes: int | None = None
    message: str = ""
    who: str = ""
    config: Path | None = None
    state: Path | None = None
    catalog: Path | None = None
    job_root: Path | None = None
    dry_run: bool = False
    then: tuple[str, ...] = ()
    keep_on_failure: bool = False
    hold: bool = False
    checks: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "environment", str(EnvironmentName(self.environment)))
        object.__setattr__(self, "tenant", str(TenantId(self.tenant)))
        for name in _PATHS:
            path = getattr(self, name)
            object.__setattr__(self, name, None if path is None else Path(path))
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        checks = {name: tuple(texts) for name, texts in self.checks.items()}
        object.__setattr__(self, "checks", MappingProxyType(checks))
        then: Any = self.then
        object.__setattr__(self, "then", (then,) if isinstance(then, str) else tuple(then))
        _require_texts(self)
        _require_together(self)
        if self.script.suffix not in SCRIPT_SUFFIXES:
            raise InvalidOption(
                f"{str(self.script)!r} is not a script that can be run.",
                cause="Its name does not end with .py or .ipynb.",
                remedy="Name a Python file or a notebook.",
            )
        _require_parameters(self.parameters)
        _require_limits(self)

    @property
    def may_be_held(self) -> bool:
        """Whether its job may end without a commit and wait."""
        return self.hold or bool(self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name, paths as text."""
        named = {item.name: getattr(self, item.name) for item in fields(self)}
        paths = {name: None if named[name] is None else str(named[name]) for name in _PATHS}
        # A job of an earlier version submitted again is the same request: it has ``variables``, and nothing
        # of what came later.
        later = {name: named.pop(name) for name in _LATER}
        later = {name: value for name, value in later.items() if value}
        if self.checks:
            later["checks"] = dict(self.checks)
        return {**named, **later, **paths, "parameters": dict(self.parameters), "variables": {}}


def parse_run_request(record: Mapping[str, Any] | str) -> RunRequest:
    """Return the request in what ``to_json`` gave, as an object or as its text.

    Former versions wrote ``variables`` beside the parameters; they are parameters now.
    """
    try:
        found = json.loads(record) if isinstance(record, str) else dict(record)
        former = found.pop("variables", {})
        return RunRequest(**{**found, "parameters": {**found.get("parameters", {}), **former}})
    except (TypeError, ValueError) as error:
        raise InvalidOption(
            "This is not a request for a run.",
            cause=str(error),
            remedy="Pass what RunRequest.to_json() gives.",
        ) from error


def _require_texts(request: RunRequest) -> None:
    for name in _TEXTS:
        value = getattr(request, name)
        if not isinstance(value, str) or not is_variable_text(value):
            raise InvalidOption(f"{name} cannot be {value!r}.", remedy="Pass a text.")
    commands: tuple[Any, ...] = request.then
    for command in commands:
        if not isinstance(command, str) or not command.strip() or not is_variable_text(command):
            raise InvalidOption(f"then cannot have {command!r}.", remedy="Pass commands of the shell.")
    for name in ("dry_run", "keep_on_failure", "hold"):
        if not isinstance(getattr(request, name), bool):
            raise InvalidOption(f"{name} cannot be {getattr(request, name)!r}.", remedy="Pass true or false.")
    if not request.root:
        raise InvalidOption("No store is named.", remedy="Pass a directory, or s3://bucket/prefix.")
    if not request.job_id.strip() or len(request.job_id) > JOB_ID_LENGTH_MAX:
        raise InvalidOption(
            f"{request.job_id!r} cannot be a job's id.",
            cause="It identifies one run and is kept in the tenant's log.",
            remedy=f"Pass a text of 1 to {JOB_ID_LENGTH_MAX} characters.",
        )


def _require_together(request: RunRequest) -> None:
    if request.checks and request.then:
        raise InvalidOption(
            "A script with checks cannot have a command for its target.",
            cause="The target would get rows that a check may keep from their commit.",
            remedy="Leave one of them out, or send the rows by a job of its own.",
        )
    if request.hold and (request.dry_run or request.then):
        raise InvalidOption(
            f"A held job cannot {'be a dry run' if request.dry_run else 'have a command for its target'}.",
            cause="A dry run is never committed."
            if request.dry_run
            else "The target would get rows that may be discarded.",
            remedy="Leave one of them out.",
        )


def _require_parameters(parameters: Mapping[Any, Any]) -> None:
    for name, value in parameters.items():
        if not isinstance(name, str) or not name.isidentifier() or len(name) > PARAMETER_NAME_LENGTH_MAX:
            raise InvalidOption(
                f"{name!r} cannot be a parameter's name.",
                cause="A notebook gets it as a variable.",
                remedy=f"Use at most {PARAMETER_NAME_LENGTH_MAX} letters, digits and underscores, not "
                "beginning with a digit.",
            )
        if not isinstance(value, Scalar) or not is_variable_text(str(value)):
            raise InvalidOption(
                f"The parameter {name} cannot be {value!r}.",
                remedy="Pass a text without NUL characters, a number, true, false or null.",
            )
        if len(str(value).encode()) > PARAMETER_BYTES_MAX:
            raise InvalidOption(
                f"The parameter {name} has more than {PARAMETER_BYTES_MAX} bytes.",
                remedy="Pass large input as a file.",
            )


def is_variable_text(text: str) -> bool:
    """Return whether an environment variable can hold the text: UTF-8 without NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _require_limits(request: RunRequest) -> None:
    for name in ("timeout_seconds", "memory_bytes"):
        value = getattr(request, name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and value > 0):
            raise InvalidOption(
                f"{name} cannot be {value!r}.", remedy="Pass a positive number, or nothing for no limit."
            )


def given_file(path: Path, what: str) -> Path:
    """Return the file's absolute path; ``what`` is what a message calls it."""
    if not path.is_file():
        raise _absent(path, "file", what)
    return path.absolute()


def given_folder(path: Path, what: str) -> Path:
    """Return the folder's absolute path; ``what`` is what a message calls it."""
    if not path.is_dir():
        raise _absent(path, "folder", what)
    return path.absolute()


def _absent(path: Path, kind: str, what: str) -> InputNotFound:
    seen = "It is something else." if path.exists() else f"It was looked for from {Path.cwd()}."
    return InputNotFound(
        f"There is no {kind} {path}, which is named as the {what}.",
        cause=seen,
        remedy=f"Name a {kind} that is there.",
        path=str(path),
    )


# Placeholders in paths: the input ``data/{tenant}/{newest}`` is another folder for each tenant and day.

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_PLACEHOLDERS = ("{tenant}", "{date}", "{newest}")
_NUMBER = re.compile(r"([0-9]+)")
_INPUT = "sync's output"


def tenant_path(path: Path, tenant: str) -> Path:
    """Return the path of a file with ``{tenant}`` filled in, unless one of the very name is there."""
    return path if path.exists() else Path(str(path).replace("{tenant}", tenant))


def given_input(path: Path) -> Path:
    """Return the absolute path of an input: a folder that is there, or a path with placeholders."""
    names = _PLACEHOLDER.findall(str(path))
    if path.is_dir() or not names:
        return given_folder(path, _INPUT)
    unknown = [f"{{{name}}}" for name in names if f"{{{name}}}" not in _PLACEHOLDERS]
    if unknown or any(part.count("{newest}") > 1 for part in path.parts):
        raise InvalidOption(
            f"The input {str(path)!r} cannot be resolved.",
            cause=f"{unknown[0]} is not a placeholder." if unknown else "A name has {newest} more than once.",
            remedy=f"Use {', '.join(_PLACEHOLDERS)}, the last once in a name.",
        )
    absolute = path.absolute()
    first = next(number for number, part in enumerate(absolute.parts) if _PLACEHOLDER.search(part))
    given_folder(Path(*absolute.parts[:first]), f"beginning of the {_INPUT}")
    return absolute


def dated_input(path: Path | None, day: date) -> Path | None:
    """Return the path with ``{date}`` filled in, as in 2026-11-27."""
    return None if path is None else Path(str(path).replace("{date}", day.isoformat()))


def input_folder(path: Path, tenant: str, day: date) -> Path:
    """Return the folder that an input is now: of a tenant, on a day, and for ``{newest}`` the newest."""
    if not path.is_dir() and _PLACEHOLDER.search(str(path)):
        absolute = path.absolute()
        path = Path(absolute.anchor)
        for part in absolute.parts[1:]:
            values = {"{tenant}": tenant, "{date}": day.isoformat(), "{newest}": "\0"}
            name = "".join(values.get(text, text) for text in re.split(r"(\{\w+\})", part))
            path = _newest_folder(path, *name.split("\0")) if "\0" in name else path / name
    return given_folder(path, _INPUT)


def _newest_folder(folder: Path, before: str, after: str) -> Path:
    """Return the folder whose name is last, with numbers compared as numbers."""
    names = []
    if folder.is_dir():
        names = [
            item.name
            for item in folder.iterdir()
            if item.name[0] not in "._"
            and item.name.startswith(before)
            and item.name.endswith(after)
            and _NUMBER.search(item.name[len(before) : len(item.name) - len(after)])
            and item.is_dir()
        ]
    if not names:
        raise InputNotFound(
            f"There is no folder {folder}/{before}{{newest}}{after}, which is named as the {_INPUT}.",
            cause="A folder counts as the newest by the numbers in its name: 2026-11-27, sync-12."
            if folder.is_dir()
            else f"There is no folder {folder}.",
            remedy="Check the path, and that the sync has written its folder.",
            path=str(folder),
        )
    return folder / max(names, key=_by_numbers)


def _by_numbers(name: str) -> tuple[list[str | int], str]:
    parts: list[str | int] = list(_NUMBER.split(name))
    parts[1::2] = [int(part) for part in _NUMBER.findall(name)]
    return parts, name


def request_store(request: RunRequest, settings: Settings) -> Store:
    """Return the store of the request; errors as of ``freezeframe.open``."""
    return Store(storage_at(request.root, settings), shared_engine(), settings, request.environment)


def request_folder(request: RunRequest, settings: Settings) -> str | None:
    """Return the folder of the request's tenant, unique to it; None if there is no such tenant."""
    return request_store(request, settings).folder(request.tenant)


def request_tenant(request: RunRequest, settings: Settings) -> Tenant | None:
    """Return the tenant of the request, or None where the store has none of that id (yet)."""
    if "://" not in request.root and not Path(request.root).exists():
        return None
    try:
        return request_store(request, settings).tenant(request.tenant)
    except TenantNotFound:
        return None


def run_tenant(request: RunRequest, settings: Settings, *, create: bool = False) -> Tenant:
    """Return the tenant of a run; a missing one is made for a dry run until ``Store.remove_unlisted``."""
    store = request_store(request, settings)
    if request.dry_run:
        return store.unlisted_tenant(request.tenant, request.token)
    return store.tenant(request.tenant, create=create)


Status = Literal["succeeded", "failed", "cancelled", "timed_out", "repeated", "held"]
_OUTCOME_PATHS = ("job_root", "log", "notebook")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of a run, and the locations of its results.

    ``receipt`` is the tenant's answer (``JobReceipt.to_json``) of a run that succeeded, or had succeeded
    before (``repeated``: nothing was run). Any other status: nothing of the run is visible, and
    ``error`` is an error as ``FreezeframeError.to_json`` gives it. ``notebook`` is the executed one.
    ``exit_code`` is the script's; None where it was not run, or ended by a signal. ``made_tenant``: the
    store had no tenant of that id before; ``similar_tenants`` are ids of others that may have been meant.
    ``remarks`` is what a person should read about the input: numbers kept as text, files passed over; of
    a repeated run that its script is another one than the job's. ``dry_run`` is what a dry run that
    succeeded, or a job that is held, would change; it has no ``tenant_version``, and its receipt says that
    nothing is committed. A held job can be published until ``held_until`` (RFC 3339).
    """

    status: Status
    job_id: str
    job_root: Path
    seconds: float
    tenant_version: int | None
    receipt: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    log: Path
    notebook: Path | None
    exit_code: int | None
    made_tenant: bool = False
    similar_tenants: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    dry_run: DryRun | None = None
    held_until: str | None = None

    def __post_init__(self) -> None:
        if self.status not in get_args(Status):
            raise InvalidOption(f"{self.status!r} is not a status of a run.", remedy="See RunOutcome.")
        if self.is_success != (self.receipt is not None) or self.is_success == (self.error is not None):
            raise InvalidOption(
                f"A run that is {self.status} cannot have been answered so.",
                cause="A success has a receipt and no error, anything else an error and no receipt.",
                remedy="Pass the one that belongs to the status.",
            )

    @property
    def is_success(self) -> bool:
        """Whether the script did its work, in this run or in an earlier one of the same id."""
        return self.status in {"succeeded", "repeated", "held"}

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name, paths as text."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        paths = {name: None if named[name] is None else str(named[name]) for name in _OUTCOME_PATHS}
        mappings = {name: None if named[name] is None else dict(named[name]) for name in ("receipt", "error")}
        lists = {name: list(named[name]) for name in ("similar_tenants", "remarks")}
        dry_run = None if self.dry_run is None else self.dry_run.to_json()
        return {**named, **paths, **mappings, **lists, "dry_run": dry_run}


def held_outcome(held: HeldCommit) -> dict[str, Any]:
    """Return what the outcome of a held job has beside that of any run, as JSON values."""
    version = held.effects["tenant_version"]
    return {
        "status": "held",
        "tenant_version": None,
        "receipt": {**(held.entry.receipt or {}), "committed": False, "tenant_version": version},
        "dry_run": held.effects,
        "held_until": rfc3339(moment(held.until_ms), "seconds"),
    }
