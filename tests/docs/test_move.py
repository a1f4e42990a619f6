"""The page "Move in a day": its commands bring tenants here, run beside gluestick, switch, and lead back."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest

import freezeframe

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3000)]

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = REPOSITORY / "docs" / "how-to" / "migrate-from-hotglue.md"
BRING, SCRIPTS, COMPARE, SWITCH, BACK = re.findall(
    r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
TENANTS = [f"t{number:02}" for number in range(1, 21)]
FORKED = "t07"

UTIL = """
import os
import pandas as pd


def get_snapshot(snapshot_dir, stream):
    path = f"{snapshot_dir}/{stream}.snapshot.csv"
    return pd.read_csv(path) if os.path.isfile(path) else None


def update_snapshot(snapshot_dir, stream, key, data_df):
    rows = data_df.drop_duplicates(key, keep="last")
    before = get_snapshot(snapshot_dir, stream)
    if before is not None:
        rows = rows.set_index(key).combine_first(before.set_index(key)).reset_index()
    rows.to_csv(f"{snapshot_dir}/{stream}.snapshot.csv", index=False)
    return rows
"""
BEGINNING = """
import gluestick as gs
import json
import os
import pandas as pd
from lib import util

ROOT_DIR = os.environ.get("ROOT_DIR", ".")
INPUT_DIR, OUTPUT_DIR = f"{ROOT_DIR}/sync-output", f"{ROOT_DIR}/etl-output"
SNAPSHOT_DIR = f"{ROOT_DIR}/snapshots"
config = json.load(open(f"{SNAPSHOT_DIR}/tenant-config.json"))
fields = json.load(open(f"{ROOT_DIR}/field-map.json"))
state = json.load(open(f"{ROOT_DIR}/state.json"))
input_data = gs.read_csv_folder(INPUT_DIR)
"""
ACCOUNTS = """
if input_data.get("Account") is not None:
    util.update_snapshot(SNAPSHOT_DIR, "Account", ["Id"], input_data["Account"])
accounts = util.get_snapshot(SNAPSHOT_DIR, "Account")
gs.to_export(accounts[fields["Account"]], "Accounts", OUTPUT_DIR, keys=["Id"], export_format="csv")
"""
DEALS = """
deals = gs.snapshot_records(input_data.get("Deal"), "Deal", SNAPSHOT_DIR, pk="Id")
rates = pd.read_csv(f"{SNAPSHOT_DIR}/rates/rates.csv")
mapping, names = gs.read_tenant_custom_mapping(config, flow_id=os.environ["FLOW"])
deals = deals.merge(accounts, left_on="AccountId", right_on="Id", suffixes=("", "_account"), how="left")
deals = deals.merge(rates, on="Currency", how="left").sort_values("Id")
deals["Total"] = (deals["Amount"] * deals["Rate"]).round(2)
deals = deals.rename(columns=mapping["Deal"])[[*mapping["Deal"].values(), "Total"]]
gs.to_export(deals, names["Deal"], OUTPUT_DIR, keys=["Number"])
"""
CHANGED_ONLY = """
sent = gs.drop_redundant(accounts, "Account.sent", SNAPSHOT_DIR, pk=["Id"])
gs.to_export(sent, "Changed", OUTPUT_DIR, keys=["Id"], export_format="csv")
"""
PLUGIN = """
def main(context, df, model, key_properties, tenant_config):
    df["Region"] = tenant_config["region"]
    return df, model, key_properties
"""


def write_script(folder, cells):
    """A deployed script of hotglue: the notebook and what lies beside it."""
    for name in ("lib", "plugins"):
        (folder / name).mkdir(parents=True)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
    nbformat.write(notebook, folder / "etl.ipynb")
    (folder / "lib" / "__init__.py").touch()
    (folder / "lib" / "util.py").write_text(UTIL)
    (folder / "plugins" / "Opportunity_post_process.py").write_text(PLUGIN)
    (folder / "field-map.json").write_text('{"Account": ["Id", "Name", "Phone", "Employees"]}')


def write_export(folder, number):
    """What hotglue kept of a tenant: snapshots of both kinds, configuration with a mapping, a data file."""
    (folder / "rates").mkdir(parents=True)
    accounts = {"Id": [1, 2, 10], "Name": ["Ann & Co", "Bo, Söhne", None], "Employees": [number, None, 7]}
    pd.DataFrame({**accounts, "Phone": ["12", "+49 30", ""]}).to_csv(
        folder / "Account.snapshot.csv", index=False
    )
    deals = {"Id": ["D-2", "D-1"], "AccountId": [1, 2], "Amount": [10.5, None], "Currency": ["EUR", "CHF"]}
    pd.DataFrame({**deals, "Closed": ["2026-10-01", None]}).to_parquet(
        folder / "Deal.snapshot.parquet", index=False
    )
    fields = {"Id": "Number", "Name": "Customer", "Amount": "Amount", "Currency": "Currency"}
    config = {"region": "eu", "hotglue_mapping": {"mapping": {"F1": {"Deal/Opportunity": fields}}}}
    (folder / "tenant-config.json").write_text(json.dumps(config))
    (folder / "rates" / "rates.csv").write_text(f"Currency,Rate\nEUR,1\nCHF,1.0{number}\n")


def write_sync(folder, number, day):
    """A sync: new and changed rows, empty cells, whole numbers beside missing ones; no accounts on day 3."""
    output = folder / "sync-output"
    output.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps({"bookmarks": {"day": day}}))
    (folder / "config.json").write_text('{"token": "secret"}')
    if day != 3:
        rows = f'Id,Name,Employees,Phone\n{10 + day},New {number},,\n1,,{day},+1 0{day}1\n2,"Bo, {day}",9,\n'
        (output / f"Account-2026112{day}T040000.csv").write_text(rows)
    deals = f"D-{day + 2},{9 + day},{day}.25,CHF,\nD-1,2,,EUR,2026-11-0{day}\n"
    (output / f"Deal-2026112{day}T040000.csv").write_text(f"Id,AccountId,Amount,Currency,Closed\n{deals}")


HOTGLUE = """
import json, os, sys
for root, tenant, code in json.load(sys.stdin):
    os.chdir(root)
    sys.path[0] = root
    os.environ.update(ROOT_DIR=root, FLOW="F1", TENANT=tenant)
    exec(code, {"__name__": "__main__"})
