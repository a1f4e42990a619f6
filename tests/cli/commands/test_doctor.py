"""``freezeframe doctor``: what it looks at, also for production."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess

import pandas as pd
import pytest

import freezeframe
from freezeframe.cli.commands import doctor
from freezeframe.cli.commands.checks import looked_at
from freezeframe.cli.commands.doctor import production_looks
from freezeframe.cli.main import main
from freezeframe.control.database import ControlDatabase
from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine with a Java, an empty home and a store that is not there yet."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.4\" 2024-07-16' >&2\n")
    java.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    settings = {"ROOT": str(tmp_path / "store"), "STATE_DIR": str(home / "state")}
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.delenv("FREEZEFRAME_SPARK", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(f"FREEZEFRAME_{name}", value)
    monkeypatch.chdir(home)
    return tmp_path


@pytest.fixture
def examine(capsys):
    """The findings by part, after the exit code was compared."""

    def run(code, *arguments):
        assert code == main(["doctor", "--json", *arguments])
        return {load["part"]: load for load in json.loads(capsys.readouterr().out)}

    return run


def test_a_machine_that_has_all_is_fine(examine, machine):
    """Programs, storage, disk, clock, limits, database and key: exit code 0, and nothing was made."""
    found = examine(0)

    parts = [
        "Python",
        "Packages",
        "Settings",
        "Java",
        "Spark",
        "Spark's jars",
        "Storage",
        "Disk",
        "Clock",
        "Memory",
    ]
    assert [*parts, "Limits", "State", "Database", "Master key"] == list(found)
    assert all(item["ok"] for item in found.values())
    assert "Java 21" in found["Java"]["found"]
    assert "pyspark" in found["Packages"]["found"]
    assert not (machine / "store").exists()
    assert list((machine / "home").iterdir()) == []


def test_a_folder_that_is_not_there_is_named(examine, machine):
    """The storage's finding says what is missing and what to do; the exit code is 1."""
    storage = examine(1, "--dir", str(machine / "no"))["Storage"]

    assert not storage["ok"]
    assert str(machine / "no") in storage["found"]
    assert "--dir" in storage["remedy"]


def test_wrong_settings_are_a_finding(examine, machine, monkeypatch):
    """A broken file is told by its place and the rest is looked at all the same; a near miss is a warning."""
    monkeypatch.setenv("FREEZEFRAME_SPARK_MEMROY", "2g")
    found = examine(0)["Settings"]
    monkeypatch.setenv("FREEZEFRAME_XYZZY", "1")
    both = examine(0)["Settings"]
    assert "warning" == found["level"] == both["level"]
    assert found["remedy"] == "FREEZEFRAME_SPARK_MEMROY: Did you mean FREEZEFRAME_SPARK_MEMORY?"
    assert "FREEZEFRAME_SPARK_MEMROY, FREEZEFRAME_XYZZY" in both["found"]
    monkeypatch.delenv("FREEZEFRAME_XYZZY")
    (machine / "home" / "freezeframe.toml").write_text("spark_idle_seconds = 0\n")
    found = examine(1)
    assert "freezeframe.toml:1" in found["Settings"]["found"]
    assert found["Java"]["level"] == "ok"


