"""The input of a job is kept for a time, and pulled to a developer's machine."""

import hashlib
import shutil
import tomllib
import uuid
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from freezeframe.clock import another_clock, now_ms
from freezeframe.errors import ConflictError, CorruptData, InvalidOption, NotFound, VersionNotFound
from freezeframe.runs.kept_jobs import output_hashes, parse_kept_job
from freezeframe.runs.pulled_jobs import JobDifference, pull, pulled_job
from freezeframe.runs.request import RunRequest
from freezeframe.runs.running import run
from freezeframe.script import tenants
from freezeframe.storage.memory import MemoryStorage
from freezeframe.store.blobs.kept_inputs import KeptInputs, is_over, open_inputs
from freezeframe.store.job import publish_job
from freezeframe.store.maintenance.retention import Policy
from freezeframe.store.model.directory import INPUTS_FOLDER, KEYS_FOLDER

pytestmark = pytest.mark.long

DAY_MS = 24 * 60 * 60 * 1000
ETL = """
    import os, shutil
    import pandas as pd
    from helper import KEY
    from freezeframe import get_snapshot, update_snapshot

    rows = pd.read_csv("sync-output/Account-20261128.csv", dtype=str)
    rows["Name"] = rows["Name"].str.upper()
    get_snapshot("snapshots", "Owner")
    update_snapshot("snapshots", "Account", KEY, rows)
    rows.to_csv("etl-output/Account.csv", index=False)
    open("snapshots/seen.json", "w").write("1")
    shutil.rmtree("sync-output")
    if os.environ.get("PARAM_fails"):
        raise ValueError("as asked")
"""
ACCOUNTS = "Id,Name\n007,Bond\n008,Bill\n"


@pytest.fixture
def kept(runs, run_settings):
    """Runs whose input is kept for 30 days, and a script with code and an input beside it."""
    runs.settings = run_settings.model_copy(update={"keep_inputs_days": 30})
    runs.etl = runs.script(ETL)
    (runs.etl.parent / "lib").mkdir()
    (runs.etl.parent / "lib" / "helper.py").write_text('KEY = "Id"\n')
    (runs.etl.parent / "mapping.json").write_text("{}")
    (runs.etl.parent / "rows.csv").write_text("other tenants' rows")
    runs.input = runs.folder / "sync-output"
    runs.input.mkdir()
    (runs.input / "Account-20261128.csv").write_text(ACCOUNTS)
    (runs.folder / "config.json").write_text('{"password": "hush"}')
    (runs.folder / "state.json").write_text('{"bookmark": 1}')
    return runs


def inputs_of(runs):
    """The kept inputs of the tenant, as a later process finds them."""
    context = runs.tenant.context
    return open_inputs(context.storage, runs.settings, context.log.current_state().erased)


def stored(runs):
    """The names of all that is kept."""
    return sorted(item.name for item in runs.tenant.context.storage.list_below(INPUTS_FOLDER))


def content(runs, job_id, name):
    """The bytes of one kept file of a job."""
    inputs = inputs_of(runs)
    folder, record = inputs.find(job_id)
    return b"".join(inputs.chunks(folder, parse_kept_job(record).files[name]))


def test_a_job_leaves_its_input_script_and_parameters(kept):
    """They are as before the script changed them, without secrets; another job adds what is new alone."""
    assert (
        kept.run(kept.etl, job_id="monday", input_dir=kept.input, parameters={"n": 1}).status == "succeeded"
    )
    _, record = inputs_of(kept).find("monday")
    job = parse_kept_job(record)
    assert set(job.files) == {
        *("etl.py", "lib/helper.py", "mapping.json", "parameters.json", "state.json"),
        "sync-output/Account-20261128.csv",
    }
    assert (job.code, job.status, job.base) == (["etl.py", "lib/helper.py"], "succeeded", -1)
    assert (job.streams, set(job.output)) == (["Account", "Owner"], {"Account.csv"})
    assert content(kept, "monday", "sync-output/Account-20261128.csv") == ACCOUNTS.encode()
    before = stored(kept)
    assert kept.run(kept.etl, job_id="tuesday", input_dir=kept.input, parameters={"n": 1}).is_success
    assert [Path(name).suffix for name in stored(kept) if name not in before] == [".json"]


