"""Every verb of a tenant, after its stream was opened by its path: what that did changes nothing."""

import os
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.examples import sampled
from tests.given import content

from freezeframe.log import DeltaLog
from freezeframe.storage import LocalStorage

NOW = {"gc_grace_seconds": 0, "lease_dead_seconds": 0}


def _rows(*ids, value=0):
    return pa.table({"Id": [str(id_) for id_ in ids], "v": [id_ + value for id_ in ids]})


def _job(tenant):
    with tenant.job() as job:
        job.stream("A").update(_rows(1, 2, value=50), key="Id")
        job.stream("A").update(_rows(2, 9, value=70), key="Id")
        job.files.write("f", b"1")
    return job.receipt.streams["A"].updated


def _dry_run(tenant):
    told = []
    context = replace(tenant.context, review=lambda run, _: told.append(run), is_dry_run=True)
    with tenant.with_context(context).job() as job:
        job.stream("A").update(_rows(1, value=99), key="Id")
        job.stream("A").update(_rows(3, value=99), key="Id")
    return len(told)


def _history(tenant):
    return [(item.entry.version, item.before, item.after) for item in tenant["A"].row_history("1").versions]


VERBS = {
    "update": lambda tenant: tenant["A"].update(_rows(1, 30, value=5)).updated,
    "override": lambda tenant: tenant["A"].update(_rows(1, 2, 3, 4, value=20), override=True).updated,
    "job": _job,
    "preview": lambda tenant: tenant["A"].preview(_rows(1, value=7)).updated,
    "changes": lambda tenant: len(tenant["A"].changes(since=0)),
    "row history": _history,
    "difference": lambda tenant: tenant["A"].diff(0).counts.to_json(),
    "tenant's difference": lambda tenant: sorted(tenant.diff(0).streams),
    "retype": lambda tenant: tenant["A"].retype("v", "string").committed,
    "retype back": lambda tenant: tenant["A"].retype("v", "long").committed,
    "repair": lambda tenant: tenant["A"].repair().action,
    "restore": lambda tenant: tenant.restore(0) is not None,
    "stream's restore": lambda tenant: tenant["A"].restore(1) is not None,
    "told gc": lambda tenant: tenant.gc(dry_run=True).files,
    "gc": lambda tenant: tenant.gc().files,
    "gc again": lambda tenant: tenant.gc().files,
    "erase": lambda tenant: tenant.erase("A", ["2"]).left.remaining,
    "update after it": lambda tenant: tenant["A"].update(_rows(1, 40, value=6)).updated,
    "erase again": lambda tenant: tenant.erase("A", ["3"]).left.remaining,
    "verify": lambda tenant: [str(item) for item in tenant.verify().findings],
    "drop": lambda tenant: tenant.drop_stream("A") > 0,
}
BEFORE = {
    "never": lambda _: None,
    "absolute": lambda table: DeltaLog.open(table).to_arrow(),
    "relative": lambda table: DeltaLog.for_table(os.path.relpath(table)).to_arrow(),
    "linked": lambda table: DeltaLog.open(table.parent.parent / "link" / table.name).to_arrow(),
    "URL": lambda table: DeltaLog.open(f"file://{table}").to_arrow(),
    "below": lambda table: (
        DeltaLog.for_table(LocalStorage(table.parent.parent), f"t/{table.name}").update().to_arrow()
    ),
}

WAYS = {"absolute": True, "relative": False, "linked": False, "URL": True, "below": False}
"""Ways to open it, and whether what was opened is remembered from one verb to the next."""


@pytest.mark.long
@pytest.mark.sampled
def test_a_stream_opened_by_its_path_changes_no_verb(tmp_path, open_finding):
    """Each verb answers as it does where nobody opened it, and leaves the same rows, past and present."""

    def walk(before, *, is_kept_open):
        folder, open_by_path = tmp_path / before, BEFORE[before]
        (folder / "t").mkdir(parents=True)
        (folder / "link").symlink_to(folder / "t")
        tenant = open_finding(LocalStorage(folder / "t"), **NOW, streams={"A": _rows(*range(12))})
        tenant["A"].update(_rows(3, 4, value=1))
        tenant.set_retention(keep_versions=4)
        found = []
        for verb, call in VERBS.items():
            if not is_kept_open:
                DeltaLog.clear_cache()
            open_by_path(folder / "t" / "A.snapshot")
            listed = [entry.version for entry in tenant.history()] if verb != "restore" else []
            found.append((verb, call(tenant), listed))
            fresh = open_finding(LocalStorage(folder / "t"), **NOW)
            found.append([content(fresh.at(entry.version)) for entry in fresh.history()])
        DeltaLog.clear_cache()
        return found

    plain = walk("never", is_kept_open=True)
    for before, is_kept_open in sampled(WAYS.items()):
        assert plain == walk(before, is_kept_open=is_kept_open), before
