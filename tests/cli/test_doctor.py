"""The doctor: what is missing is found before the first job finds it."""

import json

from freezeframe.cli.main import main


def test_a_machine_with_java_is_fine(capsys, tmp_path, monkeypatch):
    """Python, a Java that Spark runs on, and a storage with an atomic create: exit code 0."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.4\" 2024-07-16' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))

    assert main(["doctor", "--json", "--dir", str(tmp_path)]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert [finding["part"] for finding in findings] == ["Python", "Java", "Storage"]
    assert all(finding["ok"] for finding in findings)
    assert "Java 21" in findings[1]["found"]


def test_a_folder_that_is_not_there_is_named(capsys, tmp_path):
    """The storage's finding says what is missing; the exit code is 1."""
    assert main(["doctor", "--json", "--dir", str(tmp_path / "no")]) == 1
    storage = json.loads(capsys.readouterr().out)[2]
    assert not storage["ok"]
    assert str(tmp_path / "no") in storage["found"]
