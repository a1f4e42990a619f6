"""One content for one name: what hotglue's clients write, read, list and delete, and scripts see."""

import io
from functools import partial

import pandas as pd
import pytest
from tests import given
from tests.working_copies import run_in_working_copy

import freezeframe.gluestick as gs
import gluestick
from freezeframe.errors import FileNotFound, PreconditionFailed
from freezeframe.script import get_snapshot, update_snapshot
from freezeframe.service import hotglue
from freezeframe.storage import LocalStorage
from freezeframe.store.model.update_options import Author, RequestContext
from freezeframe.store.tenant import with_check, with_request
from freezeframe.store.transaction.conditions import Conditions

AUTHOR = Author("ann", "")
ROWS = pd.DataFrame({"Id": ["007", "8"], "Name": ["Ann", "Bo"]})
LATER = pd.DataFrame({"Id": ["8", "9"], "Name": ["Bob", "Cy"]})
MAX = 10_000_000


@pytest.fixture
def tenant(tmp_path):
    """A tenant without anything."""
    return given.tenant(LocalStorage(tmp_path / "tenant"))


@pytest.fixture
def run(tenant, tmp_path):
    """Run a script as a job does: in a working copy, which is captured into one commit."""
    return partial(run_in_working_copy, tenant, tmp_path)


def content(name, frame=ROWS):
    """The frame as a file of that name."""
    if name.endswith(".parquet"):
        return frame.to_parquet(index=False)
    return (frame.to_json() if name.endswith(".json") else frame.to_csv(index=False)).encode()


def frame_of(name, data):
    """The rows in a file of that name."""
    if name.endswith(".parquet"):
        return pd.read_parquet(io.BytesIO(data))
    return pd.read_csv(io.BytesIO(data), dtype=str)


def put(tenant, name, data):
    """hotglue's PUT."""
    hotglue.write(tenant, name, io.BytesIO(data), AUTHOR, MAX)


def get(tenant, name):
    """hotglue's GET."""
    return hotglue.read(tenant, name, MAX, lambda _: None)


def nothing(*_):
    """Nothing was there before."""


def has_file(tenant, name, _):
    """A file that a script wrote, and no stream."""
    tenant.files.write(name, content(name, ROWS.head(1)))


def has_stream(tenant, *_):
    """A stream without a file, as after a migration."""
    tenant.stream("S").update(ROWS.head(1), "Id")


def has_adopted(tenant, name, run):
    """A stream that adopted the file and has more rows now."""
    suffix = ".parquet" if name.endswith(".parquet") else ".csv"
    tenant.files.write(f"S.snapshot{suffix}", content(suffix, ROWS.head(1)))
    run(lambda folder: update_snapshot(folder, "S", "Id", LATER))


def has_other(tenant, name, run):
    """As before, and the file is of the other kind than the name."""
    has_adopted(tenant, "S.csv" if name.endswith(".parquet") else "S.parquet", run)


def has_independent(tenant, name, _):
    """A stream, and a file of its name that it never adopted."""
    has_stream(tenant)
    has_file(tenant, name, _)


BEFORE = [nothing, has_file, has_stream, has_adopted, has_other, has_independent]
SNAPSHOTS = ["S.snapshot.csv", "S.snapshot.parquet"]
OTHERS = ["a.csv", "a.json", "a.parquet", "maps/S.snapshot.csv", "S.hash.snapshot.json"]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", [*SNAPSHOTS, *OTHERS])
def test_what_was_written_is_read_listed_and_deleted(tenant, run, name, before):
    """Whatever was there; the list has the name once, and nothing of that content is left in the end."""
    before(tenant, name, run)
    put(tenant, name, content(name))
    assert get(tenant, name) == content(name)
    assert [item for item in hotglue.names(tenant) if item in (name, *SNAPSHOTS)].count(name) == 1
    hotglue.delete(tenant, name, AUTHOR)
    assert name not in hotglue.names(tenant)
    with pytest.raises(FileNotFound):
        get(tenant, name)


def drop_in(folder):
    """The drop-in's functions."""
    return gs.snapshot_records(None, "S", str(folder))


def gluesticks(folder):
    """gluestick's own functions."""
    return gluestick.read_snapshots("S", str(folder), dtype=str)


def verbs(folder):
    """The seed's verbs."""
    return get_snapshot(folder, "S")


def pandas(folder):
    """A script that opens the file."""
    name = next(iter(sorted(path.name for path in folder.glob("S.snapshot.*") if path.is_file())))
    return frame_of(name, (folder / name).read_bytes())


def rows_of(frame):
    """The rows, as text, in the order of their keys."""
    return sorted(frame[["Id", "Name"]].astype(str).to_numpy().tolist())


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_an_unchanged_script_sees_what_was_written(tenant, run, name, before):
    """By each way to read it, a first upload, too; a run that only reads leaves it as it was written."""
    before(tenant, name, run)
    put(tenant, name, content(name))
    seen = []
    for script in (drop_in, gluesticks, verbs, pandas):
        run(lambda folder, script=script: seen.append(rows_of(script(folder))))
    assert seen == [ROWS.to_numpy().tolist()] * 4
    assert get(tenant, name) == content(name)


def updates_by_drop_in(folder):
    """The drop-in's functions."""
    gs.snapshot_records(LATER, "S", str(folder), pk="Id")


