"""What a script says about itself, its requirements, and whether it may be run."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import io
import json
import os
import re
import shutil
import site
import subprocess
import sys
import tokenize
import tomllib
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from freezeframe.engine.daemon import state_folder
from freezeframe.errors import InvalidOption, SetupError
from freezeframe.identifiers import StreamName
from freezeframe.runs.request import PARAMETER_NAME_LENGTH_MAX, RunRequest, Scalar
from freezeframe.settings import Settings
from freezeframe.store.diff.checks import require_checks
from freezeframe.store.model.directory import PULLED_FILE, PULLED_STORE

# What a script says about itself: a description and its parameters, in the header of PEP 723.
#
# A header is a comment that ``# /// script`` begins and ``# ///`` ends; inside is TOML. Ours is its table
# ``[tool.freezeframe]``. Nothing of the script is run to read it. Python's tokens tell comments from texts.

_BLOCK = re.compile(r"^# /// script\s*$\n(?P<content>(?:^#(?:| .*)$\n)+?)^# ///\s*$", re.MULTILINE)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_FIELDS = frozenset({"type", "default", "description", "choices", "required"})


@dataclass(frozen=True, slots=True)
class ScriptParameter:
    """A parameter that a script declares: its name, its type, and what a caller may give.

    ``type`` is ``text``, ``integer``, ``number`` or ``boolean``. Without ``choices`` any value of
    the type may be given. A required one has no default.
    """

    name: str
    type: str = "text"
    default: Scalar = None
    description: str = ""
    choices: tuple[Scalar, ...] = ()
    is_required: bool = False

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or len(self.name) > PARAMETER_NAME_LENGTH_MAX:
            raise _wrong(f"{self.name!r} cannot be a parameter's name.")
        if self.type not in _KINDS:
            raise _wrong(f"{self.name} cannot have the type {self.type!r}.")
        if self.is_required and self.default is not None:
            raise _wrong(f"{self.name} is required and has a default.")
        for value in (*self.choices, *(() if self.default is None else (self.default,))):
            if not self.takes(value):
                raise _wrong(f"{value!r} cannot be a value of {self.name} ({self.type}).")

    def takes(self, value: Scalar) -> bool:
        """Return whether the value has the type, and is one of the choices if there are any."""
        is_kind = isinstance(value, _KINDS[self.type]) and (
            self.type == "boolean" or not isinstance(value, bool)
        )
        return is_kind and (not self.choices or value in self.choices)


@dataclass(frozen=True, slots=True)
class ScriptHeader:
    """What a script says of itself; ``parameters`` is None where it declares none.

    ``then`` and ``keep_on_failure`` are those of ``RunRequest``, for a run that names no commands itself;
    ``hold`` and ``checks`` are those of all its runs.
    """

    description: str = ""
    parameters: tuple[ScriptParameter, ...] | None = None
    then: tuple[str, ...] = ()
    keep_on_failure: bool = False
    hold: bool = False
    checks: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def filled(self, values: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
        """Check the values and add the declared defaults; a script that declares none accepts any."""
        if self.parameters is None:
            return values
        known = {parameter.name: parameter for parameter in self.parameters}
        names = ", ".join(known) or "none"
        for name, value in values.items():
            if name not in known:
                raise InvalidOption(
                    f"The script has no parameter {name!r}.",
                    cause=f"Its header declares {names}.",
                    remedy="Give one of these, or declare it in the script.",
                )
            if value is not None and not known[name].takes(value):
                raise InvalidOption(
                    f"{name} cannot be {value!r}.", cause=_expected(known[name]), remedy="Give such a value."
                )
        for parameter in self.parameters:
            if parameter.is_required and values.get(parameter.name) is None:
                raise InvalidOption(
                    f"The parameter {parameter.name} is missing.",
                    cause="The script's header says that it is required.",
                    remedy=f"Give {parameter.name} ({parameter.type}).",
                )
        return {
            **{
                parameter.name: parameter.default
                for parameter in self.parameters
                if parameter.default is not None
            },
            **values,
        }


def with_script_header(request: RunRequest) -> RunRequest:
    """Return the request with what the script's header adds to it; refuses what cannot go together."""
    header = read_script_header(request.script)
    if _is_pulled(request):
        # It is tried where it was pulled to: nothing reaches its target, and its changes are compared.
        header = replace(header, then=(), keep_on_failure=False, hold=False, checks={})
    return replace(
        request,
        parameters=header.filled(request.parameters),
        then=request.then or header.then,
        keep_on_failure=request.keep_on_failure or (not request.then and header.keep_on_failure),
        hold=request.hold or (header.hold and not request.dry_run),
        checks=header.checks,
    )


