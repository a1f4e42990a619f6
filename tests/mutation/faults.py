"""Faults to plant in the store, the log and the engine, each with the tests that should find it.

A fault is another text in the place of one of a module. The list is read by ``python -m tests.mutation``.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """``old`` is once in all of ``src/freezeframe/<package>``; ``tests`` are below ``tests/``."""

    package: str
    old: str
    new: str
    tests: str

    def modules(self, source: Path) -> list[Path]:
        """Return the modules that have the text, of which there should be one."""
        return [path for path in (source / self.package).rglob("*.py") if self.old in path.read_text()]


FAULTS = [
    # The storage of a disk, and commits
    Fault(
        "storage", "        if synced:\n            os.fsync(file)", "        pass", "storage/test_local.py"
    ),
    Fault("storage", "os.link(temporary, own", "os.rename(temporary, own", "contract/test_storage.py"),
    Fault(
        "storage",
        "os.unlink(own, dir_fd=handle)\n                if durable:\n                    os.fsync(handle)",
        "os.unlink(own, dir_fd=handle)",
        "storage/test_local.py",
    ),
    Fault("storage", "if name >= start]\n    else", "if name > start]\n    else", "contract/test_storage.py"),
    Fault("log", "if winner == content", "if winner != content", "log/segments/test_commit.py"),
    Fault("log", "if found != content:", "if False:", "log/segments/test_commit.py storage/test_probe.py"),
    Fault(
        "log",
        "        sync_file(path)\n        sync_folder(path.parent)",
        "        sync_folder(path.parent)",
        "log/segments/test_commit.py",
    ),
    Fault("log", "_TRIES_MAX = 3", "_TRIES_MAX = 1", "log/segments/test_commit.py"),
    Fault("log", "version < 0 or not whole", "version < 0", "log/segments/test_commit.py"),
    # Reading of a log
    Fault("log", "if file.version > base)", "if file.version >= base)", "log/segments"),
    Fault("log", "if after != before + 1:", "if after < before + 1:", "log/segments"),
    Fault("log", "and self.last_commit.version <= self.version", "", "log/segments"),
    Fault(
        "log",
        "if any(by_version.get(version, file) != file for version, file in known.items()):",
        "if False:",
        "log/segments",
    ),
    Fault(
        "log",
        "& (to_ints(deleted) > oldest)",
        "& (to_ints(deleted) >= oldest)",
        "log/segments/test_replay.py",
    ),
    Fault("log", 'np.argsort(order, kind="stable")', "np.arange(len(order))", "log/segments/test_replay.py"),
    Fault(
        "log",
        "before.tombstone_marks[~back] if back_count else before.tombstone_marks",
        "before.tombstone_marks",
        "log/segments/test_replay.py",
    ),
    Fault("log", "- base_size - recent_size", "- base_size", "log/segments/test_replay.py"),
    # The state beside a commit
    Fault("log", "if DIGEST_KEY not in kept or kept", "if kept", "store/tenant_log/test_kept_state.py"),
    Fault("log", "kept.get(_STATE_OF) != info.fields", "False", "store/tenant_log/test_kept_state.py"),
    Fault(
        "log",
        "if self.exists and self.state.files.lacks_tombstones:",
        "if False:",
        "store/tenant_log/test_kept_state.py",
    ),
    Fault(
        "log",
        "if commit is None or not commit.exists():",
        "if False:",
        "store/tenant_log/test_kept_state.py",
    ),
    Fault(
        "store",
        "if begin < state.erased or",
        "if begin <= state.erased or",
        "store/tenant_log/test_kept_state.py",
    ),
    Fault("log", "_resolved(unquote(rest))", "_resolved(rest)", "log/primitives"),
    Fault("log", "pc.add(most, MILLISECOND_US).cast(kind)", "most.cast(kind)", "log/scan"),
    Fault("log", "kept = [was or now for", "kept = [now for", "log/scan"),
    Fault("log", "if len(rows) != vector.cardinality:", "if False:", "log/scan log/test_fuzz.py"),
    Fault(
        "log",
        'if zlib.crc32(bitmap) != struct.unpack(">I", block[4 + size : 8 + size])[0]:',
        "if False:",
        "log/scan",
    ),
    Fault("log", "present.version > hint.version", "present.version < hint.version", "log/table"),
    Fault(
        "log",
        "at = max(0, begin - files.num_rows)",
        "at = max(0, begin - files.num_rows + 1)",
        "log/table log/segments",
    ),
    Fault("log", "self.snapshot.timestamp + 1)", "self.snapshot.timestamp)", "log/table"),
    Fault("log", "return time < cutoff", "return time > cutoff", "log/table"),
    # The tenant log
    Fault("store", "link.previous != self.head", "False", "store/tenant_log"),
    Fault("store", 'if not content.endswith(b"\\n"):', "if False:", "store/tenant_log"),
    Fault(
        "store", "if hashlib.sha256(content).hexdigest() != change.sha256:", "if False:", "store/tenant_log"
    ),
    Fault(
        "store",
        "if is_new or not is_rolled_forward(log, change):",
        "if is_new:",
        "store/tenant_log store/test_crashes.py",
    ),
    Fault(
        "store",
        "return max(now_ms, self.timestamp_ms + 1)",
        "return now_ms",
        "store/tenant_log store/test_tenant.py",
    ),
    Fault(
        "store",
        "NO_VERSION)) + 1\n        if change.table_version != expected",
        "NO_VERSION)) + 1\n        if change.table_version < expected",
        "store/tenant_log",
    ),
    Fault(
        "store",
        "self.floor <= version <= self.version or version in",
        "self.floor < version <= self.version or version in",
        "store/tenant_log store/maintenance/test_garbage.py",
    ),
    # Garbage, retention, updates
    Fault(
        "store",
        "yield str(file_name(table.storage, table.table, path))",
        'yield f"{table.table}/{path}"',
        "store/maintenance/test_path_spellings.py",
    ),
    Fault("store", "if since <= oldest}", "}", "store/maintenance/test_garbage.py"),
    Fault("store", " and not _is_staged_by(file.name, alive)", "", "store/maintenance/test_garbage.py"),
    Fault(
        "store",
        "for version in sorted({tag for tag in state.tags.values() if tag < floor}):",
        "for version in ():",
        "store/maintenance/test_garbage.py",
    ),
    Fault("store", "return max(state.floor, wanted)", "return wanted", "store/maintenance/test_garbage.py"),
    Fault("store", "lost / live <= update", "lost / live < update", "store/test_full_extracts.py"),
    Fault("store", "if gone > file.rows", "if touched > file.rows", "store/updates"),
    Fault(
        "store",
        "(in_order, high, pc.less_equal)",
        "(in_order, high, pc.less)",
        "store/table/test_keys.py",
    ),
    # The merge of stored files with a batch
    Fault("store", "is_gone &= inside", "pass", "store/updates/test_rule.py"),
    Fault(
        "store",
        "np.insert(order, changed + 1, count + np.arange(len(changed)))",
        "order",
        "store/updates/test_rule.py",
    ),
    Fault("store", "is_gone &= ~is_flagged", "pass", "store/updates/test_rule.py"),
    Fault("store", "or self.seen[numbers].any()", "", "store/updates/test_merge.py"),
    Fault("store", "place[now[at]] = begin + number", "place[now[at]] = number", "store/test_update_fuzz.py"),
    # The engine
    Fault("engine", "last if arrival is None else arrival[last]", "last", "engine/frames"),
    Fault(
        "engine",
        "unsigned = pc.add(column, pa.scalar(0.0, column.type))",
        "unsigned = column",
        "engine/frames",
    ),
    Fault(
        "engine",
        "return with_parts(array.type, inside)",
        "return array.type",
        "engine/frames store/test_untyped_data.py",
    ),
    Fault(
        "engine",
        "F.coalesce(F.expr(where), F.lit(False))",
        "F.coalesce(F.expr(where), F.lit(True))",
        "engine/plans/test_window.py",
    ),
]