def updates_by_verbs(folder):
    """The seed's verbs."""
    update_snapshot(folder, "S", "Id", LATER)


def updates_by_gluestick(folder):
    """gluestick's own functions, which leave a Parquet file beside a CSV file."""
    gluestick.snapshot_records(LATER, "S", str(folder), pk="Id", dtype=str)


@pytest.mark.parametrize("script", [updates_by_drop_in, updates_by_verbs, updates_by_gluestick])
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_what_a_script_made_of_it_is_read_under_each_name(tenant, run, name, before, script):
    """Downloaded, edited and written again no row is lost, and the list has one name of it."""
    before(tenant, name, run)
    put(tenant, name, content(name))
    run(script)
    expected = [["007", "Ann"], ["8", "Bob"], ["9", "Cy"]]
    assert [rows_of(frame_of(each, get(tenant, each))) for each in SNAPSHOTS] == [expected] * 2
    assert len([each for each in hotglue.names(tenant) if each in SNAPSHOTS]) == 1
    edited = content(name, frame_of(name, get(tenant, name)).assign(Name="x"))
    put(tenant, name, edited)
    assert get(tenant, name) == edited
    run(script)
    assert rows_of(frame_of(name, get(tenant, name))) == [["007", "x"], ["8", "Bob"], ["9", "Cy"]]


@pytest.mark.parametrize("before", [has_file, has_stream, has_adopted, has_independent])
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_conditions_are_of_the_content_that_is_read(tenant, run, name, before):
    """A tag from before a change is refused after it, whether a stream or a file has the content."""
    before(tenant, name, run)
    state = tenant.context.log.current_state
    tag = hotglue.subject_of(tenant, name).tag(tenant.context, state())
    put(tenant, name, content(name))
    subject = hotglue.subject_of(tenant, name)
    assert tag != subject.tag(tenant.context, state())
    checked = with_check(tenant, Conditions(if_match=tag).at_commit(subject))
    with pytest.raises(PreconditionFailed):
        put(checked, name, content(name, LATER))
    assert get(tenant, name) == content(name)


def stored(tenant, name):
    """The bytes of a file of the tenant's folder."""
    return tenant.context.storage.read(name)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_an_erased_row_goes_from_the_tenants_file_too(tenant, run, name):
    """Stream and file lose it in one commit; the next run sees the rest, and takes nothing for new."""
    put(tenant, name, content(name))
    run(lambda folder: update_snapshot(folder, "S", "Id", LATER))
    assert tenant.erase("S", ["007"]).left.is_clean
    assert rows_of(frame_of(name, tenant.files.read(name))) == [["8", "Bob"], ["9", "Cy"]]
    assert [
        item for item in tenant.context.storage.list_below("") if b"Ann" in stored(tenant, item.name)
    ] == []
    before = (tenant.stream("S").stream_version, tenant.files.entry(name))
    run(lambda folder: gs.snapshot_records(LATER, "S", str(folder), pk="Id"))
    assert before == (tenant.stream("S").stream_version, tenant.files.entry(name))
    assert get(tenant, name) == tenant.files.read(name)
    tenant.files.write(name, content(name))
    asked = with_request(tenant, RequestContext("r", "request-1"))
    found = [asked.erase("S", ["8"], **given).left.files for given in ({"dry_run": True}, {}, {})]
    assert found == [(name,)] * 3, "also when it is sent again"


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_stream_is_restored_with_its_file(tenant, run, name):
    """The newer file is not adopted over the restored rows; a dropped stream does not come back by it."""
    put(tenant, name, content(name))
    version = tenant.version
    put(tenant, name, content(name, LATER))
    tenant.restore(version, streams=["S"])
    seen = []
    run(lambda folder: seen.append(rows_of(update_snapshot(folder, "S", "Id", ROWS.head(1)))))
    assert seen == [ROWS.to_numpy().tolist()]
    tenant.drop_stream("S")
    run(lambda folder: seen.append(get_snapshot(folder, "S")))
    assert (seen[1], hotglue.names(tenant)) == (None, [])


@pytest.mark.parametrize("before", [nothing, has_file, has_stream, has_adopted])
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_file_of_a_script_between_request_and_commit_is_not_overwritten(tenant, run, name, before):
    """Conditions of a request that knew the content of before are refused, and the file stays."""
    before(tenant, name, run)
    subject = hotglue.subject_of(tenant, name)
    tag = subject.tag(tenant.context, tenant.context.log.current_state())
    conditions = Conditions(if_none_match="*") if tag is None else Conditions(if_match=tag)
    checked = with_check(tenant, conditions.at_commit(subject))
    run(lambda folder: (folder / name).write_bytes(content(name, LATER)))
    with pytest.raises(PreconditionFailed):
        put(checked, name, content(name))
    assert get(tenant, name) == content(name, LATER)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_stream_made_between_request_and_commit_is_not_overwritten(tenant, name):
    """A first upload with ``If-None-Match: *`` is of a name that nothing has."""
    subject = hotglue.subject_of(tenant, name)
    checked = with_check(tenant, Conditions(if_none_match="*").at_commit(subject))
    tenant.stream("S").update(LATER, "Id")
    with pytest.raises(PreconditionFailed):
        put(checked, name, content(name))
    assert rows_of(frame_of(name, get(tenant, name))) == LATER.to_numpy().tolist()
