"""A row's history: each version that inserted, updated or deleted it, by the files that can hold it alone."""

import random
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import given

from freezeframe.errors import BadInput, InvalidOption, StreamNotFound
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine


@pytest.fixture
def tenant(tmp_path):
    return given.tenant(LocalStorage(tmp_path))


@pytest.fixture
def stream(tenant):
    """Four leads: 007 is changed at version 2, deleted at 4, and there again since 5."""
    stream = tenant.stream("Lead")
    stream.update(leads("001", "007", "008", "a/b"), "Id")
    stream.update(leads("008", stage="won"), "Id")
    with tenant.job("job-2", who="sync", message="nightly") as job:
        job.stream("Lead").update(leads("007", stage="won"), "Id")
    tenant.files.write("notes.txt", b"nothing of the stream")
    rest = pa.concat_tables([leads("001", "a/b"), leads("008", stage="won")])
    stream.update(rest, "Id", override=True)
    stream.update(leads("007", stage="lost"), "Id")
    return stream


def leads(*ids, stage="new"):
    return pa.table({"Id": list(ids), "Stage": [stage] * len(ids), "Score": [1.5] * len(ids)})


def told(history):
    return [(version.version, version.change, version.changed) for version in history.versions]


def test_each_version_that_touched_the_row_is_given_with_its_values(stream):
    """The newest first, with who and which job; versions that left the row as it was are left out."""
    history = stream.row_history("007")
    assert told(history) == [
        (5, "insert", ()),
        (4, "delete", ()),
        (2, "update", ("Stage",)),
        (0, "insert", ()),
    ]
    update = history.versions[2]
    assert (update.before["Stage"], update.after["Stage"]) == ("new", "won")
    assert (update.entry.who, update.entry.job_id, update.entry.message) == ("sync", "job-2", "nightly")
    assert (history.versions[1].after, history.versions[1].before["Stage"]) == (None, "won")
    assert history.row == {"Id": "007", "Stage": "lost", "Score": 1.5}
    assert (history.is_whole, history.following) == (True, None)


def test_a_row_is_seen_from_a_version_and_in_steps(stream):
    """``until`` looks from an earlier version, ``limit`` tells where to go on."""
    assert told(stream.row_history("007", until=3)) == [(2, "update", ("Stage",)), (0, "insert", ())]
    first = stream.row_history("007", limit=3)
    rest = stream.row_history("007", until=first.following)
    assert told(stream.row_history("007")) == told(first) + told(rest)
    assert stream.row_history("007", until=4).row is None


def test_keys_are_the_texts_that_they_are(stream):
    for key, touched in (("a/b", [0]), ("008", [1, 0]), ("7", []), ("", [])):
        assert touched == [version.version for version in stream.row_history(key).versions], key


def test_a_restoration_and_a_dropped_stream_are_versions_of_the_row(tenant, stream):
    """The kind says that a version was restored; a row goes with its stream and comes with a new one."""
    tenant.restore(1)
    stream.update(leads("100"), "Id", override=True)
    tenant.drop_stream("Lead")
    stream.update(leads("007", stage="back"), "Id")
    history = stream.row_history("007")
    assert [(version.version, version.change) for version in history.versions[:4]] == [
        (9, "insert"),
        (7, "delete"),
        (6, "update"),
        (5, "insert"),
    ]
    assert (history.versions[2].entry.kind, history.versions[2].entry.restored) == ("restore", 1)
    assert history.is_whole


def test_keys_of_several_columns_and_other_types(tenant):
    """By tuple or by name; a column that came between is told as a change of the rows that have a value."""
    stream = tenant.stream("Rate")
    days = [date(2026, 11, 1), date(2026, 11, 2)]
    stream.update(pa.table({"Day": days, "Ccy": ["EUR", "EUR"], "Rate": [1.0, 2.0]}), ["Day", "Ccy"])
    later = {"Day": days, "Ccy": ["EUR", "EUR"], "Rate": [1.5, 2.0], "Source": ["ledger", None]}
    stream.update(pa.table(later), ["Day", "Ccy"], override=True)
    history = stream.row_history((days[0], "EUR"))
    assert told(history) == [(1, "update", ("Rate", "Source")), (0, "insert", ())]
    assert {"Day": days[0], "Ccy": "EUR", "Rate": 1.0} == {**history.versions[0].before}
    assert history == stream.row_history({"Ccy": "EUR", "Day": days[0]})
    assert told(stream.row_history((days[1], "EUR"))) == [(0, "insert", ())]


