"""Several files and folders deleted over HTTP as one change."""

import pytest


@pytest.fixture
def tenant(api, acme):
    """The path of a tenant with a file and a folder of two, one of them in a folder of its own."""
    for path in ("a.txt", "b.txt", "folder/c.txt", "folder/below/d.txt"):
        api.put(f"{acme}/files/{path}", content=path.encode()).raise_for_status()
    return acme


def left(api, tenant):
    """The paths of all files."""
    return [item["path"] for item in api.get(f"{tenant}/files?recursive=true").json()["files"]]


def test_files_and_a_folder_go_in_one_version(api, tenant):
    """All below the folder goes with it; the version before still has them, and the audit names each."""
    api.post(f"{tenant}/folders", json={"path": "folder/empty"}).raise_for_status()
    before = api.get(f"{tenant}/overview").json()["version"]
    gone = api.post(f"{tenant}/file-deletions", json={"paths": ["a.txt"], "folders": ["folder"]}).json()
    entries = api.get(f"{tenant}/audit?action=file.delete").json()["entries"]

    assert before + 1 == gone["tenant_version"]
    assert {"a.txt", "folder/c.txt", "folder/below/d.txt"} <= set(gone["paths"])
    assert sorted(gone["paths"]) == sorted(entry["subject"] for entry in entries)
    assert left(api, tenant) == ["b.txt"]
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
    before = left(api, tenant)

    assert status == api.post(f"{tenant}/file-deletions", json=order).status_code
    assert before == left(api, tenant)
