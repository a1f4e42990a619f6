"""A stream that was brought in without a key gets its first one, where it identifies each stored row."""

import io

import pandas as pd
import pytest
from tests import given
from tests.given import fails

from freezeframe.errors import InvalidOption
from freezeframe.script.inputs.transfer import import_stream
from freezeframe.service.rows import streams
from freezeframe.storage import LocalStorage
from freezeframe.store.model.update_options import Author

ROWS = pd.DataFrame({"Id": ["a", "b"], "City": ["Bern", "Bern"], "Zip": ["3000", None]})
LATER = pd.DataFrame({"Id": ["b", "c"], "City": ["Thun", "Chur"]})


@pytest.fixture
def tenant(tmp_path):
    """A tenant without streams."""
    return given.tenant(LocalStorage(tmp_path / "tenant"))


def by_override(tenant, _):
    """A frame replaces the content."""
    tenant.stream("A").update(ROWS, override=True)


def by_upload(tenant, _):
    """A request replaces the content."""
    content = io.BytesIO(ROWS.to_csv(index=False).encode())
    streams.override(tenant, "A", "csv", content, Author("ann", ""))


def by_import(tenant, tmp_path):
    """An import of a file."""
    ROWS.to_csv(tmp_path / "A.csv", index=False)
    import_stream(tenant.stream("A"), tmp_path / "A.csv", None, override=True)


DOORS = [by_override, by_upload, by_import]


@pytest.mark.parametrize("door", DOORS)
def test_the_first_key_is_taken_where_it_identifies_each_row(tenant, tmp_path, door):
    """The update is one by that key, which is the stream's from then on."""
    door(tenant, tmp_path)
    receipt = tenant.stream("A").update(LATER, "Id")
    assert (receipt.inserted, receipt.updated, tenant.stream("A").key) == (1, 1, ("Id",))
    tenant.stream("A").update(LATER.assign(City="Biel"))
    cities = dict(tenant.stream("A").read()[["Id", "City"]].to_numpy().tolist())
    assert cities == {"a": "Bern", "b": "Biel", "c": "Biel"}


def test_rows_that_are_there_already_still_get_the_key(tenant, tmp_path):
    """No row changes, and the key is a version of its own."""
    by_override(tenant, tmp_path)
    receipt = tenant.stream("A").update(ROWS, "Id")
    assert (receipt.unchanged, receipt.committed, tenant.stream("A").key) == (2, True, ("Id",))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("key", "cause"),
    [("City", "Some share a key"), ("Zip", "a null in it"), ("Code", "no column 'Code'")],
)
def test_a_key_that_does_not_identify_each_row_is_refused(tenant, tmp_path, door, key, cause):
    """Nothing is written, and the error says what is wrong with the stored rows."""
    door(tenant, tmp_path)
    version = tenant.version
    with fails(InvalidOption, "cannot get the key", cause=cause):
        tenant.stream("A").update(LATER.assign(Zip="1", Code="1").head(1), key)
    assert (version, tenant.stream("A").key, tenant.stream("A").count()) == (tenant.version, (), 2)


def test_zeros_of_both_signs_are_one_key(tenant):
    """As in every search for a key, so no stream gets a key that two of its rows have."""
    tenant.stream("A").update(pd.DataFrame({"n": [0.0, -0.0], "v": [1, 2]}), override=True)
    with pytest.raises(InvalidOption, match="does not identify"):
        tenant.stream("A").update(pd.DataFrame({"n": [0.0], "v": [3]}), "n")
