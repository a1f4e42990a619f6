"""Each proof keeps its verdict on a disk, and finds the fault that it is there to find."""

import json
import re
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest
from tests.buckets import LateCreators, keys, made_bucket
from tests.proof import broken_storages as broken

from freezeframe.errors import InvalidOption
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.log.scan import data_files
from freezeframe.log.segments import hint
from freezeframe.proof.suite import PROOFS, prove, select_proofs
from freezeframe.proof.task import ProofFolder, Task, open_storage, scratch
from freezeframe.store import Stream, files
from freezeframe.store.model.directory import blob_file

pytestmark = pytest.mark.stateful

QUICK = ("atomic-create", "listing", "clocks", "isolation", "erase", "time-travel")


def results(root, names, opener=open_storage, seconds=0.0):
    with scratch(str(root), opener) as folder:
        return {item.name: item for item in prove(folder, names, seed=7, seconds=seconds)}


@pytest.mark.parametrize(
    "names", [QUICK, pytest.param(tuple(PROOFS), marks=[pytest.mark.nightly, pytest.mark.timeout(1800)])]
)
def test_every_promise_is_kept_on_this_disk(tmp_path, names):
    """No violation is seen, each proof counts what it tried, and nothing is left behind."""
    found = results(tmp_path, names)
    assert {name: item.violations for name, item in found.items() if not item.is_kept} == {}
    assert list(names) == list(found)
    assert list(tmp_path.iterdir()) == []


def proved_in_a_bucket(name, **options):
    """The exit code and the report of one proof, and what it left in the bucket."""
    with made_bucket(**options) as bucket:
        # Processes of this test run were prepared before the variables that lead to the bucket.
        command = [sys.executable, "-m", "freezeframe", "prove", "--storage", f"s3://{bucket}/a"]
        run = subprocess.run(
            [*command, "--only", name, "--json"], capture_output=True, text=True, check=False
        )
        return run.returncode, json.loads(run.stdout)["proofs"], keys(bucket, "a/freezeframe-prove-")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("atomic-create", ("names", 40)),
        pytest.param("concurrency", ("commits", 30), marks=pytest.mark.nightly),
    ],
)
def test_promises_are_kept_in_a_bucket(name, count):
    """One creator succeeds, concurrent jobs follow each other, and what was written is deleted."""
    code, (found,), left = proved_in_a_bucket(name)
    assert (0, "kept", [], []) == (code, found["verdict"], found["violations"], left)
    assert count in found["counts"].items()


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_planted_fault_is_found_in_a_bucket():
    """Where two creators of one name may both be reported that it is theirs, the history shows it."""
    code, (found,), left = proved_in_a_bucket("concurrency", application=LateCreators)
    assert (1, "broken", []) == (code, found["verdict"], left)
    seen = (
        "was given to|would be lost|after another entry|other rows|had seen|are nobody's|ForeignCommit|"
        "replaced it"
    )
    assert any(re.search(seen, item) for item in found["violations"]), found["violations"]


# Two processes commit as one version. Who notices first depends on the moment: the writer whose entry was
# replaced, the next writer, a reader, a process that rolls forward; or only the history, at the end.
LOST_COMMIT = (
    "Commits would be lost|CorruptLog|ForeignCommit|CorruptData|was given to|are nobody's|with other rows"
)
QUICK_FAULTS = [
    ("atomic-create", broken.RenamingStorage, "of 4 writers created it"),
    ("atomic-create", broken.TearingStorage, "half of its bytes"),
    ("listing", broken.StaleStorage, "were missing"),
    ("kill", broken.BufferingStorage, "was acknowledged"),
    ("erase", broken.KeepingStorage, "holds an erased key"),
    ("clocks", broken.LateClockStorage, "the clock of the storage is"),
    ("isolation", broken.SharingStorage, "the content of the other"),
    ("restore", broken.ExpiringStorage, "can no longer be read|CorruptLog"),
    ("errors", broken.LyingStorage, "failed with STORAGE_UNAVAILABLE, and its changes are there"),
    ("gc", broken.GreedyStorage, "is missing"),
]
SLOW_FAULTS = [
    ("kill", broken.HalvingStorage, "is not what was committed"),
    ("time-travel", broken.ExpiringStorage, "has no version"),
    ("crash", broken.GreedyStorage, "is missing"),
    ("concurrency", broken.RenamingStorage, LOST_COMMIT),
]
FAULTS = [*QUICK_FAULTS, *(pytest.param(*fault, marks=pytest.mark.nightly) for fault in SLOW_FAULTS)]


