"""Snapshot files of hotglue and gluestick are read, taken over one by one, or migrated as a folder."""

import hashlib
import json
import uuid
from dataclasses import replace
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.old_calendar import NEW, OLD, write_old
from tests.working_copies import run_in_working_copy

import freezeframe
from freezeframe.cli.main import main
from freezeframe.errors import (
    AlreadyExists,
    BadInput,
    ConflictError,
    InputNotFound,
    InvalidOption,
    MissingColumn,
    NullKeyError,
    SchemaDriftError,
    UnreadableInput,
)
from freezeframe.progress import watched_by
from freezeframe.runs.process.script_process import WaitingFile
from freezeframe.script import get_snapshot, open_tenant, update_snapshot
from freezeframe.script.adoption import pending_adoption, plan_migration
from freezeframe.settings import Settings
from freezeframe.store.snapshot_files import ADOPTED_NOTE

CSV = "Id,Name,n\n007,Ann,1.0\n8,NA,\n"


@pytest.fixture
def write(tmp_path):
    """A function that writes a CSV file's text under a stream's name and returns the directory."""

    def put(stream, text=CSV):
        (tmp_path / f"{stream}.snapshot.csv").write_text(text)
        return tmp_path

    return put


def _rows(frame):
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


def _names(directory):
    return sorted(path.name for path in directory.rglob("*"))


def test_reading_reads_the_file_and_writes_nothing(write):
    """Text keeps its zeros, and the directory stays as it is."""
    snapshots = write("Account")
    assert _rows(get_snapshot(snapshots, "Account")) == [["007", "Ann", 1.0], ["8", "NA", None]]
    assert _names(snapshots) == ["Account.snapshot.csv"]


def test_a_changed_file_is_read_as_it_is(write):
    """An id map that a target writes at every job is never stale."""
    snapshots = write("contacts_F1", "InputId,RemoteId\n1,a\n")
    get_snapshot(snapshots, "contacts_F1")
    write("contacts_F1", "InputId,RemoteId\n1,a\n2,b\n")
    assert _rows(get_snapshot(snapshots, "contacts_F1")) == [[1, "a"], [2, "b"]]
    (snapshots / "contacts_F1.snapshot.csv").unlink()
    assert get_snapshot(snapshots, "contacts_F1") is None


def test_parquet_is_preferred(write):
    """Where both files are there, as in gluestick; pandas' index is not a column."""
    snapshots = write("Account")
    frame = pd.DataFrame({"Id": ["1"], "n": [2**53 + 1]}, index=[5])
    frame.to_parquet(snapshots / "Account.snapshot.parquet")
    assert _rows(get_snapshot(snapshots, "Account")) == [["1", 2**53 + 1]]


def test_a_view_takes_columns_and_a_predicate(write):
    """As any stream does, as pandas or Arrow."""
    snapshots = write("Account", "Id,n,empty\na,1,\nb,2,\n")
    table = get_snapshot(snapshots, "Account", columns=["n"], where=[("Id", "=", "b")], as_="arrow")
    assert table.to_pydict() == {"n": [2]}
    assert pa.string() == get_snapshot(snapshots, "Account", as_="arrow").schema.field("empty").type
    with pytest.raises(MissingColumn, match="'x'"):
        get_snapshot(snapshots, "Account", columns=["x"])
    with pytest.raises(MissingColumn):
        get_snapshot(snapshots, "Account", where=[("x", "=", 1)])
    with pytest.raises(InvalidOption):
        get_snapshot(snapshots, "Account", as_="numpy")
    assert get_snapshot(snapshots, "Account", version=0) is None


def test_the_first_update_takes_the_file_over(write):
    """In a commit of its own, under the update's key and in its types; the file stays, up to date."""
    snapshots = write("Account")
    before = (snapshots / "Account.snapshot.csv").read_bytes()

    after = update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["8", "9"], "n": [8, 9]}))

    assert _rows(after) == [["007", "Ann", 1], ["8", "NA", 8], ["9", None, 9]]
    assert str(after["n"].dtype) == "int64"
    stream = open_tenant(snapshots).stream("Account")
    assert (stream.stream_version, stream.key) == (1, ("Id",))
    assert _rows(get_snapshot(snapshots, "Account", version=0)) == [["007", "Ann", 1], ["8", "NA", None]]
    note = json.loads(stream.notes[ADOPTED_NOTE])
    assert {
        "file": "Account.snapshot.csv",
        "sha256": hashlib.sha256(before).hexdigest(),
        "version": 0,
    } == note
    assert (snapshots / "Account.snapshot.csv").read_bytes() == b"Id,Name,n\n007,Ann,1\n8,NA,8\n9,,9\n"


