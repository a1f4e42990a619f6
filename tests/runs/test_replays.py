"""Jobs run again in their order, from their kept inputs, with a mended script: what that changes of today."""

import json
import shutil
import subprocess
import sys
import uuid

import pandas as pd
import pytest
from tests.given import rows_of
from tests.runs.conftest import Runs
from tests.waiting import is_alive, until

from freezeframe.errors import InvalidOption, JobRevoked
from freezeframe.runs.replay.replays import replay_with
from freezeframe.runs.request import RunRequest, run_tenant
from freezeframe.runs.running import run
from freezeframe.runs.script_header import BUILT_IN_REPLAY, with_permitted_script
from freezeframe.script import tenants
from freezeframe.store.job import discard_job, find_held_job, publish_job
from freezeframe.store.model.directory import job_roots, job_roots_folder
from freezeframe.store.model.update_options import SYSTEM

pytestmark = pytest.mark.long

# Each job adds the amounts of its input to those that the one before has left, and counts its runs.
ETL = """
    import json
    import os
    import pandas as pd
    from helper import KEY
    from freezeframe import get_snapshot, update_snapshot

    new = pd.read_csv("sync-output/Order.csv", dtype={"Id": str})
    old = get_snapshot("snapshots", "Order")
    known = {} if old is None else dict(zip(old["Id"], old["Total"]))
    new["Total"] = [known.get(id_, 0) + amount * FACTOR for id_, amount in zip(new["Id"], new["Amount"])]
    update_snapshot("snapshots", "Order", KEY, new)
    runs = json.load(open("snapshots/runs.json")) if os.path.exists("snapshots/runs.json") else []
    json.dump([*runs, [os.environ["JOB_ID"], FACTOR]], open("snapshots/runs.json", "w"))
    print("etl of", os.environ["JOB_ID"])
"""
JOBS = ("monday", "tuesday", "wednesday")
INPUTS = ({"1": 1, "2": 2}, {"2": 20, "3": 30}, {"1": 100, "4": 400})


def etl(factor):
    """The script; the wrong one has the factor 10."""
    return ETL.replace("FACTOR", str(factor))


@pytest.fixture(scope="module")
def ran(tmp_path_factory, run_settings):
    """A store in which three jobs of a wrong script ran."""
    runs = Runs(tmp_path_factory.mktemp("ran"), run_settings.model_copy(update={"keep_inputs_days": 30}))
    first = pd.DataFrame({"Id": ["1"], "Amount": [0], "Total": [5], "Note": ["first"]})
    runs.tenant.stream("Order").update(first, key="Id")
    script = runs.script(etl(10))
    (script.parent / "lib").mkdir()
    (script.parent / "lib" / "helper.py").write_text('KEY = ["Id"]\n')
    for job_id, amounts in zip(JOBS, INPUTS, strict=True):
        folder = runs.folder / job_id / "sync-output"
        folder.mkdir(parents=True)
        pd.DataFrame({"Id": list(amounts), "Amount": list(amounts.values())}).to_csv(
            folder / "Order.csv", index=False
        )
        assert runs.run(script, job_id=job_id, input_dir=folder).status == "succeeded", runs.lines
    return runs


@pytest.fixture
def kept(ran, runs):
    """A copy of that store, and the mended script."""
    shutil.copytree(ran.folder, runs.folder, symlinks=True, dirs_exist_ok=True)
    runs.settings = ran.settings
    runs.mended = runs.script(etl(1), "fixed.py")
    return runs


def replay(kept, *jobs, script=None, **given):
    """Run a replay, as a worker does; the outcome."""
    wanted = replay_with(jobs, script)
    request = RunRequest(
        **{
            "root": kept.root,
            "environment": "default",
            "tenant": "acme",
            "script": BUILT_IN_REPLAY,
            "job_id": uuid.uuid4().hex,
            "parameters": wanted.parameters,
            "message": wanted.message(""),
            "hold": not given.get("dry_run"),
            **given,
        }
    )
    kept.lines = []
    return run(
        with_permitted_script(request, kept.settings), settings=kept.settings, on_line=kept.lines.append
    )


def totals(tenant):
    """The totals by id."""
    return {row["Id"]: row["Total"] for row in rows_of(tenant, "Order")}


def modelled(*factors):
    """The totals that jobs with these factors leave."""
    found = {"1": 5}
    for factor, amounts in zip(factors, INPUTS, strict=False):
        found |= {id_: found.get(id_, 0) + amount * factor for id_, amount in amounts.items()}
    return found


