"""Deletion vectors: the protocol's bytes in both directions, and nothing that fails a check."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.log.foreign_forms import inline_vector

from freezeframe.errors import CorruptData
from freezeframe.log.format.actions import DeletionVector
from freezeframe.log.scan.data_files import (
    bitmap_bytes,
    inline_rows,
    require_file_version,
    stored_rows,
    vector_file,
    vector_files,
    vector_name,
    z85_decode,
    z85_encode,
)

positions = st.sets(st.integers(0, 2**40), max_size=50)


def test_the_protocols_own_examples():
    """The example descriptors of the protocol: an inline vector of six rows, and a relative path's name."""
    inline = DeletionVector("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 6)
    assert inline_rows(inline).tolist() == [3, 4, 7, 11, 18, 29]
    stored = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 1)
    assert vector_name(stored) == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@given(positions)
def test_inline_vectors_come_back(rows):
    """What fits into the log comes back from it."""
    vector = inline_vector(BitMap64(rows))
    if vector is not None:
        assert sorted(rows) == inline_rows(vector).tolist()
        assert len(rows) == vector.cardinality


@given(st.lists(positions, min_size=1, max_size=4))
def test_vectors_of_one_file_come_back(many):
    """Several vectors in one file are each found at their own offset."""
    files = vector_files([BitMap64(rows) for rows in many])
    assert {files[0].content} == {file.content for file in files}
    for rows, file in zip(many, files, strict=True):
        vector = file.vector
        require_file_version(file.content[:1], file.name)
        block = file.content[vector.offset : vector.offset + vector.size_in_bytes + 8]
        assert sorted(rows) == stored_rows(vector, block, file.name).tolist()
        assert vector_name(vector) == file.name


def test_a_file_may_lie_in_a_folder():
    """A prefix becomes a folder of the table and part of the descriptor."""
    file = vector_file(BitMap64([1]), prefix="ab")
    assert file.name.startswith("ab/deletion_vector_")
    assert vector_name(file.vector) == file.name


@given(st.binary(max_size=40).map(lambda raw: raw[: len(raw) // 4 * 4]))
def test_z85_comes_back(raw):
    """Bytes turned into text and back are the same."""
    assert raw == z85_decode(z85_encode(raw), len(raw))


def test_z85_is_the_published_one():
    """The reference string of the Z85 specification."""
    assert z85_encode(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"


@pytest.mark.parametrize("text", ["abcd", 'ab"cd', "#####", "ab cd"])
def test_text_that_is_no_z85_is_damage(text):
    """Another length, a foreign letter, or a number beyond four bytes."""
    with pytest.raises(CorruptData):
        z85_decode(text, 4)


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_flip_in_a_stored_vector_is_found(at, bit):
    """Length and checksum leave no flip of a stored vector unseen."""
    file = vector_file(BitMap64([1, 5, 2**33]))
    block = bytearray(file.content[1:])
    block[at % len(block)] ^= 1 << bit
    with pytest.raises(CorruptData):
        stored_rows(file.vector, bytes(block), file.name)


def test_other_formats_and_sizes_are_damage():
    """Another file version, another magic number, a cut block, another count: each is refused."""
    file = vector_file(BitMap64([1, 2]))
    with pytest.raises(CorruptData, match="version"):
        require_file_version(b"\x02", file.name)
    with pytest.raises(CorruptData):
        stored_rows(file.vector, file.content[1:-1], file.name)
    other = struct.pack("<i", 1) + bitmap_bytes(BitMap64([1]))[4:]
    padded = other + bytes(-len(other) % 4)
    with pytest.raises(CorruptData, match="number"):
        inline_rows(DeletionVector("i", z85_encode(padded), len(other), 1))
    good = inline_vector(BitMap64([1, 2]))
    with pytest.raises(CorruptData, match="names 2 rows"):
        inline_rows(DeletionVector("i", good.path_or_inline_dv, good.size_in_bytes, 3))
