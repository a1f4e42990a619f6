"""Log cleanup: what the retention asks for goes, what a kept version needs stays."""

import os
from datetime import UTC, datetime

import pytest
from tests.log.tables import UNIQUE_ID, TableBuilder

from freezeframe.log.format.actions import Protocol
from freezeframe.log.primitives.paths import checkpoint_part_name, commit_name
from freezeframe.log.table.upkeep import DAY_MS, plan_cleanup
from freezeframe.storage import LocalStorage

NOW = int(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def table(tmp_path):
    return TableBuilder(LocalStorage(tmp_path), "t")


def age(table, tmp_path, days):
    """Give each version's files an age in days; sidecars get the first one."""
    folder = tmp_path / "t" / "_delta_log"
    for path in folder.rglob("*"):
        if path.is_file():
            version = int(path.name[:20]) if path.name[:20].isdigit() else 0
            moment = (NOW - days[version] * DAY_MS) / 1000
            os.utime(path, (moment, moment))


def names(tmp_path):
    return sorted(path.name for path in (tmp_path / "t" / "_delta_log").iterdir() if path.is_file())


def clean(table):
    return table.log(clock=lambda: NOW).maintenance.clean_up()


def test_b075_what_is_older_than_the_newest_expired_checkpoint_goes(table, tmp_path):
    """The checkpoint itself, its commit and all after it stay; every version left reads as before."""
    table.commits(8).checkpoint(2).checkpoint(4).checkpoint(6).checksum(1)
    age(table, tmp_path, [50, 45, 40, 38, 35, 20, 10, 1])
    before = {version: table.live(version) for version in range(4, 8)}
    plan = clean(table)
    assert plan.kept_from == 4
    assert [name for name in names(tmp_path) if int(name[:20]) < 4] == []
    log = table.log()
    assert log.earliest_version() == 4
    for version, live in before.items():
        assert live == sorted(log.snapshot_at(version).files["path"].to_pylist())


def test_b075_without_an_expired_checkpoint_nothing_goes(table, tmp_path):
    """Old commits that a kept version needs are not deleted, however old."""
    table.commits(5).checkpoint(4)
    age(table, tmp_path, [50, 49, 48, 47, 1])
    before = names(tmp_path)
    assert clean(table).files == ()
    assert before == names(tmp_path)


def test_b075_young_files_below_an_old_checkpoint_stay(table, tmp_path):
    """A file that was touched lately is not expired, whatever its version."""
    table.commits(4).checkpoint(2).checksum(0)
    age(table, tmp_path, [50, 49, 48, 1])
    os.utime(tmp_path / "t" / "_delta_log" / f"{0:020d}.crc", (NOW / 1000, NOW / 1000))
    clean(table)
    assert f"{0:020d}.crc" in names(tmp_path)
    assert commit_name(0) not in names(tmp_path)


def test_b075_an_incomplete_checkpoint_is_nothing_to_stand_on(table, tmp_path):
    """Parts that miss a sibling keep no version readable."""
    table.commits(5).checkpoint(3, "parts").delete(f"{3:020d}.checkpoint.{1:010d}.{2:010d}.parquet")
    age(table, tmp_path, [50, 49, 48, 47, 1])
    assert clean(table).files == ()


@pytest.mark.parametrize(
    "configuration",
    [
        {"delta.enableExpiredLogCleanup": "false"},
        {"delta.logRetentionDuration": "interval 60 days"},
        {"delta.requireCheckpointProtectionBeforeVersion": "5"},
    ],
)
def test_b075_the_tables_own_policy_is_kept(table, tmp_path, configuration):
    """Switched off, kept longer, or protected: nothing goes."""
    table.create(**configuration).commits(6).checkpoint(4)
    age(table, tmp_path, [50, 49, 48, 47, 46, 1])
    assert clean(table).files == ()


def test_b075_sidecars_that_no_kept_checkpoint_names_go_after_a_day(table, tmp_path):
    """A sidecar in use stays, and so does one that is younger than a day."""
    table.create(Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))).commits(5).checkpoint(3, "json")
    table.raw("_sidecars/orphan.parquet", b"x").raw("_sidecars/young.parquet", b"x")
    age(table, tmp_path, [50, 49, 48, 47, 1])
    os.utime(tmp_path / "t" / "_delta_log" / "_sidecars" / "young.parquet", (NOW / 1000, NOW / 1000))
    clean(table)
    left = sorted(path.name for path in (tmp_path / "t" / "_delta_log" / "_sidecars").iterdir())
    assert [f"{UNIQUE_ID}.parquet", "young.parquet"] == left


def test_a_plan_deletes_nothing(table, tmp_path):
    """Planning only looks."""
    table.commits(4).checkpoint(2)
    age(table, tmp_path, [50, 49, 48, 1])
    before = names(tmp_path)
    plan = plan_cleanup(table.log().current_snapshot, NOW)
    assert [commit_name(0), commit_name(1)] == list(plan.files)
    assert before == names(tmp_path)


def test_what_writers_of_checkpoints_left_goes(table, tmp_path):
    """Parts of a checkpoint that never became whole."""
    table.commits(8).checkpoint(4).checkpoint(2, "parts", parts=3)
    part = checkpoint_part_name(2, 3, 3)
    table.delete(part)
    age(table, tmp_path, [50, 45, 40, 38, 35, 20, 10, 1])
    plan = clean(table)
    assert {checkpoint_part_name(2, number, 3) for number in (1, 2)} <= set(plan.files)
