"""An example of each command, shown below its help."""

from __future__ import annotations

_EXAMPLES = """
init shop
run etl.py --tenant acme --input sync-output
worker --concurrency 4
job submit etl.py --tenant acme --input sync-output --wait
job list --tenant acme
job show nightly-2026-11-23
job logs nightly-2026-11-23
job cancel nightly-2026-11-23
job retry nightly-2026-11-23
job wait nightly-2026-11-23 --timeout 600
schedule create nightly etl.py --tenant acme --cron "0 2 * * *" --zone Europe/Berlin
schedule list --tenant acme
schedule enable nightly --tenant acme
schedule disable nightly --tenant acme
schedule delete nightly --tenant acme
tenant list
tenant create acme
tenant show --tenant acme
tenant history --tenant acme --limit 10
tenant diff 3 4 --tenant acme
tenant restore 3 --tenant acme --dry-run
tenant tag before-migration --tenant acme
tenant untag before-migration --tenant acme
tenant delete acme
tenant clone acme acme-test
tenant gc --tenant acme --dry-run
tenant verify --tenant acme
tenant erase Contact --key 007 --tenant acme
tenant retention --keep-days 90 --tenant acme
stream list --tenant acme
stream show Lead --where "Status = open" --tenant acme
stream history Lead --tenant acme
stream changes Lead --since 3 --tenant acme
stream diff Lead 3 4 --tenant acme
stream restore Lead 3 --tenant acme --dry-run
stream path Lead --tenant acme
stream row Lead 007 --tenant acme
stream explain Lead --tenant acme
stream import Lead leads.csv --key Id --tenant acme
stream export Lead --to exported --tenant acme
stream retype Lead Id string --tenant acme
stream drop Lead --tenant acme
stream release Lead --tenant acme
stream adopt Lead --tenant acme
stream repair Lead --tenant acme
sql "SELECT Status, count(*) AS leads FROM Lead GROUP BY Status" --tenant acme
file list --tenant acme
file read config.json --tenant acme
file write config.json new-config.json --tenant acme
file patch config.json '{"region": "eu"}' --tenant acme
file move old.json new.json --tenant acme
file delete old.json --tenant acme
file history config.json --tenant acme
import Account.csv --key Id --tenant acme
migrate hotglue/acme/snapshots --tenant acme --dry-run
export exported --tenant acme
gc --tenant acme --dry-run
delta show snapshots/Lead
delta history snapshots/Lead
delta verify snapshots/Lead
delta checkpoint snapshots/Lead
serve --port 8750
key create --name etl --scope snapshots:read
key list
key rotate 4kq2
key revoke 4kq2
key sign-out
key rotate-master
audit list --tenant acme
audit export --tenant acme
audit verify
spark status
spark start
spark stop
spark logs
doctor
upgrade
prove --storage s3://bucket/prefix
config show
config get root
config set root /srv/freezeframe
config path
"""


def example(command: str) -> str | None:
    """The example of a command such as ``tenant list``, as a shell takes it; None for a group."""
    lines = (line for line in _EXAMPLES.splitlines() if line == command or line.startswith(f"{command} "))
    found = next(lines, None)
    return None if found is None else f"Example: freezeframe {found}"