def test_jobs_are_replayed_with_a_mended_script_and_later_work_is_kept(kept):
    """Held, then one version, which is taken back as any other; the tenant has what the model says."""
    tenant = kept.tenant
    assert modelled(10, 10, 10) == totals(tenant)
    tenant.stream("Order").update(pd.DataFrame({"Id": ["3", "9"], "Total": [7, 9], "Note": ["later", "new"]}))
    version, before = tenant.version, rows_of(tenant, "Order")

    outcome = replay(kept, *reversed(JOBS), script=kept.mended, who="ada")

    assert "held" == outcome.status, (outcome.error, kept.lines)
    assert (version, before) == (kept.tenant.version, rows_of(kept.tenant, "Order"))
    assert 3 == outcome.dry_run.streams["Order"].counts.updated
    assert [line for line in kept.lines if line.startswith("etl of")] == [f"etl of {job}" for job in JOBS]
    assert any("{'Id': '3'} stays (changed again since): {'Total': 7}" in line for line in kept.lines)
    assert outcome.remarks == (
        "In Order 1 row keeps 1 cell, which was changed again since; the log names the first.",
    )
    assert not (outcome.job_root / "tmp").exists()

    receipt = publish_job(kept.tenant.context, outcome.job_id)

    assert {**modelled(1, 1, 1), "3": 7, "9": 9} == totals(kept.tenant)
    assert {"3": "later", "9": "new", "1": "first"} == {
        row["Id"]: row["Note"] for row in rows_of(kept.tenant, "Order") if row["Note"]
    }
    assert [[job, 1] for job in JOBS] == kept.tenant.files.read_json("runs.json")
    (entry,) = kept.tenant.history(1)
    hashed = replay_with(JOBS, kept.mended).sha256
    assert (entry.version, entry.who) == (receipt.tenant_version, "ada") == (version + 1, "ada")
    assert hashed == entry.script_sha256
    named = ", ".join(reversed(JOBS))
    assert entry.message == f"replay {named} with fixed.py (SHA-256 {hashed})"
    kept.tenant.revert(entry.version)
    assert before == rows_of(kept.tenant, "Order")
    assert [[job, 10] for job in JOBS] == kept.tenant.files.read_json("runs.json")
    assert kept.tenant.verify().is_sound


def state(kept):
    """The version, the rows and the files that everybody sees."""
    tenant = kept.tenant
    return tenant.version, rows_of(tenant, "Order"), tenant.files.read("runs.json")


def test_jobs_run_again_with_their_own_scripts(kept):
    """They make what they made, each from the state that the one before left: nothing changes."""
    outcome = replay(kept, *JOBS)
    assert "held" == outcome.status, (outcome.error, kept.lines)
    assert ({}, {}) == (outcome.dry_run.streams, outcome.dry_run.files)
    assert totals(kept.tenant) == modelled(10, 10, 10)


def test_a_part_of_the_jobs_is_replayed(kept):
    """Of the others, which came later, what they made stays; one alone is a range too."""
    outcome = replay(kept, "monday", script=kept.mended)
    assert "held" == outcome.status, (outcome.error, kept.lines)
    publish_job(kept.tenant.context, outcome.job_id)

    # The cells of 1 and 2 were changed again by the later jobs.
    assert modelled(10, 10, 10) == totals(kept.tenant)
    outcome = replay(kept, "tuesday", "wednesday", script=kept.mended)
    assert "REPLAY_INTERRUPTED" != (outcome.error or {}).get("code"), outcome.error
    publish_job(kept.tenant.context, outcome.job_id)
    assert modelled(10, 1, 1) == totals(kept.tenant)


def test_a_dry_run_and_a_discarded_replay_leave_nothing(kept):
    """The dry run says what would change; nothing of either can be published."""
    before = state(kept)
    outcome = replay(kept, *JOBS, script=kept.mended, dry_run=True)
    assert ("succeeded", 4) == (outcome.status, outcome.dry_run.streams["Order"].counts.updated)
    outcome = replay(kept, *JOBS, script=kept.mended)
    discard_job(kept.tenant.context, outcome.job_id, SYSTEM)
    assert before[1:] == state(kept)[1:]
    with pytest.raises(JobRevoked):
        publish_job(kept.tenant.context, outcome.job_id)


