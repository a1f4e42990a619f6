"""Verification: reads every file of a log and every data file, and reports damage.

Verification repairs nothing. A finding names one file and its damage. A table without findings
returns the same rows through every read path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

from freezeframe.errors import CorruptLog, FreezeframeError, InputNotFound, ReportDamage, UnsafePath
from freezeframe.log.primitives.listing import Listing, complete_checkpoints, list_log, sort_listing
from freezeframe.log.primitives.paths import HINT_NAME, LogFile
from freezeframe.log.scan import rows
from freezeframe.log.scan.data_files import file_name, open_parquet
from freezeframe.log.scan.file_statistics import columns_beyond_bounds
from freezeframe.log.segments.checkpoint import read_checkpoint
from freezeframe.log.segments.commit_content import parse_file_actions, read_content
from freezeframe.log.segments.hint import Checksum, read_checksum, read_hint
from freezeframe.log.segments.segment import LogSegment, choose_segment
from freezeframe.log.segments.state_reader import StateReader
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.storage import Storage


@dataclass(frozen=True, slots=True)
class Finding:
    """One damaged file: its name below the table, the error's code, and a sentence on the damage."""

    file: str
    code: str
    problem: str


def verify_log(storage: Storage, folder: str) -> list[Finding]:
    """Verify the files of the log itself: commits, compacted files, checkpoints, the hint."""
    listing = sort_listing(list_log(storage, folder))
    if listing.is_empty:
        raise InputNotFound(
            f"There is no table in {storage.root}/{folder.rpartition('/')[0]}".rstrip("/") + ".",
            cause=f"{folder} holds no version.",
            remedy="Name the directory that holds _delta_log; for a whole tenant: freezeframe tenant verify.",
        )
    findings: list[Finding] = []
    findings += findings_of(folder, partial(_segment, folder, listing))
    for file in (*listing.commits, *listing.compacted):
        findings += findings_of(f"{folder}/{file.name}", partial(_commit, storage, folder, file))
    complete = complete_checkpoints(listing.checkpoint_files)
    for checkpoint in complete:
        name = f"{folder}/{checkpoint.files[0].name}"
        findings += findings_of(name, partial(read_checkpoint, storage, folder, checkpoint))
    used = {file.name for checkpoint in complete for file in checkpoint.files}
    findings += [
        Finding(
            f"{folder}/{file.name}", "CHECKPOINT_INCOMPLETE", "Other parts of this checkpoint are missing."
        )
        for file in listing.checkpoint_files
        if file.name not in used
    ]
    findings += _hint(storage, folder, {checkpoint.version for checkpoint in complete})
    return findings


def verify_snapshot(snapshot: Snapshot) -> list[Finding]:
    """Verify the files of one snapshot: its checksum, its state and every data file.

    Each data file is read whole, with its deletion vector, page checksums and recorded SHA-256.
    """
    findings = list(findings_of(snapshot.path, lambda: snapshot.tombstones))  # by all that is in the log
    if findings:
        return findings
    file = snapshot.segment.checksum
    if file is not None and file.version == snapshot.version:
        name = snapshot.segment.path(file)
        findings += _checksum(name, read_checksum(snapshot.storage, name), snapshot)
    findings += _state(snapshot)
    if not snapshot.delta_schema["fields"]:
        return findings  # a table without columns has no rows to read
    for row in range(snapshot.files.num_rows):
        single = rows.part_of(snapshot, snapshot.files.slice(row, 1))
        path = single.files["path"][0].as_py()
        damage = list(findings_of(path, partial(_rows, single)))
        findings += damage or _bounds(single, path)
    return findings


def findings_of(name: str, look: Callable[[], object]) -> Iterator[Finding]:
    """Yield the damage raised by the check of a file, as findings; none if the check returns."""
    try:
        look()
    except ReportDamage as error:
        yield Finding(str(error.details.get("file", name)), error.error_code, str(error))
    except FileNotFoundError:
        yield Finding(name, "FILE_NOT_FOUND", "The file is gone.")