"""


def run_as_hotglue(place, snapshots, day, name="etl.ipynb"):
    """Run the notebooks as hotglue does, in a folder with all that is deployed; the text of each output."""
    jobs = []
    for tenant in TENANTS:
        root = place / "hotglue" / snapshots / tenant / f"{day}"
        shutil.copytree(place / (f"forks/{tenant}" if tenant == FORKED else "etl"), root)
        shutil.copytree(place / "syncs" / tenant / f"2026-11-2{day}", root, dirs_exist_ok=True)
        (root / "etl-output").mkdir()
        (root / "snapshots").symlink_to((place / snapshots / tenant).resolve())
        cells = nbformat.read(root / name, as_version=4).cells
        jobs.append((str(root), tenant, "\n".join(cell.source for cell in cells)))
    run = subprocess.run(
        [sys.executable, "-c", HOTGLUE], input=json.dumps(jobs), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    shutil.rmtree(place / "hotglue-output", ignore_errors=True)
    for root, tenant, _ in jobs:
        shutil.copytree(Path(root) / "etl-output", place / "hotglue-output" / tenant)
    outputs = place / "hotglue-output"
    return {file.relative_to(outputs): file.read_text() for file in sorted(outputs.rglob("*.*"))}


@pytest.fixture
def bash(tmp_path):
    """A function that runs one of the page's blocks in the folder; what it printed."""
    programs = Path(sys.executable).parent
    variables = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "FREEZEFRAME_ENGINE": "auto",
        "FREEZEFRAME_STATE_DIR": str(tmp_path / "state"),
        "FREEZEFRAME_RUNNER_IDLE_SECONDS": "20",
        "FREEZEFRAME_SPARK_IDLE_SECONDS": "60",
    }

    def run(block):
        done = subprocess.run(
            ["bash", "-euc", block], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    return run


def test_tenants_move_in_a_day_and_back(tmp_path, bash):
    """Three syncs beside gluestick are equal, so are two after the switch, and gluestick's own after all."""
    write_script(tmp_path / "etl", [BEGINNING, ACCOUNTS, DEALS])
    write_script(tmp_path / "forks" / FORKED, [BEGINNING, ACCOUNTS, CHANGED_ONLY])
    for number, tenant in enumerate(TENANTS, start=1):
        write_export(tmp_path / "export" / tenant, number)
        for day in range(1, 7):
            write_sync(tmp_path / "later" / tenant / f"2026-11-2{day}", number, day)
    shutil.copytree(tmp_path / "export", tmp_path / "kept")

    def sync(day):
        for tenant in TENANTS:
            name = f"{tenant}/2026-11-2{day}"
            shutil.copytree(tmp_path / "later" / name, tmp_path / "syncs" / name)

    bash(BRING)
    bash(SCRIPTS)
    for day in (1, 2, 3):
        sync(day)
        run_as_hotglue(tmp_path, "kept", day)
        bash(COMPARE)
        tenant = freezeframe.open(tmp_path / "freezeframe-data").tenant("t03")
        accounts = pd.read_csv(tmp_path / "kept" / "t03" / "Account.snapshot.csv")
        sizes = [len(tenant.stream(name).read()) for name in ("Account", "Deal")]
        assert (tenant.version, sizes) == (day, [len(accounts), 2 + day])
    told = bash(SWITCH)
    assert f"for {len(TENANTS)} tenants: {len(TENANTS)} succeeded" in told
    assert f"1 of {len(TENANTS)} tenants would change" in told  # the fork, whose hashes get a stream
    for day in (4, 5):
        sync(day)
        run_as_hotglue(tmp_path, "kept", day, "etl.ipynb.before")
        bash(COMPARE)
    bash(BACK)
    sync(6)
    kept, back = (run_as_hotglue(tmp_path, name, 6, "etl.ipynb.before") for name in ("kept", "back"))
    assert [name for name in kept if kept[name] != back[name]] == [Path(FORKED) / "Changed.csv"]