def test_a_stream_that_keeps_its_past_or_flags_deletions_has_one_row_a_key():
    tenant = given.tenant()
    for options in ({"history": "scd2"}, {"deletes": "flag"}):
        stream = tenant.stream("-".join(options))
        stream.update(leads("1", "2"), "Id", mode="full", **options)
        stream.update(leads("1", stage="won"), "Id", mode="full")
        assert [version.change for version in stream.row_history("2").versions] == ["delete", "insert"]
        newest = stream.row_history("1").versions[0]
        assert (newest.change, newest.before["Stage"], newest.after["Stage"]) == ("update", "new", "won")


def test_another_key_or_forgotten_versions_end_what_is_known(tenant, stream):
    tenant.set_retention(keep_versions=3)
    tenant.gc()
    history = stream.row_history("007")
    assert (told(history), history.is_whole) == ([(5, "insert", ()), (4, "delete", ())], False)
    stream.update(pa.table({"Other": ["007"], "Id": ["007"]}), "Other", override=True)
    history = stream.row_history("007")
    assert (told(history), history.is_whole) == ([], False)


def test_wrong_keys_and_streams_are_refused(tenant, stream):
    for key in (7, ("007", "x"), {"Name": "007"}):
        with pytest.raises(BadInput):
            stream.row_history(key)
    with pytest.raises(StreamNotFound):
        tenant.stream("Deal").row_history("007")
    with pytest.raises(InvalidOption):
        stream.row_history("007", limit=0)
    tenant.stream("Log").update(pa.table({"Text": ["x"]}), override=True)
    with pytest.raises(InvalidOption):
        tenant.stream("Log").row_history("x")


def test_files_that_cannot_hold_the_key_are_not_read(tmp_path):
    tenant = given.tenant(LocalStorage(tmp_path), vectors_from_bytes=0)
    stream = tenant.stream("Lead")
    stream.update(leads(*(f"{number:04d}" for number in range(500))), "Id")
    before = set(tmp_path.rglob("*.parquet"))
    for step in range(3):
        stream.update(leads(*(f"{number:04d}" for number in range(600, 640)), stage=f"{step}"), "Id")
    newer = set(tmp_path.rglob("*.parquet")) - before
    for file in newer:
        file.unlink()
    assert newer
    assert told(stream.row_history("0007")) == [(0, "insert", ())]


class CountedReads:
    """Counts what is opened and which row groups are read, of every Parquet file."""

    def __init__(self, monkeypatch):
        self.files = self.rows = 0
        opened, batches = pq.ParquetFile.__init__, pq.ParquetFile.iter_batches

        def count_file(file, *given, **options):
            self.files += 1
            opened(file, *given, **options)

        def count_rows(file, size, row_groups, **options):
            self.rows += sum(file.metadata.row_group(group).num_rows for group in row_groups)
            return batches(file, size, row_groups=row_groups, **options)

        monkeypatch.setattr(pq.ParquetFile, "__init__", count_file)
        monkeypatch.setattr(pq.ParquetFile, "iter_batches", count_rows)


@pytest.mark.parametrize("is_marked", [False, True])
def test_of_each_file_one_row_group_is_read(tmp_path, monkeypatch, is_marked):
    """Over versions that write the stream anew, or mark rows: as many files as can hold the row, in parts."""
    monkeypatch.setattr("freezeframe.store.table.staging._GROUP_ROWS", 800)
    storage = LocalStorage(tmp_path)
    settings = Settings(engine="auto", vectors_from_bytes=0 if is_marked else 1 << 40)
    stream = Tenant(storage, ArrowEngine(), settings).stream("Lead")
    stream.update(leads(*(f"{number:05d}" for number in range(4_000))), "Id")
    for version in range(1, 11):
        others = [f"{number:05d}" for number in range(version, 4_000, 80)]
        new = [f"{number:05d}x" for number in range(version, 4_000, 400)]
        own = ["02000"] if version % 5 == 0 else []
        stream.update(leads(*others, *new, *own, stage=f"{version}"), "Id")
    counted = CountedReads(monkeypatch)
    history = stream.row_history("02000")

    assert [item.version for item in history.versions] == [10, 5, 0]
    assert [item.after["Stage"] for item in history.versions] == ["10", "5", "new"]
    assert counted.files <= 14
    # The key's columns and the row's own of one group of 800 rows, and now and then of its neighbour.
    assert counted.rows <= 2.5 * 800 * counted.files


