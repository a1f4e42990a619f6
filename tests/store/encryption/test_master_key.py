"""The master key is read from a private file or a command, or sealing is refused."""

import base64

import pytest

from freezeframe.errors import SealingUnavailable
from freezeframe.settings import Settings
from freezeframe.store.blobs.sealing import MasterKey, master_key, read_master_key

KEY = bytes(range(100, 132))  # the same in every process that collects the tests


def in_file(folder, content, mode=0o600):
    file = folder / "key"
    file.write_bytes(content)
    file.chmod(mode)
    return file


@pytest.mark.parametrize("content", [KEY, KEY.hex().encode(), base64.b64encode(KEY) + b"\n"])
def test_a_key_is_raw_hex_or_base64(tmp_path, content):
    """All three ways to write the same bytes are the same key."""
    assert MasterKey(KEY) == read_master_key(in_file(tmp_path, content))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o777, 0o601])
def test_a_file_that_others_can_read_is_refused(tmp_path, mode):
    """Only mode 0600 and stricter ones will do; the message says what to type."""
    with pytest.raises(SealingUnavailable, match="chmod 600"):
        read_master_key(in_file(tmp_path, KEY, mode))


@pytest.mark.parametrize("content", [b"", b"short", bytes(range(33)), b"g" * 64, b"\xff" * 64])
def test_what_is_no_key_is_refused(tmp_path, content):
    """Anything but 32 bytes is not a key, and the message does not show it."""
    with pytest.raises(SealingUnavailable):
        read_master_key(in_file(tmp_path, content))


def test_a_command_gives_the_key(tmp_path):
    """A command's output is the key; one that fails says nothing of what it printed."""
    file = in_file(tmp_path, KEY.hex().encode())
    assert MasterKey(KEY) == master_key(Settings(master_key_command=f"cat {file}"))
    for command in ("false", "no-such-command-here", "echo canary", "'"):
        with pytest.raises(SealingUnavailable) as caught:
            master_key(Settings(master_key_command=command))
        assert "canary" not in str(caught.value)


def test_none_and_two_are_refused(tmp_path):
    """Without a key, with a missing file, a folder, or two keys nothing is sealed."""
    for settings in (
        Settings(),
        Settings(master_key_file=tmp_path / "absent"),
        Settings(master_key_file=tmp_path),
        Settings(master_key_file=in_file(tmp_path, KEY), master_key_command="true"),
    ):
        with pytest.raises(SealingUnavailable):
            master_key(settings)


def test_a_key_is_never_shown():
    """Neither the text of a key nor its fingerprint holds it."""
    key = MasterKey(KEY)
    assert KEY.hex() not in repr(key) + key.fingerprint
    assert repr(KEY) not in repr(key)
