"""Links, pipes, sockets and folders where files are expected: nothing waits, follows them or breaks."""

import itertools
import os
import socket
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.examples import sampled

from freezeframe.errors import ConflictError, ReportDamage, UnreadableInput, VersionNotFound
from freezeframe.script import open_tenant
from freezeframe.script.reading import read_csv_folder, read_json_folder, read_parquet_folder

KINDS = ("link", "dangling link", "link to itself", "endless device", "pipe", "socket", "folder")
PLACES = {
    "a commit of a stream": "A.snapshot/_delta_log/00000000000000000000.json",
    "a stream's newest commit": "A.snapshot/_delta_log/00000000000000000001.json",
    "a hint": "A.snapshot/_delta_log/_last_checkpoint",
    "rows": "A.snapshot/*/*.parquet",
    "an entry": "_freezeframe/log/00000000000000000000.json",
    "the newest entry": "_freezeframe/log/00000000000000000002.json",
    "a file's bytes": "_freezeframe/blobs/*/*",
    "a plain copy": "f.json",
}
ROWS, BYTES = [{"Id": 1}, {"Id": 2}], b"{}"


def put(kind, path, monkeypatch):
    """Another kind of thing in the place of a file."""
    path.unlink(missing_ok=True)
    match kind:
        case "link":
            secret = path.parent / "SECRET"
            secret.write_text('{"Id": 7}\n')
            path.symlink_to(secret)
        case "dangling link":
            path.symlink_to(path.parent / "absent")
        case "link to itself":
            path.symlink_to(path.name)
        case "endless device":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "socket":  # by its own name, since a long path is none for a socket
            with monkeypatch.context() as patch, socket.socket(socket.AF_UNIX) as server:
                patch.chdir(path.parent)
                server.bind(path.name)
        case "folder":
            path.mkdir()


@pytest.mark.sampled
@pytest.mark.timeout(60)
@pytest.mark.parametrize(("kind", "place"), sampled(itertools.product(KINDS, PLACES), every=5))
def test_a_tenant_reads_what_it_wrote_or_reports_damage(tmp_path, monkeypatch, kind, place):
    """Rows and bytes as written, or a typed error; verify names what is wrong and looks at all the rest."""
    tenant = open_tenant(tmp_path)
    tenant.files.write("f.json", BYTES)
    for key in (1, 2):
        tenant.stream("A").update(pa.table({"Id": [key]}), key="Id")
    if place == "a hint":
        (tmp_path / PLACES[place]).write_bytes(b"")
    found = sorted(tmp_path.glob(PLACES[place]), key=lambda path: path.stat().st_mtime_ns)
    put(kind, found[-1], monkeypatch)

    # Nobody can tell a newest entry that is gone from one that was never written.
    allowed = (ROWS, ROWS[:1]) if place == "the newest entry" else (ROWS,)
    calls = {
        "rows": lambda tenant: tenant.stream("A").read(as_="arrow").to_pylist() in allowed,
        "bytes": lambda tenant: tenant.files.read("f.json") == BYTES,
        "update": lambda tenant: tenant.stream("A").update(pa.table({"Id": [3]})).inserted == 1,
        "write": lambda tenant: tenant.files.write("g.json", BYTES).size == len(BYTES),
        "gc": lambda tenant: tenant.gc().files >= 0,
    }
    findings = open_tenant(tmp_path).verify().findings
    assert (place in ("a plain copy", "a stream's newest commit")) == (findings == ()), findings
    for name, call in calls.items():
        with suppress(ReportDamage, ConflictError, VersionNotFound):
            assert call(open_tenant(tmp_path)), name


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
def test_input_folders_are_read_without_waiting(tmp_path, monkeypatch, kind):
    """A link of the caller's own is followed to a file; all else is passed over."""
    (tmp_path / "B-1.csv").write_text("Id\n1\n")
    (tmp_path / "B-1.jsonl").write_text('{"Id": 1}\n')
    pq.write_table(pa.table({"Id": [1]}), tmp_path / "B-1.parquet")
    for read, ending in (
        (read_csv_folder, "csv"),
        (read_json_folder, "jsonl"),
        (read_parquet_folder, "parquet"),
    ):
        put(kind, tmp_path / f"A-1.{ending}", monkeypatch)
        try:
            found = read(tmp_path, as_="arrow")
        except UnreadableInput:
            assert (kind, ending) == ("link", "parquet")
            continue
        assert [{"Id": 1}] == found["B"].to_pylist()
        assert ("A" in found) == (kind == "link"), ending
