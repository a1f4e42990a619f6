"""Which Java starts Spark."""

import pytest

from freezeframe.engine.java import find_java
from freezeframe.errors import JavaNotFound, JavaUnsupported


def fake_java(folder, text):
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    command.chmod(0o755)
    return command


def test_no_java_is_one_error_with_the_remedy(tmp_path):
    """A machine without Java is told what to install."""
    with pytest.raises(JavaNotFound, match="openjdk-17-jre-headless"):
        find_java({"PATH": str(tmp_path)}, installed=())


def test_an_old_java_is_named(tmp_path):
    """A Java that Spark does not run on is named with its version."""
    command = fake_java(tmp_path, 'java version "1.8.0_392"')
    with pytest.raises(JavaUnsupported) as caught:
        find_java({"PATH": str(command.parent)}, installed=())
    assert f"{command} is Java 8" in str(caught.value)


def test_a_command_that_tells_no_version_is_no_java(tmp_path):
    """A broken java on the path is told apart from an old one."""
    command = fake_java(tmp_path, "Segmentation fault")
    with pytest.raises(JavaUnsupported, match="no Java that answers"):
        find_java({"PATH": str(command.parent)}, installed=())


def test_java_home_comes_first(tmp_path):
    """What the user chose by JAVA_HOME is taken before what is on the path."""
    chosen = fake_java(tmp_path / "chosen", 'openjdk version "21.0.2" 2024-01-16')
    other = fake_java(tmp_path / "other", 'openjdk version "17.0.15" 2025-04-15')
    java = find_java({"JAVA_HOME": str(tmp_path / "chosen"), "PATH": str(other.parent)}, installed=())
    assert (chosen, 21) == (java.command, java.version)


def test_an_installed_java_is_found_behind_an_unsupported_one(tmp_path):
    """A Java 25 on the path does not hide the Java 17 that the system has as well."""
    newest = fake_java(tmp_path / "newest", 'openjdk version "25" 2025-09-16')
    fake_java(tmp_path / "jvm" / "java-17-openjdk", 'openjdk version "17.0.15" 2025-04-15')
    java = find_java({"PATH": str(newest.parent)}, installed=((tmp_path / "jvm", "*{version}*/bin/java"),))
    assert java.version == 17
