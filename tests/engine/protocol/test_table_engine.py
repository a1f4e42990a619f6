"""A merge task that cannot be one is refused by its constructor."""

import pytest

from freezeframe.engine.protocol import MergeResult, MergeTask
from freezeframe.errors import InvalidOption

SCHEMA = {"type": "struct", "fields": [{"name": "Id", "type": "string", "nullable": True, "metadata": {}}]}


def task(**changes):
    given = {
        "stored": (), "stored_schema": SCHEMA, "batch": ("/b.parquet",), "batch_schema": SCHEMA,
        "target_schema": SCHEMA, "key": ("Id",), "mode": "upsert", "output": "/out",
    }  # fmt: skip
    return MergeTask(**{**given, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "append"},
        {"key": ()},
        {"key": ("Name",)},
        {"where": "Id > '1'"},
        {"mode": "replace_where"},
        {"output": ""},
    ],
)
def test_a_task_without_sense_is_refused(changes):
    """Each guarantee of the docstring is checked."""
    with pytest.raises(InvalidOption):
        task(**changes)


def test_a_count_needs_no_output():
    """With ``write=False`` there is nothing to write into."""
    assert task(write=False, output="").output == ""


def test_only_unchanged_rows_are_no_change():
    """A result says whether its files matter."""
    assert not MergeResult(0, 0, 7, 0).is_changed
    assert MergeResult(0, 0, 7, 1).is_changed