def refused(kept, jobs, script=None):
    """The code of the error of a replay, which has changed nothing and kept no copy."""
    before = state(kept)
    outcome = replay(kept, *jobs, script=script)
    assert before == state(kept)
    assert not (outcome.job_root / "tmp").exists()
    return outcome.error["code"], outcome.error


def test_what_cannot_be_replayed_is_refused_before_anything_runs(kept):
    """Inputs that are not kept or were erased, unknown jobs, other scripts, and changes by others between."""
    for jobs in ((), ("monday", "monday"), [str(number) for number in range(101)]):
        with pytest.raises(InvalidOption, match="cannot be replayed"):
            replay_with(jobs, None)
    assert "JOB_NOT_FOUND" == refused(kept, ["monday", "sunday"])[0]
    off = kept.settings.model_copy(update={"keep_inputs_days": 0})
    assert kept.run("pass", job_id="unkept", settings=off).is_success
    assert "INPUT_NOT_KEPT" == refused(kept, ["unkept", "monday"])[0]
    strict = "# /// script\n# [tool.freezeframe.parameters.rate]\n# required = true\n# ///\n"
    script = kept.script(strict + etl(1))
    assert "INVALID_OPTION" == refused(kept, JOBS, script)[0]

    kept.tenant.stream("Other").update(pd.DataFrame({"Id": ["1"]}), key="Id")
    folder = kept.folder / "monday" / "sync-output"
    assert kept.run(kept.script(etl(10)), job_id="thursday", input_dir=folder).status == "failed"
    assert "held" == replay(kept, *JOBS).status
    kept.tenant.stream("Order").update(pd.DataFrame({"Id": ["1"], "Total": [3]}))
    helper = kept.script(etl(10))
    helper.with_name("helper.py").write_text('KEY = ["Id"]\n')
    assert kept.run(helper, job_id="friday", input_dir=folder).is_success, kept.lines
    code, error = refused(kept, ["wednesday", "friday"])
    assert ("REPLAY_INTERRUPTED", True) == (code, "stream 'Order'" in error["problem"])
    assert not any(line.startswith("etl of") for line in kept.lines)
    assert "held" == replay(kept, "friday").status

    kept.tenant.erase("Order", ["4"])
    assert "INPUT_NOT_KEPT" == refused(kept, JOBS)[0]


def test_a_file_that_others_changed_between_the_jobs_is_refused(kept):
    """A script may read any file; and so is a stream that only the mended script reads."""
    kept.tenant.files.write("map.json", b"{}")
    kept.tenant.stream("Other").update(pd.DataFrame({"Id": ["1"]}), key="Id")
    helper = kept.script(etl(10))
    helper.with_name("helper.py").write_text('KEY = ["Id"]\n')
    folder = kept.folder / "monday" / "sync-output"
    assert kept.run(helper, job_id="friday", input_dir=folder).is_success, kept.lines
    code, error = refused(kept, ["wednesday", "friday"])
    assert ("REPLAY_INTERRUPTED", True) == (code, "file 'map.json'" in error["problem"])
    kept.tenant.stream("Other").update(pd.DataFrame({"Id": ["2"]}), key="Id")
    kept.tenant.stream("New").update(pd.DataFrame({"Id": ["2"]}), key="Id")
    assert kept.run(helper, job_id="saturday", input_dir=folder).is_success, kept.lines
    for name, read in (
        ("Other", 'get_snapshot("snapshots", "Other")'),
        ("Other", '__import__("freezeframe").open_tenant("snapshots").stream("Other").count()'),
        ("New", 'get_snapshot("snapshots", "New")'),
    ):
        code, error = refused(kept, ["friday", "saturday"], kept.script(etl(1) + f"    {read}\n"))
        assert ("REPLAY_INTERRUPTED", True) == (code, f"stream {name!r}" in error["problem"])
    assert "held" == replay(kept, "friday", "saturday", script=kept.mended).status


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("raise ValueError('as asked')", "REPLAYED_JOB_FAILED", "as asked"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "REPLAYED_JOB_FAILED", "monday"),
    ],
)
def test_a_job_that_fails_ends_the_replay(kept, body, code, said):
    """It is named with its error; the tenant is as it was, and a replay by a right script then succeeds."""
    found, error = refused(kept, JOBS, kept.script(body))
    assert (code, True, "monday") == (found, said in str(error), error["details"]["job_id"])
    assert error["details"]["is_permanent"]
    assert "held" == replay(kept, *JOBS, script=kept.mended).status


