"""Where each cell of a row comes from: version, job, script, and the file and line of the job's input."""

import hashlib
import math
from datetime import date, datetime

import pyarrow as pa
import pytest
from tests import given

from freezeframe.clock import another_clock, now_ms
from freezeframe.errors import BadInput, InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.script import tenants  # noqa: F401 - it says who reads inputs
from freezeframe.storage import LocalStorage
from freezeframe.storage.base import ForwardingStorage
from freezeframe.store.blobs.kept_inputs import open_inputs
from freezeframe.store.maintenance import row_origins
from freezeframe.store.maintenance.row_origins import row_origin
from freezeframe.store.model.directory import INPUTS_FOLDER

SCRIPT = "update(...)"
DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def tenant(tmp_path):
    return given.tenant(LocalStorage(tmp_path / "tenant"), keep_inputs_days=30)


@pytest.fixture
def run(tenant, tmp_path):
    """Do what a run does: keep its files, commit rows under the job's id, keep the record."""

    def run(job_id, rows, files=None, name="Lead", **options):
        inputs, paths = inputs_of(tenant), {}
        for number, (path, text) in enumerate({"etl.py": SCRIPT, **(files or {})}.items()):
            paths[path] = tmp_path / f"input-{number}"
            paths[path].write_text(text)
        folder = inputs.folder(30)
        kept = inputs.keep(folder, paths)
        with tenant.job(job_id) as job:
            job.stream(name).update(rows, "Id", **options)
        record = {path: {key: getattr(file, key) for key in file.__slots__} for path, file in kept.items()}
        inputs.record(folder, job_id, {"job_id": job_id, "script": "etl.py", "files": record})

    return run


def inputs_of(tenant):
    context = tenant.context
    return open_inputs(context.storage, context.settings, context.log.current_state().erased)


def leads(*ids, stage="new"):
    return pa.table({"Id": list(ids), "Stage": [stage] * len(ids), "Score": [1.5] * len(ids)})


def versions(tenant, key, until=None):
    """The value of each cell, and the version that it comes from; None: it is no longer kept."""
    cells = tenant.stream("Lead").row_origin(key, until=until).cells
    return {name: (cell.value, cell.entry and cell.entry.version) for name, cell in cells.items()}


def sources(tenant, key, name="Lead"):
    """The source of each cell, and the line of the row of the job's input."""
    cells = tenant.stream(name).row_origin(key).cells
    return {column: (cell.source, cell.line) for column, cell in cells.items()}


@pytest.fixture
def stream(tenant):
    """007 is changed at version 1, deleted at 2, and there again since 3."""
    stream = tenant.stream("Lead")
    stream.update(leads("001", "007"), "Id")
    stream.update(leads("007", stage="won"))
    stream.update(leads("001"), override=True)
    stream.update(leads("007", stage="lost"))
    return stream


def test_each_cell_comes_from_the_version_that_gave_it_its_value(tenant, stream):
    """The newest change of each column, else the insertion; seen from a version; none without the row."""
    stream.update(pa.table({"Id": ["007"], "Score": [2.5], "Note": ["x"]}), nulls="overwrite")
    nothing = pa.schema([("Id", "string"), ("Note", "string")])
    stream.update(pa.table({"Id": ["007"], "Note": [None]}).cast(nothing), nulls="overwrite")

    assert {"Id": ("007", 3), "Stage": ("lost", 3), "Score": (2.5, 4), "Note": (None, 5)} == versions(
        tenant, "007"
    )
    assert {"Id": ("007", 0), "Stage": ("won", 1), "Score": (1.5, 0)} == versions(tenant, "007", 1)
    assert ({}, {}) == (versions(tenant, "007", 2), versions(tenant, "no"))


def test_a_cell_of_a_version_that_is_gone_has_no_origin(tenant, stream, monkeypatch):
    """The others have theirs, also behind more versions than a page has."""
    monkeypatch.setattr(row_origins, "_PAGE", 9)
    for number in range(12):
        stream.update(pa.table({"Id": ["007"], "Score": [float(number)]}))
    assert {"Id": ("007", 3), "Stage": ("lost", 3), "Score": (11.0, 15)} == versions(tenant, "007")
    tenant.set_retention(keep_versions=6)
    tenant.gc()

    assert {"Id": ("007", None), "Stage": ("lost", None), "Score": (11.0, 15)} == versions(tenant, "007")
    cell = stream.row_origin("007").cells["Stage"]
    assert ("unknown", "the version is no longer kept") == (cell.source, cell.text)