def test_a_file_is_taken_over_once(write):
    """Later calls see from its hash that nothing has changed; what was deleted since stays deleted."""
    snapshots = write("Account")
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["9"]}))
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["1"]}), override=True)
    assert list(get_snapshot(snapshots, "Account")["Id"]) == ["1"]
    assert pending_adoption(snapshots, open_tenant(snapshots).stream("Account")) is None


def test_a_file_that_alone_changed_replaces_the_stream(write):
    """Nobody else has changed the stream since: what the file lost is gone, too."""
    snapshots = write("Account", "Id,n\n1,1\n2,2\n")
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": [1], "n": [1]}))
    write("Account", "Id,n\n2,20\n3,3\n3,4\n")
    assert _rows(get_snapshot(snapshots, "Account")) == [[2, 20], [3, 4]]
    after = update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": [5], "n": [5]}))
    assert _rows(after) == [[2, 20], [3, 4], [5, 5]]


def test_where_both_changed_only_the_files_changes_come_in(write):
    """Rows that the file has had before do not undo an update; reading shows the same, unwritten."""
    snapshots = write("Account", "Id,n\n1,0\n2,2\n")
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": [1], "n": [1]}))
    write("Account", "Id,n\n1,1\n2,20\n3,\n")
    open_tenant(snapshots).stream("Account").update(pd.DataFrame({"Id": [1], "n": [100]}))
    before = open_tenant(snapshots).version
    assert _rows(get_snapshot(snapshots, "Account")) == [[1, 100], [2, 20], [3, None]]
    assert before == open_tenant(snapshots).version
    after = update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": [4], "n": [4]}))
    assert _rows(after) == [[1, 100], [2, 20], [3, None], [4, 4]]


def test_where_the_adopted_version_is_gone_the_file_is_compared_with_the_newest_rows(write, monkeypatch):
    """A file that is not kept up to date, and was changed after gc: what it has anew comes in."""
    monkeypatch.setenv("FREEZEFRAME_EXPORT_ADOPTED_FILES", "false")
    folder = write("S")
    for number in range(3):
        update_snapshot(folder, "S", "Id", pd.DataFrame({"Id": ["9"], "Name": ["Zoe"], "n": [number]}))
    tenant = open_tenant(folder)
    tenant.set_retention(keep_versions=1)
    at_once = Settings(gc_grace_seconds=0, lease_dead_seconds=0)
    tenant.with_context(replace(tenant.context, settings=at_once)).gc()
    write("S", "Id,Name,n\n007,Ann,1\n8,Bob,\n10,Eve,3\n")
    rows = _rows(get_snapshot(folder, "S"))
    updated = update_snapshot(folder, "S", "Id", pd.DataFrame({"Id": ["10"], "n": [4]}))

    kept = [["007", "Ann", 1], ["8", "Bob", None], ["9", "Zoe", 2]]
    assert [*kept, ["10", "Eve", 3]] == sorted(rows, key=lambda row: int(row[0]) if row[0] != "007" else 0)
    assert sorted([*kept, ["10", "Eve", 4]]) == sorted(_rows(updated))


def test_a_stream_without_a_key_takes_the_files_content(write):
    """A report: the file is what was written last."""
    snapshots = write("Report", "Date,n\n2026-10-01,1\n2026-10-01,1\n")
    report = pd.DataFrame({"Date": ["2026-10-02"], "n": [2]})
    update_snapshot(snapshots, "Report", None, report, override=True)
    assert len(get_snapshot(snapshots, "Report", version=0)) == 2
    assert len(get_snapshot(snapshots, "Report")) == 1
    write("Report", "Date,n\n2026-10-03,3\n2026-10-03,3\n")
    assert len(get_snapshot(snapshots, "Report")) == 2


def test_persist_false_merges_with_the_file_and_writes_nothing(write):
    """Neither a stream nor any other trace is left."""
    snapshots = write("Account")
    merged = update_snapshot(
        snapshots, "Account", "Id", pd.DataFrame({"Id": ["8"], "Name": ["Bo"]}), persist=False
    )
    assert _rows(merged) == [["007", "Ann", 1.0], ["8", "Bo", None]]
    assert _names(snapshots) == ["Account.snapshot.csv"]


