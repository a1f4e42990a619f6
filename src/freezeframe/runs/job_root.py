"""A job's root folder (``ROOT_DIR``), in hotglue's layout.

    sync-output/       what the sync left, a copy of the run's input
    snapshots/         the tenant's files, a private working copy
    etl-output/        what the script writes for others
    config.json  state.json  catalog.json  parameters.json
    plugins/  *.json   copies of those beside the script
    errors.txt         the last error of a run that failed
    script.log         all that the script printed
    etl.ipynb          the executed notebook, under the script's own name
    _freezeframe/      messages between the run and the script's process

Its name begins with the moment of its making, so that its age is known (``store.model.directory``).

The last part has the messages between a run and its script's process: two files in the job's root. Both are
written whole under another name first, so a reader finds all of one or nothing. The plan holds what is
secret (the settings with the way to the master key), so its mode is 0600, and the script's process removes it
before the script begins.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from freezeframe.errors import InvalidOption, SetupError
from freezeframe.runs.request import RunRequest, parse_run_request
from freezeframe.runs.script_header import BUILT_IN_IMPORT
from freezeframe.settings import Settings
from freezeframe.storage.local import failure, make_private, write_durably
from freezeframe.storage.safe_open import open_regular, remove_beneath
from freezeframe.store.model.directory import OURS, job_roots, root_stamp

_UNSAFE = re.compile(r"[^A-Za-z0-9_.]+")
_SLUG_LENGTH = 40
_SCRIPT = "script"
# Files of a sync beside its output, and their names in a run.
_BESIDE = ("config", "state", "catalog")
_PLUGINS = "plugins"


@dataclass(frozen=True, slots=True)
class JobRoot:
    """The folder of one run; the properties are paths in it, existing or not."""

    path: Path

    @property
    def input(self) -> Path:
        """What the sync left."""
        return self.path / "sync-output"

    @property
    def snapshots(self) -> Path:
        """The working copy."""
        return self.path / "snapshots"

    @property
    def output(self) -> Path:
        """What the script writes for others."""
        return self.path / "etl-output"

    @property
    def temporary(self) -> Path:
        """A folder that is gone after the run."""
        return self.path / "tmp"

    @property
    def state(self) -> Path:
        """The sync's bookmarks; there only if there was an earlier sync."""
        return self.path / "state.json"

    @property
    def config(self) -> Path:
        """The connector's settings, with its secrets: gone after the run."""
        return self.path / "config.json"

    @property
    def errors(self) -> Path:
        """The error of a run that failed, as people read it."""
        return self.path / "errors.txt"

    @property
    def log(self) -> Path:
        """All that the script printed."""
        return self.path / "script.log"

    @property
    def own(self) -> Path:
        """The folder of messages between run and script process."""
        return self.path / OURS

    def executed_path(self, script: Path) -> Path | None:
        """Return where the executed form of a notebook goes; None for any other script."""
        return self.path / script.name if script.suffix == ".ipynb" else None

    def note_sealed(self, paths: Iterable[str]) -> None:
        """Record which files of the working copy will be decrypted, before they are."""
        (self.own / "sealed.json").write_text(json.dumps(list(paths)), encoding="utf-8")

    def remove_secrets(self) -> None:
        """Remove what was decrypted for the run alone: sealed files, the connector's settings, tokens."""
        noted = f"{self.own.name}/sealed.json"
        copies = self.snapshots.name
        own = (f"{self.own.name}/plan.json", f"{copies}/{OURS}/job.json", self.config.name)
        for name in (*(f"{copies}/{item}" for item in self._sealed(noted)), *own, noted):
            try:
                remove_beneath(self.path, name)
            except OSError as error:
                # The script replaced a folder, which holds no sealed file then.
                if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
                    raise failure("remove", str(self.path), error) from error
        shutil.rmtree(self.temporary, ignore_errors=True)

    def _sealed(self, noted: str) -> list[str]:
        try:
            with open_regular(self.path, noted) as file:
                return [str(path) for path in json.load(file)]
        except (OSError, ValueError, TypeError):
            return []  # none was noted, or the script put something else there

    def remove_copies(self) -> None:
        """Remove what is a copy of data kept elsewhere: the input, and the committed working copy."""
        for folder in (self.input, self.snapshots):
            shutil.rmtree(folder, ignore_errors=True)