def test_a_failed_job_leaves_its_input_too(kept):
    """What it had read is not known; a dry run leaves nothing, and nor does a job by the default."""
    assert kept.run(kept.etl, job_id="bad", input_dir=kept.input, parameters={"fails": 1}).status == "failed"
    job = parse_kept_job(inputs_of(kept).find("bad")[1])
    assert (job.status, job.streams) == ("failed", None)
    before = stored(kept)
    assert kept.run(kept.etl, job_id="dry", input_dir=kept.input, dry_run=True).is_success
    off = kept.settings.model_copy(update={"keep_inputs_days": 0})
    assert kept.run(kept.etl, job_id="off", input_dir=kept.input, settings=off).is_success
    assert stored(kept) == before
    with pytest.raises(NotFound, match="keep_inputs_days was 0"):
        inputs_of(kept).find("off")


def test_a_job_whose_input_cannot_be_kept_commits(kept):
    """Keeping is beside the job: it fails neither before the script nor after it."""
    assert kept.run(kept.etl, job_id="first", input_dir=kept.input).is_success
    folder = Path(kept.tenant.context.storage.uri(INPUTS_FOLDER).removeprefix("file://"))
    shutil.rmtree(folder)
    folder.write_text("no folder")

    assert kept.run(kept.etl, job_id="second", input_dir=kept.input).status == "succeeded"
    folder.unlink()
    with pytest.raises(NotFound):
        inputs_of(kept).find("second")


def test_a_kept_input_goes_after_its_days(kept):
    """It is kept at most a tenth longer than the setting says, is not found after that, and gc deletes it."""
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    real = now_ms()
    with another_clock(lambda: real + 29 * DAY_MS):
        assert kept.tenant.gc().files == 0
        assert inputs_of(kept).find("monday")
    with another_clock(lambda: real + 34 * DAY_MS):
        with pytest.raises(NotFound, match="Its time is over"):
            inputs_of(kept).find("monday")
        assert set(kept.tenant.gc(dry_run=True).names) == {f"{INPUTS_FOLDER}/{name}" for name in stored(kept)}
        kept.tenant.gc()
        assert stored(kept) == []


def test_an_erasure_and_a_deletion_reach_kept_inputs(kept):
    """All of the tenant's go, whole; what a job beside the erasure writes late is never found."""
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    late = inputs_of(kept)
    folder = late.folder(30)
    kept.tenant.erase("Account", ["007"])
    assert stored(kept) == []
    late.record(folder, "late", {})
    with pytest.raises(NotFound, match="rows of the tenant were erased"):
        inputs_of(kept).find("late")
    kept.run(kept.etl, job_id="tuesday", input_dir=kept.input)
    assert stored(kept) != []
    assert not any(name.startswith(folder) for name in stored(kept))
    storage = kept.tenant.context.storage
    tenants.open(kept.root).delete_tenant("acme")
    assert list(storage.list_below(INPUTS_FOLDER)) == []


def test_old_inputs_go_at_the_next_run_whatever_the_setting_is(kept):
    """Also what a run that was killed has left, and though inputs are no longer kept."""
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    off, real = kept.settings.model_copy(update={"keep_inputs_days": 0}), now_ms()
    with another_clock(lambda: real + 34 * DAY_MS):
        assert kept.run("", settings=off).is_success
        assert stored(kept) == []


def test_what_a_run_keeps_beside_the_deletion_of_its_tenant_goes(kept):
    """Its record would be in a folder that no tenant has."""
    script = "from freezeframe.script import tenants\ntenants.open(ROOT).delete_tenant('acme')\n"
    storage = kept.tenant.context.storage
    kept.run(script.replace("ROOT", repr(kept.root)), job_id="beside", input_dir=kept.input)
    assert list(storage.list_below(INPUTS_FOLDER)) == []


def test_an_older_state_deletes_no_newer_inputs():
    """Who has not yet read the erasure leaves what is kept since; a name of another form goes."""
    names = [f"{erased:020d}-99990101/content" for erased in (1, 2, 3)]
    assert [is_over(name, 2) for name in names] == [True, False, False]
    assert is_over("other", 2)


def test_gc_deletes_old_inputs_of_a_tenant_without_a_version(kept):
    """A run that failed before the first version has left them."""
    kept.run("raise ValueError", job_id="bad", input_dir=kept.input)
    real = now_ms()
    with another_clock(lambda: real + 34 * DAY_MS):
        names = {f"{INPUTS_FOLDER}/{name}" for name in stored(kept)}
        assert (kept.tenant.version, bool(names)) == (-1, True)
        assert set(kept.tenant.gc(dry_run=True).names) == names
        assert stored(kept) != []
        assert kept.tenant.gc().files == len(names)
        assert stored(kept) == []


