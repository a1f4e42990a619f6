"""Sealed files: the cipher, the master key, and a tenant's data key."""

import base64
import os
import secrets
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.errors import CorruptData, CorruptLog, SealingUnavailable
from freezeframe.identifiers import FilePath
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage, PrefixStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.blobs.sealing import (
    PIECE_BYTES,
    MasterKey,
    data_key,
    master_key,
    read_master_key,
    rewrap,
    seal,
    unseal,
    unwrap,
    wrap,
)

SECRET = secrets.token_bytes(32)
PATH = FilePath("config.json")


def opened(sealed, key=SECRET, tenant="t", path=PATH):
    return b"".join(unseal(sealed, key, tenant, path))


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES])
def test_any_size_comes_back(size):
    """Content of any size, in chunks of any size, is what it was, and is not in the sealed form."""
    content = os.urandom(size)
    chunks = [content[start : start + 300_007] for start in range(0, size, 300_007)]
    sealed = b"".join(seal(chunks, SECRET, "t", PATH))
    assert content == opened([sealed])
    assert content == opened([sealed[start : start + 65_537] for start in range(0, len(sealed), 65_537)])
    if size > 100:
        assert content[:100] not in sealed


def test_it_opens_for_its_own_tenant_path_and_key_only():
    """Another tenant, path or key is refused; two sealings of the same bytes differ."""
    sealed = b"".join(seal([b"secret"], SECRET, "t", PATH))
    assert sealed != b"".join(seal([b"secret"], SECRET, "t", PATH))
    for other in ({"key": secrets.token_bytes(32)}, {"tenant": "u"}, {"path": FilePath("other.json")}):
        with pytest.raises(CorruptData):
            opened([sealed], **other)


SEALED = b"".join(seal([b"a" * 300], SECRET, "t", PATH))


@settings(max_examples=examples(200))
@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_any_changed_byte_is_found(place, change):
    with pytest.raises(CorruptData):
        opened([SEALED[:place] + bytes([SEALED[place] ^ change]) + SEALED[place + 1 :]])


def test_pieces_cannot_be_cut_off_swapped_or_repeated():
    sealed = b"".join(seal([os.urandom(3 * PIECE_BYTES)], SECRET, "t", PATH))
    size = PIECE_BYTES + 16
    head, pieces = sealed[: -3 * size], [sealed[len(sealed) - n * size :][:size] for n in (3, 2, 1)]
    a, b, c = pieces
    assert opened([head, a, b, c])
    for forged in ([head, a, b], [head, b, a, c], [head, a, a, b, c], [head, c], [head], [], [b"x"]):
        with pytest.raises(CorruptData):
            opened(forged)


def test_a_wrapped_key_opens_under_its_key_and_context_only():
    wrapped = wrap(b"secret", SECRET, "t")
    assert unwrap(wrapped, SECRET, "t") == b"secret"
    assert [
        unwrap(wrapped, secrets.token_bytes(32), "t"),
        unwrap(wrapped, SECRET, "u"),
        unwrap(wrapped[:-1], SECRET, "t"),
        unwrap(b"", SECRET, "t"),
    ] == [None] * 4


KEY = bytes(range(100, 132))  # the same in every process that collects the tests


def in_file(folder, content, mode=0o600):
    file = folder / "key"
    file.write_bytes(content)
    file.chmod(mode)
    return file


@pytest.mark.parametrize("content", [KEY, KEY.hex().encode(), base64.b64encode(KEY) + b"\n"])
def test_a_key_is_raw_hex_or_base64(tmp_path, content):
    assert MasterKey(KEY) == read_master_key(in_file(tmp_path, content))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o601])
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
    for wrong in (
        Settings(),
        Settings(master_key_file=tmp_path / "absent"),
        Settings(master_key_file=tmp_path),
        Settings(master_key_file=in_file(tmp_path, KEY), master_key_command="true"),
    ):
        with pytest.raises(SealingUnavailable):
            master_key(wrong)


def test_a_key_is_never_shown():
    key = MasterKey(KEY)
    assert KEY.hex() not in repr(key) + key.fingerprint
    assert repr(KEY) not in repr(key)


