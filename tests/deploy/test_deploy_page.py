"""docs/how-to/deploy.md: its commands are followed to the end, on a plain Debian 12 with systemd."""

import json
import os
import re
import shutil
import subprocess

import pytest
from tests.deploy.debian_machine import REPOSITORY, start_machine

from freezeframe.settings import Settings

PAGE = (REPOSITORY / "docs" / "how-to" / "deploy.md").read_text()
DEPLOY = REPOSITORY / "deploy"
RELEASE_BEFORE = "55758732"
# Of the environment of a process, and no settings.
VARIABLES = {"FREEZEFRAME", "FREEZEFRAME_DEBUG", "FREEZEFRAME_CONFIG"}


def sections(text):
    """Return the ``sh`` blocks of each section by its title, in the page's order."""
    parts = re.split(r"^##+ (.+)$", text, flags=re.MULTILINE)
    return {
        title: re.findall(r"^```sh\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


SECTIONS = sections(PAGE)


def test_the_commands_are_bash():
    """Each block and each script of the folder parses."""
    scripts = [DEPLOY / "freezeframe-admin", DEPLOY / "freezeframe-backup"]
    texts = [block for blocks in SECTIONS.values() for block in blocks] + [
        file.read_text() for file in scripts
    ]
    wrong = [
        done.stderr
        for text in texts
        if (
            done := subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        ).stderr
    ]

    assert len(texts) > 15
    assert wrong == []


def test_each_message_of_the_table_is_tried():
    """The nightly test has a cause for each of them."""
    table = PAGE[PAGE.index("## When something is wrong") : PAGE.index("## In containers")]

    assert re.findall(r"^\| `(.+?)`", table, re.MULTILINE) == list(FAULTS)


def test_the_settings_and_files_that_are_named_exist():
    """On the page, in units, scripts and container files; each file of the folder has a use."""
    files = [file for file in DEPLOY.iterdir() if file.is_file()]
    text = PAGE + "".join(file.read_text() for file in files)
    settings = {f"FREEZEFRAME_{name.upper()}" for name in Settings.model_fields}
    named = set(re.findall(r"\bFREEZEFRAME(?:_[A-Z0-9]+)*\b", text))
    used = set(re.findall(r"(?<!tests/)deploy/([\w.-]+\w)", PAGE))

    assert named - settings - VARIABLES == set()
    assert {name for name in used if not (DEPLOY / name).is_file()} == set()
    assert {
        file.name for file in files if file.suffix not in {".service", ".slice", ".timer"}
    } - used == set()


# Helpers of a script that brings a message about: a command with other settings than the service's.
HELPERS = """
store="--root /srv/freezeframe/store"
with() { settings=$1; shift; systemd-run --quiet --pipe --wait --collect --uid=freezeframe \\
    --setenv=FREEZEFRAME_SERVICE_SECRET_FILE=/etc/freezeframe/service.secret \\
    --property=EnvironmentFile=$settings /opt/freezeframe/bin/freezeframe "$@" $store 2>&1 || true; }
as_owner() { (cd / && runuser -u postgres -- psql --quiet --dbname=freezeframe --command="$1"); }
"""
FAULTS = {
    "Failed to load environment files": """
        mv /etc/freezeframe/freezeframe.env /root/
        systemctl restart freezeframe || true
        journalctl --unit freezeframe --lines 20 --no-pager
        mv /root/freezeframe.env /etc/freezeframe/
        systemctl restart freezeframe""",
    "There is no Java on this machine": """
        mv /usr/lib/jvm /usr/lib/jvm.away
        freezeframe-admin doctor 2>&1 || true
        mv /usr/lib/jvm.away /usr/lib/jvm""",
    'password authentication failed for user "freezeframe_service"': """
        sed -E 's/:[0-9a-f]+@/:wrong@/' /etc/freezeframe/freezeframe.env >/root/wrong.env
        with /root/wrong.env key list""",
    "permission denied for table keys": "with /etc/freezeframe/worker.env key list",
    "permission denied for table control_version": """
        as_owner 'REVOKE SELECT ON control_version FROM freezeframe_worker'
        with /etc/freezeframe/worker.env job list
        as_owner 'GRANT SELECT ON control_version TO freezeframe_worker'""",
    "NOT_AUTHENTICATED": "curl --silent --header 'x-api-key: a.b' http://127.0.0.1:8750/api/v1/keys",
    "SEALING_UNAVAILABLE": """
        echo secret >/tmp/token.json
        chmod 644 /tmp/token.json
        freezeframe-admin file write token.json /tmp/token.json --sealed --env production --tenant tenant-001
        head -c 32 /dev/urandom | install -m 600 -o freezeframe /dev/stdin /etc/freezeframe/other.key
        cd /etc/freezeframe
        sed '$aFREEZEFRAME_MASTER_KEY_FILE=/etc/freezeframe/other.key' freezeframe.env >/root/other.env
        with /root/other.env file read token.json --json --env production --tenant tenant-001""",
}


# The release before: an environment with its wheel, an empty store and database, and in them a tenant with a
# stream, a key, a schedule and a job that waits.
BEFORE = r"""
systemctl stop freezeframe freezeframe-worker
cp -al "$(readlink -f /opt/freezeframe)" /opt/freezeframe-before
cd /opt/freezeframe-before
rm bin/freezeframe
bin/python -m pip uninstall --quiet --yes freezeframe
bin/python -m pip install --quiet /root/before/dist/*.whl
ln -sfnT freezeframe-before /opt/freezeframe
rm -r /srv/freezeframe/store
install -d -m 0700 -o freezeframe -g freezeframe /srv/freezeframe/store
cd /
runuser -u postgres -- dropdb freezeframe
runuser -u postgres -- createdb --owner=freezeframe_service freezeframe
printf 'Id,Name\n007,Ada\n' >/tmp/Account.csv
chmod 644 /tmp/Account.csv
freezeframe-admin tenant create acme --env production
freezeframe-admin import /tmp/Account.csv --key Id --tenant acme --env production
freezeframe-admin key create --name old
script=/srv/freezeframe/scripts/hourly.py
freezeframe-admin schedule create hourly $script --cron '5 5 1 1 *' --tenant acme --env production
freezeframe-admin job submit $script --tenant acme --env production --job-id waits
"""


class Followed:
    """The page on one machine: sections are followed in order, each once."""

    def __init__(self, machine):
        """Begin at the top. The restoration is for another machine: its test runs the commands."""
        self.machine = machine
        self._done = {"Restore": ""}

    def to(self, title):
        """Follow the page up to and with a section; return what its commands printed."""
        for section, blocks in SECTIONS.items():
            if section not in self._done:
                self._done[section] = "".join(self.machine.run(block, timeout=3600) for block in blocks)
            if section == title:
                return self._done[section]
        raise AssertionError(title)

    def request(self, path, *options):
        """Return what the service answers to an administrator, through the proxy, as JSON."""
        call = (
            "curl --silent --show-error --cacert /etc/nginx/freezeframe.pem --header @/root/admin-key.header"
        )
        return json.loads(
            self.machine.run(f"{call} https://snapshots.example.org/api/v1{path} {' '.join(options)}")
        )


@pytest.fixture(scope="module")
def followed():
    """A machine with a release in /root/release, as the page's first block makes it."""
    if not (REPOSITORY / ".cache" / "uv" / "bin" / "uv").exists():
        pytest.skip("uv is not in .cache/uv: tools/setup.sh python brings it")
    machine, folder = start_machine()
    try:
        release = machine.root / "root" / "release"
        built = re.search(r"^```text\n(tools/setup.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
        lines = [line for line in built.splitlines() if not line.startswith("scp")]
        commands = re.sub(r"(?<= )release\b", str(release), "\n".join(lines))
        subprocess.run(["sh", "-ec", commands], cwd=REPOSITORY, check=True, capture_output=True)
        yield Followed(machine)
    finally:
        machine.stop()
        shutil.rmtree(folder)


@pytest.mark.nightly
def test_a_service_stands_behind_its_proxy(followed):
    """As its user, confined, started with the machine; reached by TLS, and health and metrics only within."""
    doctor = followed.to("Service and worker")
    keys = followed.to("The proxy")
    run = followed.machine.run
    units = "freezeframe freezeframe-worker"
    shown = run(f"systemctl show --property=User,ActiveState,Slice,NRestarts {units}")
    address = "https://snapshots.example.org"
    curl = "curl --silent --cacert /etc/nginx/freezeframe.pem --output /dev/null --write-out %{http_code}"

    assert re.findall(r"\bERROR\b", doctor) == []
    assert '"name":"admin"' in keys
    for unit in shown.strip().split("\n\n"):
        assert dict(line.split("=", 1) for line in unit.splitlines()) == {
            "User": "freezeframe",
            "ActiveState": "active",
            "Slice": "freezeframe.slice",
            "NRestarts": "0",
        }
    assert run(f"systemctl is-enabled {units}").split() == ["enabled", "enabled"]
    assert [run(f"{curl} {address}/{path}") for path in ("openapi.json", "metrics", "health/ready")] == [
        *("200", "404", "404")
    ]
    assert run(f"{curl} http://snapshots.example.org/") == "301"
    assert run(f"{curl} --header 'x-api-key: a.b' {address}/api/v1/keys") == "401"
    assert (
        "permission denied"
        in run(
            "cat /root/admin-key.json | runuser -u freezeframe -- cat /root/admin-key.json 2>&1 || true"
        ).lower()
    )


@pytest.mark.nightly
def test_three_hundred_tenants_have_their_jobs(followed):
    """All succeed, once each; a second run of some meets stored rows, which Spark searches in the unit."""
    printed = followed.to("Scripts and tenants")
    tenants = "/environments/production/tenants"
    for number in (1, 2):
        followed.request(f"{tenants}/tenant-00{number}/schedules/hourly/runs", "--json {}")
    again = followed.machine.run(SECTIONS["Scripts and tenants"][2], timeout=3600)
    # Schedules come due meanwhile, so there may be more.
    counts = [re.findall(r"\d+", text.splitlines()[-1]) for text in (printed, again)]
    done = followed.machine.run(
        "freezeframe-admin job list --env production --status succeeded --limit 1000 --json"
    )

    assert [int(failed) for _, failed in counts] == [0, 0]
    assert [int(succeeded) >= least for (succeeded, _), least in zip(counts, (300, 302), strict=True)] == [
        True
    ] * 2
    assert len({job["tenant"] for job in json.loads(done)["jobs"]}) == 300
    assert "freezeframe_spark_up 1.0" in followed.machine.run("curl --silent http://127.0.0.1:9750/metrics")


@pytest.mark.nightly
@pytest.mark.parametrize(("message", "script"), FAULTS.items())
def test_what_is_wrong_is_said(followed, message, script):
    """A message of the page's table, from its cause, without a traceback."""
    followed.to("Scripts and tenants")
    said = followed.machine.run(f"{HELPERS}\n{script}")

    assert message in said
    assert "Traceback" not in said


@pytest.mark.nightly
def test_a_backup_is_restored_and_compared(followed):
    """Beside the running service nothing differs; a backup that fails leaves all running, and no copy."""
    followed.to("Back up")
    run = followed.machine.run
    tried = followed.to("Try a restore")
    failed = run(
        "systemctl stop postgresql; freezeframe-backup /var/backups/freezeframe 2>&1 && exit 1; "
        "systemctl start postgresql; ls /var/backups/freezeframe | grep -v part"
    )
    state = run(
        "systemctl show --property=FreezerState --value freezeframe freezeframe-worker freezeframe.slice"
    )

    assert tried == ""
    assert len(re.findall(r"^\d{4}-.*Z$", failed, re.MULTILINE)) == 1
    assert state.split() == ["running"] * 3
    assert "freezeframe-backup.timer" in run("systemctl list-timers --no-pager")


@pytest.mark.nightly
def test_a_lost_machine_is_restored(followed):
    """Into an empty store and database: tenants, keys, schedules and jobs are those of the backup."""
    followed.to("Try a restore")
    run = followed.machine.run
    run("freezeframe-backup /var/backups/freezeframe")

    def known():
        schedules = followed.request("/environments/production/schedules?limit=300")["schedules"]
        return (
            [(item["tenant"], item["cron"]) for item in schedules],
            followed.request("/environments/production/tenants/tenant-001/streams/Run/rows")["rows"],
            run("freezeframe-admin audit list --limit 5 --json"),
        )

    before = known()
    run(
        "systemctl disable --now freezeframe freezeframe-worker; cd /; rm -r /srv/freezeframe/store "
        "/etc/freezeframe/*.env; runuser -u postgres -- dropdb freezeframe; "
        "for role in service worker; do runuser -u postgres -- dropuser freezeframe_$role; done"
    )
    first_part = ("User, folders, keys", "The database", "Restore")
    for block in [block for title in first_part for block in SECTIONS[title]]:
        run(block)
    run(SECTIONS["The first key"][1])
    run(SECTIONS["Service and worker"][0])

    assert json.loads(run("freezeframe-admin audit verify --json"))["is_whole"] is True
    assert known() == before


@pytest.mark.nightly
def test_the_release_before_is_upgraded(followed):
    """Its store is read, its schedules and keys stay, and the worker goes on with its queue."""
    archive = subprocess.run(
        ["git", "-C", REPOSITORY, "archive", RELEASE_BEFORE], capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"the history of this clone has no {RELEASE_BEFORE}")
    followed.to("Try a restore")
    run, root = followed.machine.run, followed.machine.root
    source = root / "root" / "before"
    source.mkdir()
    subprocess.run(["tar", "x", "-C", source], input=archive.stdout, check=True)
    build = [REPOSITORY / ".cache" / "uv" / "bin" / "uv", "build", "--quiet", "--wheel"]
    subprocess.run(build, cwd=source, env=os.environ | {"FREEZEFRAME_SKIP_CONSOLE": "1"}, check=True)
    run(BEFORE)
    upgraded = followed.to("Upgrade")
    run(
        "umask 077; freezeframe-admin key create --name admin --scope admin --json >/root/admin-key.json; "
        "jq -r '\"x-api-key: \\(.key)\"' /root/admin-key.json >/root/admin-key.header"
    )
    shown = "freezeframe-admin job show waits --env production --tenant acme --json"
    run(f"timeout 900 bash -c 'until {shown} | grep -q succeeded; do sleep 2; done'")
    tenant = "/environments/production/tenants/acme"

    assert "was made by an older freezeframe" in upgraded
    assert '"old"' in run("freezeframe-admin key list --json")
    assert [row["Name"] for row in followed.request(f"{tenant}/streams/Account/rows")["rows"]] == ["Ada"]
    assert [item["name"] for item in followed.request("/environments/production/schedules")["schedules"]] == [
        "hourly"
    ]
    assert json.loads(run("freezeframe-admin tenant verify --all --json"))[0]["sound"]


@pytest.mark.nightly
def test_log_and_metrics_are_there(followed):
    """The last block of the page."""
    printed = followed.to("Logs and metrics")

    assert '"logger"' in printed
    assert {"freezeframe_jobs", "freezeframe_spark_up"} <= set(re.findall(r"^(\w+)", printed, re.MULTILINE))
