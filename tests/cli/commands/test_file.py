"""``freezeframe file``: a tenant's files on the command line."""

import base64
import io
import json
import os
import types

import pyarrow as pa
import pytest

from freezeframe.cli.main import main
from freezeframe.script import open_tenant
from freezeframe.store.model.update_options import system_user

GROUP = "file"


@pytest.fixture
def snapshots(tmp_path):
    """A tenant's directory with two files, one of them in a folder and in two versions."""
    tenant = open_tenant(tmp_path / "acme")
    tenant.files.write("config.json", b'{"a": 1}')
    tenant.files.write("maps/a.bin", b"\xff\x00")
    tenant.files.write("maps/a.bin", b"\xff\x01")
    return str(tmp_path / "acme")


def test_a_folder_without_files_says_how_to_see_more(capsys, snapshots):
    """The list is a sentence."""
    assert main(["file", "list", "nope", "--dir", snapshots]) == 0
    assert "There are no files here" in capsys.readouterr().out


def test_read_gives_the_bytes(capfdbinary, snapshots, tmp_path):
    """To standard output as they are, to a new file of mode 0600, or in JSON; never over another file."""
    place = ["--dir", snapshots]
    assert main(["file", "read", "maps/a.bin", *place]) == 0
    assert capfdbinary.readouterr().out == b"\xff\x01"
    assert main(["file", "read", "maps/a.bin", "--version", "1", *place]) == 0
    assert capfdbinary.readouterr().out == b"\xff\x00"

    target = tmp_path / "copy"
    assert main(["file", "read", "maps/a.bin", "--to", str(target), *place]) == 0
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"\xff\x01", 0o600)
    target.write_bytes(b"mine")
    assert main(["file", "read", "maps/a.bin", "--to", str(target), *place]) == 2
    assert target.read_bytes() == b"mine"
    assert main(["file", "read", "nope", "--to", str(tmp_path / "new"), *place]) == 4
    assert main(["file", "read", "config.json", "--to", str(tmp_path / "no" / "new"), *place]) == 1
    assert not (tmp_path / "new").exists()


def test_read_as_json_is_text_or_base64(told):
    """What is UTF-8 is told as text, all else in base64."""
    assert told("read", "config.json") == {"path": "config.json", "encoding": "utf-8", "content": '{"a": 1}'}
    found = told("read", "maps/a.bin")
    assert (found["encoding"], base64.b64decode(found["content"])) == ("base64", b"\xff\x01")


def test_write_takes_a_file_or_standard_input(told, snapshots, tmp_path, monkeypatch):
    """Each is one version of the tenant, with who and why."""
    source = tmp_path / "source"
    source.write_bytes(b"from a file")
    entry = told("write", "b.txt", str(source), "--who", "ops", "--message", "Set up")
    assert tuple(entry[name] for name in ("path", "size", "version", "sealed")) == (
        "b.txt",
        11,
        3,
        False,
    )

    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"from a pipe")))
    told("write", "b.txt")
    tenant = open_tenant(snapshots)
    assert tenant.files.read("b.txt") == b"from a pipe"
    assert [(system_user(), "write b.txt"), ("ops", "Set up")] == [
        (entry.who, entry.message) for entry in tenant.history(path="b.txt")
    ]
    assert main(["file", "write", "b.txt", str(tmp_path / "none"), "--dir", snapshots]) == 4
    assert main(["file", "write", "../b.txt", str(source), "--dir", snapshots]) == 2


def test_a_sealed_file_is_not_in_the_clear(capsys, told, snapshots, tmp_path, monkeypatch):
    """With a master key it is read as any other; without one it can be neither written nor read."""
    source, key = tmp_path / "source", tmp_path / "key"
    source.write_bytes(b"canary-in-the-clear")
    assert main(["file", "write", "secret", str(source), "--sealed", "--dir", snapshots]) == 2
    capsys.readouterr()
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(key))
    (tmp_path / "acme").rename(tmp_path / "other")  # a tenant is opened once for a process, with its settings
    place = ["--dir", str(tmp_path / "other"), "--json"]

    assert main(["file", "write", "secret", str(source), "--sealed", *place]) == 0
    assert json.loads(capsys.readouterr().out)["sealed"] is True
    assert main(["file", "read", "secret", *place]) == 0
    assert json.loads(capsys.readouterr().out)["content"] == "canary-in-the-clear"
    stored = [file for file in (tmp_path / "other").rglob("*") if file.is_file()]
    assert [file.name for file in stored if b"canary-in-the-clear" in file.read_bytes()] == []


def test_a_file_does_not_take_a_streams_name(told, snapshots, capsys):
    """It would become the stream's content: write and move say so, end with 2 and write nothing."""
    tenant = open_tenant(snapshots)
    tenant.stream("S").update(pa.table({"Id": ["7"]}), "Id")
    version = tenant.version
    for name in ("S.snapshot.csv", "S.snapshot.parquet"):
        for arguments in (["write", name, __file__], ["move", "config.json", name]):
            assert main(["file", *arguments, "--dir", snapshots]) == 2
            assert "the content of the stream S" in capsys.readouterr().err
    assert version == open_tenant(snapshots).version


def test_patch_changes_members(capsys, told, snapshots, monkeypatch):
    """Merged, removed by null, from an argument or from standard input; what is not JSON is refused."""
    told("patch", "config.json", '{"b": {"c": 2}, "a": null}', "--message", "why")
    monkeypatch.setattr("sys.stdin", io.StringIO('{"b": {"d": 3}}'))
    entry = told("patch", "config.json")
    assert told("patch", "new.json", '{"x": 1}')["path"] == "new.json"

    assert entry["path"] == "config.json"
    assert json.loads(told("read", "config.json")["content"]) == {"b": {"c": 2, "d": 3}}
    assert told("history", "config.json")["revisions"][1]["message"] == "why"
    capsys.readouterr()
    assert main(["file", "patch", "config.json", "{", "--dir", snapshots]) == 2
    assert main(["file", "patch", "maps/a.bin", "{}", "--dir", snapshots]) == 2
    assert "is not JSON" in capsys.readouterr().err
