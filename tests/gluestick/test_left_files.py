"""The file that gluestick leaves is left here, too; the installed gluestick says what is in it."""

import pandas as pd
import pyarrow as pa
import pytest
from tests.gluestick.test_same_results import _rows
from tests.working_copies import run_in_working_copy

import freezeframe.gluestick as gs
from freezeframe import open_tenant, update_snapshot

gluestick = pytest.importorskip("gluestick", reason="gluestick is not installed (pip install gluestick)")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

FIRST = pd.DataFrame({"id": [1, 2, 3], "v": ["a", "b", "c"], "n": [1.5, None, 2.5]})
LATER = pd.DataFrame({"id": [2, 4], "v": ["B", "d"], "n": [7.0, 8.0]})


def _file(directory, name="Deals", *, as_csv):
    """What a script reads that opens the file itself."""
    if as_csv:
        return pd.read_csv(directory / f"{name}.snapshot.csv")
    return pd.read_parquet(directory / f"{name}.snapshot.parquet")


@pytest.mark.parametrize("as_csv", [False, True])
@pytest.mark.parametrize("options", [{}, {"just_new": True}, {"overwrite": True}])
def test_the_file_is_gluesticks_after_each_call(tmp_path, as_csv, options):
    """Two syncs: the rows in the file are those of gluestick's, and no other snapshot file is there."""
    (tmp_path / "theirs").mkdir()
    for rows in (FIRST, LATER):
        gluestick.snapshot_records(rows, "Deals", str(tmp_path / "theirs"), use_csv=as_csv, **options)
        gs.snapshot_records(rows, "Deals", str(tmp_path / "ours"), use_csv=as_csv, **options)
        theirs, ours = (_file(tmp_path / item, as_csv=as_csv) for item in ("theirs", "ours"))
        assert (_rows(theirs), list(theirs.columns)) == (_rows(ours), list(ours.columns))
        names = [
            sorted(path.name for path in (tmp_path / place).iterdir() if path.is_file())
            for place in ("theirs", "ours")
        ]
        assert names[0] == names[1]


@pytest.mark.parametrize("options", [{}, {"use_csv": True}, {"pk": ["id", "v"]}, {"just_new": True}])
def test_the_first_write_returns_the_frame_that_was_given(tmp_path, options):
    """The very frame, as gluestick does, equal keys and index included; later calls give the whole."""
    twice = pd.DataFrame({"id": [1, 1], "v": ["old", "new"]}, index=[7, 8])
    assert twice is gluestick.snapshot_records(twice, "Deals", str(tmp_path), **options)
    assert twice is gs.snapshot_records(twice, "Other", tmp_path, **options)
    assert (twice["v"].tolist(), twice.index.tolist()) == (["old", "new"], [7, 8])


@pytest.mark.parametrize("as_csv", [False, True])
def test_the_left_file_is_no_content_of_its_own(tmp_path, as_csv):
    """It is not adopted: reading and updating see the stream, and a restored version is not undone by it."""
    gs.snapshot_records(FIRST, "Deals", tmp_path, use_csv=as_csv)
    gs.snapshot_records(LATER, "Deals", tmp_path, use_csv=as_csv)
    tenant = open_tenant(tmp_path)
    version = tenant.version
    assert _rows(gs.read_snapshots("Deals", tmp_path)) == _rows(_file(tmp_path, as_csv=as_csv))
    assert version == tenant.version
    tenant.restore(0)
    assert gs.read_snapshots("Deals", tmp_path)["v"].tolist() == ["a", "b", "c"]
    gs.snapshot_records(FIRST.head(1), "Deals", tmp_path, use_csv=as_csv)
    assert _file(tmp_path, as_csv=as_csv)["v"].tolist() == ["a", "b", "c"]


def test_updates_by_other_names_keep_the_left_file(tmp_path):
    """update_snapshot writes it again as well."""
    gs.snapshot_records(FIRST, "Deals", tmp_path)
    update_snapshot(tmp_path, "Deals", ["id"], pa.table({"id": [9], "v": ["z"]}))
    assert _file(tmp_path, as_csv=False)["id"].tolist() == [1, 2, 3, 9]


