"""``freezeframe doctor --production``: the hardening checklist, each point good and bad."""

import os

import pytest

from freezeframe.cli.commands import doctor
from freezeframe.cli.commands.checks import looked_at
from freezeframe.cli.commands.doctor import production_looks
from freezeframe.settings import Settings


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
