"""A folder gets another path over HTTP as one change."""

import pytest


@pytest.fixture
def tenant(api, acme):
    """The path of a tenant with a file, and a folder of two files and an empty folder."""
    for path in ("a.txt", "folder/c.txt", "folder/below/d.txt"):
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
    assert files == ["a.txt", "archive/2026/below/d.txt", "archive/2026/c.txt"]
    assert "archive/2026/empty" in folders
    assert api.get(f"{tenant}/files/archive/2026/c.txt").content == b"folder/c.txt"
    assert api.get(f"{tenant}/files/folder/c.txt", params={"tenant_version": before}).status_code == 200
    assert (entry["subject"], entry["details"]["target"]) == ("folder", "archive/2026")


def test_a_folder_is_spelled_otherwise(api, tenant):
    """Capitals alone may change, though two such folders could not lie side by side."""
    assert move(api, tenant, "folder", "Folder").status_code == 200
    assert paths(api, tenant)[0] == ["Folder/below/d.txt", "Folder/c.txt", "a.txt"]


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
