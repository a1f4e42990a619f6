"""Names in a log folder, taken apart and put together."""

import pytest

from freezeframe.log.primitives import paths
from freezeframe.log.primitives.paths import Kind, parse_name

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.mark.parametrize(
    ("name", "kind", "start", "version", "part", "parts"),
    [
        (paths.commit_name(7), Kind.COMMIT, 7, 7, 1, 1),
        (paths.checkpoint_name(10), Kind.CHECKPOINT, 10, 10, 1, 1),
        (paths.checkpoint_part_name(10, 2, 3), Kind.CHECKPOINT_PART, 10, 10, 2, 3),
        (paths.v2_checkpoint_name(10, UUID, "json"), Kind.V2_CHECKPOINT, 10, 10, 1, 1),
        (paths.v2_checkpoint_name(10, UUID, "parquet"), Kind.V2_CHECKPOINT, 10, 10, 1, 1),
        (paths.compacted_name(4, 6), Kind.COMPACTED, 4, 6, 1, 1),
        (paths.checksum_name(7), Kind.CHECKSUM, 7, 7, 1, 1),
    ],
)
def test_a_name_that_is_written_is_read_back(name, kind, start, version, part, parts):
    """Each kind of name says its versions and parts again."""
    found = parse_name(name)
    assert (kind, start, version, part, parts) == (
        found.kind,
        found.start,
        found.version,
        found.part,
        found.parts,
    )


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        "foo.json",
        "7.json",
        ".00000000000000000007.json.crc",
        "00000000000000000007.json.tmp",
        "00000000000000000010.checkpoint.0000000004.0000000003.parquet",
        "00000000000000000010.checkpoint.0000000000.0000000003.parquet",
        "00000000000000000010.checkpoint.not-a-uuid.json",
        "00000000000000000006.00000000000000000004.compacted.json",
        "_sidecars",
        "_staged_commits",
    ],
)
def test_b007_unknown_names_are_ignored(name):
    """A name of no known shape means nothing; so do parts and ranges that cannot be."""
    assert parse_name(name) is None