@pytest.mark.spark
def test_spark_frames_meet_a_file(write, spark_engine, spark_session):
    """A file is read as a Spark frame, and a Spark frame's types decide how it is taken over."""
    snapshots = write("Account", "Id,n\n7,1\n")
    assert [
        (str(row["Id"]), row["n"]) for row in get_snapshot(snapshots, "Account", as_="spark").collect()
    ] == [("7", 1)]
    frame = spark_session.createDataFrame(pa.table({"Id": ["8"], "n": [2]}))
    after = update_snapshot(snapshots, "Account", "Id", frame)
    assert [(row["Id"], row["n"]) for row in after.collect()] == [("7", 1), ("8", 2)]


def test_floats_of_pandas_are_integers_again(tmp_path):
    """A Parquet file in which a missing value made floats of integers, under an integer key."""
    frame = pd.DataFrame({"Id": [1.0, 2.0], "n": [3.0, None], "x": [0.5, 1.0]})
    frame.to_parquet(tmp_path / "A.snapshot.parquet", index=False)
    batch = pd.DataFrame({"Id": [9], "n": [1], "x": [1]})
    stream = open_tenant(tmp_path).stream("A")
    adoption = pending_adoption(tmp_path, stream)
    table = adoption.view(pa.schema([(name, pa.int64()) for name in batch.columns]))
    assert [pa.int64(), pa.int64(), pa.float64()] == table.schema.types


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("Id,n\n1\n", UnreadableInput, "line 2"),
        ("Key,n\n1,2\n", MissingColumn, "'Id'"),
        ("Id,n\nx,2\n,3\n", NullKeyError, "null"),
    ],
)
def test_a_file_that_cannot_be_taken_is_named(write, text, error, says):
    """Nothing is written then, and nothing is guessed."""
    snapshots = write("Account", text)
    with pytest.raises(error, match=says) as caught:
        update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["1"], "n": [1]}))
    assert "Account.snapshot.csv" in str(caught.value)
    assert open_tenant(snapshots).streams() == ()


def test_a_key_of_another_type_is_refused(tmp_path):
    """A file with numbers for keys and rows with text: which 7 was "007", nobody knows."""
    pd.DataFrame({"Id": [7]}).to_parquet(tmp_path / "A.snapshot.parquet", index=False)
    with pytest.raises(SchemaDriftError, match="'Id'"):
        update_snapshot(tmp_path, "A", "Id", pd.DataFrame({"Id": ["007"]}))
    assert _rows(get_snapshot(tmp_path, "A")) == [[7]]


def test_a_write_that_was_cut_off_is_not_taken_for_nothing(tmp_path):
    """gluestick's renamed file alone: going on would begin from nothing without a word."""
    (tmp_path / "A.snapshot.parquet.hg.partial_written.lock").write_bytes(b"PAR1")
    with pytest.raises(UnreadableInput, match="lock"):
        get_snapshot(tmp_path, "A")


def test_a_file_written_meanwhile_is_not_adopted(write):
    """What is recorded is the hash of what was read, or nothing."""
    snapshots = write("Account")
    stream = open_tenant(snapshots).stream("Account")
    adoption = pending_adoption(snapshots, stream)
    write("Account", CSV + "9,Cy,9\n")
    with pytest.raises(ConflictError):
        adoption.take_over(("Id",), "error", None)
    assert stream.stream_version == -1


def test_a_stream_made_meanwhile_is_not_replaced(write):
    """The adoption holds for the version that it was compared with."""
    snapshots = write("Account")
    stream = open_tenant(snapshots).stream("Account")
    adoption = pending_adoption(snapshots, stream)
    stream.update(pd.DataFrame({"Id": ["1"]}), key="Id")
    with pytest.raises(ConflictError, match="version 0"):
        adoption.take_over(("Id",), "error", None)
    assert list(stream.read()["Id"]) == ["1"]


def test_dates_of_the_old_calendar_show_what_they_showed(tmp_path):
    """In the file, in the stream that is made of it, and in the file as it is written again."""
    file = write_old(tmp_path / "Account.snapshot.parquet", OLD)
    assert get_snapshot(tmp_path, "Account", as_="arrow").to_pydict() == NEW
    update_snapshot(tmp_path, "Account", "id", pa.table({"id": [3]}))
    for rows in (get_snapshot(tmp_path, "Account", as_="arrow"), pq.read_table(file)):
        assert NEW == rows.sort_by("id").slice(0, 2).to_pydict()


