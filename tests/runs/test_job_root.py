"""A job's root appears whole, or nothing of it is left."""

import json
import os
import resource
import sys
from contextlib import contextmanager

import pytest
from tests import given

from freezeframe.configuration.masking import SecretMask
from freezeframe.errors import StorageUnavailable, UnsafePath
from freezeframe.runs.job_root import JobRoot, ScriptResult, make_job_root, read_result
from freezeframe.runs.process.script_process import WaitingFile
from freezeframe.runs.request import RunRequest
from freezeframe.runs.running import find_receipt, run_error
from freezeframe.runs.script_header import BUILT_IN_IMPORT
from freezeframe.runs.watching import Ending
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Fault, FaultyStorage, Way
from freezeframe.store.model.directory import is_in_use


@contextmanager
def _files_of_at_most(size):
    """Where a write beyond that many bytes fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    sys.dont_write_bytecode = True  # no half of a module is kept
    try:
        yield
    finally:
        sys.dont_write_bytecode = False
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def request_of(tmp_path):
    """A request whose input does not fit, to be run in a folder of its own or in a given one."""
    given = tmp_path / "sync-output"
    (given / "deeper").mkdir(parents=True)
    for name in ("A.csv", "B.csv", "deeper/C.csv"):
        (given / name).write_bytes(b"x" * 10_000)
    (tmp_path / "etl.py").write_text("")

    def made(job_root=None, **options):
        return RunRequest(
            script=tmp_path / "etl.py",
            root=str(tmp_path),
            environment="default",
            tenant="acme",
            job_id="j",
            input_dir=given,
            job_root=job_root,
            **options,
        )

    return made


def test_a_copy_that_fails_leaves_nothing(tmp_path, request_of):
    """The cause is a sentence, and the partial copy is gone with its root."""
    folder = tmp_path / "roots"
    folder.mkdir()

    with _files_of_at_most(5_000), pytest.raises(StorageUnavailable) as caught:
        make_job_root(folder, request_of())

    assert "could not copy" in caught.value.problem
    assert "File too large" in caught.value.cause
    assert "[(" not in str(caught.value)
    assert list(folder.iterdir()) == []


def test_a_given_folder_stays_and_is_empty(tmp_path, request_of):
    """What the caller made is the caller's; what was copied into it is gone."""
    root = tmp_path / "given"
    root.mkdir()

    with _files_of_at_most(5_000), pytest.raises(StorageUnavailable):
        make_job_root(tmp_path, request_of(root))

    assert list(root.iterdir()) == []


def test_a_state_that_does_not_fit_leaves_nothing(tmp_path, request_of):
    """Nor is anything left where a file beside the input fails."""
    state = tmp_path / "big.json"
    state.write_bytes(b"x" * 30_000)
    folder = tmp_path / "roots"
    folder.mkdir()

    with _files_of_at_most(20_000), pytest.raises(StorageUnavailable):
        make_job_root(folder, request_of(state=state))

    assert list(folder.iterdir()) == []


def test_a_pipe_among_the_input_is_a_sentence(tmp_path, request_of):
    """What cannot be copied is named."""
    os.mkfifo(tmp_path / "sync-output" / "deeper" / "pipe")
    folder = tmp_path / "roots"
    folder.mkdir()

    with pytest.raises(StorageUnavailable, match="pipe") as caught:
        make_job_root(folder, request_of())

    assert "[(" not in str(caught.value)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("plant", [lambda path, to: path.symlink_to(to), lambda path, _: os.mkfifo(path)])
def test_a_received_file_that_was_replaced_is_not_followed(tmp_path, plant):
    """A link to a secret, or a pipe, in place of an import's file is refused, and nothing is copied."""
    (tmp_path / "secret").write_text("secret")
    received, folder = tmp_path / "received", tmp_path / "roots"
    received.mkdir()
    folder.mkdir()
    plant(received / "rows.csv", tmp_path / "secret")
    request = RunRequest(
        script=BUILT_IN_IMPORT,
        root=str(tmp_path),
        environment="default",
        tenant="acme",
        job_id="j",
        input_dir=received,
    )
    with pytest.raises(UnsafePath, match=r"rows\.csv"):
        make_job_root(folder, request)

    assert list(folder.iterdir()) == []