def test_a_replay_ends_when_it_is_cancelled_or_takes_too_long(kept):
    """With the job that it runs; nothing of it is left, and no copy of the tenant."""
    slow = kept.script("import time\nprint('slow', flush=True)\ntime.sleep(60)\n")
    before = state(kept)
    outcome = replay(kept, *JOBS, script=slow, timeout_seconds=4)
    assert "timed_out" == outcome.status
    assert before == state(kept)
    assert not (outcome.job_root / "tmp").exists()


def test_a_script_that_changed_since_it_was_asked_for_is_not_run(kept):
    """The history would name another one."""
    wanted = replay_with(JOBS, kept.mended)
    kept.mended.write_text("print('other')")
    request = {"parameters": wanted.parameters}
    outcome = replay(kept, *JOBS, script=kept.mended, **request)
    assert ("failed", "INVALID_OPTION") == (outcome.status, outcome.error["code"])
    assert "other" not in kept.lines


def test_a_worker_of_a_service_runs_scripts_of_its_folder_alone(kept, tmp_path):
    """Neither what was kept, which anybody who writes to the store could change, nor a script elsewhere."""
    kept.settings = kept.settings.model_copy(update={"service_scripts_dir": kept.mended.parent})
    assert "held" == replay(kept, *JOBS, script=kept.mended).status
    with pytest.raises(InvalidOption, match="scripts that were kept"):
        replay(kept, *JOBS)
    with pytest.raises(InvalidOption, match="may not be run"):
        replay(kept, *JOBS, script=kept.script(etl(1)))


def test_another_tenants_job_is_none_of_this_one(kept):
    """Its id is unknown here, also to one of the same store; its rows stay as they are."""
    before = state(kept)
    outcome = replay(kept, *JOBS, script=kept.mended, tenant="globex")
    assert ("failed", "JOB_NOT_FOUND") == (outcome.status, outcome.error["code"])
    assert before == state(kept)


def test_sealed_files_are_there_and_stay_sealed(kept, tmp_path):
    """A script reads them as in any job; what it makes of one is sealed anew, with the tenant's key."""
    key = tmp_path / "master.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    kept.settings = kept.settings.model_copy(update={"master_key_file": key})
    run_tenant(kept.request("pass"), kept.settings).files.write("token", b"secret", sealed=True)
    body = "text = open('snapshots/token').read()\nopen('snapshots/token', 'w').write(text + MARK)\n"
    assert kept.run(kept.script(body.replace("MARK", "'BAD'")), job_id="sealing").is_success, kept.lines

    outcome = replay(kept, "sealing", script=kept.script(body.replace("MARK", "' good'")))

    assert "held" == outcome.status, (outcome.error, kept.lines)
    files = run_tenant(kept.request("pass"), kept.settings).files
    publish_job(run_tenant(kept.request("pass"), kept.settings).context, outcome.job_id)
    assert (b"secret good", True) == (files.read("token"), files.entry("token").sealed)
    assert not any(b"secret" in path.read_bytes() for path in outcome.job_root.rglob("*") if path.is_file())


def test_only_this_tenants_jobs_are_replayed(kept):
    """Another one has jobs of the same ids, with other rows; nothing of it changes, or is in the copy."""
    helper = kept.script(etl(10))
    helper.with_name("helper.py").write_text('KEY = ["Id"]\n')
    other = tenants.open(kept.root).tenant("globex", create=True)
    for job_id in JOBS:
        folder = kept.folder / "wednesday" / "sync-output"
        assert kept.run(helper, job_id=job_id, tenant="globex", input_dir=folder).is_success, kept.lines
    before = rows_of(other, "Order")

    outcome = replay(kept, *JOBS, script=kept.mended)
    publish_job(kept.tenant.context, outcome.job_id)

    assert (modelled(1, 1, 1), before) == (totals(kept.tenant), rows_of(other, "Order"))
    assert {"1": 300 * 10, "4": 1200 * 10} == totals(other)
    outcome = replay(kept, *JOBS, script=kept.mended, tenant="globex")
    publish_job(other.context, outcome.job_id)
    assert ({"1": 300, "4": 1200}, modelled(1, 1, 1)) == (totals(other), totals(kept.tenant))


