"""Adopted tables whose log spells its files in any way: none is lost by reading, updates and gc."""

import io
import json
import random
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import Add, CommitInfo, Metadata, Protocol, Remove, to_json_line
from freezeframe.log.segments.commit import Committed, write_commit
from freezeframe.log.table.upkeep import write_checkpoint

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("Id", "long"), ("v", "string"))
    ],
}
FOLDERS = ("", "p=1", "a b", "é", "e\u0301", "x:y", "50%", "a+b", "..a", "c%20d", "_h", ".hidden")
ENDS = ("", " ", "#1", "?q", "%2B", "+", "😀", "[1]", "'", "~", "@", "&=", ";,", "%", "\u00a0", "A:b", "..")
ROUNDS = [pytest.param(4, id="short"), pytest.param(1_000, id="long", marks=pytest.mark.nightly)]


class Spelling:
    """Ways to write the path of a file of a table: as a URI, from the table or from the root of the disk."""

    def __init__(self, seed, root=None):
        self.random = random.Random(seed)
        self._root = root
        self._is_absolute = {}

    def name(self, number):
        """A new file's name, relative to the table."""
        folder = self.random.choice(FOLDERS)
        return f"{folder}/{number}{self.random.choice(ENDS)}.parquet".lstrip("/")

    def of(self, name):
        """One of the spellings of a file; of all of them the first decides whether they are absolute.

        Replay takes a relative path and an absolute one for two files, as Spark does.
        """
        segments = [self._segment(item) for item in name.split("/")]
        asked = self._root is not None and self.random.random() < 0.3
        is_absolute = self._is_absolute.setdefault(name, asked)
        if is_absolute:
            segments = [*(self._segment(item) for item in self._root.strip("/").split("/")), *segments]
        path = self.random.choice(["/", "/", "/", "//", "/./", "/zz/../"]).join(segments)
        if is_absolute:
            return self.random.choice(["/", "file:/", "file:///"]) + path
        if ":" in path.split("/", 1)[0]:
            return f"./{path}"  # else its first segment would be a scheme
        return self.random.choice(["", "", "./", "zz/../", ".//"]) + path

    def _segment(self, text):
        """The text with the escapes that it needs, and a few more."""
        return "".join(
            f"%{ord(item):02x}"
            if item.isascii() and self.random.random() < 0.1
            else quote(item, safe=self._safe())
            for item in text
        )

    def _safe(self):
        # What java.net.URI leaves alone in a path may be written with or without an escape.
        return self.random.choice(["", "!~'()*,;:$&+=@ é😀"])


class Table:
    """A Delta table of anybody's, commit by commit, with a plain account of its rows."""

    def __init__(self, storage, folder, spelling):
        self.storage, self.folder, self.spelling = storage, folder, spelling
        self.files, self.gone = {}, set()
        self.version = -1
        self.commit(Protocol(1, 2), Metadata("id", json.dumps(SCHEMA)))

    def commit(self, *actions):
        self.version += 1
        info = CommitInfo({"timestamp": 1_000 + self.version, "operation": "WRITE"})
        lines = "".join(f"{to_json_line(action)}\n" for action in (info, *actions))
        done = write_commit(self.storage, self.folder, self.version, lines.encode())
        assert isinstance(done, Committed)

    def change(self, number):
        """Add a file of two rows; now and then remove one, by another spelling."""
        name = self.spelling.name(number)
        rows = {2 * number: name, 2 * number + 1: None}
        sink = io.BytesIO()
        pq.write_table(pa.table({"Id": list(rows), "v": pa.array(list(rows.values()), pa.string())}), sink)
        self.storage.put_if_absent(f"{self.folder}/{name}", sink.getvalue())
        actions = [Add(self.spelling.of(name), len(sink.getvalue()), stats='{"numRecords":2}')]
        if self.files and self.spelling.random.random() < 0.4:
            gone = self.spelling.random.choice(sorted(self.files))
            del self.files[gone]
            self.gone.add(gone)
            actions.append(Remove(self.spelling.of(gone), 1))
        self.files[name] = rows
        self.commit(*actions)

    @property
    def rows(self):
        return {key: value for rows in self.files.values() for key, value in rows.items()}


def rows_of(stream):
    table = stream.read(as_="arrow")
    return dict(zip(table["Id"].to_pylist(), table["v"].to_pylist(), strict=True))


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_no_spelling_loses_a_file(open_finding, request, kind, rounds):
    """Rows before and after adoption, updates and gc; what no version needs is gone, and nothing else is."""
    storage = request.getfixturevalue(kind)
    for number in range(rounds):
        spelling = Spelling(number, f"{storage.root}/A{number}.snapshot" if kind == "local" else None)
        table = Table(storage, f"A{number}.snapshot", spelling)
        for item in range(1, spelling.random.randrange(2, 9)):
            table.change(item)
            if spelling.random.random() < 0.2:
                write_checkpoint(DeltaLog(storage, table.folder).current_snapshot)
        tenant = open_finding(storage, gc_grace_seconds=0)
        tenant.adopt(f"A{number}", key="Id")
        stream, expected = tenant.stream(f"A{number}"), table.rows
        assert (number, expected) == (number, rows_of(stream))

        changed = {key: f"{key} anew" for key in [*expected, -1] if spelling.random.random() < 0.2}
        if changed:
            stream.update(pa.table({"Id": list(changed), "v": list(changed.values())}))
        tenant.set_retention(1)
        tenant.gc()
        expected |= changed
        assert (number, expected) == (number, rows_of(open_finding(storage).stream(f"A{number}")))
        kept = {status.name for status in storage.list_below(table.folder) if ".parquet" in status.name}
        assert not kept & {f"{table.folder}/{name}" for name in table.gone}, number
        assert tenant.verify().findings == ()
