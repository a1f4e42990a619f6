"""Service and worker as users of their own on one store: what a script reaches, and what not."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest

REPOSITORY = Path(__file__).parents[2]
SERVICE, WORKER = 870, 871
TENANTS = "/api/v1/environments/prod/tenants"
TENANT = f"{TENANTS}/acme"
MAX_SECONDS = 120
SCRIPT = """
import json, os, sys
root, secret, service = os.environ["ROOT_DIR"], os.environ["PARAM_secret"], os.environ["PARAM_service"]
told = {"user": os.getuid(), "was": json.load(open(root + "/snapshots/state.json"))}
for place in (secret, f"/proc/{service}/environ", f"/proc/{service}/mem", f"/proc/{service}/fd/0"):
    try:
        open(place, "rb").read(1)
        told[place] = "read"
    except OSError as error:
        told[place] = type(error).__name__
try:
    os.kill(int(service), 15)
except OSError as error:
    told["kill"] = type(error).__name__
json.dump(told, open(root + "/snapshots/told.json", "w"))
"""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not sys.platform.startswith("linux"), reason="only root on Linux is two users"
)


@pytest.fixture
def machine():
    """A folder as `docs/how-to/deploy.md` lays it out: a store and a home for each of the two users."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    for name, user in (("store", SERVICE), ("service", SERVICE), ("worker", WORKER)):
        (folder / name).mkdir(mode=0o700)
        os.chown(folder / name, user, user)
    secret = folder / "service" / "service.secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    os.chown(secret, SERVICE, SERVICE)
    (folder / "scripts").mkdir()
    (folder / "scripts" / "etl.py").write_text(SCRIPT)
    yield folder
    shutil.rmtree(folder)


def prepared(machine, user, *command):
    """A command of the user, and its environment, as ``subprocess`` takes them."""
    home = machine / ("service" if user == SERVICE else "worker")
    places = {str(Path(one).resolve()): None for one in (sys.base_prefix, sys.prefix, REPOSITORY)}
    helper = (sys.executable, Path(__file__).with_name("as_user.py"), str(user), machine / "store")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "FREEZEFRAME_STATE_DIR": str(home / "state"),
        "FREEZEFRAME_SERVICE_SCRIPTS_DIR": str(machine / "scripts"),
        "FREEZEFRAME_ENGINE": "auto",
        "FREEZEFRAME_SPARK": "auto",
        "FREEZEFRAME_RUNNER_IDLE_SECONDS": "0",
    }
    if user == SERVICE:
        environment["FREEZEFRAME_SERVICE_SECRET_FILE"] = str(home / "service.secret")
    args = [*helper, str(SERVICE), ":".join(places), *command]
    return {"args": args, "env": environment, "cwd": home, "text": True}


def called(machine, user, *arguments):
    """The same for a command of freezeframe."""
    store = ("--root", machine / "store", "--json")
    return prepared(machine, user, sys.executable, "-m", "freezeframe", *arguments, *store)


def done(order):
    """What a command that must succeed prints."""
    ended = subprocess.run(**order, capture_output=True, check=False, timeout=MAX_SECONDS)
    if ended.returncode and "as_user.py" in ended.stderr and "OSError" in ended.stderr:
        pytest.skip("this kernel or file system has no idmapped mounts")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextlib.contextmanager
def served(machine):
    """The service, as its own user: a client with a key, and its process."""
    key = json.loads(done(called(machine, SERVICE, "key", "create")))["key"]
    with subprocess.Popen(
        **called(machine, SERVICE, "serve", "--port", "0", "--workers", "1"), stdout=subprocess.PIPE
    ) as process:
        try:
            address = json.loads(process.stdout.readline())
            headers = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=address["url"], headers=headers, timeout=MAX_SECONDS) as client:
                yield client, address["pid"]
        finally:
            process.terminate()


@pytest.mark.nightly
def test_a_script_works_in_the_store_and_does_not_reach_the_service(machine):
    """A job reads what the service wrote and the other way; secret, memory and process are the service's."""
    secret = str(machine / "service" / "service.secret")
    with served(machine) as (client, process):
        client.post(TENANTS, json={"tenant": "acme"}).raise_for_status()
        client.put(f"{TENANT}/files/state.json", json={"n": 1}).raise_for_status()
        rows = {"content": "Id,Name\n1,a\n2,b\n", "headers": {"Content-Type": "text/csv"}}
        client.post(f"{TENANT}/streams/Lead/import?key=Id", **rows).raise_for_status()
        order = {"script": "etl.py", "parameters": {"secret": secret, "service": process}}
        client.post(f"{TENANT}/jobs", json=order).raise_for_status()

        done(called(machine, WORKER, "worker", "--drain"))
        told = client.get(f"{TENANT}/files/told.json").raise_for_status().json()
        imported = client.get(f"{TENANT}/streams/Lead/rows").raise_for_status().json()

    refused = {told.pop(one) for one in list(told) if one not in {"user", "was"}}
    assert told == {"user": WORKER, "was": {"n": 1}}
    assert refused == {"PermissionError"}
    assert [row["Name"] for row in imported["rows"]] == ["a", "b"]
    owners = {one.lstat().st_uid for one in (machine / "store").rglob("*")}
    assert owners == {SERVICE}


def test_the_store_is_the_workers_through_its_mount_alone(machine):
    """Files of mode 0600 are read and written by both users; outside of the mount the worker is refused."""
    store, secret = machine / "store", machine / "service" / "service.secret"
    done(prepared(machine, SERVICE, "sh", "-c", f"umask 077; echo before > {store}/a"))
    shown = done(prepared(machine, WORKER, "sh", "-c", f"umask 077; cat {store}/a; echo after > {store}/b"))
    outside = subprocess.run(["cat", store / "a"], user=WORKER, group=WORKER, extra_groups=[], check=False)
    hidden = subprocess.run(**prepared(machine, WORKER, "cat", secret), check=False)

    assert (shown, (store / "b").read_text()) == ("before\n", "after\n")
    assert ((store / "b").stat().st_uid, (store / "b").stat().st_mode & 0o777) == (SERVICE, 0o600)
    assert (outside.returncode, hidden.returncode) == (1, 1)
