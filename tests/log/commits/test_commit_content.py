"""A commit's file actions: few lines and many are read alike."""

import json

import pytest

from freezeframe.log.segments.commit_content import parse_file_actions, read_content


def commit_of(count, *, joined):
    """The bytes of a commit of so many files, the last action after another one or on the same line."""
    adds = [
        {
            "add": {
                "path": f"{n}.parquet",
                "partitionValues": {},
                "size": 1,
                "modificationTime": 1,
                "dataChange": True,
            }
        }
        for n in range(count)
    ]
    removed = {"remove": {"path": "gone.parquet", "deletionTimestamp": 1, "dataChange": True}}
    *lines, last = (json.dumps(add, separators=(",", ":")) for add in [*adds, removed])
    return ("\n".join(lines) + ("" if joined else "\n") + last + "\n").encode()


@pytest.mark.parametrize("joined", [False, True], ids=["lines", "two actions on a line"])
@pytest.mark.parametrize("count", [1, 200], ids=["few", "many"])
def test_few_actions_are_read_as_many_are(count, joined):
    """Line by line or by Arrow's reader: a second action of a line is one, as it is for Spark."""
    found = parse_file_actions([read_content("0.json", commit_of(count, joined=joined))], ())
    assert found.adds["path"].to_pylist() == [f"{n}.parquet" for n in range(count)]
    assert found.removes["path"].to_pylist() == ["gone.parquet"]
    assert max(found.adds_order) < min(found.removes_order)
