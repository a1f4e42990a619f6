"""Importing several files at once, exporting and cleaning a tenant, by the shortest names."""

import json

import pytest

import freezeframe
from freezeframe.cli.main import main


@pytest.fixture
def place(tmp_path):
    """A store with the empty tenant acme, as options."""
    freezeframe.open(tmp_path / "store").tenant("acme", create=True)
    return ["--root", str(tmp_path / "store"), "--tenant", "acme"]


@pytest.fixture
def sync(tmp_path):
    """Three files of two streams, as a sync names them."""
    folder = tmp_path / "sync"
    folder.mkdir()
    (folder / "Account-20261001T060000.csv").write_text("Id,Name\n007,Ada\n")
    (folder / "Lead-20261001T060000.csv").write_text("Id,Name\n1,Lin\n2,Mo\n")
    (folder / "notes.txt").write_text("Id\n1\n")
    return folder


def test_several_files_are_one_version(place, sync, capsys, tmp_path):
    """Each file goes to the stream of its name; all become visible together, with one receipt each."""
    files = [str(file) for file in sorted(sync.glob("*.csv"))]
    assert 0 == main(["import", *files, "--key", "Id", "--dry-run", "--json", *place])
    looked = json.loads(capsys.readouterr().out)
    assert [("Account", 1, False), ("Lead", 2, False)] == [
        (one["stream"], one["inserted"], one["committed"]) for one in looked
    ]
    assert 0 == main(["import", *files, "--key", "Id", "--json", *place])
    told = json.loads(capsys.readouterr().out)
    assert [("Account", 1, True), ("Lead", 2, True)] == [
        (one["stream"], one["inserted"], one["committed"]) for one in told
    ]
    tenant = freezeframe.open(tmp_path / "store").tenant("acme")
    assert 1 == len(list(tenant.history()))
    assert ["007"] == tenant.stream("Account").read()["Id"].tolist()


def test_one_wrong_file_imports_none(place, sync, capsys, tmp_path):
    """A file of another kind, one that is not there, and an archive are told; nothing is written."""
    first = str(sync / "Account-20261001T060000.csv")
    for other, code in ((sync / "notes.txt", 2), (sync / "no.csv", 4), (sync / "acme.tar.gz", 2)):
        if other.name.endswith(".gz"):
            other.write_bytes(b"")
        assert code == main(["import", first, str(other), "--key", "Id", *place])
    assert "tenant import" in capsys.readouterr().err
    assert () == freezeframe.open(tmp_path / "store").tenant("acme").streams()
    assert 2 == main(["import", first, first, "--stream", "A", *place])


def test_what_was_exported_comes_back_with_its_types(place, sync, capsys, tmp_path):
    """The schema file beside an exported file is used, so types and key need not be told again."""
    given = ["import", str(sync / "Lead-20261001T060000.csv"), "--stream", "Person", "--key", "Id"]
    assert 0 == main([*given, *place])
    assert 0 == main(["stream", "export", "Person", "--to", str(tmp_path), *place])
    assert 0 == main(["tenant", "create", "copy", "--root", place[1]])
    assert 0 == main(["import", str(tmp_path / "Person.snapshot.csv"), *place[:3], "copy"])
    copy = freezeframe.open(tmp_path / "store").tenant("copy").stream("Person")
    assert ("Id",) == copy.key()
    assert 2 == copy.row_count()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_export_writes_import_takes_in(place, sync, capsys, tmp_path, kind):
    """All streams of a version go to a folder, and the folder comes back whole; never over a file."""
    out = ["export", str(tmp_path / "out"), "--kind", kind, "--version", "0", *place]
    assert 0 == main(["import", str(sync), "--key", "Id", *place])
    assert 0 == main(["tenant", "create", "copy", "--root", place[1]])
    capsys.readouterr()

    assert 0 == main([*out, "--json"])
    told = json.loads(capsys.readouterr().out)
    names = ["Account", "Lead"]
    assert [(name, str(tmp_path / f"out/{name}.snapshot.{kind}")) for name in names] == [
        (one["stream"], one["file"]) for one in told
    ]
    assert 2 == main(out)
    assert 4 == main(["export", str(tmp_path / "other"), "--stream", "Account", "--stream", "No", *place])
    assert not (tmp_path / "other").exists()
    (tmp_path / "file").touch()
    assert 2 == main(["export", str(tmp_path / "file"), *place])
    assert 1 == main(["export", str(tmp_path / "file" / "below"), *place])
    assert ".part" not in capsys.readouterr().err

    assert 0 == main(["import", str(tmp_path / "out"), "--key", "Id", *place[:3], "copy"])
    store = freezeframe.open(tmp_path / "store")
    copies, before = store.tenant("copy"), store.tenant("acme")
    twice = ["export", str(tmp_path / "twice"), "--stream", "Lead", "--stream", "Lead", *place]
    assert 0 == main(twice)
    assert [before.stream(one).read(as_="arrow") for one in names] == [
        copies.stream(one).read(as_="arrow") for one in names
    ]


