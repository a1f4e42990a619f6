"""Sealed bytes open for their tenant, path and key, and for nothing else."""

import os
import secrets

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.errors import CorruptData
from freezeframe.identifiers import FilePath
from freezeframe.store.blobs.sealing import PIECE_BYTES, seal, unseal, unwrap, wrap

KEY = secrets.token_bytes(32)
PATH = FilePath("config.json")


def opened(sealed, key=KEY, tenant="t", path=PATH):
    return b"".join(unseal(sealed, key, tenant, path))


@pytest.mark.parametrize(
    "size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, 2_500_000]
)
def test_any_size_comes_back(size):
    """Content of any size, in chunks of any size, is what it was, and is not in the sealed form."""
    content = os.urandom(size)
    chunks = [content[start : start + 300_007] for start in range(0, size, 300_007)]
    sealed = b"".join(seal(chunks, KEY, "t", PATH))
    assert content == opened([sealed])
    assert content == opened([sealed[start : start + 65_537] for start in range(0, len(sealed), 65_537)])
    if size > 100:
        assert content[:100] not in sealed


def test_it_opens_for_its_own_tenant_path_and_key_only():
    """Another tenant, path or key is refused; two sealings of the same bytes differ."""
    sealed = b"".join(seal([b"secret"], KEY, "t", PATH))
    assert sealed != b"".join(seal([b"secret"], KEY, "t", PATH))
    for other in ({"key": secrets.token_bytes(32)}, {"tenant": "u"}, {"path": FilePath("other.json")}):
        with pytest.raises(CorruptData):
            opened([sealed], **other)


SEALED = b"".join(seal([b"a" * 300], KEY, "t", PATH))


@settings(max_examples=examples(200))
@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_any_changed_byte_is_found(place, change):
    """Whichever byte is changed, nothing is given."""
    with pytest.raises(CorruptData):
        opened([SEALED[:place] + bytes([SEALED[place] ^ change]) + SEALED[place + 1 :]])


def test_pieces_cannot_be_cut_off_swapped_or_repeated():
    """The end, the order and the number of pieces are part of the seal."""
    sealed = b"".join(seal([os.urandom(3 * PIECE_BYTES)], KEY, "t", PATH))
    size = PIECE_BYTES + 16
    head, pieces = sealed[: -3 * size], [sealed[len(sealed) - n * size :][:size] for n in (3, 2, 1)]
    a, b, c = pieces
    assert opened([head, a, b, c])
    for forged in ([head, a, b], [head, b, a, c], [head, a, a, b, c], [head, c], [head], [], [b"x"]):
        with pytest.raises(CorruptData):
            opened(forged)


def test_a_wrapped_key_opens_under_its_key_and_context_only():
    """What is wrapped comes back, or nothing does."""
    wrapped = wrap(b"secret", KEY, "t")
    assert unwrap(wrapped, KEY, "t") == b"secret"
    assert [
        unwrap(wrapped, secrets.token_bytes(32), "t"),
        unwrap(wrapped, KEY, "u"),
        unwrap(wrapped[:-1], KEY, "t"),
        unwrap(b"", KEY, "t"),
    ] == [None] * 4