BESIDE = """
    from freezeframe.script import tenants
    tenant = tenants.open(STORE).tenant("acme")
"""


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ("tenant.stream('Order').update(pd.DataFrame({'Id': ['2'], 'Total': [0]}))", {"CONFLICT"}),
        ("tenant.files.write('runs.json', b'[]')", {"CONFLICT"}),
        ("tenant.erase('Order', ['4'])", {"CONFLICT", "JOB_REVOKED"}),
    ],
)
def test_what_others_change_while_the_jobs_run_ends_the_replay(kept, change, codes):
    """It would rest on what is no longer there; an erased row does not come back."""
    once = f"    if os.environ['JOB_ID'] == 'wednesday':\n        {change}\n"
    script = kept.script(etl(1) + BESIDE.replace("STORE", repr(kept.root)) + once)

    outcome = replay(kept, *JOBS, script=script)

    assert "failed" == outcome.status
    assert outcome.error["code"] in codes, outcome.error
    assert find_held_job(kept.tenant.context, outcome.job_id) is None
    assert totals(kept.tenant) in (
        {**modelled(10, 10, 10), "2": 0},
        modelled(10, 10, 10),
        {id_: total for id_, total in modelled(10, 10, 10).items() if id_ != "4"},
    )


def test_a_replay_whose_worker_died_leaves_the_tenant_as_it_was(kept):
    """With it end the replay and the job that it runs; its copy goes at the next run, which succeeds."""
    mark = kept.folder / "begun"
    slow = kept.script(
        f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    wanted, before = replay_with(JOBS, slow), state(kept)
    request = RunRequest(
        kept.root, "default", "acme", BUILT_IN_REPLAY, "dead", parameters=wanted.parameters, hold=True
    )
    code = (
        "import json, sys\n"
        "from freezeframe.runs.request import parse_run_request\n"
        "from freezeframe.runs.running import run\n"
        "from freezeframe.settings import Settings\n"
        "request, settings = json.loads(sys.argv[1])\n"
        "run(parse_run_request(request), settings=Settings(**settings))\n"
    )
    permitted = with_permitted_script(request, kept.settings).to_json()
    asked = json.dumps([permitted, kept.settings.model_dump(mode="json")])
    worker = subprocess.Popen([sys.executable, "-c", code, asked])
    process = int(until(lambda: mark.exists() and mark.read_text()))
    worker.kill()
    worker.wait()
    folder = job_roots_folder(kept.tenant.context.storage, kept.settings)
    (root,) = [root for root in job_roots(folder) if "dead" in root.name]
    until(lambda: not is_alive(process))

    assert before == state(kept)
    outcome = replay(kept, *JOBS, script=kept.mended, job_id="dead")
    assert "held" == outcome.status, (outcome.error, kept.lines)
    assert not (root / "tmp").exists()
    publish_job(kept.tenant.context, "dead")
    assert modelled(1, 1, 1) == totals(kept.tenant)


def test_snapshot_files_that_a_script_writes_itself_follow_their_stream(kept):
    """As hotglue's scripts do: the next job, which adopts such files, does not undo what the replay made."""
    body = """
        import pandas as pd
        rows = pd.DataFrame({"Id": ["1", "2"], "v": ["a", "MARK"]})
        rows.to_csv("snapshots/Lead.snapshot.csv", index=False)
    """
    kept.tenant.files.write("Lead.snapshot.csv", b"Id,v\n1,a\n")
    update = "import pandas as pd\nfrom freezeframe import update_snapshot\n"
    update += "update_snapshot('snapshots', 'Lead', ['Id'], pd.DataFrame({'Id': [2], 'v': ['b']}))\n"
    assert kept.run(update, job_id="adopting").is_success, kept.lines
    assert kept.run(body.replace("MARK", "BAD"), job_id="lead").is_success, kept.lines
    assert [row["v"] for row in rows_of(kept.tenant, "Lead")] == ["a", "BAD"], kept.lines

    outcome = replay(kept, "lead", script=kept.script(body.replace("MARK", "good")))
    publish_job(kept.tenant.context, outcome.job_id)

    for _ in range(2):
        assert [row["v"] for row in rows_of(kept.tenant, "Lead")] == ["a", "good"], kept.lines
        assert kept.run(
            "from freezeframe import get_snapshot\nprint(get_snapshot('snapshots', 'Lead'))"
        ).is_success
        assert any("good" in line for line in kept.lines)
