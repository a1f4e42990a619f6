"""``freezeframe file``: a tenant's files on the command line."""

import base64
import io
import json
import os
import types

import pytest

from freezeframe.cli.main import main
from freezeframe.script import open_tenant
from freezeframe.store.model.system_user import system_user

GROUP = "file"


@pytest.fixture
def snapshots(tmp_path):
    """A tenant's directory with two files, one of them in a folder and in two versions."""
    tenant = open_tenant(tmp_path / "acme")
    tenant.files.write("config.json", b'{"a": 1}')
    tenant.files.write("maps/a.bin", b"\xff\x00")
    tenant.files.write("maps/a.bin", b"\xff\x01")
    return str(tmp_path / "acme")


def test_list_goes_by_folder(capsys, told, snapshots):
    """A folder's files, with --recursive those below it, at a version those of then."""
    assert ["config.json"] == [entry["path"] for entry in told("list")]
    assert ["config.json", "maps/a.bin"] == [entry["path"] for entry in told("list", "--recursive")]
    assert ["maps/a.bin"] == [entry["path"] for entry in told("list", "maps")]
    assert [] == told("list", "maps", "--version", "0")
    assert 0 == main(["file", "list", "nope", "--dir", snapshots])
    assert "holds no files" in capsys.readouterr().out


def test_read_gives_the_bytes(capfdbinary, snapshots, tmp_path):
    """To standard output as they are, to a new file of mode 0600, or in JSON; never over another file."""
    place = ["--dir", snapshots]
    assert 0 == main(["file", "read", "maps/a.bin", *place])
    assert b"\xff\x01" == capfdbinary.readouterr().out
    assert 0 == main(["file", "read", "maps/a.bin", "--version", "1", *place])
    assert b"\xff\x00" == capfdbinary.readouterr().out

    target = tmp_path / "copy"
    assert 0 == main(["file", "read", "maps/a.bin", "--to", str(target), *place])
    assert (b"\xff\x01", 0o600) == (target.read_bytes(), target.stat().st_mode & 0o777)
    target.write_bytes(b"mine")
    assert 2 == main(["file", "read", "maps/a.bin", "--to", str(target), *place])
    assert b"mine" == target.read_bytes()
    assert 4 == main(["file", "read", "nope", "--to", str(tmp_path / "new"), *place])
    assert 1 == main(["file", "read", "config.json", "--to", str(tmp_path / "no" / "new"), *place])
    assert not (tmp_path / "new").exists()


def test_read_as_json_is_text_or_base64(told):
    """What is UTF-8 is told as text, all else in base64."""
    assert {"path": "config.json", "encoding": "utf-8", "content": '{"a": 1}'} == told("read", "config.json")
    found = told("read", "maps/a.bin")
    assert ("base64", b"\xff\x01") == (found["encoding"], base64.b64decode(found["content"]))


def test_write_takes_a_file_or_standard_input(told, snapshots, tmp_path, monkeypatch):
    """Each is one version of the tenant, with who and why."""
    source = tmp_path / "source"
    source.write_bytes(b"from a file")
    entry = told("write", "b.txt", str(source), "--who", "ops", "--message", "Set up")
    assert ("b.txt", 11, 3, False) == tuple(
        entry[name] for name in ("path", "size", "tenant_version", "sealed")
    )

    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"from a pipe")))
    told("write", "b.txt")
    tenant = open_tenant(snapshots)
    assert b"from a pipe" == tenant.files.read("b.txt")
    assert [(system_user(), "write b.txt"), ("ops", "Set up")] == [
        (entry.who, entry.message) for entry in tenant.history(path="b.txt")
    ]
    assert 4 == main(["file", "write", "b.txt", str(tmp_path / "none"), "--dir", snapshots])
    assert 2 == main(["file", "write", "../b.txt", str(source), "--dir", snapshots])


def test_a_name_is_one_however_its_letters_are_written(told):
    """A shell may hand a letter and its accent apart; what is stored, shown and found is the one name."""
    apart, joined = "u\u0308ber.txt", "\u00fcber.txt"
    assert joined == told("write", apart, __file__)["path"]
    assert 1 == len(told("history", apart)) == len(told("history", joined))


def test_a_sealed_file_is_not_in_the_clear(capsys, told, snapshots, tmp_path, monkeypatch):
    """With a master key it is read as any other; without one it can be neither written nor read."""
    source, key = tmp_path / "source", tmp_path / "key"
    source.write_bytes(b"canary-in-the-clear")
    assert 2 == main(["file", "write", "secret", str(source), "--sealed", "--dir", snapshots])
    capsys.readouterr()
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(key))
    (tmp_path / "acme").rename(tmp_path / "other")  # a tenant is opened once for a process, with its settings
    place = ["--dir", str(tmp_path / "other"), "--json"]

    assert 0 == main(["file", "write", "secret", str(source), "--sealed", *place])
    assert json.loads(capsys.readouterr().out)["sealed"] is True
    assert 0 == main(["file", "read", "secret", *place])
    assert "canary-in-the-clear" == json.loads(capsys.readouterr().out)["content"]
    stored = [file for file in (tmp_path / "other").rglob("*") if file.is_file()]
    assert [] == [file.name for file in stored if b"canary-in-the-clear" in file.read_bytes()]


def test_delete_and_move_keep_the_past(told, snapshots):
    """The file's history has every version and the deletion; older bytes can still be read."""
    told("move", "maps/a.bin", "maps/b.bin")
    told("delete", "config.json", "--who", "ops")

    assert ["maps/b.bin"] == [entry["path"] for entry in told("list", "--recursive")]
    assert [(4, True), (0, False)] == [
        (one["tenant_version"], one["deleted"]) for one in told("history", "config.json")
    ]
    assert '{"a": 1}' == told("read", "config.json", "--version", "3")["content"]
    for arguments in (["delete", "config.json"], ["move", "config.json", "x"], ["history", "nope"]):
        assert 4 == main(["file", *arguments, "--dir", snapshots])


def test_patch_changes_members(capsys, told, snapshots, monkeypatch):
    """Merged, removed by null, from an argument or from standard input; what is not JSON is refused."""
    told("patch", "config.json", '{"b": {"c": 2}, "a": null}', "--message", "why")
    monkeypatch.setattr("sys.stdin", io.StringIO('{"b": {"d": 3}}'))
    entry = told("patch", "config.json")
    assert "new.json" == told("patch", "new.json", '{"x": 1}')["path"]

    assert "config.json" == entry["path"]
    assert {"b": {"c": 2, "d": 3}} == json.loads(told("read", "config.json")["content"])
    assert "why" == told("history", "config.json")[1]["message"]
    capsys.readouterr()
    assert 2 == main(["file", "patch", "config.json", "{", "--dir", snapshots])
    assert 2 == main(["file", "patch", "maps/a.bin", "{}", "--dir", snapshots])
    assert "is not JSON" in capsys.readouterr().err