def test_what_is_set_and_cannot_be_used_is_an_error(examine, machine, monkeypatch):
    """A Spark that nobody serves, a key that others may read, a database that is none."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    key = machine / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o644)
    database = machine / "control.db"
    database.write_bytes(b"no database at all, but long enough to look like one" * 100)
    monkeypatch.setenv("FREEZEFRAME_SPARK", f"sc://127.0.0.1:{port}/;token=pa55")
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(key))
    monkeypatch.setenv("FREEZEFRAME_DATABASE_URL", f"sqlite:///{database}")
    found = examine(1)

    assert {part for part, one in found.items() if not one["ok"]} == {"Spark", "Master key", "Database"}
    assert all(item["remedy"] for item in found.values() if not item["ok"])
    assert "pa55" not in json.dumps(found)
    key.chmod(0o600)
    assert examine(1)["Master key"]["level"] == "ok"


def test_the_control_database_is_looked_at_and_not_changed(examine, machine, monkeypatch):
    """One at this version is fine, an older one is a warning; neither is upgraded by looking."""
    database = machine / "control.db"
    monkeypatch.setenv("FREEZEFRAME_DATABASE_URL", f"sqlite:///{database}")
    assert "none yet" in examine(0)["Database"]["found"]
    assert not database.exists()
    ControlDatabase.open(f"sqlite:///{database}").close()
    assert examine(0)["Database"]["level"] == "ok"
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM control_version")
    connection.close()
    found = examine(0)["Database"]
    assert (found["level"], found["ok"]) == ("warning", True)


def test_the_folder_of_the_token_must_be_ours_alone(examine, machine):
    """Others who may look into it are a warning, with the command that ends that."""
    state = machine / "home" / "state"
    state.mkdir(mode=0o755)
    state.chmod(0o755)
    found = examine(0)["State"]

    assert ("warning", f"chmod 700 {state}") == (found["level"], found["remedy"])


def test_memory_that_does_not_fit_is_told(examine, monkeypatch):
    """A warm server larger than the machine gets the command that makes it smaller."""
    monkeypatch.setenv("FREEZEFRAME_SPARK_MEMORY", "64t")
    found = examine(0)["Memory"]

    assert found["level"] == "warning"
    assert found["remedy"].startswith("freezeframe config set spark_memory ")


def test_remedies_are_printed_below_the_table(capsys, monkeypatch):
    """People see each part in a line, and what to do about those that are not well."""
    monkeypatch.setenv("FREEZEFRAME_SPARK_MEMORY", "64t")
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert next(line.split()[:2] for line in lines if line.startswith("Memory")) == ["Memory", "warning"]
    assert lines[-1].startswith("Memory: freezeframe config set")


def test_a_tenant_in_a_store_is_told_with_the_way_out(examine, machine, capsys):
    """The store that was locked out opens again after the commands that doctor names, and nothing is lost."""
    root, other = machine / "a store", machine / "other"
    freezeframe.open(root).tenant("acme", create=True)
    tenant = freezeframe.open_tenant(other)
    tenant.stream("Account").update(pd.DataFrame({"Id": ["007"]}), key="Id")
    tenant.files.write("a.json", b"{}")
    for item in ("_freezeframe/log", "_freezeframe/blobs", "Account.snapshot"):
        shutil.copytree(other / item, root / item)
    (root / "_freezeframe" / "inputs").mkdir()
    with pytest.raises(InvalidOption, match="doctor"):
        freezeframe.open(root)

    remedies = [
        examine(1, *options)["Storage"]["remedy"] for options in (["--root", str(root)], ["--dir", str(root)])
    ]
    assert remedies[0] == remedies[1]
    command = remedies[0].partition("then run: ")[2].partition(" - the store")[0]
    subprocess.run(["/bin/sh", "-c", command], check=True)

    assert freezeframe.open(root).tenants() == ("acme",)
    freed = freezeframe.open_tenant(f"{root}-tenant")
    assert freed.stream("Account").read()["Id"].tolist() == ["007"]
    assert freed.files.read("a.json") == b"{}"
    assert (machine / "a store-tenant" / "_freezeframe" / "inputs").is_dir()
    assert examine(0, "--root", str(root))["Storage"]["level"] == "ok"


def test_the_doctor_tells_a_store_from_a_tenant(examine, machine):
    """A store given by --dir, and a tenant's directory given by --root, are errors with the right option."""
    store, tenant = machine / "many", machine / "one"
    freezeframe.open(store).tenant("acme", create=True)
    freezeframe.open_tenant(tenant).files.write("a", b"1")

    assert "--tenant" in examine(1, "--dir", str(store))["Storage"]["remedy"]
    assert "--dir" in examine(1, "--root", str(tenant))["Storage"]["remedy"]
    assert examine(0, "--dir", str(tenant))["Storage"]["ok"]


