"""A job's root appears whole, or nothing of it is left."""

import os
import resource
from contextlib import contextmanager

import pytest

from freezeframe.errors import StorageUnavailable
from freezeframe.runs.model.job_root import make_job_root
from freezeframe.runs.model.request import RunRequest


@contextmanager
def _files_of_at_most(size):
    """Where a write beyond that many bytes fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
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
