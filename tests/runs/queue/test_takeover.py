"""A job that was taken over can not be committed by its former process."""

from freezeframe.runs.queue.attempt import revoke


def test_a_run_that_was_revoked_cannot_commit(runs, tmp_path):
    """The revoke lands while the script runs; its commit is refused, and a new run of the job succeeds."""
    script = f"""
        import pathlib, time
        print("begun")
        open("snapshots/a", "w").write("1")
        while not pathlib.Path({str(tmp_path / "go")!r}).exists():
            time.sleep(0.01)
    """
    request = runs.request(script, job_id="x")
    taken = []

    def take_over():
        if runs.lines and not taken:
            revoke(request, "the worker was silent", settings=runs.settings)
            taken.append(True)
            (tmp_path / "go").touch()
        return False

    done = runs.run(request.script, is_cancelled=take_over, job_id="x")
    assert (done.status, done.error["code"]) == ("failed", "JOB_REVOKED")
    assert runs.tenant.files.list() == ()
    entry = next(iter(runs.tenant.history()))
    assert (entry.kind, entry.message) == ("revoke", "the worker was silent")
    assert runs.run("open('snapshots/a', 'w').write('2')", job_id="x").status == "succeeded"


def test_nothing_is_written_where_nobody_runs(runs):
    """No run of the job is under way, or there is no such tenant: the log stays as it is."""
    revoke(runs.request("pass"), "gone", settings=runs.settings)
    runs.run("pass", job_id="x")
    revoke(runs.request("pass", job_id="x"), "gone", settings=runs.settings)
    assert runs.tenant.version == 0
