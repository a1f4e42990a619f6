"""What the console's tests look at: some hundred tenants, many with a row, and one with days of history."""

import secrets

import pyarrow as pa

from freezeframe.control.database import ControlDatabase, database_url
from freezeframe.service.access.access import Stores
from freezeframe.service.access.keys import ROLES, Keys
from freezeframe.settings import load_settings

ENVIRONMENT = "default"
TENANTS = 220
EMPTY = 100
"""The first customers have nothing: tests fill them."""
ROWS = 5000


def fill(root, key_file):
    """Make the store at ``root``, the master key in ``key_file``; a key for each role."""
    key_file.write_text(secrets.token_hex(32))
    key_file.chmod(0o600)
    settings = load_settings(root=str(root)).model_copy(update={"master_key_file": key_file})
    store = Stores(str(root), settings).environment(ENVIRONMENT)
    for number in range(TENANTS - 2):
        customer = store.tenant(f"customer-{number:04d}", create=True)
        if number >= EMPTY:
            customer.stream("Account").update(pa.table({"Id": ["001"]}), "Id")
    fill_acme(store.tenant("acme", create=True))
    store.tenant("globex", create=True)
    database = ControlDatabase.open(database_url(settings, str(root)))
    keys = Keys(database)
    return {role: keys.create(role, scopes=scopes).key for role, scopes in ROLES.items()}


def fill_acme(tenant):
    """Accounts and invoices over four jobs; files, one of them sealed."""
    with tenant.job("job-4708", message="first sync", who="sync") as job:
        job.stream("Account").update(accounts(0), "Id", override=True)
        job.stream("Invoice").update(invoices({}), "Id", override=True)
        job.files.write_json(
            "tenant-config.json", {"currency": "EUR", "batch_size": 500, "flags": {"beta": False}}
        )
    with tenant.job("job-4709", message="nightly", who="sync") as job:
        job.stream("Account").update(accounts(1), "Id", override=True)
        job.files.write("mappings/accounts.csv", b"Id,RemoteId\n1,a\n2,b\n")
    with tenant.job("job-4710", message="nightly", who="sync") as job:
        job.stream("Invoice").update(invoices({7: "paid", 8: "paid"}), "Id", override=True)
        job.files.write_json("api-config.json", {"token": "the secret"}, sealed=True)
    with tenant.job("job-4711", message="a new script went out", who="sync") as job:
        job.stream("Invoice").update(invoices({7: "void", 11: "void"}, ROWS - 3), "Id", override=True)
        job.files.write("readme.txt", b"What is kept here comes from the ledger.\n")


def accounts(step):
    return pa.table(
        {"Id": [f"{number:03d}" for number in range(120 + step)], "City": [f"City {step}"] * (120 + step)}
    )


def invoices(states, rows=ROWS):
    numbers = range(rows)
    return pa.table(
        {
            "Id": [9_007_199_254_740_000 + 2 * number + 1 for number in numbers],
            "State": [states.get(number, "open") for number in numbers],
            "Amount": [number * 1.5 for number in numbers],
            "Note": [None if number % 3 else "checked" for number in numbers],
        }
    )
