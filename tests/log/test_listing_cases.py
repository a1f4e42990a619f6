"""Name lists of a log folder and the segment, or the error, that each must give."""

import json
import os
import re
from pathlib import Path

import pytest

from freezeframe.errors import FreezeframeError
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.segments.hint import Hint
from freezeframe.log.segments.management import SnapshotManagement
from freezeframe.log.segments.segment import verify_delta_versions
from freezeframe.storage import MemoryStorage

FOLDER = Path(os.environ.get("FREEZEFRAME_CONFORMANCE", ""))
CASES_FILE = FOLDER / "listing_cases.json"
PRESENT = bool(os.environ.get("FREEZEFRAME_CONFORMANCE")) and CASES_FILE.is_file()
CASES = json.loads(CASES_FILE.read_text()) if PRESENT else {"cases": [], "verify_delta_versions": []}

pytestmark = pytest.mark.skipif(
    not PRESENT, reason=f"conformance data not found at {FOLDER}: skipped (set FREEZEFRAME_CONFORMANCE)"
)


class State:
    """The least a snapshot can be: its segment."""

    def __init__(self, segment):
        self.segment = segment
        self.version = segment.version

    def uncache(self):
        """Nothing is kept."""


class NameLog(SnapshotManagement[State]):
    """A log of which only the names matter."""

    def create_snapshot(self, segment, previous=None, new_commits=None):  # noqa: ARG002 - the seam's signature
        return State(segment)


def names(text):
    """The literal names that one entry of a case stands for."""
    if match := re.fullmatch(r"deltas (\d+)(?:-(\d+))?", text):
        return [f"{v:020d}.json" for v in range(int(match[1]), int(match[2] or match[1]) + 1)]
    if match := re.fullmatch(r"checkpoint (\d+)", text):
        return [f"{int(match[1]):020d}.checkpoint.parquet"]
    if match := re.fullmatch(r"parts (\d+)/(\d+)(?: (\d+)-(\d+))?", text):
        version, count = int(match[1]), int(match[2])
        parts = range(int(match[3] or 1), int(match[4] or count) + 1)
        return [f"{version:020d}.checkpoint.{part:010d}.{count:010d}.parquet" for part in parts]
    if match := re.fullmatch(r"v2 (\d+) (.+)", text):
        return [f"{int(match[1]):020d}.checkpoint.{match[2]}"]
    if match := re.fullmatch(r"compacted (\d+)-(\d+)", text):
        return [f"{int(match[1]):020d}.{int(match[2]):020d}.compacted.json"]
    return [text]


def expand(entries):
    return [name for entry in entries for name in names(entry)]


def storage_of(case):
    storage = MemoryStorage()
    for entry in case["files"]:
        text, size = (entry, 1) if isinstance(entry, str) else (entry["name"], entry["size"])
        for name in names(text):
            storage.replace(f"_delta_log/{name}", b"x" * size)
    return storage


def segment_of(case, storage):
    log = NameLog(MemoryStorage(), "_delta_log", LogOptions(sleep=lambda _: None))
    log.storage = storage
    wanted, start = case.get("version_to_load"), case.get("start_checkpoint")
    if case.get("last_checkpoint") is not None and wanted is None:
        return log.log_segment_from(Hint(version=case["last_checkpoint"]))
    return log.log_segment_for_version(start, wanted)


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["name"])
def test_b002_to_b024_the_names_give_the_segment_that_spark_chooses(case):
    """A folder of names gives Spark's segment, or its error."""
    storage = storage_of(case)
    expected = case["expect"]
    if "error" in expected:
        with pytest.raises(FreezeframeError) as caught:
            segment_of(case, storage)
        if expected["error"] != "*":
            assert expected["error"] == caught.value.error_code
        assert expected.get("message_contains", "") in str(caught.value)
        return
    segment = segment_of(case, storage)
    assert expected["version"] == segment.version
    checkpoint = segment.checkpoint.files if segment.checkpoint else ()
    assert expand(expected["checkpoint"]) == [file.name for file in checkpoint]
    assert expand(expected["deltas"]) == [file.name for file in segment.commits]
    assert expand(expected.get("compacted", [])) == [file.name for file in segment.compacted]


@pytest.mark.parametrize("case", CASES["verify_delta_versions"], ids=lambda case: case["name"])
def test_b013_verify_delta_versions(case):
    """Versions must ascend without gap or repeat, from the first to the last expected."""
    expected = case["expect"]
    if expected == "ok":
        assert verify_delta_versions(case["versions"], first=case["first"], last=case["last"]) is None
        return
    with pytest.raises(FreezeframeError) as caught:
        verify_delta_versions(case["versions"], first=case["first"], last=case["last"])
    if expected["error"] != "*":
        assert expected["error"] == caught.value.error_code
    assert expected["message_contains"] in str(caught.value)