def test_a_name_with_a_dash_comes_back(place, sync, tmp_path):
    """A file that export wrote is of the stream of its whole name; a folder without rows is told."""
    file = str(sync / "Lead-20261001T060000.csv")
    assert 0 == main(["import", file, "--stream", "new-lead", "--key", "Id", *place])
    assert 0 == main(["export", str(tmp_path / "out"), *place])
    assert 0 == main(["import", str(tmp_path / "out"), *place])
    assert ("new-lead",) == freezeframe.open(tmp_path / "store").tenant("acme").streams()
    (tmp_path / "empty").mkdir()
    assert 4 == main(["import", str(tmp_path / "empty"), *place])


def test_the_first_mistakes_are_told_in_words_of_the_command_line(place, sync, tmp_path, capsys, monkeypatch):
    """No tenant at all, and a new stream without a key."""
    monkeypatch.chdir(tmp_path)
    file = str(sync / "Lead-20261001T060000.csv")
    assert 4 == main(["import", file, "--key", "Id"])
    assert "--tenant (freezeframe tenant create" in capsys.readouterr().err
    assert 2 == main(["import", file, *place])
    assert "--key Id" in capsys.readouterr().err


def test_the_archive_of_a_tenant_is_written_under_its_former_name(place, capsys, tmp_path):
    """With a word of warning; ``gc`` does what ``tenant gc`` does."""
    archive = tmp_path / "acme.tar.gz"
    assert 0 == main(["export", str(archive), *place, "--json"])
    printed = capsys.readouterr()
    assert str(archive) == json.loads(printed.out)["archive"]
    assert "freezeframe tenant export" in json.loads(printed.err)["warning"]["problem"]
    assert 0 == main(["gc", "--yes", "--json", *place])
    assert 0 == json.loads(capsys.readouterr().out)["files"]


def test_all_tenants_are_cleaned_and_a_damaged_one_stops_none(place, capsys, tmp_path):
    """A row for each tenant; the exit code tells that one could not be read."""
    root = place[:2]
    for name in ("b", "c"):
        assert 0 == main(["tenant", "create", name, *root])
    freezeframe.open(root[1]).tenant("b").files.write("f", b"1")
    entries = (file for file in (tmp_path / "store").rglob("*.json") if "/log/" in str(file))
    next(file for file in entries if b'"f"' in file.read_bytes()).write_bytes(b"{")
    capsys.readouterr()

    assert 2 == main(["gc", "--all", "--yes", *place])
    assert 2 == main(["gc", "--all", *root])
    capsys.readouterr()
    assert 1 == main(["gc", "--all", "--yes", "--json", *root])
    told = json.loads(capsys.readouterr().out)
    assert [("acme", True), ("b", False), ("c", True)] == [(one["tenant"], not one["error"]) for one in told]