def make_job_root(folder: Path, request: RunRequest) -> JobRoot:
    """Make a job root with the run's input, in the tenant's folder of roots or where the request says."""
    # The name is safe for any id, because it contains only a part of it.
    name = f"{root_stamp(datetime.now(UTC))}-{_mark(request.job_id)}-{secrets.token_hex(4)}"
    path = request.job_root or folder / name
    if path.exists() and not path.is_dir():
        raise InvalidOption(f"{path} is not a folder.", cause="A file is there.", remedy="Name a new folder.")
    is_new = not path.exists()
    try:
        make_private(path)
        if any(path.iterdir()):
            raise InvalidOption(
                f"{path} is not empty.",
                cause="A job's root belongs to one run.",
                remedy="Name a new folder.",
            )
    except OSError as error:
        raise failure("make", str(path), error) from error
    root = JobRoot(path.resolve())
    try:
        for made in (root.own, root.output, root.temporary):
            made.mkdir(mode=0o700)
        (root.own / _SCRIPT).write_bytes(os.fsencode(request.script))
        _bring_input(root, request)
        _bring_beside_script(root, request.script)
    except BaseException as error:
        _clear(root.path, is_new=is_new)
        if isinstance(error, OSError):
            raise failure("make", str(path), error) from error
        raise
    return root


def _clear(path: Path, *, is_new: bool) -> None:
    """Remove a root's content, and the root itself unless it existed before; never raises."""
    if is_new:
        shutil.rmtree(path, ignore_errors=True)
        return
    for item in path.iterdir():
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item, ignore_errors=True)
        else:
            item.unlink(missing_ok=True)


def script_of(root: JobRoot) -> Path | None:
    """Return the script that the root's run was of, as it was named; None where the root is gone."""
    with suppress(OSError), open_regular(root.path, f"{root.own.name}/{_SCRIPT}") as file:
        return Path(os.fsdecode(file.read()))
    return None


def latest_root(folder: Path, job_id: str) -> JobRoot | None:
    """Return the newest root of that job in the tenant's folder, if one is kept still."""
    mark = _mark(job_id)
    return next((JobRoot(root) for root in reversed(job_roots(folder)) if f"-{mark}-" in root.name), None)


def _mark(job_id: str) -> str:
    slug = _UNSAFE.sub("_", job_id)[:_SLUG_LENGTH].strip("._")
    return f"{slug}-{hashlib.sha256(job_id.encode(errors='surrogatepass')).hexdigest()[:12]}"


def _bring_input(root: JobRoot, request: RunRequest) -> None:
    if request.input_dir is None:
        root.input.mkdir(mode=0o700)
    elif request.script == BUILT_IN_IMPORT:
        # Copy the files that a request brought; a link or a pipe in place of one is refused.
        root.input.mkdir(mode=0o700)
        for path in request.input_dir.iterdir():
            try:
                with (
                    open_regular(request.input_dir, path.name) as content,
                    _new_file(root.input / path.name) as file,
                ):
                    shutil.copyfileobj(content, file)
            except OSError as error:
                raise failure("copy", str(path), error) from error
    else:
        _copy_folder(request.input_dir, root.input)
    for name in _BESIDE:
        source = getattr(request, name) or _beside(request.input_dir, f"{name}.json")
        if source is not None:
            _copy(source, root.path / f"{name}.json")
    parameters = json.dumps(dict(request.parameters), ensure_ascii=False, indent=2)
    write_durably(root.path / "parameters.json", f"{parameters}\n".encode(), synced=False)


