"""Names in a log folder, taken apart and put together."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.log.tables import TableBuilder, compacted_name, file

from freezeframe.log.format.actions import Remove
from freezeframe.log.primitives import paths
from freezeframe.log.primitives.paths import Kind, canonical_path, canonical_paths, parse_name

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.mark.parametrize(
    ("name", "kind", "start", "version", "part", "parts"),
    [
        (paths.commit_name(7), Kind.COMMIT, 7, 7, 1, 1),
        (paths.checkpoint_name(10), Kind.CHECKPOINT, 10, 10, 1, 1),
        (paths.checkpoint_part_name(10, 2, 3), Kind.CHECKPOINT_PART, 10, 10, 2, 3),
        (paths.v2_checkpoint_name(10, UUID, "json"), Kind.V2_CHECKPOINT, 10, 10, 1, 1),
        (paths.v2_checkpoint_name(10, UUID, "parquet"), Kind.V2_CHECKPOINT, 10, 10, 1, 1),
        (compacted_name(4, 6), Kind.COMPACTED, 4, 6, 1, 1),
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


# One spelling for one file.


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("part-1.parquet", "part-1.parquet"),
        ("/some/file", "file:/some/file"),
        ("file:///some/file", "file:/some/file"),
        ("file:/some/file", "file:/some/file"),
        ("s3://bucket/a//b", "s3://bucket/a/b"),
        ("a%20b/p@%23h", "a%20b/p@%23h"),
        ("a b", "a%20b"),
        ("a%40b", "a@b"),
        ("_2=bar+%252521/x", "_2=bar+%252521/x"),
        ("é/%C3%A9", "é/é"),
        ("//double//slash", "file://double/slash"),
        ("./a.parquet", "a.parquet"),
        ("x/./y/../a.parquet", "x/a.parquet"),
        ("../t/a.parquet", "../t/a.parquet"),
        ("x/../../a", "../a"),
        ("/../x/./a", "file:/x/a"),
        ("s3://bucket/./x/../a", "s3://bucket/a"),
        (".hidden/..a/a..b", ".hidden/..a/a..b"),
        ("x%3Ay/a.parquet", "x%3Ay/a.parquet"),
        ("p=1%3A2/a.parquet", "p=1:2/a.parquet"),
        ("%2e/a%2Bb", "a+b"),
    ],
)
def test_b054_paths_are_spelled_as_spark_spells_them(path, canonical):
    """Dot segments are resolved, escapes set only where they must be; an absolute path is a file: URI."""
    assert canonical == canonical_path(path)


@given(st.text(min_size=1))
def test_b054_a_canonical_path_stays_as_it_is(path):
    """Spelling twice changes nothing."""
    once = canonical_path(path)
    assert once == canonical_path(once)


@given(st.lists(st.text(alphabet="ab/% :é+#.", max_size=8) | st.none(), max_size=20))
def test_b054_columns_are_spelled_row_by_row(paths):
    """The quick look over all bytes never skips a path that has to change."""
    column = pa.chunked_array([pa.array(paths, pa.string())])
    expected = [None if path is None else canonical_path(path) for path in paths]
    assert canonical_paths(column).to_pylist() == expected


@pytest.mark.parametrize(
    ("added", "removed"),
    [("/a/b", "file:/a/b"), ("a%20b", "a b"), ("s3://b//c", "s3://b/c"), ("./x", "x"), ("x/../y", "y")],
)
def test_b054_a_remove_hits_its_add_in_another_spelling(added, removed):
    """The file is gone, however the remove spells it."""
    table = TableBuilder().create().commit(file(added)).commit(Remove(removed, 1))
    assert table.log().current_snapshot.count == 0
