"""The jars that the tests compare with: pinned by checksum, fetched once, never half there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
SCRIPT = REPOSITORY / "tools" / "fetch_jars.py"
STORAGE_JAR = "io/delta/delta-storage/4.4.0/delta-storage-4.4.0.jar"


@pytest.fixture
def mirror(tmp_path):
    """A repository in a folder, with files of the right names and other content."""
    for path in ("io/delta/delta-spark_4.2_2.13/4.4.0/delta-spark_4.2_2.13-4.4.0.jar", STORAGE_JAR):
        file = tmp_path / "mirror" / path
        file.parent.mkdir(parents=True)
        file.write_bytes(b"not the jar")
    return tmp_path / "mirror"


def fetch(folder, mirror, *kind):
    """Run the script as `make` does."""
    return subprocess.run(
        [sys.executable, SCRIPT, folder, *kind],
        env={**os.environ, "MAVEN_REPOSITORY": mirror.as_uri()},
        capture_output=True,
        text=True,
        check=False,
    )


def test_another_file_under_the_right_name_is_refused(tmp_path, mirror):
    """A mirror that serves other bytes is named, and nothing of it is kept."""
    done = fetch(tmp_path / "jars", mirror)

    assert done.returncode == 1
    assert "is not the file that was pinned" in done.stderr
    assert list((tmp_path / "jars").rglob("*.jar*")) == []


def test_what_is_there_and_right_is_not_fetched_again(mirror):
    """With all jars in place a mirror that has only wrong files is never asked."""
    jars = REPOSITORY / ".cache" / "jars"
    if not any(jars.glob("*.jar")):
        pytest.skip("the jars are not here: `make test` fetches them")

    done = fetch(jars, mirror, "s3")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
