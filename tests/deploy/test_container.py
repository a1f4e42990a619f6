"""The container files: what a script's container holds, and that the image is what was tried."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
OURS = ("service", "worker")


def test_the_secret_is_the_services_alone():
    """The worker is handed neither the file nor the setting, and no network but the inner one."""
    service, worker = (COMPOSE["services"][name] for name in OURS)

    assert set(service["secrets"]) == {"service.secret", "master.key"}
    assert worker["secrets"] == ["master.key"]
    assert {"FREEZEFRAME_SERVICE_SECRET_FILE"} <= set(service["environment"])
    assert "SECRET_FILE" not in str(worker["environment"])
    assert "//freezeframe_worker:" in worker["environment"]["FREEZEFRAME_DATABASE_URL"]
    assert worker["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"]["internal"]


def test_our_containers_have_no_rights():
    """A read-only root, the image's user, no capabilities, limits of memory and processes."""
    for container in (COMPOSE["services"][name] for name in OURS):
        assert container["read_only"]
        assert f"USER {container['user']}\n" in CONTAINERFILE
        assert container["cap_drop"] == ["ALL"]
        assert container["security_opt"] == ["no-new-privileges:true"]
        assert container["mem_limit"]
        assert container["pids_limit"]


def test_service_and_worker_share_what_waits_for_a_tenant():
    """A queued import's file lies with the service where the store is a bucket: the worker finds it there."""
    shared = "uploads:/var/lib/freezeframe/state/service/uploads"

    assert all(shared in COMPOSE["services"][name]["volumes"] for name in OURS)
    assert shared.partition(":")[2] in CONTAINERFILE


def test_the_image_is_made_by_the_tools_that_the_repository_is_made_by():
    """uv's version is that of the set-up, packages are the locked ones, and Python is one that is tested."""
    setup = (ROOT / "tools" / "setup.sh").read_text()

    assert re.search(r"uv_version=(.+)", setup)[1] == re.search(r"UV_VERSION=(.+)", CONTAINERFILE)[1]
    assert CONTAINERFILE.count("uv sync --locked --no-default-groups") == 2
