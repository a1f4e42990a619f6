"""Faults to plant in the store, the log and the engine, each with the tests that should find it.

A fault is one text of one module in the place of another. The list is read by ``python -m tests.mutation``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """``old`` is once in ``src/freezeframe/<module>``; ``tests`` are below ``tests/``."""

    module: str
    old: str
    new: str
    tests: str


FAULTS = [
    # The storage of a disk, and commits
    Fault(
        "storage/local.py",
        "        if synced:\n            os.fsync(file)",
        "        pass",
        "storage/test_local.py",
    ),
    Fault(
        "storage/local.py",
        "os.link(temporary, own",
        "os.rename(temporary, own",
        "contract/test_storage.py",
    ),
    Fault(
        "storage/local.py",
        "os.unlink(own, dir_fd=handle)\n                if durable:\n                    os.fsync(handle)",
        "os.unlink(own, dir_fd=handle)",
        "storage/test_local.py",
    ),
    Fault(
        "storage/local.py",
        "if name >= start]\n    else",
        "if name > start]\n    else",
        "contract/test_storage.py",
    ),
    Fault("log/commits/commit.py", "if winner == content", "if winner != content", "log/commits"),
    Fault("log/commits/commit.py", "if found != content:", "if False:", "log/commits storage/test_probe.py"),
    Fault(
        "log/commits/commit.py",
        "        sync_file(path)\n        sync_folder(path.parent)",
        "        sync_folder(path.parent)",
        "log/commits",
    ),
    Fault("log/commits/commit.py", "_TRIES_MAX = 3", "_TRIES_MAX = 1", "log/commits"),
    Fault("log/commits/commit.py", "version < 0 or not whole", "version < 0", "log/commits"),
    # Reading of a log
    Fault("log/segments/segment.py", "if file.version > base)", "if file.version >= base)", "log/segments"),
    Fault("log/segments/segment.py", "if after != before + 1:", "if after < before + 1:", "log/segments"),
    Fault("log/segments/segment.py", "and file.version <= version", "", "log/segments"),
    Fault(
        "log/segments/segment.py",
        "if any(by_version.get(version, file) != file for version, file in known.items()):",
        "if False:",
        "log/segments",
    ),
    Fault(
        "log/replay/replay.py",
        "& (to_ints(deleted) > oldest)",
        "& (to_ints(deleted) >= oldest)",
        "log/replay",
    ),
    Fault("log/replay/replay.py", 'np.argsort(order, kind="stable")', "np.arange(len(order))", "log/replay"),
    Fault(
        "log/replay/replay.py",
        "before.tombstone_marks[~back] if back_count else before.tombstone_marks",
        "before.tombstone_marks",
        "log/replay",
    ),
    Fault("log/replay/replay.py", "- base_size - recent_size", "- base_size", "log/replay"),
    Fault(
        "log/primitives/canonical_paths.py", "_resolved(unquote(rest))", "_resolved(rest)", "log/primitives"
    ),
    Fault(
        "log/statistics/data_skipping.py",
        "high.value + MILLISECOND_US",
        "high.value",
        "log/statistics log/scan",
    ),
    Fault(
        "log/statistics/data_skipping.py",
        "kept = [was or now for",
        "kept = [now for",
        "log/statistics log/scan",
    ),
    Fault(
        "log/scan/deletion_vectors.py",
        "if len(rows) != vector.cardinality:",
        "if False:",
        "log/scan log/test_fuzz.py",
    ),
    Fault(
        "log/scan/deletion_vectors.py",
        'if zlib.crc32(bitmap) != struct.unpack(">I", block[4 + size : 8 + size])[0]:',
        "if False:",
        "log/scan",
    ),
    Fault(
        "log/write/upkeep.py",
        "present.version > hint.version",
        "present.version < hint.version",
        "log/write",
    ),
    Fault(
        "log/write/upkeep.py",
        "at = max(0, begin - files.num_rows)",
        "at = max(0, begin - files.num_rows + 1)",
        "log/write log/checkpoints",
    ),
    Fault(
        "log/write/transaction.py", "self.snapshot.timestamp + 1)", "self.snapshot.timestamp)", "log/write"
    ),
    Fault("log/table/cleanup.py", "return time < cutoff", "return time > cutoff", "log/table"),
    # The tenant log
    Fault("store/tenant_log/entry.py", "link.previous != self.head", "False", "store/tenant_log"),
    Fault("store/tenant_log/entry.py", 'if not content.endswith(b"\\n"):', "if False:", "store/tenant_log"),
    Fault(
        "store/tenant_log/roll_forward.py",
        "if hashlib.sha256(content).hexdigest() != change.sha256:",
        "if False:",
        "store/tenant_log",
    ),
    Fault(
        "store/tenant_log/roll_forward.py",
        "if is_new or not is_rolled_forward(storage, change):",
        "if is_new:",
        "store/tenant_log store/test_crashes.py",
    ),
    Fault(
        "store/tenant_log/state.py",
        "return max(now_ms, self.timestamp_ms + 1)",
        "return now_ms",
        "store/tenant_log store/test_tenant.py",
    ),
    Fault(
        "store/tenant_log/state.py",
        "NO_VERSION)) + 1\n        if change.table_version != expected",
        "NO_VERSION)) + 1\n        if change.table_version < expected",
        "store/tenant_log",
    ),
    Fault(
        "store/tenant_log/state.py",
        "self.floor <= version <= self.version or version in",
        "self.floor < version <= self.version or version in",
        "store/tenant_log store/maintenance/test_garbage.py",
    ),
    # Garbage, retention, updates
    Fault(
        "store/maintenance/garbage.py",
        'yield str(file_name(snapshot.storage, snapshot.table, file["path"]))',
        "yield f\"{snapshot.table}/{file['path']}\"",
        "store/maintenance/test_path_spellings.py",
    ),
    Fault("store/maintenance/garbage.py", "if since <= oldest}", "}", "store/maintenance/test_garbage.py"),
    Fault(
        "store/maintenance/garbage.py",
        " and not _is_staged_by(file.name, alive)",
        "",
        "store/maintenance/test_garbage.py",
    ),
    Fault(
        "store/maintenance/garbage.py",
        "for version in sorted({tag for tag in state.tags.values() if tag < floor}):",
        "for version in ():",
        "store/maintenance/test_garbage.py",
    ),
    Fault(
        "store/versions/retention.py",
        "return max(state.floor, wanted)",
        "return wanted",
        "store/maintenance/test_garbage.py",
    ),
    Fault(
        "store/updates/plan.py",
        "lost / live <= update",
        "lost / live < update",
        "store/test_full_extracts.py",
    ),
    Fault("store/updates/plan.py", "if gone > file.rows", "if touched > file.rows", "store/updates"),
    Fault(
        "store/keys/key_scan.py",
        "bounds.high.take(places), pc.less_equal)",
        "bounds.high.take(places), pc.less)",
        "store/keys",
    ),
    # The engine
    Fault("engine/frames/batch.py", "last if arrival is None else arrival[last]", "last", "engine/frames"),
    Fault(
        "engine/frames/batch.py",
        "unsigned = pc.add(column, pa.scalar(0.0, column.type))",
        "unsigned = column",
        "engine/frames",
    ),
    Fault(
        "engine/frames/untyped.py",
        "return pa.list_(filled_type(whole.flatten()))",
        "return kind",
        "engine/frames store/test_untyped_data.py",
    ),
    Fault(
        "engine/plans/merge.py",
        "F.coalesce(F.expr(where), F.lit(False))",
        "F.coalesce(F.expr(where), F.lit(True))",
        "engine/plans/test_window.py",
    ),
    Fault(
        "engine/plans/merge.py",
        '.when(~F.col("within"), _CLASHING)',
        "",
        "engine/plans/test_merge.py engine/plans/test_window.py",
    ),
    Fault(
        "engine/plans/merge.py",
        "if sides.leaves_deleted else [_DELETED, _CLASHING]",
        "if sides.leaves_deleted else [_CLASHING]",
        "engine/plans/test_merge.py",
    ),
    Fault(
        "engine/plans/merge.py",
        'is_new = F.col("stored").isNull() | changed',
        'is_new = F.col("stored").isNull()',
        "engine/plans/test_validity.py",
    ),
]
