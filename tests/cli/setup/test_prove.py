"""``freezeframe prove`` from its options to its exit code."""

import json

from freezeframe.cli.main import main


def test_the_report_says_what_was_counted(tmp_path, capsys):
    """JSON has seed, verdict and counts of each proof; the folder is empty afterwards."""
    options = ["--storage", str(tmp_path), "--only", "listing", "--only", "clocks", "--seed", "3", "--json"]
    assert 0 == main(["prove", *options])
    report = json.loads(capsys.readouterr().out)
    assert ("kept", 3, str(tmp_path)) == (report["verdict"], report["seed"], report["storage"])
    assert [("listing", "kept"), ("clocks", "kept")] == [
        (one["name"], one["verdict"]) for one in report["proofs"]
    ]
    assert 120 == report["proofs"][0]["counts"]["listings"]
    assert [] == list(tmp_path.iterdir())


def test_a_storage_that_takes_no_file_breaks_no_promise(tmp_path, capsys):
    """It is told as what it is, before any proof begins."""
    (tmp_path / "file").write_text("")
    assert 1 == main(["prove", "--storage", str(tmp_path / "file" / "below"), "--only", "values", "--json"])
    told = capsys.readouterr()
    problem = json.loads(told.err)["error"]["problem"]
    assert ("", True) == (told.out, problem.startswith("The system refused")), problem


def test_text_names_the_promise_and_the_seed(tmp_path, capsys):
    """People read each proof's line as it ends, what was promised, and how to repeat the run."""
    assert 0 == main(["prove", "--storage", str(tmp_path), "--only", "listing", "--seed", "5"])
    told = capsys.readouterr()
    assert told.err.startswith("listing: kept (120 listings, 60 changes;")
    assert "A listing shows" in told.out
    assert "Verdict: kept. Repeat with --seed 5." in told.out


def test_bad_input_is_refused(tmp_path, capsys):
    """A proof or a storage that is not there ends with 2, and nothing is written."""
    assert 2 == main(["prove", "--storage", str(tmp_path), "--only", "x"])
    assert "no proof named x" in capsys.readouterr().err
    assert 2 == main(["prove", "--storage", "ftp://x", "--only", "listing"])
    assert "not a place for a store" in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())
