"""A place that is an address: nothing is fetched from where a caller says."""

import pytest

import freezeframe
from freezeframe.errors import InvalidOption


@pytest.mark.parametrize(
    "root", ["http://169.254.169.254/latest", "https://x/y", "file:///etc", "ftp://x", "gs://b"]
)
def test_an_address_is_no_place_for_a_store(root):
    """Only a directory or a bucket of the object store is a place for a store."""
    with pytest.raises(InvalidOption):
        freezeframe.open(root)