@pytest.fixture
def before(tmp_path):
    """What a tenant of today has: snapshots as CSV and Parquet, a configuration, a mapping, a report."""
    folder = tmp_path / "snapshots"
    (folder / "mappings").mkdir(parents=True)
    (folder / "Account.snapshot.csv").write_text("Id,Name\n007,Bond\n008,Bill\n")
    (folder / "Lead.snapshot.csv").write_text("Id,Name\n9,old\n")
    pd.DataFrame({"Id": ["1"], "Score": [0.5]}).to_parquet(folder / "Lead.snapshot.parquet")
    (folder / "Report.snapshot.csv").write_text("Day;Total\n2026-01-01;3\n2026-01-01;3\n")
    (folder / "tenant-config.json").write_text('{"region": "eu"}')
    (folder / "mappings" / "a.csv").write_text("x\n1\n")
    return folder


def test_streams_files_and_keys_are_one_version(before, tmp_path, capsys):
    """Parquet wins over CSV, text stays text, a stream without the key's column has no key; files stay."""
    command = ["migrate", str(before), "--tenant", "acme", "--root", str(tmp_path / "store"), "--json"]
    assert main([*command, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["tenant_version"] is None
    assert freezeframe.open(tmp_path / "store").tenants() == ()
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    acme = freezeframe.open(tmp_path / "store").tenant("acme")

    assert {item["stream"]: (item["key"], item["rows"]) for item in told["streams"]} == {
        "Account": (["Id"], 2),
        "Lead": (["Id"], 1),
        "Report": ([], 2),
    }
    assert (told["tenant_version"], acme.version) == (0, 0)
    assert acme.stream("Account").read()["Id"].tolist() == ["007", "008"]
    assert acme.stream("Lead").read()["Score"].tolist() == [0.5]
    kept = {path.relative_to(before).as_posix(): path.read_bytes() for path in before.rglob("*.*")}
    assert kept == {item.path: acme.files.read(item.path) for item in acme.files.list(recursive=True)}
    assert main(command) == 2
    assert "already has" in capsys.readouterr().err
    assert acme.version == 0


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda folder: (folder / "A.snapshot.parquet").write_bytes(b"PAR1"), UnreadableInput),
        (lambda folder: (folder / "A.snapshot.csv.hg.partial_written.lock").touch(), UnreadableInput),
        (lambda folder: (folder / "_freezeframe").mkdir(), InvalidOption),
        (lambda folder: folder.rename(folder.with_name("elsewhere")), InputNotFound),
    ],
    ids=["a damaged file", "a file that gluestick was writing", "a tenant's directory", "no directory"],
)
def test_what_cannot_be_migrated_is_refused_before_anything_is_written(before, damage, error):
    """With a typed error that names the file or directory."""
    damage(before)
    with pytest.raises(error, match=str(before)):
        plan_migration(before, ["Id"], None)


def test_rows_that_cannot_be_taken_leave_the_tenant_as_it_was(before, tmp_path):
    """The file is named, and no stream of the others is there."""
    (before / "Zero.snapshot.csv").write_text("Id,Name\n,nobody\n")
    acme = freezeframe.open(tmp_path / "store").tenant("acme", create=True)
    plan = plan_migration(before, ["Id"], acme)
    with pytest.raises(BadInput, match=r"Zero\.snapshot\.csv"), acme.job() as job:
        plan.carried_out(job)
    assert (acme.streams(), acme.version) == ((), -1)


def test_a_tenant_keeps_what_it_has(before, tmp_path):
    """A stream or file of one of the names is in the way; others are not."""
    acme = freezeframe.open(tmp_path / "store").tenant("acme", create=True)
    acme.files.write("other.json", b"{}")
    plan_migration(before, ["Id"], acme)
    acme.files.write("tenant-config.json", b"{}")
    with pytest.raises(AlreadyExists, match=r"tenant-config\.json"):
        plan_migration(before, ["Id"], acme)