def _segment(folder: str, listing: Listing) -> LogSegment | None:
    try:
        return choose_segment(folder, listing)
    except ReportDamage:
        raise
    except FreezeframeError:
        return None


def _commit(storage: Storage, folder: str, file: LogFile) -> None:
    parse_file_actions([read_content(file.name, storage.read(f"{folder}/{file.name}"))], ())


def _rows(single: rows.SnapshotPart) -> None:
    for _ in rows.read_batches(single, verify=True):
        pass


def _bounds(single: rows.SnapshotPart, path: str) -> Iterator[Finding]:
    """Yield a finding where bounds in the footer pass over NaN, as those of PyArrow and of Rust do."""
    name = file_name(single.storage, single.table, path)
    size = single.files["size"][0].as_py()
    columns = columns_beyond_bounds(open_parquet(single.storage, name, size))
    if columns:
        problem = (
            f"Bounds in its footer pass over NaN in {', '.join(columns)}: by them Spark leaves rows out. "
            "An update that rewrites the file cures it."
        )
        yield Finding(path, "BOUNDS_WITHOUT_NAN", problem)


def _hint(storage: Storage, folder: str, versions: set[int]) -> list[Finding]:
    name = f"{folder}/{HINT_NAME}"
    try:
        hint, garbled = read_hint(storage, folder, sleep=lambda _: None)
    except UnsafePath as error:
        return [Finding(name, error.error_code, str(error))]
    if garbled:
        return [Finding(name, "HINT_GARBLED", "The hint is not a hint or its checksum does not match.")]
    if hint is not None and hint.version not in versions:
        problem = (
            f"The hint names a checkpoint of version {hint.version}, which is not there or not complete."
        )
        return [Finding(name, "HINT_STALE", problem)]
    return []


def _checksum(name: str, checksum: Checksum | None, snapshot: Snapshot) -> list[Finding]:
    if checksum is None:
        return [Finding(name, "CHECKSUM_GARBLED", "The checksum cannot be read.")]
    compared = (
        ("numFiles", checksum.num_files, snapshot.count),
        ("tableSizeBytes", checksum.table_size_bytes, snapshot.size),
        ("protocol", checksum.protocol, snapshot.state.heads.protocol),
        ("metadata", checksum.metadata, snapshot.state.heads.metadata),
    )
    wrong = [label for label, said, found in compared if said is not None and said != found]
    if not wrong:
        return []
    problem = f"The checksum says otherwise than the log about {', '.join(wrong)}."
    return [Finding(name, "DELTA_TXN_LOG_FAILED_INTEGRITY", problem)]


def _state(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding where the state that reads take in the log's place differs from it."""
    storage, folder = snapshot.storage, snapshot.segment.folder
    # Who has followed the log since before the commit does not know its state.
    states = sort_listing(list_log(storage, folder, snapshot.version)).states
    beside = [file for file in states if file.version == snapshot.version]
    if not beside:
        return
    segment = replace(snapshot.segment, state=beside[0])
    try:
        _, stored = StateReader(storage, folder).heads(segment, with_state=True)
    except (CorruptLog, FileNotFoundError):
        return  # files of the log went meanwhile
    if stored is None:
        return  # reads pass over it, too
    name = segment.path(beside[0])
    said, found = _told(copy(snapshot).with_state(stored)), _told(snapshot)
    wrong = [label for label in found if said[label] != found[label]]
    if wrong:
        problem = f"The state says otherwise than the log about {', '.join(wrong)}. Delete it: it is derived."
        yield Finding(name, "STATE_DIFFERS", problem)


def _told(snapshot: Snapshot) -> dict[str, object]:
    """Return what a state tells; without statistics where checkpoints have them in another form."""
    heads = snapshot.state.heads
    has_texts = snapshot.metadata.configuration.get("delta.checkpoint.writeStatsAsJson", "true") == "true"
    files = snapshot.files if has_texts else snapshot.file_list
    return {
        "protocol": heads.protocol,
        "metadata": heads.metadata,
        "transactions": snapshot.transactions,
        "domains": snapshot.domains,
        "files": sorted(map(str, files.to_pylist())),
    }
