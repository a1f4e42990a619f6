"""A run is one commit of all that its script did, or nothing at all happened."""

import json
import os
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from freezeframe.errors import InputNotFound, InvalidName, InvalidOption, SetupError
from freezeframe.runs import script_header
from freezeframe.runs.watching import LOG_BYTES_MAX

pytestmark = pytest.mark.long

KEEPS = """
    import json, os
    snapshots = os.environ["ROOT_DIR"] + "/snapshots"
    path = snapshots + "/counter.json"
    count = json.load(open(path))["count"] if os.path.exists(path) else 0
    json.dump({"count": count + 1}, open(path, "w"))
"""


def test_a_script_is_run_as_one_commit(runs):
    """Files written, changed and deleted in snapshots/ are the tenant's afterwards, and output is kept."""
    first = runs.run(
        """
        import os, pathlib
        pathlib.Path("snapshots/a/b.txt").parent.mkdir()
        pathlib.Path("snapshots/a/b.txt").write_text("ünïcode")
        pathlib.Path("snapshots/c.bin").write_bytes(bytes(range(256)))
        pathlib.Path("etl-output/data.singer").write_text("{}")
        print("läuft", os.environ["TENANT"])
        """
    )
    assert (first.status, first.tenant_version, first.exit_code) == ("succeeded", 0, 0)
    assert list(first.receipt["files_written"]) == ["a/b.txt", "c.bin"]
    assert runs.lines == ["läuft acme"]
    assert first.log.read_text(encoding="utf-8") == "läuft acme\n"
    assert (first.job_root / "etl-output" / "data.singer").read_text() == "{}"
    second = runs.run("import os; os.remove('snapshots/c.bin'); open('snapshots/a/b.txt', 'a').write('!')")
    assert (
        list(second.receipt["files_written"]),
        list(second.receipt["files_deleted"]),
    ) == (["a/b.txt"], ["c.bin"])
    assert runs.tenant.files.read_text("a/b.txt") == "ünïcode!"
    assert bytes(range(256)) == runs.tenant.files.read("c.bin", version=0)


LOSES = """
    import os
    from pathlib import Path
    from freezeframe.errors import EngineUnavailable
    Path("snapshots/new.txt").open("x").close()
    Path("etl-output/leads.txt").open("x").close()
    with open(os.environ["PARAM_runs"], "a") as file:
        file.write("run\\n")
    if len(open(os.environ["PARAM_runs"]).readlines()) <= int(os.environ["PARAM_losses"]):
        raise EngineUnavailable("Spark does not answer.", is_gone=True)
"""


@pytest.mark.parametrize(("losses", "status"), [(1, "succeeded"), (2, "failed")])
def test_a_script_that_lost_its_spark_session_is_run_once_more(runs, tmp_path, losses, status):
    """Under its id, in folders that nothing of the first try is in; a second loss is its end."""
    told = tmp_path / "runs.txt"
    outcome = runs.run(LOSES, job_id="lost", parameters={"runs": str(told), "losses": losses})
    assert (outcome.status, outcome.job_id) == (status, "lost")
    assert told.read_text().splitlines() == ["run", "run"]
    assert len([line for line in runs.lines if "run once more" in line]) == 1
    assert [file.path for file in runs.tenant.files.list()] == ["new.txt"] * (2 - losses)