def _is_pulled(request: RunRequest) -> bool:
    """Return whether the script is in the folder of a pulled job, and refuse it for any other tenant."""
    folder = request.script.parent
    if not (folder / PULLED_FILE).is_file():
        return False
    job = json.loads((folder / PULLED_FILE).read_bytes())["job"]
    place = Path(request.root).resolve(), request.environment, request.tenant
    if place != ((folder / PULLED_STORE).resolve(), job["environment"], job["tenant"]):
        raise InvalidOption(
            f"The script was pulled into {folder}, and runs for the tenant of there alone.",
            cause="Without its target, and with the input of a job that has been run.",
            remedy="Run it in its folder, without --root, --environment and --tenant; "
            "deploy a script without the folder that it was pulled into.",
        )
    return True


def read_script_header(script: Path) -> ScriptHeader:
    """Return the header of a script, wherever it stands; an empty one of a notebook, or without one."""
    if script.suffix != ".py":
        return ScriptHeader()
    return parse_script_header(script.read_bytes().decode("utf-8-sig", "replace"))


@functools.lru_cache(maxsize=8)  # a run asks for its script's header at each of its steps
def parse_script_header(text: str) -> ScriptHeader:
    """Return the header in a script's text; errors as of ``read_script_header``."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = _BLOCK.search(text) and _BLOCK.findall(_without_texts(text))
    if not blocks:
        return ScriptHeader()
    if len(blocks) > 1:
        raise _wrong("The file has several of them.")
    content = "\n".join(line[2:] for line in blocks[0].splitlines())
    try:
        ours = tomllib.loads(content).get("tool", {}).get("freezeframe", {})
        if unknown := sorted(ours.keys() - {item.name for item in fields(ScriptHeader)}):
            raise _wrong(f"[tool.freezeframe] has the unknown field {unknown[0]}.")
        description, declared = ours.get("description", ""), ours.get("parameters")
        if not isinstance(description, str):
            raise _wrong("description is no text.")
        parameters = None if declared is None else tuple(_parameter(*item) for item in declared.items())
        then, keep, hold = ours.get("then", []), ours.get("keep_on_failure", False), ours.get("hold", False)
        commands = (then,) if isinstance(then, str) else tuple(then)
        if not all(isinstance(command, str) and command.strip() for command in commands):
            raise _wrong("then is no list of commands.")
        for name, value in (("keep_on_failure", keep), ("hold", hold)):
            if not isinstance(value, bool):
                raise _wrong(f"{name} is neither true nor false.")
        checks = _checks(ours.get("checks", {}))
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        raise _wrong(str(error)) from error
    return ScriptHeader(description, parameters, commands, keep, hold, checks)


def _without_texts(text: str) -> str:
    """Empty the lines of texts that look like comments; what is no Python stays as it is."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return text
    comments = {token.start for token in tokens if token.type == tokenize.COMMENT}
    lines = enumerate(text.split("\n"), 1)
    return "\n".join("" if line[:1] == "#" and (n, 0) not in comments else line for n, line in lines)


def _checks(said: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """Return the conditions of each stream, each of which can be a check."""
    found = {}
    for name, texts in said.items():
        found[str(StreamName(name))] = conditions = (texts,) if isinstance(texts, str) else tuple(texts)
        if not all(isinstance(text, str) for text in conditions):
            raise _wrong(f"checks of {name} are no list of conditions.")
        require_checks(conditions)
    return MappingProxyType(found)


def _parameter(name: str, said: Any) -> ScriptParameter:
    """Return a parameter from its table, or from its default alone."""
    table = said if isinstance(said, dict) else {"default": said}
    if unknown := sorted(table.keys() - _FIELDS):
        raise _wrong(f"{name} has the unknown field {unknown[0]}.")
    choices, default = tuple(table.get("choices", ())), table.get("default")
    example = next(iter((*choices, *(() if default is None else (default,)))), "")
    if not isinstance(example, str | int | float | bool):
        raise _wrong(f"{name} cannot be {example!r}.")
    return ScriptParameter(
        name=name,
        type=table.get("type", _kind_of(example)),
        default=default,
        description=str(table.get("description", "")),
        choices=choices,
        is_required=table.get("required") is True,
    )


def _kind_of(value: Scalar) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "text"


def _expected(parameter: ScriptParameter) -> str:
    if parameter.choices:
        return f"It is one of {', '.join(str(choice) for choice in parameter.choices)}."
    return f"It takes a value of the type {parameter.type!r}."


def _wrong(cause: str) -> InvalidOption:
    return InvalidOption(
        "The script's header cannot be read.",
        cause=cause,
        remedy="Correct the table [tool.freezeframe] between `# /// script` and `# ///`.",
        code="SCRIPT_HEADER",
    )


# A script's ``requirements.txt``, installed once for all its runs.
#
# They go into a virtual environment of their own on top of ours, kept in the state folder under the hash of
# the file. If both have a package, the script gets its own version.

_FILE = "requirements.txt"
_DONE = "complete"
_OUTPUT_MAX = 4_000
_INSTALL_SECONDS = 1800


def interpreter(script: Path, settings: Settings) -> str:
    """Return the Python for the script: this one, or that of its requirements' environment."""
    file = script.parent / _FILE
    if not file.is_file():
        return sys.executable
    wanted = file.read_bytes()
    if not any(line.partition(b"#")[0].strip() for line in wanted.splitlines()):
        return sys.executable
    identity = f"{sys.executable}\n{sys.version}\n".encode() + wanted
    digest = hashlib.sha256(identity).hexdigest()[:24]
    folder = state_folder(settings.state_dir, f"requirements-{digest}")
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _DONE).exists():
            _install(folder / "venv", file)
            (folder / _DONE).touch()
    return str(folder / "venv" / "bin" / "python")


