"""What waits for a tenant: inputs stay as long as their jobs, blobs as long as the settings say."""

import hashlib
import io
import os
import secrets
import time

import pytest

from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import Schedules
from freezeframe.errors import (
    IdempotencyConflict,
    NotFound,
    RateLimited,
    StorageUnavailable,
    TooLarge,
    UnreadableInput,
)
from freezeframe.service.jobs import ImportRequest, TenantJob, TenantJobs
from freezeframe.service.staged_blobs import ImportContent, StagedBlobs
from freezeframe.settings import Settings

FOLDER = "a" * 32
SOON = 0.2


@pytest.fixture
def place(tmp_path):
    """Uploads that are kept for a moment, and a queue whose jobs' inputs wait among them."""
    settings = Settings(state_dir=tmp_path / "state", service_upload_hours=SOON / 3600)
    database = ControlDatabase.open(f"sqlite:///{tmp_path}/control.db")
    queue = JobQueue(database)
    uploads = StagedBlobs(tmp_path / "uploads", settings, queue.has_ended)
    schedules = Schedules(database)
    yield queue, uploads, TenantJobs(queue, schedules, settings, str(tmp_path / "store"), uploads)
    database.close()


def _content(content):
    return ImportContent(io.BytesIO(content), hashlib.sha256(content).hexdigest())


def _sweep(uploads):
    """Time passes, and somebody comes."""
    time.sleep(2 * SOON)
    uploads._swept = 0.0
    uploads.sweep()


def _staged(blobs, content=b"0123456789", blob_id="", tenant=FOLDER):
    chosen = blob_id or secrets.token_hex(16)
    with blobs.stage(tenant, chosen) as writer:
        writer.write(content)
    return blobs.get(tenant, chosen)


def _published(blobs, blob_id):
    with blobs.publish(FOLDER, blob_id) as content:
        return b"".join(content(blob_id))


def test_the_input_of_a_job_stays_until_the_job_has_ended(place, tmp_path):
    """However long it waits in the queue; an upload that nobody goes on with goes."""
    queue, uploads, jobs = place
    with uploads.stage(FOLDER, "e" * 32) as writer:
        writer.write(b"0123456789")
    order = ImportRequest("A", "csv", ("Id",))
    jobs.submit_import(TenantJob("dev", "acme", "j", FOLDER), order, _content(b"Id\n1\n"), "ada")
    _sweep(uploads)
    kept = list((tmp_path / "uploads").rglob("rows.csv"))

    assert [item.read_bytes() for item in kept] == [b"Id\n1\n"]
    assert len(list((tmp_path / "uploads" / FOLDER).iterdir())) == 1
    claimed = queue.claim("worker")
    _sweep(uploads)
    assert kept[0].exists()
    queue.finish(claimed, "succeeded", "{}")
    _sweep(uploads)
    assert list((tmp_path / "uploads").iterdir()) == []


def test_the_same_import_again_is_the_same_job(place, tmp_path):
    """Its input is kept once; other rows under the same id are refused, and leave the first ones alone."""
    _, _, jobs = place
    job, order = TenantJob("dev", "acme", "j", FOLDER), ImportRequest("A", "csv", ("Id",))
    first = jobs.submit_import(job, order, _content(b"Id\n1\n"), "ada")
    again = jobs.submit_import(job, order, _content(b"Id\n1\n"), "ada")
    with pytest.raises(IdempotencyConflict):
        jobs.submit_import(job, order, _content(b"Id\n2\n"), "ada")

    assert first.sequence == again.sequence
    assert [path.read_bytes() for path in (tmp_path / "uploads").rglob("rows.csv")] == [b"Id\n1\n"]


def test_no_more_blobs_wait_than_may(tmp_path):
    """One that is sent again is taken; another tenant's do not count; what is removed makes room."""
    settings = Settings(state_dir=tmp_path / "state", service_tenant_uploads_max=2)
    blobs = StagedBlobs(tmp_path / "uploads", settings)
    first, second = (_staged(blobs) for _ in range(2))
    with pytest.raises(RateLimited) as refused:
        _staged(blobs)
    again = _staged(blobs, blob_id=second.id)
    _staged(blobs, tenant="b" * 32)
    blobs.remove(first)

    assert "service_tenant_uploads_max" in refused.value.cause
    assert again == second
    assert _staged(blobs).size == 10
    assert len(list((tmp_path / "uploads" / FOLDER).iterdir())) == 2


