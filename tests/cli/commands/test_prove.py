"""``freezeframe prove`` from its options to its exit code."""

import json

from tests.buckets import WithoutCondition, made_bucket

from freezeframe.cli.main import main
from freezeframe.storage.location import S3Access


def test_the_report_says_what_was_counted(tmp_path, capsys):
    """JSON has seed, verdict and counts of each proof; the folder is empty afterwards."""
    options = ["--storage", str(tmp_path), "--only", "listing", "--only", "clocks", "--seed", "3", "--json"]
    assert main(["prove", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert ("kept", 3, str(tmp_path)) == (report["verdict"], report["seed"], report["storage"])
    assert [(item["name"], item["verdict"]) for item in report["proofs"]] == [
        ("listing", "kept"),
        ("clocks", "kept"),
    ]
    assert report["proofs"][0]["counts"]["listings"] == 120
    assert list(tmp_path.iterdir()) == []


def test_a_storage_that_takes_no_file_breaks_no_promise(tmp_path, capsys):
    """Its table says that none was tried, then the error says why."""
    (tmp_path / "file").write_text("")
    options = ["--storage", str(tmp_path / "file" / "below"), "--only", "values", "--only", "listing"]
    assert main(["prove", *options, "--json"]) == 1
    told = capsys.readouterr()
    report, problem = json.loads(told.out), json.loads(told.err)["error"]["problem"]
    assert ("not tried", problem.startswith("The system refused")) == (report["verdict"], True), problem
    assert [("listing", "not tried"), ("values", "not tried")] == [
        (item["name"], item["verdict"]) for item in report["proofs"]
    ]
    assert main(["prove", *options]) == 1
    told = capsys.readouterr()
    assert ("Verdict: not tried." in told.out, "The system refused" in told.err) == (True, True)


def test_a_bucket_that_does_not_answer_is_told_with_the_table(monkeypatch, capsys):
    """The error names the storage, not the file that the proofs begin with."""
    options, once = S3Access.obstore_options, {"retry_config": {"max_retries": 0}}
    monkeypatch.setattr(S3Access, "obstore_options", lambda access: options(access) | once)
    for name, value in {"ENDPOINT_URL": "http://127.0.0.1:1", "ALLOW_HTTP": "true", "REGION": "x"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("FREEZEFRAME_S3_CONDITIONAL_WRITES", "trusted")
    assert main(["prove", "--storage", "s3://bucket/a", "--only", "listing"]) == 1
    told = capsys.readouterr()
    assert ("listing" in told.out, "Verdict: not tried." in told.out) == (True, True)
    assert "Nothing could be written to s3://bucket/a.\nCause: " in told.err


def test_a_bucket_that_loses_commits_is_a_broken_promise(tmp_path, monkeypatch, capsys):
    """It is told in the table, and the exit code is 1, also when it is known from before."""
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path))
    with made_bucket(WithoutCondition) as bucket:
        for _ in range(2):
            assert main(["prove", "--storage", f"s3://{bucket}/a", "--only", "listing"]) == 1
            told = capsys.readouterr().out
            assert "atomic-create" in told
            assert "Verdict: broken" in told


def test_text_names_the_promise_and_the_seed(tmp_path, capsys):
    """People read each proof's line as it ends, what was promised, and how to repeat the run."""
    assert main(["prove", "--storage", str(tmp_path), "--only", "listing", "--seed", "5"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("listing: kept (120 listings, 60 changes;")
    assert "A listing shows" in told.out
    assert "Verdict: kept. Repeat with --seed 5." in told.out


def test_bad_input_is_refused(tmp_path, capsys):
    """A proof or a storage that is not there ends with 2, and nothing is written."""
    assert main(["prove", "--storage", str(tmp_path), "--only", "x"]) == 2
    assert "no proof named x" in capsys.readouterr().err
    assert main(["prove", "--storage", "ftp://x", "--only", "listing"]) == 2
    assert "no directory of this machine and no bucket" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