def test_kept_inputs_are_sealed_where_files_can_be(kept, tmp_path):
    """With a master key nothing of them is readable on the disk, not even by the hash of a known file."""
    key = tmp_path / "master.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    kept.settings = kept.settings.model_copy(update={"master_key_file": key})
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    assert content(kept, "monday", "sync-output/Account-20261128.csv") == ACCOUNTS.encode()
    _, record = inputs_of(kept).find("monday")
    file = parse_kept_job(record).files["etl.py"]
    assert file.sha256 != file.content
    raw = [kept.tenant.context.storage.read(f"{INPUTS_FOLDER}/{name}") for name in stored(kept)]
    assert all(item.startswith(b"FREEZEFRAME-SEAL-1\n") for item in raw)


def test_reading_kept_inputs_makes_no_key(kept, tmp_path):
    """What was kept before there was a master key is read, and the tenant stays as it is."""
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    key = tmp_path / "master.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    kept.settings = kept.settings.model_copy(update={"master_key_file": key})
    assert content(kept, "monday", "sync-output/Account-20261128.csv") == ACCOUNTS.encode()
    assert list(kept.tenant.context.storage.list_below(KEYS_FOLDER)) == []


class ChangingStorage(MemoryStorage):
    """A storage beside which a file changes so many times while it is written."""

    def __init__(self, path, times):
        super().__init__()
        self.path, self.times = path, times

    def put_if_absent(self, name, content):
        if self.times:
            self.path.write_text(f"{self.times}")
            self.times -= 1
        super().put_if_absent(name, content)


def test_a_file_that_changes_while_it_is_kept_is_kept_as_it_became(tmp_path):
    """Its hash is that of its bytes; if it does not come to rest, nothing is kept of it."""
    path = tmp_path / "rows.csv"
    path.write_text("first")
    inputs = KeptInputs(ChangingStorage(path, 1), 0)
    kept = inputs.keep("folder", {"rows.csv": path})["rows.csv"]
    assert b"".join(inputs.chunks("folder", kept)) == b"1"
    path.write_text("first")
    storage = ChangingStorage(path, 2)
    with pytest.raises(ConflictError, match="changed while it was kept"):
        KeptInputs(storage, 0).keep("folder", {"rows.csv": path})
    assert list(storage.list_below("")) == []


def test_odd_output_is_left_out(tmp_path):
    """A file that cannot be read, and a link in the place of the folder."""
    folder, link = tmp_path / "etl-output", tmp_path / "link"
    folder.mkdir()
    (folder / "odd").symlink_to("/proc/self/mem")
    (folder / "a.csv").write_text("a")
    link.symlink_to(folder)
    assert list(output_hashes(folder)) == ["a.csv"]
    assert output_hashes(link) == {}


def test_a_cell_leads_to_the_script_and_the_line_of_the_input(kept):
    """Of the job that gave it its value; a job whose input is not kept has the hash alone."""
    kept.run(kept.etl, job_id="monday", input_dir=kept.input, parameters={"n": 1})
    digest = hashlib.sha256(kept.etl.read_bytes()).hexdigest()
    cells = kept.tenant.stream("Account").row_origin("008").cells
    assert {digest} == {cell.script_sha256 for cell in cells.values()}
    place = "Account-20261128.csv, line 3"
    assert (place, f"computed by the script; its input has the row in {place}") == (
        cells["Id"].text,
        cells["Name"].text,
    )
    off = kept.settings.model_copy(update={"keep_inputs_days": 0})
    (kept.input / "Account-20261128.csv").write_text("Id,Name\n008,Ann\n")
    outcome = kept.run(kept.etl, job_id="off", input_dir=kept.input, settings=off)
    assert (digest, digest) == (
        outcome.receipt["script_sha256"],
        kept.tenant.history(1)[0].script_sha256,
    )
    cells = kept.tenant.stream("Account").row_origin("008").cells
    assert [("file", digest), ("not_kept", digest)] == [
        (cell.source, cell.script_sha256) for cell in cells.values()
    ]