def test_a_left_file_that_somebody_changed_is_adopted(tmp_path):
    """A target's edit counts, as it does with gluestick."""
    gs.snapshot_records(FIRST, "Deals", tmp_path, use_csv=True)
    changed = _file(tmp_path, as_csv=True).assign(v=["x", "y", "z"])
    changed.to_csv(tmp_path / "Deals.snapshot.csv", index=False)
    assert gs.read_snapshots("Deals", tmp_path)["v"].tolist() == ["x", "y", "z"]
    merged = gs.snapshot_records(LATER, "Deals", tmp_path, use_csv=True)
    assert merged["v"].tolist() == ["x", "B", "z", "d"]
    assert _file(tmp_path, as_csv=True)["v"].tolist() == ["x", "B", "z", "d"]


def test_a_targets_csv_beside_our_parquet_is_adopted(tmp_path):
    """Our own Parquet copy does not hide what a target writes."""
    gs.snapshot_records(FIRST, "Deals", tmp_path)
    FIRST.assign(v=["x", "y", "z"]).to_csv(tmp_path / "Deals.snapshot.csv", index=False)
    assert gs.read_snapshots("Deals", tmp_path)["v"].tolist() == ["x", "y", "z"]


def test_the_state_of_drop_redundant_is_left_too(tmp_path):
    """Under the names that gluestick gives it."""
    for use_csv in (False, True):
        gs.drop_redundant(FIRST, f"Sent{use_csv}", tmp_path, pk=["id"], use_csv=use_csv)
    assert len(_file(tmp_path, "SentFalse.hash", as_csv=False)) == 3
    assert len(_file(tmp_path, "SentTrue.hash", as_csv=True)) == 3


@pytest.mark.parametrize("setting", ["true", "false"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_erased_key_goes_from_an_adopted_file(tmp_path, monkeypatch, suffix, setting):
    """In the erasure itself, whether or not the file is kept up to date otherwise."""
    monkeypatch.setenv("FREEZEFRAME_EXPORT_ADOPTED_FILES", setting)
    path = tmp_path / f"People.snapshot.{suffix}"
    people = pd.DataFrame({"Id": ["anna-4711", "bert-4712"], "n": [1, 2]})
    (people.to_csv if suffix == "csv" else people.to_parquet)(path, index=False)
    update_snapshot(tmp_path, "People", ["Id"], pd.DataFrame({"Id": ["carl-4713"], "n": [3]}))
    done = open_tenant(tmp_path).erase("People", ["anna-4711"])
    assert done.left.is_clean
    assert _file(tmp_path, "People", as_csv=suffix == "csv")["Id"].tolist() == ["bert-4712", "carl-4713"]


@pytest.mark.parametrize("as_csv", [False, True])
def test_an_erased_key_goes_from_a_left_file(tmp_path, as_csv):
    """It is a copy of the rows, and has those of the stream after the erasure."""
    gs.snapshot_records(FIRST.assign(id=[10107, 10108, 10109]), "Deals", tmp_path, use_csv=as_csv)
    done = open_tenant(tmp_path).erase("Deals", [10107])
    assert done.left.is_clean
    assert _file(tmp_path, as_csv=as_csv)["id"].tolist() == [10108, 10109]


@pytest.mark.parametrize("as_csv", [False, True])
def test_a_later_run_begins_with_the_file(tmp_path, as_csv):
    """A script that looks for it learns that an earlier job was committed; no version comes of that."""
    seen, tenant = [], open_tenant(tmp_path / "tenant")

    def script(folder):
        there = folder / f"Deals.snapshot.{'csv' if as_csv else 'parquet'}"
        seen.append(_rows(_file(folder, as_csv=as_csv)) if there.is_file() else None)
        gs.snapshot_records(FIRST, "Deals", folder, use_csv=as_csv)

    receipts = [run_in_working_copy(tenant, tmp_path, script) for _ in range(3)]
    gs.snapshot_records(FIRST, "Deals", tmp_path / "bare", use_csv=as_csv)
    wanted = _rows(_file(tmp_path / "bare", as_csv=as_csv))

    assert [None, wanted, wanted] == seen
    assert [0, 0, 0] == [item.streams["Deals"].stream_version for item in receipts]
    assert () == tenant.files.list()