def test_what_is_no_row_of_a_stream_is_refused(tenant, stream):
    """As by the row's history."""
    with pytest.raises(BadInput):
        stream.row_origin(("a", "b"))
    tenant.stream("Log").update(pa.table({"v": [1]}), override=True)
    with pytest.raises(InvalidOption, match="no key"):
        tenant.stream("Log").row_origin("007")


LINES = "Id,Stage,Score,Due,Empty\n001,new,unknown,2026-11-28,\n007,won,2.50,2026-11-29,\n"
AS_READ = {"Id": ["007"], "Stage": ["won"], "Score": [2.5], "Due": ["2026-11-29"], "Empty": [None]}
CELLS = {
    "all as in the file, beside a text in a column of numbers": ({}, dict.fromkeys(AS_READ, "file")),
    "another text": ({"Stage": ["WON"]}, {"Stage": "script"}),
    "a column that the file lacks": ({"Twice": [5.0]}, {"Twice": "script"}),
    "a filled cell": ({"Empty": ["-"]}, {"Empty": "script"}),
    "an emptied cell": ({"Stage": pa.array([None], pa.string())}, {"Stage": "script"}),
    "the same number of another type": ({"Score": pa.array([2.5], pa.float32())}, {"Score": "file"}),
    "a column without values": ({"None": pa.array([None], pa.string())}, {"None": "unset"}),
    "a date of a text": ({"Due": [date(2026, 11, 29)]}, {"Due": "file"}),
    "a time of a date": ({"Due": [datetime(2026, 11, 29)]}, {"Due": "script"}),  # noqa: DTZ001 - as in frames
    "another spelling of a column": ({"stage": ["won"], "Stage": None}, {"stage": "script"}),
}


@pytest.mark.parametrize(("given_", "expected"), CELLS.values(), ids=CELLS)
def test_a_cell_is_from_the_file_if_it_has_the_value_of_its_row_there(tenant, run, given_, expected):
    """In the column of its name, read in its stored type; any other one was computed by the script."""
    columns = {name: column for name, column in {**AS_READ, **given_}.items() if column is not None}
    run("monday", pa.table(columns), {"sync-output/Lead.csv": LINES})
    found = sources(tenant, "007")
    wanted = {name: (source, 3) for name, source in {**dict.fromkeys(columns, "file"), **expected}.items()}
    assert wanted == found


def test_a_cell_says_its_script_and_its_place_in_words(tenant, run):
    """The hash is of the kept script where the version does not have it; the last of several lines counts."""
    run("monday", leads("007"), {"sync-output/Lead.csv": "Id,Stage\n007,old\n007,new\n"})
    cells = tenant.stream("Lead").row_origin("007").cells
    assert {hashlib.sha256(SCRIPT.encode()).hexdigest()} == {cell.script_sha256 for cell in cells.values()}
    place = "Lead.csv, line 3, the last of 2 with the key"
    assert ("file", place, "Lead.csv", 3, 2) == tuple(
        getattr(cells["Stage"], name) for name in ("source", "text", "file", "line", "row")
    )
    assert f"computed by the script; its input has the row in {place}" == cells["Score"].text


def test_each_cell_is_looked_up_in_the_input_of_its_own_job(tenant, run):
    """Not in that of a later one which sent the same value again; versions of no job have no input."""
    run("monday", leads("007"), {"sync-output/Lead.csv": "Id,Stage,Score\n1,new,1.5\n007,new,1.5\n"})
    run("tuesday", leads("007", stage="won"), {"sync-output/Lead.csv": "Id,Stage,Score\n007,won,1.5\n"})
    tenant.stream("Lead").update(pa.table({"Id": ["007"], "Note": ["by hand"]}))
    assert {
        "Id": ("file", 3),
        "Score": ("file", 3),
        "Stage": ("file", 2),
        "Note": ("no_job", None),
    } == sources(tenant, "007")
    tenant.restore(0)
    assert {"file", "no_job"} == {source for source, _ in sources(tenant, "007").values()}


def test_a_row_that_no_input_has_is_the_scripts(tenant, run):
    """Also where the key has another name there."""
    run("monday", leads("007"), {"sync-output/Lead.csv": "LeadId,Stage\n007,new\n"})
    assert {("no_row", None)} == set(sources(tenant, "007").values())