@pytest.mark.parametrize(
    ("ending", "code", "says"),
    [
        ("raise ValueError('schlécht')", "SCRIPT_FAILED", "ValueError: schlécht"),
        ("import sys; sys.exit('no more')", "SCRIPT_FAILED", "no more"),
        ("import os; os._exit(0)", "SCRIPT_DIED", "exit code 0"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SCRIPT_DIED", "SIGKILL"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "STOPPED", "stopped"),
        ("this is no python", "SCRIPT_FAILED", "SyntaxError"),
        ("import os; os.symlink('/etc/passwd', 'snapshots/link')", "BAD_INPUT", "symbolic link"),
        ("open('errors.txt', 'w').write('mine'); raise SystemExit(1)", "SCRIPT_FAILED", "mine"),
        ("import freezeframe; freezeframe.open_tenant('snapshots').gc()", "INVALID_OPTION", "gc"),
    ],
)
def test_a_failure_of_any_kind_changes_nothing(runs, ending, code, says):
    """Whatever ends a script badly: the tenant is as before, and errors.txt says what it was."""
    done = runs.run(f"open('snapshots/new.txt', 'w').write('x')\n{ending}\n")
    assert ("failed", code) == (done.status, done.error["code"])
    assert says in " ".join((done.error["problem"], done.error["cause"]))
    assert says in (done.job_root / "errors.txt").read_text(encoding="utf-8")
    assert (runs.tenant.version, runs.tenant.files.list()) == (-1, ())


@pytest.mark.parametrize(
    "write",
    [
        "freezeframe.script.update_snapshot(os.environ['ROOT_DIR'] + '/snapshot', 'A', 'Id', rows)",
        "freezeframe.script.update_snapshot('snapshots/sub', 'A', 'Id', rows)",
        "freezeframe.open_tenant(tempfile.mkdtemp()).stream('A').update(rows, key='Id')",
        "gluestick.snapshot_records(rows, 'A', 'snapshot', pk='Id')",
        "subprocess.run([sys.executable, '-c', child], check=True)",
    ],
)
def test_an_update_outside_of_the_jobs_folder_is_refused(runs, write):
    """It would be thrown away with the root; whoever writes it is told where to write, and reads go on."""
    done = runs.run(
        f"""
        import os, subprocess, sys, tempfile
        import pandas as pd
        import freezeframe, freezeframe.script
        from freezeframe import gluestick
        rows = pd.DataFrame({{"Id": [1]}})
        child = "import freezeframe; freezeframe.open_tenant('snapshot').files.write('a', b'1')"
        assert freezeframe.script.get_snapshot('snapshot', 'A') is None
        {write}
        """
    )
    assert done.status == "failed"
    assert runs.tenant.version == -1
    assert not (done.job_root / "snapshot").exists()
    if "subprocess" not in write:
        assert done.error["code"] == "OUTSIDE_JOB"
        assert str(done.job_root / "snapshots") in done.error["remedy"]


def test_a_root_that_the_script_removed_is_told(runs):
    """Where nothing is left that could tell how it ended, that is what is told."""
    done = runs.run("import os, shutil; shutil.rmtree(os.environ['ROOT_DIR'])")
    assert (done.status, done.error["code"]) == ("failed", "SCRIPT_FAILED")
    assert "removed the job's root" in done.error["problem"]
    assert runs.tenant.version == -1


def test_a_run_beside_an_erasure_blames_no_script(runs):
    """Its folder had copies of the rows, so it is gone: that is a conflict, and the next run does it."""
    runs.tenant.stream("A").update(pa.table({"Id": [1, 2]}), key="Id")

    def erase_once():
        if runs.lines and runs.tenant.version == 0:
            runs.tenant.erase("A", [1])
        return False

    done = runs.run("import time; print('begun', flush=True); time.sleep(2)", is_cancelled=erase_once)
    assert ("failed", "CONFLICT") == (done.status, done.error["code"])
    assert "An erasure" in done.error["problem"]
    assert ["begun"] == runs.lines


def test_a_log_is_there_while_the_script_runs(runs):
    """What a script has printed can be read by others at once, however little it is."""
    told = runs.folder / "told"

    def look():
        if any("begun" in log.read_text() for log in Path(runs.root).rglob("script.log")):
            told.touch()
        return False

    waits = f"""
        import os, time
        print("begun")
        end = time.monotonic() + 60
        while not os.path.exists({str(told)!r}) and time.monotonic() < end:
            time.sleep(0.01)
        print("told" if os.path.exists({str(told)!r}) else "never told")
    """
    assert runs.run(waits, is_cancelled=look).status == "succeeded"
    assert runs.lines == ["begun", "told"]


def test_an_id_is_run_once(runs):
    """The same id again is answered with the first receipt and its script is not started."""
    first = runs.run(KEEPS, job_id="2026/11/../21 04:00")
    again = runs.run(KEEPS, job_id="2026/11/../21 04:00")
    assert (first.status, again.status) == ("succeeded", "repeated")
    assert {**first.receipt, "repeated": True} == again.receipt
    assert (first.job_root, first.log) == (again.job_root, again.log)
    assert runs.tenant.files.read_json("counter.json")["count"] == 1
    assert Path(runs.root) / "job-roots" == first.job_root.parent.parent
    failed = runs.run("raise ValueError", job_id="x")
    assert runs.run(KEEPS, job_id="x").status == "succeeded"
    assert failed.job_root.is_dir()


def test_an_id_that_another_script_had_is_a_warning(runs):
    """With the earlier job's script and time; the same script again is none, nor is a root that is gone."""
    first = runs.script("open('snapshots/a', 'w').write('1')", "first.py")
    other = runs.script("open('snapshots/b', 'w').write('1')", "other.py")
    done = runs.run(first, job_id="monday")
    assert () == runs.run(first, job_id="monday").remarks
    (remark,) = runs.run(other, job_id="monday").remarks
    committed = next(iter(runs.tenant.history())).timestamp
    assert [
        part for part in (str(first), str(other), f"{committed:%Y-%m-%dT%H:%M}") if part not in remark
    ] == []
    assert [item.path for item in runs.tenant.files.list()] == ["a"]
    shutil.rmtree(done.job_root)
    assert () == runs.run(other, job_id="monday").remarks


FINDS = """
    import json, os, sys
    import helper
    from lib import util
    found = {
        "env": dict(os.environ), "argv": sys.argv, "path": sys.path[0], "cwd": os.getcwd(),
        "main": __name__, "file": __file__, "util": util.NAME, "helper": helper.NAME,
        "input": os.listdir("sync-output"), "parameters": json.load(open("parameters.json")),
        "files": [json.load(open(name + ".json")) for name in ("config", "state", "catalog")],
    }
    json.dump(found, open("etl-output/found.json", "w"))
"""


def test_the_script_finds_what_hotglue_promises(runs, tmp_path, monkeypatch):
    """Folders, files, variables and paths are those of a hotglue job, and nothing else is inherited."""
    job = tmp_path / "job"
    (job / "sync-output").mkdir(parents=True)
    (job / "sync-output" / "Account-20260101T000000.csv").write_text("Id\n1\n")
    for name in ("config", "state", "catalog"):
        (job / f"{name}.json").write_text(f'"{name}"')
    script = runs.script(FINDS)
    (script.parent / "lib").mkdir()
    for name in ("util", "helper"):
        (script.parent / "lib" / f"{name}.py").write_text(f"NAME = {name!r}")
    monkeypatch.setenv("SOME_SECRET", "hunter2")
    monkeypatch.setenv("FREEZEFRAME_MASTER_KEY_COMMAND", "echo hunter2")
    monkeypatch.setenv("MAY_PASS", "yes")
    secret = {"script_variables": "MAY_PASS, OTHER", "master_key_command": "echo hunter2"}
    parameters = {"limit": 5, "name": "ü", "none": None}
    done = runs.run(
        script,
        settings=runs.settings.model_copy(update=secret),
        input_dir=job / "sync-output",
        flow="qbo",
        connector_id="quickbooks",
        job_type="read",
        parameters=parameters,
        variables={"API_KEY": "k"},
    )
    assert done.status == "succeeded", done.error
    found = json.loads((done.job_root / "etl-output" / "found.json").read_text())
    root, env = str(done.job_root), found["env"]
    folders = {"snapshot_dir": "snapshots", "base_input_dir": "sync-output", "output_dir": "etl-output"}
    expected = {
        **dict.fromkeys(("ROOT_DIR", "ROOT", "JOB_ROOT"), root),
        **{name: f"{root}/{folder}" for name, folder in folders.items()},
        "TENANT": "acme",
        "USER_ID": "acme",
        "FLOW": "qbo",
        "ENV_ID": "default",
        "JOB_ID": done.job_id,
        "SYNC_TYPE": "incremental_sync",
        "JOB_TYPE": "read",
        "CONNECTOR_ID": "quickbooks",
        "API_KEY": "k",
        "PARAM_limit": "5",
        "PARAM_name": "ü",
        "MAY_PASS": "yes",
    }
    assert {name: env.get(name) for name in expected} == expected
    assert "hunter2" not in json.dumps(env)
    assert not {"none", "PARAM_none", "limit", "SOME_SECRET"} & env.keys()
    assert ([str(script)], str(script.parent), root) == (found["argv"], found["path"], found["cwd"])
    names = [found[name] for name in ("main", "file", "util", "helper")]
    assert names == ["__main__", str(script), "util", "helper"]
    assert found["files"] == ["config", "state", "catalog"]
    assert (found["input"], found["parameters"]) == (["Account-20260101T000000.csv"], parameters)


def test_what_is_not_there_is_refused_before_anything_is_written(runs, tmp_path):
    """Script, input and further files are looked for first; the store does not come to be."""
    script = runs.script("pass")
    for element in ({"input_dir": tmp_path / "no"}, {"state": tmp_path / "no"}, {"config": tmp_path / "no"}):
        with pytest.raises(InputNotFound):
            runs.run(script, **element)
    with pytest.raises(InputNotFound):
        runs.run(tmp_path / "no.py")
    with pytest.raises(InvalidName):
        runs.run(script, tenant="../acme")
    assert not Path(runs.root).exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for item in (tmp_path / "full", tmp_path / "full" / "file"):
        with pytest.raises(InvalidOption):
            runs.run(script, job_root=item)


def test_a_script_that_takes_too_long_is_ended(runs):
    """It gets time to tidy up, then it and all that it started are killed."""
    done = runs.run(
        """
        import subprocess, time
        open("snapshots/a", "w").write("1")
        child = subprocess.Popen(["sleep", "600"])
        print(child.pid)
        time.sleep(600)
        """,
        timeout_seconds=6.0,
    )
    assert (done.status, done.error["code"], runs.tenant.files.list()) == ("timed_out", "TIMED_OUT", ())
    assert (
        not Path(f"/proc/{runs.lines[0]}/cmdline").exists()
        or b"sleep" not in Path(f"/proc/{runs.lines[0]}/cmdline").read_bytes()
    )


def test_a_script_is_cancelled(runs):
    """Cancelling ends it, even where it catches every exception."""
    script = """
        import time
        print("begun")
        time.sleep(600)
    """
    done = runs.run(script, is_cancelled=lambda: bool(runs.lines))
    assert (done.status, done.error["code"]) == ("cancelled", "CANCELLED")
    assert runs.tenant.version == -1


def test_a_script_that_takes_too_much_memory_is_ended(runs):
    """What it and its processes have together is measured; the error says both figures."""
    done = runs.run(
        """
        import time
        kept = bytearray(b"x" * 400_000_000)
        time.sleep(600)
        """,
        memory_bytes=300_000_000,
    )
    assert (done.status, done.error["code"]) == ("failed", "MEMORY_LIMIT")
    assert "300,000,000" in done.error["problem"]


def test_much_output_fills_neither_memory_nor_disk(runs):
    """Of 100 MB on one line the log keeps 64 MiB, and lines are handed on in pieces."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counted = [0, 0]

    def count(line):
        counted[0] += len(line)
        counted[1] = max(counted[1], len(line))

    from freezeframe.runs.running import run

    request = runs.request(
        """
        import sys
        for _ in range(1600):
            sys.stdout.buffer.write(b"\\xff" * 65536)
        """
    )
    done = run(request, settings=runs.settings, on_line=count)
    assert done.status == "succeeded"
    assert 1600 * 65536 * 0.9 < counted[0]
    assert 16 * 1024 >= counted[1]
    assert LOG_BYTES_MAX <= done.log.stat().st_size < LOG_BYTES_MAX + 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_a_fork_of_a_script_has_no_handler_of_the_run(runs):
    """A pool ends its workers by SIGTERM: the run's answer, just before they wait in C, would come never."""
    done = runs.run(
        """
        import multiprocessing, signal

        def end(number, frame):
            raise SystemExit

        def told(pool):
            return pool.apply(signal.getsignal, [signal.SIGTERM]) == signal.SIG_DFL

        fork = multiprocessing.get_context("fork")
        with fork.Pool(1) as pool:
            print(told(pool))
        signal.signal(signal.SIGTERM, end)
        with fork.Pool(1) as pool:
            print(told(pool))
        """
    )
    assert done.status == "succeeded", done.error
    assert runs.lines == ["True", "False"]


def test_processes_that_a_script_starts_have_no_part_in_the_job(runs):
    """A fork and a command that use the snapshot directory get an error; the script's own calls count."""
    done = runs.run(
        """
        import multiprocessing, os, subprocess, sys
        import freezeframe

        def look(queue):
            try:
                freezeframe.open_tenant("snapshots").files.write("child", b"1")
            except Exception as error:
                queue.put(getattr(error, "error_code", repr(error)))
            else:
                queue.put("written")

        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=look, args=(queue,))
        child.start()
        print(queue.get())
        child.join()
        code = "import freezeframe; freezeframe.open_tenant('snapshots').files.write('x', b'1')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        print("another process runs" in done.stderr)
        if os.fork() == 0:
            open("snapshots/fork.txt", "w").write("a fork that runs on to the script's end")
        else:
            os.wait()
            freezeframe.open_tenant("snapshots").files.write("mine", b"1")
        """
    )
    assert done.status == "succeeded", done.error
    assert runs.lines == ["OTHER_PROCESS", "True"]
    assert [item.path for item in runs.tenant.files.list()] == ["fork.txt", "mine"]
    assert runs.tenant.version == 0


def test_a_broken_inner_job_keeps_the_run_from_committing(runs):
    """An exception in ``with tenant.job()`` that the script swallows cannot leave half a job behind."""
    whole = """
        import freezeframe
        with freezeframe.open_tenant("snapshots").job("inner") as job:
            job.files.write("a", b"1")
    """
    assert list(runs.run(whole).receipt["files_written"]) == ["a"]
    broken = """
        import contextlib, freezeframe
        with contextlib.suppress(ValueError), freezeframe.open_tenant("snapshots").job() as job:
            job.files.write("b", b"1")
            raise ValueError
    """
    assert runs.run(broken).error["code"] == "INVALID_OPTION"
    assert [item.path for item in runs.tenant.files.list()] == ["a"]


def test_threads_of_a_script_are_waited_for(runs):
    """What a thread that is under way at the script's end writes is part of the run."""
    done = runs.run(
        """
        import threading, time
        def late():
            time.sleep(0.5)
            open("snapshots/late", "w").write("1")
        threading.Thread(target=late).start()
        """
    )
    assert list(done.receipt["files_written"]) == ["late"]


def test_another_job_that_was_quicker_is_a_conflict(runs, tmp_path):
    """A file that somebody else changed while the script ran is not overwritten."""
    runs.run(KEEPS)
    waits = f"while not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)"
    script = f"{KEEPS}    print('go'); import pathlib, time\n    {waits}\n"
    seen = []

    def change():
        if runs.lines and not seen:
            seen.append(runs.tenant.files.write_json("counter.json", {"count": 10}))
            (tmp_path / "go").touch()
        return False

    done = runs.run(script, is_cancelled=change)
    assert (done.status, done.error["code"]) == ("failed", "CONFLICT")
    assert runs.tenant.files.read_json("counter.json")["count"] == 10


def test_no_secret_is_left_in_a_job_root(runs, tmp_path):
    """Sealed files, the connector's settings and our own are gone, after a good end and after a kill."""
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    settings = runs.settings.model_copy(update={"master_key_file": key})
    (tmp_path / "config.json").write_text('{"token": "hunter2"}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FREEZEFRAME_MASTER_KEY_FILE", str(key))
        runs.tenant.files.write("secret.json", b"hunter2", sealed=True)
    for ending in ("pass", "import os; os._exit(1)"):
        script = f"""
            import os
            assert open("snapshots/secret.json").read().startswith("hunter2")
            assert "hunter2" in open("config.json").read()
            assert not any("key" == value.rpartition("/")[2] for value in os.environ.values())
            open("snapshots/secret.json", "a").write("!")
            open("tmp/copy", "w").write("hunter2")
            {ending}
        """
        done = runs.run(script, settings=settings, config=tmp_path / "config.json")
        assert (ending == "pass") == (done.status == "succeeded"), done.error
        left = [path for path in done.job_root.rglob("*") if path.is_file()]
        assert [path for path in left if b"hunter2" in path.read_bytes()] == []
        assert not any(path.name in {"plan.json", "job.json"} for path in left)
    entry = runs.tenant.files.list()[0]
    assert (entry.path, entry.sealed) == ("secret.json", True)


def test_a_deleted_tenant_takes_its_job_roots_along(runs):
    """Roots are found by the tenant and go with it; another tenant's stay."""
    done = runs.run("open('etl-output/a', 'w').write('1')")
    other = runs.run("pass", tenant="beta")
    from freezeframe.script import tenants

    tenants.open(runs.root).delete_tenant("acme")
    assert (done.job_root.exists(), other.job_root.exists()) == (False, True)


def test_old_job_roots_are_removed(runs):
    """By the next run of the tenant, once they are older than the setting says; those in use stay.

    A run that changes nothing succeeds, and its receipt says so.
    """
    first = runs.run("pass")
    assert (first.status, first.receipt["streams"], first.receipt["files_written"]) == ("succeeded", {}, [])
    old = first.job_root.with_name("20200101T000000000000-old")
    first.job_root.rename(old)
    second = runs.run("pass")
    assert (old.exists(), second.job_root.exists()) == (False, True)


def test_a_kept_job_root_keeps_all(runs, tmp_path):
    """Where the caller names the folder, input and working copy stay as the script left them.

    ``sys.exit(0)`` is a success.
    """
    ends = "import sys; open('snapshots/a', 'w').write('1'); sys.exit(0); raise ValueError"
    done = runs.run(ends, job_root=tmp_path / "kept")
    assert (done.status, done.job_root) == ("succeeded", tmp_path / "kept")
    assert ((tmp_path / "kept/snapshots/a").read_text(), runs.tenant.files.read("a")) == ("1", b"1")


def test_requirements_that_cannot_be_installed_are_an_error(runs, monkeypatch):
    """The installer's own words are the cause; nothing was run."""
    script = runs.script("open('snapshots/a', 'w')")
    (script.parent / "requirements.txt").write_text("./no-such-package\n")
    with pytest.raises(SetupError) as caught:
        runs.run(script)
    assert (caught.value.error_code, runs.tenant.version) == ("REQUIREMENTS", -1)
    assert "no-such-package" in caught.value.cause
    monkeypatch.setattr(script_header, "_INSTALL_SECONDS", 0.01)
    with pytest.raises(SetupError, match=r"pip did not end within") as caught:
        runs.run(script)
    assert (caught.value.error_code, runs.tenant.version) == ("REQUIREMENTS", -1)


@pytest.mark.nightly
def test_requirements_are_installed_once_on_top_of_ours(runs):
    """The script finds its own package and ours; the second run finds them installed."""
    script = runs.script("import own, freezeframe, sys; print(own.NAME, sys.prefix)")
    package = script.parent / "own"
    package.mkdir()
    (package / "pyproject.toml").write_text(
        '[project]\nname = "own"\nversion = "1"\n'
        '[build-system]\nrequires = []\nbackend-path = ["."]\nbuild-backend = "build_own"\n'
    )
    (package / "build_own.py").write_text(_BACKEND)
    (script.parent / "requirements.txt").write_text("./own  # beside the script\n")
    assert runs.run(script).status == "succeeded"
    name, place = runs.lines[0].split()
    assert (name, Path(place).is_relative_to(runs.settings.state_dir)) == ("mine", True)
    assert sys.prefix != place
    (package / "build_own.py").unlink()
    assert runs.run(script).status == "succeeded"


_BACKEND = """
import zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "own-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{wheel_directory}/{name}", "w") as wheel:
        wheel.writestr("own.py", "NAME = 'mine'")
        wheel.writestr("own-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: own\\nVersion: 1\\n")
        tags = "Wheel-Version: 1.0\\nGenerator: own\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("own-1.dist-info/WHEEL", tags)
        wheel.writestr("own-1.dist-info/RECORD", "")
    return name
"""


def test_no_secret_is_shown_or_kept(runs):
    """Tokens of Spark servers and secret settings are masked in output, log, errors.txt and the error."""
    settings = runs.settings.model_copy(update={"s3_secret_access_key": "hunter22"})
    body = """
        import pathlib
        print("sc://localhost:1/;token=abcdef", "hunter22", flush=True)
        pathlib.Path("errors.txt").write_text("sc://localhost:1/;token=abcdef and hunter22")
        raise ValueError("sc://localhost:1/;token=abcdef and hunter22")
    """
    outcome = runs.run(body, settings=settings)
    raised = runs.run("raise ValueError('sc://localhost:1/;token=abcdef and hunter22')", settings=settings)
    kept = [item.read_text() for item in (outcome.log, outcome.job_root / "errors.txt")]
    told = "".join([*runs.lines, *kept, json.dumps(outcome.to_json()), json.dumps(raised.to_json())])

    assert "token=***" in told
    assert "abcdef" not in told
    assert "hunter22" not in told