def test_versions_under_another_key_exclude_nothing(tenant):
    """They are of another key, of which the stream may not even have the column any more."""
    stream = tenant.stream("Lead")
    stream.update(leads("001", "007"), "Id")
    stream.update(leads("001", stage="won"), "Id")
    stream.update(leads().cast(leads("x").schema), "Id", override=True)
    stream.update(pa.table({"Email": ["a", "b"]}), "Email", override=True)
    stream.update(pa.table({"Email": ["a"], "Name": ["Ada"]}), "Email")
    history = stream.row_history("a")
    assert (told(history), history.is_whole) == ([(4, "update", ("Name",)), (3, "insert", ())], False)


class NamedReads:
    """A storage that lists the names of what is read."""

    def __init__(self, inner):
        self._inner = inner
        self.names = []

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def read(self, name, offset=0, length=None):
        self.names.append(name)
        return self._inner.read(name, offset, length)


def test_each_entry_of_the_log_is_read_once(tmp_path):
    """However many versions a page has; a version that is not asked for costs its entry and nothing else."""
    storage = NamedReads(LocalStorage(tmp_path))
    stream = given.tenant(storage, engine="auto").stream("Lead")
    for version in range(15):
        stream.update(leads("007", "008", stage=f"{version}"), "Id")
    storage.names.clear()
    assert len(stream.row_history("007").versions) == 15
    entries = [name for name in storage.names if "/log/" in name and name.endswith(".json")]
    assert len(entries) <= 17
    assert len(entries) - len(set(entries)) <= 1


SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 8))]


@pytest.mark.parametrize("seed", SEEDS)
def test_histories_are_what_reading_each_version_tells(tmp_path, seed):
    """Of random updates, replaced contents, restorations and new columns, with marked rows and without."""
    draw = random.Random(seed)
    storage = LocalStorage(tmp_path)
    settings = Settings(engine="auto", vectors_from_bytes=0 if seed % 2 else 1 << 40)
    tenant = Tenant(storage, ArrowEngine(), settings)
    stream = tenant.stream("Lead")
    names = [f"{number:03d}" for number in range(20)]
    stream.update(leads(*names[:15]), "Id")
    for step in range(12):
        chosen = draw.sample(names, draw.choice((1, 2, 3, 9)))
        rows = leads(*sorted(chosen), stage=f"{draw.randrange(4)}")
        if draw.random() < 0.15:
            tenant.restore(draw.randrange(tenant.version + 1))
        elif draw.random() < 0.15:
            stream.update(leads(*draw.sample(names, 12), stage=f"{step}"), "Id", override=True)
        elif draw.random() < 0.2:
            with tenant.job(f"job-{step}") as job:
                job.stream("Lead").update(rows, "Id")
                job.stream("Lead").update(leads(*draw.sample(names, 2), stage=f"{step}"), "Id")
        elif draw.random() < 0.1:
            stream.update(rows.append_column(f"More {step}", pa.array(["x"] * len(rows))), "Id")
        else:
            stream.update(rows, "Id")
    states = [
        {row["Id"]: row for row in stream.read(as_="arrow", tenant_version=version).to_pylist()}
        for version in range(tenant.version + 1)
    ]
    for name in names:
        expected = [
            version
            for version in range(tenant.version, -1, -1)
            if differs(states[version - 1].get(name) if version else None, states[version].get(name))
        ]
        assert (name, expected) == (name, [item.version for item in stream.row_history(name).versions])


def differs(old, new):
    """Whether a row came, went or changed; a column that was dropped changes no row."""
    if old is None or new is None:
        return old is not new
    return any(value != old.get(name) for name, value in new.items())


def test_a_zero_with_another_sign_is_another_value(tenant):
    """As in every comparison; a value that is written again unchanged, NaN too, is no version of the row."""
    stream = tenant.stream("Signs")
    for value in (0.0, -0.0, float("nan"), float("nan")):
        stream.update(pa.table({"Id": ["1"], "v": [value], "n": [1]}), "Id", override=True)
        stream.update(pa.table({"Id": ["2"], "v": [value], "n": [tenant.version]}), "Id")
    changes = [(item.change, item.changed) for item in stream.row_history("1").versions]
    assert [("update", ("v",)), ("update", ("v",)), ("insert", ())] == changes
