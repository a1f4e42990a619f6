"""Folders move, and files and folders are deleted, over HTTP as one change."""

import pytest


@pytest.fixture
def tenant(api, acme):
    """The path of a tenant with two files, and a folder of two files and an empty folder."""
    for path in ("a.txt", "b.txt", "folder/c.txt", "folder/below/d.txt"):
        api.put(f"{acme}/files/{path}", content=path.encode()).raise_for_status()
    api.post(f"{acme}/folders", json={"path": "folder/empty"}).raise_for_status()
    return acme


def paths(api, tenant):
    """The paths of all files and folders."""
    page = api.get(f"{tenant}/files?recursive=true").json()
    return [item["path"] for item in page["files"]], page["folders"]


def move(api, tenant, path, target):
    return api.post(f"{tenant}/folder-moves", json={"path": path, "target": target})


def test_all_below_a_folder_moves_in_one_version(api, tenant):
    """Files keep their bytes, empty folders stay folders, the version before has the old paths."""
    before = api.get(f"{tenant}/overview").json()["version"]
    moved = move(api, tenant, "folder", "archive/2026")
    (entry,) = api.get(f"{tenant}/audit?action=folder.move").json()["entries"]

    assert moved.json() == {"path": "archive/2026", "files": 3}
    assert before + 1 == api.get(f"{tenant}/overview").json()["version"]
    files, folders = paths(api, tenant)
    assert files == ["a.txt", "archive/2026/below/d.txt", "archive/2026/c.txt", "b.txt"]
    assert "archive/2026/empty" in folders
    assert api.get(f"{tenant}/files/archive/2026/c.txt").content == b"folder/c.txt"
    assert api.get(f"{tenant}/files/folder/c.txt", params={"tenant_version": before}).status_code == 200
    assert (entry["subject"], entry["details"]["target"]) == ("folder", "archive/2026")


def test_a_folder_is_spelled_otherwise(api, tenant):
    """Capitals alone may change, though two such folders could not lie side by side."""
    assert move(api, tenant, "folder", "Folder").status_code == 200
    assert paths(api, tenant)[0] == ["Folder/below/d.txt", "Folder/c.txt", "a.txt", "b.txt"]


@pytest.mark.parametrize(
    ("path", "target", "status"),
    [
        ("nowhere", "else", 404),
        ("a.txt", "b", 404),
        ("folder", "folder", 422),
        ("folder", "folder/below/deeper", 422),
        ("folder/below", "folder/empty", 409),
        ("folder", "a.txt", 422),
        ("folder", "../else", 422),
    ],
)
def test_what_cannot_move_whole_stays_where_it_is(api, tenant, path, target, status):
    """No such folder, a place that is taken or inside of it, a path that cannot be: nothing moves."""
    before = paths(api, tenant)

    assert status == move(api, tenant, path, target).status_code
    assert before == paths(api, tenant)


def test_files_and_a_folder_go_in_one_version(api, tenant):
    """All below the folder goes with it; the version before still has them, and the audit names each."""
    before = api.get(f"{tenant}/overview").json()["version"]
    gone = api.post(f"{tenant}/file-deletions", json={"paths": ["a.txt"], "folders": ["folder"]}).json()
    entries = api.get(f"{tenant}/audit?action=file.delete").json()["entries"]

    assert before + 1 == gone["tenant_version"]
    assert {"a.txt", "folder/c.txt", "folder/below/d.txt"} <= set(gone["paths"])
    assert sorted(gone["paths"]) == sorted(entry["subject"] for entry in entries)
    assert paths(api, tenant)[0] == ["b.txt"]
    assert api.get(f"{tenant}/files/a.txt", params={"tenant_version": before}).content == b"a.txt"


@pytest.mark.parametrize(
    ("order", "status"),
    [
        ({"paths": ["a.txt", "nothing.txt"]}, 404),
        ({"paths": ["a.txt"], "folders": ["nowhere"]}, 404),
        ({"paths": ["../a.txt"]}, 422),
        ({}, 422),
    ],
)
def test_what_cannot_go_whole_stays_whole(api, tenant, order, status):
    """One name that is not there, or cannot be: nothing is deleted at all."""
    before = paths(api, tenant)

    assert status == api.post(f"{tenant}/file-deletions", json=order).status_code
    assert before == paths(api, tenant)
