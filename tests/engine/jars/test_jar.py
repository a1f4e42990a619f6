"""What is pinned, and how a set of it is told to be there."""

import xml.etree.ElementTree as ET

import pytest

from freezeframe.engine.jars import Jar, locked_jars, parse_lock, pom, present
from freezeframe.errors import InvalidOption

DIGEST = "0" * 64


def test_the_small_set_is_small_and_the_bundle_replaces_the_sdk():
    """Each jar once; both sets have Hadoop's connector and Spark's committer."""
    small, bundle = locked_jars("s3"), locked_jars("bundle")
    assert len(small) == len({jar.file_name for jar in small})
    assert sum(jar.size for jar in small) < 16e6
    shared = {jar.artifact for jar in small} & {jar.artifact for jar in bundle}
    assert shared == {"hadoop-aws", "spark-hadoop-cloud_2.13", "analyticsaccelerator-s3"}
    assert {jar.artifact for jar in bundle} - shared == {"bundle"}


def test_the_bundle_is_the_sdk_of_the_small_jars_in_one_file():
    """Of the same release, pinned by size and checksum, and where Maven Central has it."""
    (bundle,) = (jar for jar in locked_jars("bundle") if jar.artifact == "bundle")
    assert {bundle.version} == {jar.version for jar in locked_jars("s3") if jar.group == bundle.group}
    assert bundle.repository_path == "software/amazon/awssdk/bundle/2.29.52/bundle-2.29.52.jar"
    assert bundle.size == 641_534_749
    assert bundle.sha256.startswith("62638f33045690c6")


@pytest.mark.parametrize("wrong", [{"version": "1/../2"}, {"sha256": "F" * 64}, {"size": 0}])
def test_half_a_pin_is_none(wrong):
    """A name that climbs, a checksum that is none, a size that cannot be."""
    with pytest.raises(InvalidOption):
        Jar(**{"group": "a.b", "artifact": "c", "version": "1", "sha256": DIGEST, "size": 1, **wrong})


def test_a_jar_is_found_where_maven_puts_it():
    """The coordinate of a lock file is the path in a repository."""
    text = f'[[jar]]\ncoordinate = "a.b:c-d_2:1.0"\nsha256 = "{DIGEST}"\nsize = 3\nsets = ["s3"]\n'
    (jar,) = parse_lock(text)
    assert (jar.repository_path, jar.file_name) == ("a/b/c-d_2/1.0/c-d_2-1.0.jar", "c-d_2-1.0.jar")
    assert (jar,) == parse_lock(text, "s3")
    assert parse_lock(text, "bundle") == ()


def test_the_pom_names_every_jar_and_nothing_that_it_would_bring():
    """Maven copies what is pinned: each dependency excludes its own ones."""
    root = ET.fromstring(pom(locked_jars("s3")))
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    found = root.findall("m:dependencies/m:dependency", space)
    names = [
        ":".join(one.findtext(f"m:{part}", "", space) for part in ("groupId", "artifactId", "version"))
        for one in found
    ]
    assert [jar.coordinate for jar in locked_jars("s3")] == names
    assert all(one.findtext("m:exclusions/m:exclusion/m:artifactId", "", space) == "*" for one in found)


def test_a_set_is_there_when_every_file_has_its_size(tmp_path):
    """One jar that is missing or cut off, and the set is not there."""
    assert present(tmp_path) == ()
    for jar in locked_jars("s3"):
        with (tmp_path / jar.file_name).open("wb") as file:
            file.truncate(jar.size)
    assert len(locked_jars("s3")) == len(present(tmp_path))
    last = present(tmp_path)[-1]
    last.write_bytes(b"cut off")
    assert present(tmp_path) == ()
    last.unlink()
    assert present(tmp_path) == ()