@pytest.fixture
def keyed(tmp_path):
    """A function that gives settings with a new master key."""

    def make(name="master.key"):
        file = tmp_path / name
        file.write_bytes(os.urandom(32))
        file.chmod(0o600)
        return Settings(master_key_file=file)

    return make


def names_of(storage):
    return [f"_freezeframe/keys/{item.name}" for item in storage.list_below("_freezeframe/keys")]


def test_a_data_key_is_made_once(keyed):
    """Of many that make a tenant's first key at once, all have the same one afterwards."""
    settings, memory, found = keyed(), MemoryStorage(), []
    start = threading.Barrier(6)

    def make():
        start.wait()
        found.append(data_key(memory, settings, create=True).secret)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert {data_key(memory, settings).secret} == set(found)
    assert all(found[0] not in memory.read(name) for name in names_of(memory))


@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER])
def test_rotation_survives_a_crash_anywhere(keyed, way):
    """Wherever it dies, the key can be had under one of the master keys, and doing it again finishes."""
    old_settings, new_settings = keyed("old"), keyed("new")
    old, new = (read_master_key(item.master_key_file) for item in (old_settings, new_settings))
    for number in range(100):
        memory = MemoryStorage()
        secret = data_key(memory, old_settings, create=True).secret
        try:
            rewrap(FaultyStorage(memory, [Fault(number, way)]), old, new)
        except Crash:
            assert rewrap(memory, old, new)
        else:
            break
        assert secret == data_key(memory, new_settings).secret
        with pytest.raises(SealingUnavailable):
            data_key(memory, old_settings)
    assert number > 4


class RotatedMeanwhile(MemoryStorage):
    """A storage on which ``rotate`` runs once, between the listing of the records and their reading."""

    def __init__(self):
        super().__init__()
        self.rotate = None

    def list_from(self, folder, start=""):
        listed = list(super().list_from(folder, start))
        if self.rotate is not None:
            rotate, self.rotate = self.rotate, None
            rotate()
        return iter(listed)


@pytest.mark.parametrize("knows_both", [True, False])
def test_a_rotation_during_a_read_makes_no_second_key(keyed, knows_both):
    """Who reads meanwhile gets the tenant's key, or is refused: a new data key would lose what is sealed."""
    old, new, storage = keyed("old"), keyed("new"), RotatedMeanwhile()
    secret = data_key(storage, old, create=True).secret
    masters = read_master_key(old.master_key_file), read_master_key(new.master_key_file)
    storage.rotate = lambda: rewrap(storage, *masters)
    other = Settings(
        master_key_file=old.master_key_file, master_key_file_other=new.master_key_file if knows_both else None
    )

    if knows_both:
        assert data_key(storage, other, create=True).secret == secret
    else:
        with pytest.raises(SealingUnavailable, match="cannot be unwrapped"):
            data_key(storage, other, create=True)
    assert data_key(storage, new).secret == secret


def test_rotation_needs_the_old_key(keyed):
    """With a wrong old key nothing is changed; a tenant without a key has nothing to rotate."""
    settings, memory = keyed(), MemoryStorage()
    secret = data_key(memory, settings, create=True).secret
    with pytest.raises(SealingUnavailable):
        rewrap(memory, MasterKey(os.urandom(32)), MasterKey(os.urandom(32)))
    assert secret == data_key(memory, settings).secret
    assert not rewrap(MemoryStorage(), MasterKey(os.urandom(32)), MasterKey(os.urandom(32)))


def test_what_is_no_key_of_the_tenant_is_refused(keyed):
    """No record, a damaged one, and one that was copied from another tenant's folder."""
    settings, memory = keyed(), MemoryStorage()
    record = "_freezeframe/keys/00000000000000000000.json"
    with pytest.raises(SealingUnavailable):
        data_key(MemoryStorage(), settings)
    first, other = (PrefixStorage(memory, f"tenants/{name * 32}") for name in "ab")
    data_key(first, settings, create=True)
    other.put_if_absent(record, first.read(record))
    with pytest.raises(SealingUnavailable):
        data_key(other, settings)
    other.replace(record, b"{}")
    with pytest.raises(CorruptLog):
        data_key(other, settings)