def _bring_beside_script(root: JobRoot, script: Path) -> None:
    """Copy what scripts of hotglue open in their root: JSON files beside the script, and its ``plugins``.

    Nothing else, because the folder can hold a store, an environment or other tenants' data. The run's own
    files stay as they are.
    """
    if script == BUILT_IN_IMPORT:
        return
    own = {f"{name}.json" for name in (*_BESIDE, "parameters")}
    for file in script.parent.glob("*.json"):
        if file.name not in own and file.name[0] != "." and file.is_file():
            _copy_like(str(file), str(root.path / file.name))
    plugins = script.parent / _PLUGINS
    if plugins.is_dir():
        _copy_folder(plugins, root.path / _PLUGINS, ignore=shutil.ignore_patterns("__pycache__"))


def _beside(input_dir: Path | None, name: str) -> Path | None:
    """Return the file that a job's root of hotglue has beside its ``sync-output``."""
    if input_dir is None or input_dir.resolve().name != "sync-output":
        return None
    file = input_dir.resolve().parent / name
    return file if file.is_file() else None


def _copy_folder(
    source: Path, target: Path, ignore: Callable[[Any, list[str]], set[str]] | None = None
) -> None:
    """Copy a folder with private permissions: files 0600, folders 0700."""
    try:
        shutil.copytree(source, target, ignore=ignore, copy_function=_copy_like)
    except shutil.Error as error:
        # It collects errors of folders as a list of (source, target, reason).
        _, _, reason = error.args[0][0]
        raise OSError(str(reason)) from error
    for folder, _, _ in os.walk(target):
        Path(folder).chmod(0o700)


def _copy_like(source: str, target: str) -> None:
    """Copy one file of a folder; the first that fails ends the copying."""
    if stat.S_ISFIFO(Path(source).stat().st_mode):
        raise failure("copy", source, OSError("It is a named pipe."))
    try:
        _copy(Path(source), Path(target))
    except OSError as error:
        raise failure("copy", source, error) from error


def _copy(source: Path, target: Path) -> None:
    with _new_file(target) as file, source.open("rb") as content:
        shutil.copyfileobj(content, file)


def _new_file(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


_PLAN, _RESULT = "plan.json", "result.json"


@dataclass(frozen=True, slots=True)
class ScriptPlan:
    """The request to carry out, the settings, and the process that watches over it."""

    request: RunRequest
    settings: Settings
    supervisor: int

    def write(self, root: JobRoot) -> None:
        """Write it for the script's process."""
        record = {
            "request": self.request.to_json(),
            "settings": self.settings.model_dump(mode="json"),
            "supervisor": self.supervisor,
        }
        _write(root.own / _PLAN, record)


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """How the script's process ended in its own words: a receipt, or an error and an exit code.

    ``jvm_stack`` is what Spark's JVM said of the error, for the end of the log; ``remarks`` are for the
    report. ``dry_run`` is what a dry run would change, ``streams`` are those that the job read, looked for
    or changed (None: it did not come to its end).
    """

    receipt: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    exit_code: int
    jvm_stack: str = ""
    remarks: Sequence[str] = ()
    dry_run: Mapping[str, Any] | None = None
    streams: Sequence[str] | None = None

    def write(self, root: JobRoot) -> None:
        """Write it for the run."""
        _write(root.own / _RESULT, asdict(self))


def take_plan(root: JobRoot) -> ScriptPlan:
    """Read the plan and remove it."""
    file = root.own / _PLAN
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        file.unlink()
        return ScriptPlan(
            parse_run_request(record["request"]), Settings(**record["settings"]), int(record["supervisor"])
        )
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise SetupError(
            f"{root.path} holds no job to run.",
            cause=str(error),
            remedy="Run scripts by freezeframe run; this program is a part of it.",
        ) from error


def read_result(root: JobRoot) -> ScriptResult | None:
    """Return the result that the script's process wrote; None if it ended without one."""
    try:
        with open_regular(root.path, f"{root.own.name}/{_RESULT}") as file:
            return ScriptResult(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None


def _write(path: Path, record: Mapping[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(record, file, ensure_ascii=False, default=str)
    draft.replace(path)
