"""What waits for a tenant: inputs stay as long as their jobs, uploads as long as the settings say."""

import hashlib
import io
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from freezeframe.control.database.database import ControlDatabase
from freezeframe.control.jobs.queue import JobQueue
from freezeframe.control.jobs.schedules import Schedules
from freezeframe.errors import (
    ConflictError,
    IdempotencyConflict,
    NotFound,
    RateLimited,
    UnreadableInput,
    UnreadableRequest,
)
from freezeframe.service.jobs.jobs import ImportRequest, TenantJob, TenantJobs
from freezeframe.service.jobs.uploads import AnnouncedUpload, ImportContent, Uploads
from freezeframe.settings import Settings

FOLDER = "a" * 32
SOON = 0.05


@pytest.fixture
def place(tmp_path):
    """Uploads that are kept for a moment, and a queue whose jobs' inputs wait among them."""
    settings = Settings(state_dir=tmp_path / "state", service_upload_hours=SOON / 3600)
    database = ControlDatabase.open(f"sqlite:///{tmp_path}/control.db")
    queue = JobQueue(database)
    uploads = Uploads(tmp_path / "uploads", settings, queue.has_ended)
    schedules = Schedules(database)
    yield queue, uploads, TenantJobs(queue, schedules, settings, str(tmp_path / "store"), uploads)
    database.close()


def _content(content):
    return ImportContent(io.BytesIO(content), hashlib.sha256(content).hexdigest())


def _sweep(uploads):
    """Time passes, and somebody comes."""
    time.sleep(2 * SOON)
    uploads._swept = 0.0
    uploads._sweep()


def test_the_input_of_a_job_stays_until_the_job_has_ended(place, tmp_path):
    """However long it waits in the queue; an upload that nobody goes on with goes."""
    queue, uploads, jobs = place
    uploads.create(FOLDER, "key:1", AnnouncedUpload("a", 10))
    order = ImportRequest("A", "csv", ("Id",))
    jobs.submit_import(TenantJob("dev", "acme", "j", FOLDER), order, _content(b"Id\n1\n"), "ada")
    _sweep(uploads)
    kept = list((tmp_path / "uploads").rglob("rows.csv"))

    assert [one.read_bytes() for one in kept] == [b"Id\n1\n"]
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
    assert [one.read_bytes() for one in (tmp_path / "uploads").rglob("rows.csv")] == [b"Id\n1\n"]


def test_no_more_uploads_are_under_way_than_may_be(tmp_path):
    """One that was begun is found again; another tenant's do not count; what is ended makes room."""
    settings = Settings(state_dir=tmp_path / "state", service_tenant_uploads_max=2)
    uploads, announced = Uploads(tmp_path / "uploads", settings), AnnouncedUpload("a", 10)
    first, second = (uploads.create(FOLDER, "key:1", announced) for _ in range(2))
    with pytest.raises(RateLimited) as refused:
        uploads.create(FOLDER, "key:1", announced)
    with pytest.raises(RateLimited, match="2 uploads"):
        uploads.require_place(FOLDER, "c" * 32)
    uploads.require_place(FOLDER, second.id)
    uploads.require_place("c" * 32, "c" * 32)
    again = uploads.create(FOLDER, "key:1", announced, second.id)
    uploads.create("b" * 32, "key:1", announced)
    uploads.remove(first)

    assert "service_tenant_uploads_max" in refused.value.cause
    assert again.id == second.id
    assert uploads.create(FOLDER, "key:1", announced).offset == 0
    assert len(list((tmp_path / "uploads" / FOLDER).iterdir())) == 2


def test_no_more_are_under_way_when_many_begin_at_once(tmp_path):
    """Of two that come at once both may be refused, but never one too many let in."""
    settings = Settings(state_dir=tmp_path / "state", service_tenant_uploads_max=5)
    uploads = Uploads(tmp_path / "uploads", settings)

    def begin(_):
        try:
            return uploads.create(FOLDER, "key:1", AnnouncedUpload("a", 10))
        except RateLimited:
            return None

    with ThreadPoolExecutor(8) as pool:
        begun = sum(one is not None for one in pool.map(begin, range(40)))
    assert begun <= 5
    assert len(list((tmp_path / "uploads" / FOLDER).iterdir())) == begun


def test_an_upload_is_its_tenants_alone(place):
    """Under another tenant's folder, or one that cannot be, there is none of that id."""
    _, uploads, _ = place
    upload = uploads.create(FOLDER, "key:1", AnnouncedUpload("a", 10))

    assert upload == uploads.get(FOLDER, upload.id)
    for folder in ("b" * 32, "", "..", f"../uploads/{FOLDER}"):
        with pytest.raises(NotFound):
            uploads.get(folder, upload.id)


def test_an_upload_for_an_import_is_used_up_by_it(place, tmp_path):
    """Complete and of its digest it becomes the job's input, and is gone; else it is refused and stays."""
    _, uploads, jobs = place
    rows = b"Id\n1\n"
    digest = hashlib.sha256(rows).hexdigest()
    upload = uploads.create(FOLDER, "key:1", AnnouncedUpload("", len(rows), sha256=digest, purpose="import"))
    other = uploads.create(FOLDER, "key:1", AnnouncedUpload("a.csv", 0))
    for found in (upload, other):
        with pytest.raises(ConflictError), uploads.open_import(FOLDER, found.id):
            pass
    with uploads.open_append(upload, 0) as writer:
        writer.write(rows)
    job, order = TenantJob("dev", "acme", "j", FOLDER), ImportRequest("A", "arrow", ("Id",))
    with pytest.raises(UnreadableInput), uploads.open_import(FOLDER, upload.id) as content:
        jobs.submit_import(job, order, content, "ada")
    with uploads.open_import(FOLDER, upload.id) as content:
        jobs.submit_import(job, ImportRequest("A", "csv", ("Id",)), content, "ada")

    assert [rows] == [one.read_bytes() for one in (tmp_path / "uploads").rglob("rows.csv")]
    with pytest.raises(NotFound):
        uploads.get(FOLDER, upload.id)


def test_other_bytes_than_announced_are_never_imported(place):
    """The upload is to be begun anew."""
    _, uploads, _ = place
    upload = uploads.create(FOLDER, "key:1", AnnouncedUpload("", 2, sha256="0" * 64, purpose="import"))
    with uploads.open_append(upload, 0) as writer:
        writer.write(b"ab")

    with pytest.raises(UnreadableRequest), uploads.open_import(FOLDER, upload.id):
        pass
    with pytest.raises(NotFound):
        uploads.get(FOLDER, upload.id)