def test_a_cell_of_a_held_job_leads_to_its_script_once_it_is_published(kept):
    """The hash is part of what is held."""
    assert kept.run(kept.etl, job_id="monday", input_dir=kept.input, hold=True).status == "held"
    publish_job(kept.tenant.context, "monday")
    cell = kept.tenant.stream("Account").row_origin("007").cells["Id"]
    digest = hashlib.sha256(kept.etl.read_bytes()).hexdigest()
    assert ("file", 2, digest) == (cell.source, cell.line, cell.script_sha256)


def pulled(kept, job_id, **how):
    """A job pulled into a new folder, as the next command finds it there."""
    folder = kept.folder / uuid.uuid4().hex
    pull(kept.tenant.context, job_id, folder, **how)
    return pulled_job(folder)


def here(kept, job):
    """The tenant in the folder of a pulled job."""
    return job.stores(kept.settings)[0].tenant("acme")


def run_there(kept, job):
    """Run the script of a pulled job in its folder; return the outcome and the difference."""
    job.reset(job.stores(kept.settings)[0])
    fields = job.request_fields()
    request = RunRequest(
        job.root, job.job.environment, job.job.tenant, job.script, uuid.uuid4().hex, **fields
    )
    outcome = run(request, settings=kept.settings)
    return outcome, job.difference(outcome.job_root / "etl-output", job.stores(kept.settings))


def test_a_pulled_job_makes_what_it_made(kept):
    """Its run in the folder ends as the job did, again and again, whatever the tenant has become since."""
    accounts = pd.DataFrame({"Id": ["007", "009"], "Name": ["James", "Ada"]})
    kept.tenant.stream("Account").update(accounts, key="Id")
    kept.tenant.stream("Other").update(accounts, key="Id")
    kept.tenant.files.write("secret.json", b"{}")
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    kept.tenant.stream("Account").update(pd.DataFrame({"Id": ["008"], "Name": ["later"]}))

    job = pulled(kept, "monday")
    assert (job.before, job.after, job.streams, job.files) == (2, 3, ("Account",), ("seen.json",))
    assert here(kept, job).retention() == Policy()
    assert job.script.with_name("lib").joinpath("helper.py").read_text() == 'KEY = "Id"\n'
    assert not (job.folder / "config.json").exists()
    assert here(kept, job).streams() == ("Account",)
    for _ in range(2):
        outcome, found = run_there(kept, job)
        assert (outcome.status, found) == ("succeeded", JobDifference())
    assert outcome.receipt["streams"]["Account"]["updated"] == 1

    text = job.script.read_text()
    job.script.write_text(text.replace("str.upper()", "str.lower()").replace("seen.json", "other.json"))
    _, found = run_there(kept, job)
    assert found.streams["Account"].updated == 2
    assert (found.files, found.output) == (
        {"seen.json": "removed", "other.json": "added"},
        {"Account.csv": "changed"},
    )
    assert kept.tenant.version == 4


def test_a_pulled_job_reads_what_the_job_read(kept):
    """Not what others made of it since the job began; of what it changed that is its base."""
    for name in ("Owner", "Account"):
        kept.tenant.stream(name).update(pd.DataFrame({"Id": ["1"], "Name": ["was"]}), key="Id")
    script = """
        import pandas as pd
        from freezeframe import get_snapshot, update_snapshot
        from freezeframe.script import tenants

        rows = get_snapshot("snapshots", "Owner")
        other = tenants.open(ROOT).tenant("acme")
        for name in ("Owner", "Account", "Late"):
            other.stream(name).update(pd.DataFrame({"Id": ["2"], "Name": ["meanwhile"]}), key="Id")
        update_snapshot("snapshots", "Account", ["Id"], rows.assign(Name="mine"))
    """
    done = kept.run(script.replace("ROOT", repr(kept.root)), job_id="monday", input_dir=kept.input)
    assert done.is_success
    job = pulled(kept, "monday")
    assert (job.before, job.after, job.streams) == (4, 5, ("Account",))
    assert list(here(kept, job).stream("Owner").read()["Id"]) == ["1"]
    assert sorted(here(kept, job).stream("Account").read()["Id"]) == ["1", "2"]


def test_a_pulled_job_can_have_some_rows_alone(kept):
    """Those that it changed come first, and only rows that are there are compared."""
    many = pd.DataFrame({"Id": [f"{number:03}" for number in range(100)], "Name": "x"})
    kept.tenant.stream("Account").update(many, key="Id")
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    job = pulled(kept, "monday", rows_max=5)
    there = here(kept, job).stream("Account").read()["Id"]
    assert (job.parts, sorted(there)) == (("Account",), ["000", "001", "002", "007", "008"])
    assert run_there(kept, job)[1].is_empty
    few = pulled(kept, "monday", rows_max=1)
    assert list(here(kept, few).stream("Account").read()["Id"]) == ["007"]
    assert run_there(kept, few)[1].is_empty


