"""``freezeframe delta``: one JSON answer for programs, a few lines for people, never a traceback."""

import json
from types import SimpleNamespace

import pytest
from tests.log.tables import TableBuilder

from freezeframe.cli.main import main
from freezeframe.log import DeltaLog
from freezeframe.log.primitives.paths import commit_name
from freezeframe.storage import LocalStorage


@pytest.fixture
def table(tmp_path):
    DeltaLog.clear_cache()
    return TableBuilder(LocalStorage(tmp_path), "t").commits(12).checkpoint(10)


@pytest.fixture
def run(tmp_path, capsys):
    def call(command, *options):
        code = main(["delta", command, str(tmp_path / "t"), *options])
        said = capsys.readouterr()
        return SimpleNamespace(exit_code=code, stdout=said.out, stderr=said.err)

    return call


def test_show_prints_exactly_the_agreed_fields(table, run):
    """Version, protocol, metadata, segment, files, tombstones, transactions: no more, no less."""
    result = run("show", "--json")
    shown = json.loads(result.stdout)
    names = ["version", "protocol", "metadata", "segment", "files", "tombstones", "transactions"]
    assert (0, names) == (result.exit_code, list(shown))
    assert {"checkpoint_version": 10, "deltas": [commit_name(11)]} == shown["segment"]
    assert table.live() == [file["path"] for file in shown["files"]]
    assert shown["files"][0] == {
        "path": "f1",
        "size": 1,
        "partition_values": {"p": "a"},
        "deletion_vector": None,
    }
    assert set(shown["metadata"]) == {"id", "partition_columns", "configuration", "schema"}


def test_show_an_older_version(table, run):
    """By number; the text form names it too."""
    assert table.live(4) == [
        file["path"] for file in json.loads(run("show", "--version", "4", "--json").stdout)["files"]
    ]
    assert "version" in run("show", "--version", "4").stdout


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--version", "99"), "DELTA_VERSION_NOT_FOUND"),
        (("--as-of", "1999-01-01"), "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        (("--as-of", "2999-01-01T00:00:00Z"), "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        (("--as-of", "yesterday"), "INVALID_OPTION"),
    ],
)
def test_an_error_is_one_json_object_and_an_exit_code(table, run, options, code):
    """Delta's error class where there is one, on standard error."""
    result = run("show", *options, "--json")
    assert (code, "") == (json.loads(result.stderr)["error"]["code"], result.stdout)
    assert result.exit_code != 0


def test_a_folder_without_a_log_is_version_minus_one(tmp_path, run):
    """No table yet is an answer; no folder is an error."""
    (tmp_path / "t").mkdir()
    assert json.loads(run("show", "--json").stdout) == {"version": -1}
    assert "no table yet" in run("show").stdout


def test_history_lists_versions_newest_first(table, run):
    """As JSON with the commit info's fields, as text with a heading."""
    entries = json.loads(run("history", "--limit", "3", "--json").stdout)
    assert [entry["version"] for entry in entries] == [11, 10, 9]
    assert set(entries[0]) == {"version", "timestamp", "operation", "engine_info", "commit_info"}
    assert "operation" in run("history").stdout


def test_checkpoint_writes_one_of_the_newest_version(table, run):
    """The next reader starts from it; a table that does not exist has none."""
    written = json.loads(run("checkpoint", "--json").stdout)
    assert (11, len(table.live()) + 2) == (written["version"], written["actions"])
    assert table.log().current_snapshot.segment.checkpoint_version == 11
    assert table.live() == sorted(table.log().current_snapshot.files["path"].to_pylist())
    assert "11" in run("checkpoint").stdout


def test_verify_names_what_is_damaged_and_fails(table, run):
    """Exit code 1, the file and its code."""
    table.raw(commit_name(3), b"{")
    result = run("verify", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["sound"]) == (1, False)
    assert [commit_name(3)] == [item["file"].rsplit("/")[-1] for item in answer["findings"]]
    assert "damaged" in run("verify").stdout


def test_verify_says_that_all_is_well(tmp_path, run):
    """A log that was only created has nothing to be damaged."""
    TableBuilder(LocalStorage(tmp_path), "t").create()
    result = run("verify", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"sound": True, "findings": []})
    assert "sound" in run("verify").stdout


@pytest.mark.parametrize("made", ["t", "t/_delta_log"])
def test_verify_of_no_table_fails(tmp_path, run, made):
    """A folder without a version of a table is not sound; the whole tenant's command is named."""
    (tmp_path / made).mkdir(parents=True)

    result = run("verify", "--json")

    assert (result.exit_code, json.loads(result.stderr)["error"]["code"]) == (4, "INPUT_NOT_FOUND")
    assert "tenant verify" in result.stderr