@pytest.mark.parametrize(("name", "storage", "seen"), FAULTS)
def test_a_planted_fault_is_found(tmp_path, name, storage, seen):
    """A storage that breaks a promise is reported to do so, within a few rounds."""
    with scratch(str(tmp_path), storage) as folder:
        (found,) = prove(folder, [name], seed=7, seconds=60)
    assert found.to_json()["verdict"] == "broken"
    assert any(re.search(seen, violation) for violation in found.violations), found.violations


def test_a_lost_answer_is_no_lost_commit(tmp_path):
    """A disk that is silent for a moment keeps its promises: commits are asked for again, by their ids."""
    (found,) = results(tmp_path, ["concurrency"], broken.WaveringStorage).values()
    assert found.violations == ()
    assert found.counts["repeated"] > 0


def test_values_that_take_the_way_through_pandas_are_found(tmp_path, monkeypatch):
    """Whole numbers beside a missing one become floats there: the proof of values sees them change."""
    update = Stream.update

    def through_pandas(stream, table, **options):
        return update(stream, pa.Table.from_pandas(table.to_pandas(), preserve_index=False), **options)

    monkeypatch.setattr(Stream, "update", through_pandas)
    found = results(tmp_path, ["values"])["values"]
    assert any("came back as" in violation for violation in found.violations), found.violations


class UncheckedFile(ForeignParquetFile):
    """Pages whose checksums nobody looks at."""

    def __init__(self, source, **options):
        super().__init__(source, **options | {"page_checksum_verification": False})


def read_unchecked(storage, blob):
    """The bytes of a file as they are, or none."""
    try:
        return storage.read(blob_file(blob.name))
    except FileNotFoundError:
        return b""


@pytest.mark.parametrize("unchecked", ["rows", "files"])
def test_bytes_that_are_read_unchecked_are_found(tmp_path, monkeypatch, unchecked):
    """A reader that compares no hash, of rows or of files, returns damage: the proof of damage sees it."""
    if unchecked == "rows":
        monkeypatch.setattr(data_files, "require_digest", lambda *_: None)
        monkeypatch.setattr(data_files, "ForeignParquetFile", UncheckedFile)
    else:
        monkeypatch.setattr(files, "read_blob", read_unchecked)
    monkeypatch.setattr(hint, "RETRY_SECONDS", 0)
    found = results(tmp_path, ["damage"], seconds=60)["damage"]
    assert any(re.search("other rows.*, and no error", violation) for violation in found.violations), (
        found.violations
    )


def test_a_round_that_would_end_late_is_not_begun(tmp_path):
    """There is one round without time; with some, as many as end in it by the longest so far."""

    def rounds(seconds, lengths):
        moments = iter(accumulate([0, *lengths]))
        folder = ProofFolder(str(tmp_path), "rounds")
        return len(list(Task(folder, "1", seconds, clock=lambda: next(moments)).rounds()))

    assert [rounds(seconds, [20, 20, 20]) for seconds in (0, 39, 40, 60)] == [1, 1, 2, 3]
    assert rounds(60, [10, 30, 10]) == 2


def test_a_running_proof_reports_its_counts(tmp_path):
    """What a proof has counted so far is reported under its name while it runs."""
    reported = []
    with scratch(str(tmp_path)) as folder:
        tell = lambda name, counts: reported.append((name, counts))  # noqa: E731
        list(prove(folder, ["listing"], 7, tell=tell, tell_seconds=0.001))
    assert {name for name, _ in reported} == {"listing"}
    assert "listings" in reported[-1][1]


def test_unknown_proofs_are_refused():
    """A name that is not a proof's is bad input; no name means all."""
    with pytest.raises(InvalidOption, match="nothing"):
        select_proofs(["kill", "nothing"])
    assert (select_proofs([]), select_proofs(["gc", "kill"])) == (tuple(PROOFS), ("kill", "gc"))


def test_the_page_names_each_proof_and_no_other():
    """The page's promises and figures, and the table of the guide, name the proofs that are run."""
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "explanation" / "reliability.md").read_text()
    promises, figures = page.split("## How the history")[0], page.split("## Figures")[1].split("## Found")[0]
    guide = (docs / "how-to" / "prove.md").read_text().split("## The proofs")[1].split("\n## ")[0]
    shown = {
        name
        for row in promises.splitlines()
        for proofs in re.findall("`prove`: ([^;|(]*)", row)
        for name in re.findall("`([^`]+)`", proofs)
    }
    first_cells = " ".join(row.split("|")[1] for row in figures.splitlines() if row.startswith("| `"))
    counted = set(re.findall("`([^`]+)`", first_cells))
    tried = re.findall(r"^\| `([^`]+)` \|", guide, re.MULTILINE)
    assert (shown, counted, tried) == ({*PROOFS}, {*PROOFS}, [*PROOFS])
