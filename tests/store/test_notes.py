"""What an update may ask for besides its rows: a version to start from, a key to set, a note to keep."""

import pandas as pd
import pytest

from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import ConflictError
from freezeframe.store.model.update_options import Update

ROWS = pd.DataFrame({"Id": ["1"], "v": [1]})


def test_an_update_for_another_version_is_refused(open_on, memory):
    """Nothing is written; the version that it was made for, -1 for none yet, is taken."""
    stream = open_on(memory).stream("A")
    with pytest.raises(ConflictError, match="version -1, not at 0"):
        stream.apply(Rows(ROWS), Update(key=("Id",), expected_version=0))

    stream.apply(Rows(ROWS), Update(key=("Id",), expected_version=-1))

    with pytest.raises(ConflictError, match="version 0"):
        stream.apply(Rows(ROWS), Update(key=("Id",), expected_version=-1))
    assert stream.version == 0


def test_notes_are_kept_with_the_commit(open_on, memory):
    """They are the table's properties, there from the commit on, also for a stream of no rows."""
    stream = open_on(memory).stream("A")
    assert stream.notes == {}

    stream.apply(Rows(ROWS.head(0)), Update(key=("Id",), notes=(("origin", "a file, ä"),)))
    stream.update(ROWS, key="Id")

    assert stream.notes == {"origin": "a file, ä"}
    assert open_on(memory).stream("A").notes == {"origin": "a file, ä"}


def test_a_stream_can_be_made_without_a_key(open_on, memory):
    """`sets_key` with no key: rows that are equal stay, each."""
    stream = open_on(memory).stream("A")

    stream.apply(Rows(pd.concat([ROWS, ROWS])), Update(key=(), mode="overwrite", sets_key=True))

    assert (stream.key, stream.count()) == ((), 2)