def _unchanged(folder):
    """A script that opens its files itself, and keeps new rows in each form that it finds."""
    for file in sorted(folder.glob("*.snapshot.*")):
        reads, writes = (
            (partial(pd.read_csv, sep=None, engine="python", dtype=str), "to_csv")
            if file.suffix == ".csv"
            else (pd.read_parquet, "to_parquet")
        )
        rows = reads(file)
        getattr(pd.concat([rows, rows.tail(1).assign(**{rows.columns[0]: "99"})]), writes)(file, index=False)


def test_an_unchanged_script_goes_on_with_what_was_migrated(before, tmp_path):
    """It finds each file byte for byte, and what it keeps there is its stream's content, at each run."""
    acme = freezeframe.open(tmp_path / "store").tenant("acme", create=True)
    with acme.job() as job:
        plan_migration(before, ["Id"], None).carried_out(job)
    seen = []
    run = partial(run_in_working_copy, acme, tmp_path)
    run(lambda folder: seen.append({path.name: path.read_bytes() for path in folder.glob("*.*")}))
    assert seen == [{path.name: path.read_bytes() for path in before.glob("*.*")}]
    for rows in (["99"], ["99", "99"]):
        run(_unchanged)
        _unchanged(before)
        files = {path.name: path.read_bytes() for path in before.glob("*.snapshot.*")}
        assert files == {name: acme.files.read(name) for name in files}
        assert acme.stream("Account").read()["Id"].tolist() == ["007", "008", "99"]
        assert acme.stream("Lead").read()["Id"].tolist() == ["1", "99"]
        assert acme.stream("Report").read()["Day"].tolist()[2:] == rows


def test_a_file_that_its_stream_cannot_take_is_kept_and_told(before, tmp_path):
    """The script's work is done; the report names the stream and why it stays as it was."""
    acme = freezeframe.open(tmp_path / "store").tenant("acme", create=True)
    with acme.job() as job:
        plan_migration(before, ["Id"], None).carried_out(job)
    watcher = WaitingFile(tmp_path)
    name, text = "Account.snapshot.csv", "Name\nAnn\n"
    with watched_by(watcher):
        run_in_working_copy(acme, tmp_path, lambda folder: (folder / name).write_text(text))
    assert acme.files.read(name).decode() == text
    assert acme.stream("Account").read()["Id"].tolist() == ["007", "008"]
    assert ["Account" in text and "Id" in text for text in watcher.remarks] == [True]


def test_the_first_file_without_a_stream_is_told(tmp_path):
    """The report says how its rows become a stream; it is silent of the next run's file, and of others."""
    acme = freezeframe.open(tmp_path / "store").tenant("acme", create=True)

    def write(folder):
        for name in ("Lead.snapshot.csv", "state.json"):
            (folder / name).write_text(uuid.uuid4().hex)

    for told in (["Lead.snapshot.csv"], []):
        watcher = WaitingFile(tmp_path)
        with watched_by(watcher):
            run_in_working_copy(acme, tmp_path, write)
        assert told == [item.partition(": ")[2].partition(". ")[0] for item in watcher.remarks]
    assert list(acme.streams()) == []


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_way_back_is_the_folder_of_before(before, tmp_path, kind, capsys):
    """Unchanged files byte for byte, changed streams as the file that they have, new ones of the kind."""
    root = ["--tenant", "acme", "--root", str(tmp_path / "store")]
    back = tmp_path / "back"
    assert main(["migrate", str(before), *root]) == 0
    acme = freezeframe.open(tmp_path / "store").tenant("acme")
    acme.stream("Lead").update(pd.DataFrame({"Id": ["2"]}), "Id")
    acme.stream("New").update(pd.DataFrame({"Id": ["7"]}), "Id")
    assert main(["export", str(back), "--files", "--kind", kind, *root]) == 0
    kept = {path.relative_to(before).as_posix(): path.read_bytes() for path in before.rglob("*.*")}
    found = {path.relative_to(back).as_posix(): path.read_bytes() for path in back.rglob("*.*")}
    assert pd.read_parquet(back / "Lead.snapshot.parquet")["Id"].tolist() == ["1", "2"]
    assert {*found} - {*kept} == {f"New.snapshot.{kind}"}
    changed = {"Lead.snapshot.parquet", "Lead.snapshot.csv"}
    assert all(found[name] == kept[name] for name in {*kept} - changed)
    capsys.readouterr()
    for flags in (["--files"], ["--files", "--version", "0"], ["--files", "--kind", "jsonl"]):
        assert main(["export", str(back), *flags, *root]) == 2
    assert capsys.readouterr().err.count("--files writes all") == 2