@pytest.fixture
def hardened(tmp_path, monkeypatch):
    """Settings that pass, for a test to spoil one of."""
    secret = tmp_path / "service.secret"
    secret.write_bytes(b"s" * 32)
    secret.chmod(0o600)
    scripts = tmp_path / "scripts"
    scripts.mkdir(mode=0o755)
    (scripts / "etl.py").write_text("")
    (scripts / "etl.py").chmod(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return {
        "service_secret_file": secret,
        "service_url": "https://snapshots.example.org",
        "service_scripts_dir": scripts,
        "service_tenant_stored_bytes_max": 1,
        "database_url": "postgresql://freezeframe:secret@db.example.org/freezeframe",
    }


def _levels(settings, root):
    looks = production_looks(Settings(**settings), root)
    return {part: looked_at(part, look).level for part, look in looks.items()}


def test_a_hardened_service_passes(hardened, tmp_path):
    """Every point is ok."""
    assert set(_levels(hardened, str(tmp_path)).values()) == {"ok"}


@pytest.mark.parametrize(
    ("part", "spoiled", "level"),
    [
        ("Service secret", {"service_secret_file": None}, "error"),
        ("Service address", {"service_url": "http://snapshots.example.org"}, "error"),
        ("Service address", {"service_url": ""}, "error"),
        ("Quotas", {"service_requests_per_second": 0}, "warning"),
        ("Workers' database", {"database_url": ""}, "warning"),
        ("Spark's authentication", {"spark": "sc://spark.example.com:15002"}, "error"),
        ("Spark's authentication", {"spark": "sc://spark.example.com:15002/;use_ssl=true"}, "error"),
        ("Spark's authentication", {"spark": "spark://spark.example.com:7077"}, "error"),
    ],
)
def test_a_point_that_is_not_met_is_told(hardened, tmp_path, part, spoiled, level):
    """That point alone, as an error or a warning."""
    levels = _levels({**hardened, **spoiled}, str(tmp_path))

    assert {part: level} == {one: found for one, found in levels.items() if found != "ok"}


def test_a_server_named_by_sparks_own_variable_is_looked_at(hardened, tmp_path, monkeypatch):
    """SPARK_REMOTE counts where the setting is open, as for jobs."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://spark.example.com:15002")
    assert _levels(hardened, str(tmp_path))["Spark's authentication"] == "error"

    monkeypatch.setenv("SPARK_REMOTE", "sc://spark.example.com:15002/;use_ssl=true;token=t")
    assert _levels(hardened, str(tmp_path))["Spark's authentication"] == "ok"


@pytest.mark.parametrize(
    ("line", "level"), [("spark.authenticate   true", "ok"), ("# spark.authenticate true", "error")]
)
def test_a_clusters_own_configuration_is_read(hardened, tmp_path, monkeypatch, line, level):
    """``spark.authenticate`` of ``spark-defaults.conf``; a comment sets nothing."""
    (tmp_path / "spark-defaults.conf").write_text(f"spark.master  spark://h:7077\n{line}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    spark = {"spark": "spark://spark.example.com:7077"}

    assert _levels({**hardened, **spark}, str(tmp_path))["Spark's authentication"] == level


@pytest.mark.parametrize(("name", "mode"), [("service.secret", 0o644), ("scripts/etl.py", 0o666)])
def test_a_mode_that_lets_others_in_is_told(hardened, tmp_path, name, mode):
    """A secret that others read, a script that others write."""
    (tmp_path / name).chmod(mode)

    assert [level for level in _levels(hardened, str(tmp_path)).values() if level != "ok"] == ["error"]


def test_root_is_told(hardened, tmp_path, monkeypatch):
    """Neither service nor worker need be root."""
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)

    assert _levels(hardened, str(tmp_path))["Account"] == "error"