@pytest.fixture
def root(tmp_path):
    """A job's root with its own folder, and beside it a folder that is none of the job's."""
    (tmp_path / "root" / "_freezeframe").mkdir(parents=True)
    (tmp_path / "root" / "snapshots").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text('{"receipt": null, "error": null, "exit_code": 0}')
    return JobRoot(tmp_path / "root")


_OWN = [
    "_freezeframe/result.json",
    "_freezeframe/waiting.txt",
    "_freezeframe/lock",
    "_freezeframe/sealed.json",
]


@pytest.mark.parametrize("plant", [lambda path, to: path.symlink_to(to), lambda path, _: os.mkfifo(path)])
def test_what_a_script_put_in_place_of_our_files_is_not_followed(tmp_path, root, request_of, plant):
    """Neither a link nor a pipe is read or written by the process that watches the script."""
    target = tmp_path / "elsewhere" / "file"
    before = target.read_bytes()
    for name in (*_OWN, "errors.txt"):
        plant(root.path / name, target)
    error = run_error(request_of(), root, Ending("ended", 1), read_result(root), SecretMask())
    root.remove_secrets()

    assert (read_result(root), WaitingFile(root.own).read(), is_in_use(root.path)) == (None, "", False)
    assert "receipt" not in json.dumps(dict(error))
    assert root.errors.read_text().startswith("The script's process ended")
    assert target.read_bytes() == before


def test_the_removal_of_secrets_stays_within_the_root(tmp_path, root):
    """Decrypted files go; a working copy that became a link loses nothing of what it leads to."""
    (root.snapshots / "config").write_text("secret")
    root.note_sealed(["config"])
    root.remove_secrets()
    assert list(root.snapshots.iterdir()) == []
    root.note_sealed(["file", "../elsewhere/file"])
    root.snapshots.rmdir()
    root.snapshots.symlink_to(tmp_path / "elsewhere")
    root.remove_secrets()

    assert (tmp_path / "elsewhere" / "file").exists()


def test_a_run_is_told_as_committed_while_the_log_cannot_be_read(tmp_path):
    """What the script's process said counts then; without its word the run ends with the storage's error."""
    storage = FaultyStorage(MemoryStorage())
    tenant = given.tenant(storage)
    with tenant.job("j") as job:
        job.files.write("a", b"1")
    root = JobRoot(tmp_path)
    root.own.mkdir(parents=True)
    begun = len(storage.calls)
    storage._plan = tuple(Fault(begun + call, Way.FAIL_BEFORE) for call in range(1000))
    with pytest.raises(StorageUnavailable):
        find_receipt(tenant, "j", root)
    ScriptResult(job.receipt.to_json(), None, 0).write(root)
    assert job.receipt.tenant_version == find_receipt(tenant, "j", root).tenant_version


def test_what_a_script_opens_beside_it_is_in_its_root(tmp_path, request_of):
    """Plugins and JSON files, for nobody else; not the run's own names, and nothing else of the folder."""
    files = {
        "field-map.json": "{}",
        "config.json": '{"secret": 1}',
        ".hidden.json": "{}",
        "other.csv": "x",
        "plugins/contacts_post_process.py": "pass",
        "plugins/__pycache__/x.pyc": "x",
        "store/log.json": "{}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    root = make_job_root(tmp_path / "roots", request_of()).path
    there = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    own = {"_freezeframe/script", "config.json", "parameters.json"}  # config.json is beside the sync-output
    inputs = {f"sync-output/{name}" for name in ("A.csv", "B.csv", "deeper/C.csv")}
    assert there == {"field-map.json", "plugins/contacts_post_process.py", *own, *inputs}
    assert {(root / name).stat().st_mode & 0o777 for name in ("field-map.json", "plugins")} == {0o600, 0o700}
