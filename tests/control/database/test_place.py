"""Where the control database is."""

import pytest

from freezeframe.control.database.database import ControlDatabase, database_url
from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings


def test_it_is_in_the_store_unless_the_settings_say_otherwise(tmp_path):
    """A file in the root's own folder, whatever the root is called."""
    root = tmp_path / "a ?b%20#c"
    ControlDatabase.open(database_url(Settings(), str(root))).close()

    assert (root / "_freezeframe" / "control.db").exists()
    assert database_url(Settings(database_url="postgresql://h/d"), "s3://bucket") == "postgresql://h/d"


def test_a_bucket_holds_no_database():
    """Without the setting it is refused, with what to set."""
    with pytest.raises(InvalidOption, match="database_url"):
        database_url(Settings(), "s3://bucket/prefix")