def _erased(tenant):
    tenant.erase("Lead", ["001"])


def _expired(tenant):
    real = now_ms()
    with another_clock(lambda: real + 34 * DAY_MS):
        tenant.gc()


@pytest.mark.parametrize(("end", "source"), [(_erased, "unknown"), (_expired, "not_kept")])
def test_an_input_that_is_gone_is_said_to_be(tenant, run, end, source):
    """After an erasure, which ends the versions too, and after its days."""
    run("monday", leads("001", "007"), {"sync-output/Lead.csv": "Id,Stage\n007,new\n"})
    end(tenant)
    assert {(source, None)} == set(sources(tenant, "007").values())
    run("tuesday", leads("007", stage="won"), {"sync-output/Lead.csv": "Id,Stage\n007,won\n"})
    assert ("file", 2) == sources(tenant, "007")["Stage"]


def test_an_input_that_was_never_kept_is_said_not_to_be(tenant):
    """A job of an id without a record."""
    with tenant.job("monday") as job:
        job.stream("Lead").update(leads("007"), "Id")
    cell = tenant.stream("Lead").row_origin("007").cells["Stage"]
    assert ("not_kept", "the job's input is not kept", "") == (cell.source, cell.text, cell.script_sha256)


def test_an_input_that_cannot_be_read_is_said_with_the_reason(tenant, run):
    """The other cells have their origins all the same."""
    run("monday", leads("007"), {"sync-output/Lead.csv": 'Id,Stage\n007,"a"b\n'})
    run("tuesday", leads("007", stage="won"), {"sync-output/Lead.csv": "Id,Stage\n007,won\n"})
    cells = tenant.stream("Lead").row_origin("007").cells
    assert ("file", "unreadable") == (cells["Stage"].source, cells["Id"].source)
    assert cells["Id"].text.startswith("the job's input cannot be read: 'sync-output/Lead.csv' has text")


def test_a_changed_record_leads_to_no_other_folder(tenant, run):
    """It is said to be damaged, and nothing is made there."""
    run("monday", leads("007"), {"sync-output/../../../Lead.csv": "Id,Stage\n007,new\n"})
    cell = tenant.stream("Lead").row_origin("007").cells["Id"]
    assert ("unreadable", True) == (cell.source, "outside of its folder" in cell.text)


class LosingStorage(ForwardingStorage):
    """A storage beside which all kept inputs are deleted just before the first one is read."""

    def read(self, name, offset=0, length=None):
        if name.startswith(INPUTS_FOLDER):
            for status in list(self._inner.list_below(INPUTS_FOLDER)):
                self._inner.delete(f"{INPUTS_FOLDER}/{status.name}")
        return super().read(name, offset, length)


def test_an_input_that_goes_while_it_is_looked_for_is_said_to_be_gone(tenant, run):
    """Not to be damaged: its record was listed, and then an erasure or gc removed it."""
    run("monday", leads("007"), {"sync-output/Lead.csv": "Id,Stage\n007,new\n"})
    beside = given.tenant(LosingStorage(tenant.context.storage), keep_inputs_days=30)
    assert {("not_kept", None)} == set(sources(beside, "007").values())
    assert [] == list(tenant.context.storage.list_below(INPUTS_FOLDER))


def test_an_input_is_not_looked_at_for_those_who_may_not_see_it(tenant, run):
    """They have version, job and script."""
    run("monday", leads("007"), {"sync-output/Lead.csv": "Id,Stage\n007,new\n"})
    scope = tenant.scope
    found = row_origin(
        scope, StreamName("Lead"), pa.table({"Id": ["007"]}), scope.state(), shows_inputs=False
    ).cells["Stage"]
    assert ("hidden", None, "monday") == (found.source, found.file, found.entry.job_id)


@pytest.mark.parametrize(
    ("kind", "key", "text"),
    [(pa.float64(), math.nan, "NaN"), (pa.float64(), -0.0, "0.0"), (pa.string(), None, "")],
)
def test_odd_keys_have_origins(tenant, run, kind, key, text):
    """Those of an update: NaN is NaN, zeros of both signs are one, null matches null."""
    rows = pa.table({"Id": pa.array([key], kind), "v": [5]})
    run("monday", rows, {"sync-output/Lead.csv": f"Id,v\n1.5,4\n{text},5\n"}, null_keys="match")
    assert ("file", 3) == sources(tenant, key if kind != pa.string() else {"Id": None})["v"]