def test_a_pulled_job_of_a_new_tenant_and_one_that_failed(kept):
    """The first begins without a version, each time; of the second each change is a difference."""
    kept.run(kept.etl, job_id="first", input_dir=kept.input)
    job = pulled(kept, "first")
    assert (job.before, job.stores(kept.settings)[0].tenants()) == (-1, ())
    assert [run_there(kept, job)[1].is_empty for _ in range(2)] == [True, True]
    kept.run(kept.etl, job_id="bad", input_dir=kept.input, parameters={"fails": 1})
    bad = pulled(kept, "bad")
    assert (bad.before, bad.after) == (0, None)
    assert run_there(kept, bad)[0].status == "failed"
    bad.script.write_text(bad.script.read_text().replace('raise ValueError("as asked")', "pass"))
    (bad.folder / "sync-output" / "Account-20261128.csv").write_text(ACCOUNTS + "010,Cy\n")
    outcome, found = run_there(kept, bad)
    assert (outcome.status, found.streams["Account"].inserted) == ("succeeded", 1)


def test_a_pulled_job_sends_nothing(kept):
    """What its header says about the target, checks and holding is for the server."""
    sent = kept.folder / "sent"
    header = f"# /// script\n# [tool.freezeframe]\n# then = ['touch {sent}']\n# ///\n"
    kept.etl.write_text(header + kept.etl.read_text())
    assert kept.run(kept.etl, job_id="monday", input_dir=kept.input).status == "succeeded"
    sent.unlink()
    assert run_there(kept, pulled(kept, "monday"))[1].is_empty
    assert not sent.exists()


def test_a_pulled_script_runs_for_its_own_tenant_alone(kept):
    """Deployed with its folder it would run in production without its target and its checks."""
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    job = pulled(kept, "monday")
    for place in ({}, {"environment": "other"}, {"tenant": "other"}):
        request = replace(kept.request(job.script, **place), root=job.root if place else kept.root)
        with pytest.raises(InvalidOption, match="of there alone"):
            run(request, settings=kept.settings)
    assert kept.tenant.version == 0


def test_the_settings_of_a_pulled_job_are_toml(kept):
    """A tenant's name may have any letter."""
    kept.run(kept.etl, job_id="monday", input_dir=kept.input, tenant="Åcme 🙂")
    folder = kept.folder / "new"
    pull(tenants.open(kept.root).tenant("Åcme 🙂").context, "monday", folder)
    settings = tomllib.loads((folder / "freezeframe.toml").read_text(encoding="utf-8"))
    assert settings["tenant"] == "Åcme 🙂"


@pytest.mark.parametrize("name", ["../out.py", "lib/../../out.py", "/tmp/out.py"])
def test_a_record_leads_to_no_other_folder(kept, name):
    """A damaged or forged one is refused before anything is written."""
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    inputs = inputs_of(kept)
    folder, record = inputs.find("monday")
    record["files"][name] = record["files"]["etl.py"]
    inputs.record(folder, "monday", record)
    with pytest.raises(CorruptData, match="outside of its folder"):
        pull(kept.tenant.context, "monday", kept.folder / "new")
    assert not (kept.folder / "new").exists()


def test_what_cannot_be_pulled_is_said_before_anything_is_written(kept):
    """A job that is not there, one whose version is gone, and a folder with files."""
    kept.run(kept.etl, job_id="monday", input_dir=kept.input)
    context, folder = kept.tenant.context, kept.folder / "new"
    with pytest.raises(NotFound, match="has no job nobody"):
        pull(context, "nobody", folder)
    with pytest.raises(InvalidOption, match="is not empty"):
        pull(context, "monday", kept.input)
    kept.tenant.stream("Account").update(pd.DataFrame({"Id": ["1"]}))
    kept.run(kept.etl, job_id="tuesday", input_dir=kept.input)
    kept.tenant.stream("Account").update(pd.DataFrame({"Id": ["2"]}))
    kept.tenant.set_retention(keep_versions=1)
    kept.tenant.gc()
    with pytest.raises(VersionNotFound, match="no longer kept"):
        pull(context, "tuesday", folder)
    assert not folder.exists()
