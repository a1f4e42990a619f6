"""Jars from a repository: what is missing comes, whole and as it was pinned, or the folder is as before."""

import hashlib

import pytest

from freezeframe.engine.jars import Jar, fetch
from freezeframe.engine.jars.repository import proxy_options
from freezeframe.errors import SetupError, StorageUnavailable

CONTENT = {"one": b"the first jar", "two": b"the second"}
JARS = tuple(
    Jar("org.example", name, "1.0", hashlib.sha256(content).hexdigest(), len(content))
    for name, content in CONTENT.items()
)


@pytest.fixture
def mirror(tmp_path):
    """A repository in a folder, which has both."""
    for jar in JARS:
        file = tmp_path / "mirror" / jar.repository_path
        file.parent.mkdir(parents=True)
        file.write_bytes(CONTENT[jar.artifact])
    return tmp_path / "mirror"


def names(folder):
    return sorted(file.name for file in folder.rglob("*") if file.is_file() and file.name != ".lock")


def test_what_is_missing_comes_and_what_is_right_stays(tmp_path, mirror):
    """A second call finds nothing to do; a file that was changed is replaced."""
    first = fetch(JARS, tmp_path / "jars", mirror.as_uri())
    assert (first.fetched, first.kept, first.bytes_fetched) == (("one-1.0.jar", "two-1.0.jar"), (), 23)
    (tmp_path / "jars" / "one-1.0.jar").write_bytes(b"the first jaR")
    second = fetch(JARS, tmp_path / "jars", mirror.as_uri())
    assert (second.fetched, second.kept) == (("one-1.0.jar",), ("two-1.0.jar",))
    assert names(tmp_path / "jars") == ["one-1.0.jar", "two-1.0.jar"]
    assert CONTENT["one"] == (tmp_path / "jars" / "one-1.0.jar").read_bytes()


def test_another_file_is_refused_and_what_came_before_it_is_kept(tmp_path, mirror):
    """The repository's bytes are compared; when it is right again, the rest comes."""
    wrong = mirror / JARS[1].repository_path
    wrong.write_bytes(b"the seconD")
    with pytest.raises(SetupError, match=r"two-1\.0\.jar is not the file that was pinned"):
        fetch(JARS, tmp_path / "jars", mirror.as_uri())
    assert names(tmp_path / "jars") == ["one-1.0.jar"]
    wrong.write_bytes(CONTENT["two"])
    assert fetch(JARS, tmp_path / "jars", mirror.as_uri()).fetched == ("two-1.0.jar",)


@pytest.mark.long
def test_what_a_run_that_was_cut_off_has_left_is_taken_over(tmp_path):
    """Whole files of its downloads are used without asking anybody; halves are not."""
    downloads = tmp_path / "jars" / ".downloads" / "org.example"
    downloads.mkdir(parents=True)
    (downloads / "one-1.0.jar").write_bytes(CONTENT["one"])
    (downloads / "two-1.0.jar").write_bytes(b"half")
    with pytest.raises(StorageUnavailable, match="MAVEN_REPOSITORY"):
        fetch(JARS, tmp_path / "jars", (tmp_path / "nothing").as_uri())
    assert (tmp_path / "jars" / "one-1.0.jar").exists()
    assert not (tmp_path / "jars" / "two-1.0.jar").exists()


def test_a_mirror_is_a_url(tmp_path):
    """A path or another protocol is refused before anything is asked."""
    with pytest.raises(SetupError, match="not a URL"):
        fetch(JARS, tmp_path, "ftp://example.com")


def test_java_is_told_of_the_proxies():
    """The variables that everything else reads, small or large, as Java takes them."""
    told = proxy_options({"HTTPS_PROXY": "http://proxy:3128", "http_proxy": "http://p", "NO_PROXY": ".a,b"})
    assert told == [
        "-Dhttp.proxyHost=p",
        "-Dhttps.proxyHost=proxy",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=*.a|b",
    ]
    assert proxy_options({"NO_PROXY": "b"}) == []