def test_a_blob_that_was_not_taken_leaves_nothing(tmp_path):
    """Too large, or ended by an error: no blob and no bytes; one of the same id stays as it was."""
    settings = Settings(state_dir=tmp_path / "state", service_upload_bytes_max=1024)
    blobs = StagedBlobs(tmp_path / "uploads", settings)
    kept = _staged(blobs)
    for blob_id in (kept.id, "c" * 32):
        with pytest.raises(TooLarge), blobs.stage(FOLDER, blob_id) as writer:
            writer.write(b"x" * 2000)
        with pytest.raises(ZeroDivisionError), blobs.stage(FOLDER, blob_id):
            raise ZeroDivisionError

    assert _published(blobs, kept.id) == b"0123456789"
    assert list((tmp_path / "uploads" / FOLDER).iterdir()) == []
    with pytest.raises(NotFound):
        blobs.get(FOLDER, "c" * 32)


def test_each_of_two_uploads_of_one_id_removes_its_own_bytes_alone(tmp_path):
    """The first stalls and breaks off, the second was answered: its blob stays, and takes no other bytes."""
    blobs = StagedBlobs(tmp_path / "uploads", Settings(state_dir=tmp_path / "state"))
    with pytest.raises(ZeroDivisionError), blobs.stage(FOLDER, "c" * 32) as stalled:  # noqa: PT012 - the order
        stalled.write(b"0123")
        second = _staged(blobs, blob_id="c" * 32)
        raise ZeroDivisionError
    with pytest.raises(IdempotencyConflict):
        _staged(blobs, b"other", second.id)

    assert _published(blobs, second.id) == b"0123456789"


def test_a_blob_is_published_by_one_of_two_requests(tmp_path):
    """The other one finds none, until the first has failed; so does one that names a second one as well."""
    blobs = StagedBlobs(tmp_path / "uploads", Settings(state_dir=tmp_path / "state"))
    blob = _staged(blobs)
    with pytest.raises(ZeroDivisionError), blobs.publish(FOLDER, blob.id):  # noqa: PT012 - the order
        for use in (blobs.publish, blobs.open_import):
            with pytest.raises(NotFound), use(FOLDER, blob.id):
                pass
        raise ZeroDivisionError
    with pytest.raises(NotFound), blobs.publish(FOLDER, blob.id, "0" * 32):
        pass

    assert _published(blobs, blob.id) == b"0123456789"
    assert blobs.waiting(FOLDER) == []


def test_a_blob_is_its_tenants_alone(place):
    """Under another tenant's folder, or one that cannot be, there is none of that id."""
    _, blobs, _ = place
    blob = _staged(blobs)

    for folder in ("b" * 32, "", "..", f"../uploads/{FOLDER}"):
        with pytest.raises(NotFound):
            blobs.get(folder, blob.id)


def test_a_blob_for_an_import_is_used_up_by_it(place, tmp_path):
    """It becomes the job's input, and is gone; a refused one stays."""
    _, blobs, jobs = place
    rows = b"Id\n1\n"
    blob = _staged(blobs, rows)
    job, order = TenantJob("dev", "acme", "j", FOLDER), ImportRequest("A", "arrow", ("Id",))
    with pytest.raises(UnreadableInput), blobs.open_import(FOLDER, blob.id) as content:
        jobs.submit_import(job, order, content, "ada")
    with blobs.open_import(FOLDER, blob.id) as content:
        jobs.submit_import(job, ImportRequest("A", "csv", ("Id",)), content, "ada")

    assert [rows] == [path.read_bytes() for path in (tmp_path / "uploads").rglob("rows.csv")]
    with pytest.raises(NotFound):
        blobs.get(FOLDER, blob.id)


@pytest.mark.parametrize("name", ["content", "upload.json"])
@pytest.mark.parametrize("plant", [lambda path, to: path.symlink_to(to), lambda path, _: os.mkfifo(path)])
def test_a_planted_blob_is_not_published(place, tmp_path, name, plant):
    """A link or a pipe in place of a blob's bytes or record is neither read nor waited for."""
    _, blobs, _ = place
    blob = _staged(blobs, b"mine")
    file = tmp_path / "uploads" / FOLDER / blob.id / name
    file.replace(tmp_path / "elsewhere")
    plant(file, tmp_path / "elsewhere")

    with pytest.raises(StorageUnavailable if name == "content" else NotFound):
        _published(blobs, blob.id)
    with pytest.raises(NotFound), blobs.open_import(FOLDER, blob.id):
        pass
    assert len(blobs.waiting(FOLDER)) == 1
