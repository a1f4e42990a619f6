"""``freezeframe key``: made, listed, rotated, revoked; a secret is told once."""

import os

import pytest

import freezeframe as ff


def test_a_keys_life(said):
    """Created with bounds, listed without its secret, rotated, revoked."""
    _, made = said(
        "key", "create", "--env", "dev", "--tenant", "acme", "--scope", "snapshots:read", "--days", "9"
    )
    _, listed = said("key", "list")
    _, rotated = said("key", "rotate", made["id"])
    _, revoked = said("key", "revoke", made["id"])

    assert (made["environments"], made["tenants"], made["scopes"]) == (["dev"], ["acme"], ["snapshots:read"])
    assert made["key"].startswith(f"{made['id']}.")
    assert [made["id"]] == [item["id"] for item in listed]
    assert "key" not in listed[0]
    assert rotated["key"] != made["key"]
    assert revoked["revoked"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("create", "--tenant", "acme"), 2),
        (("create", "--scope", "everything"), 2),
        (("create", "--env", "../x"), 2),
        (("create", "--days", "-1"), 2),
        (("revoke", "nobody"), 4),
        (("rotate", "nobody"), 4),
    ],
)
def test_a_key_that_cannot_be(said, arguments, code):
    """A wrong bound, scope or id ends with the code of its kind."""
    found, told = said("key", *arguments)

    assert code == found
    assert told["error"]["remedy"]


def test_the_master_key_is_rotated(said, tmp_path, monkeypatch):
    """By both keys in the settings; with one alone there is nothing to rotate from."""
    for name in ("old", "new"):
        file = tmp_path / name
        file.touch(mode=0o600)
        file.write_bytes(os.urandom(32))
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(tmp_path / "old"))
    acme = ff.open(tmp_path / "store").tenant("acme", create=True)
    acme.files.write("secret", b"s", sealed=True)
    alone, _ = said("key", "rotate-master")
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(tmp_path / "new"))
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE_OTHER", str(tmp_path / "old"))
    code, told = said("key", "rotate-master")
    monkeypatch.delenv("FREEZEFRAME_MASTER_KEY_FILE_OTHER")

    assert (alone, code, told["tenants"]) == (2, 0, 1)
    assert ff.open(tmp_path / "store").tenant("acme").files.read("secret") == b"s"