def _install(place: Path, file: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)  # left by an interrupted installation
    venv.EnvBuilder(system_site_packages=True, symlinks=True).create(place)
    library = next(place.glob("lib/python*/site-packages"))
    # A virtual environment's "system" is the Python below ours; ours is added by hand, last of all.
    ours = "; ".join(f"site.addsitedir({path!r})" for path in site.getsitepackages())
    (library / "freezeframe-packages.pth").write_text(f"import site; {ours}\n", encoding="utf-8")
    python = place / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-r", str(file)]
    try:
        done = subprocess.run(  # noqa: S603 - pip, which we depend on
            command,
            cwd=file.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=_INSTALL_SECONDS,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
        )
    except subprocess.TimeoutExpired as error:
        raise _not_installed(file, f"pip did not end within {error.timeout:,.0f} seconds.") from error
    if done.returncode:
        raise _not_installed(file, done.stdout.strip()[-_OUTPUT_MAX:])


def _not_installed(file: Path, cause: str) -> SetupError:
    return SetupError(
        f"The packages in {file} could not be installed.",
        cause=cause,
        remedy="Correct the file, or make the package index reachable, and run it again.",
        code="REQUIREMENTS",
        file=str(file),
    )


BUILT_IN_IMPORT = Path("freezeframe:import.py")
"""How a request names the product's own import: not by a path, which another installation has elsewhere."""
BUILT_IN_REPLAY = Path("freezeframe:replay.py")
"""How it names the product's own replay of jobs."""
REPLAY_OPTIONS = "REPLAY_OPTIONS"
"""The parameter that says what a replay is of, as JSON (``runs.replay.replays.Replay``)."""
_BUILT_IN = {
    BUILT_IN_IMPORT: Path(__file__).parent / "process" / "import_script.py",
    BUILT_IN_REPLAY: Path(__file__).parent / "replay" / "replay_script.py",
}


def is_built_in(script: Path) -> bool:
    """Return whether a script is the product's own, and no user's."""
    return script in _BUILT_IN or script in _BUILT_IN.values()


def is_replay(script: Path) -> bool:
    """Return whether a script is the product's own replay of jobs."""
    return script in {BUILT_IN_REPLAY, _BUILT_IN[BUILT_IN_REPLAY]}


def script_sha256(request: RunRequest) -> str:
    """Return the hash of the user's script that runs, in a replay of the mended one; empty: there is none."""
    if is_replay(request.script):
        return str(json.loads(str(request.parameters[REPLAY_OPTIONS]))["sha256"])
    if is_built_in(request.script):
        return ""
    with request.script.open("rb") as script:
        return hashlib.file_digest(script, "sha256").hexdigest()


def with_permitted_script(request: RunRequest, settings: Settings) -> RunRequest:
    """Return the request with the script's real path, links followed; what is built in gets this version's.

    Where ``service_scripts_dir`` is set, only files below it may be run, whoever submitted the job: a row
    of the queue is not proof of who wrote it. Without it any path may.
    """
    folder = settings.service_scripts_dir
    if folder is not None and (request.then or request.keep_on_failure):
        raise InvalidOption(
            f"The job {request.job_id} may not name what is done with its output.",
            cause=f"Jobs of the queue run only what is in {folder} (service_scripts_dir).",
            remedy="Name the command in the script's header: then = [...]; or run it by freezeframe run.",
        )
    own = _BUILT_IN.get(request.script)
    script = request.script
    if own is not None:
        named = json.loads(str(request.parameters.get(REPLAY_OPTIONS, "{}"))).get("script")
        if request.script == BUILT_IN_IMPORT or folder is None:
            return replace(request, script=own)
        if named is None:
            raise InvalidOption(
                "The jobs cannot be replayed with the scripts that were kept of them.",
                cause=f"Jobs of the queue run only scripts in {folder} (service_scripts_dir).",
                remedy="Name the script of that folder to replay them with.",
            )
        script = Path(named)
    if folder is None:
        return request
    if not script.resolve().is_relative_to(folder.resolve()):
        raise InvalidOption(
            f"The script {script} may not be run.",
            cause=f"Jobs of the queue run only scripts in {folder} (service_scripts_dir), links followed.",
            remedy="Put the script there, or run it by freezeframe run.",
        )
    return replace(request, script=own or script.resolve())
