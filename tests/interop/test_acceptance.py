"""Tables of every feature and with every damage, asked of us, of Delta on Spark and of delta-rs.

Where the three differ, docs/reference/delta-compatibility.md says who is right.
"""

import pytest
from tests.interop.acceptance import page
from tests.interop.acceptance.run import SEEDS, Run
from tests.interop.acceptance.tables import DELTA_RS, SPARK

OPTIONS = {
    "spark.sql.session.timeZone": "UTC",
    # Each table has a schema of its own: compiling code for its few rows would take most of the time.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
SOME = {
    "column mapping by name": 0,
    "log compaction of delta-rs": 5,
    "partitions of delta-rs": 2,
    "an unknown reader feature": 0,
    "a commit is missing": 0,
    "the checkpoint is damaged": 0,
    "the last line is cut": 2,
}


@pytest.fixture(scope="module")
def run(delta_session, tmp_path_factory):
    before = {name: delta_session.conf.get(name, None) for name in OPTIONS}
    for name, value in OPTIONS.items():
        delta_session.conf.set(name, value)
    yield Run(tmp_path_factory.mktemp("acceptance"), delta_session)
    for name, value in before.items():
        delta_session.conf.unset(name) if value is None else delta_session.conf.set(name, value)


@pytest.mark.spark
@pytest.mark.nightly
def test_readers_differ_in_what_the_page_says(run):
    """Some tables: each difference in version, schema, rows, files or class of error is on the page."""
    found = {workload: run.differences(workload, seed)[1] for workload, seed in SOME.items()}

    assert [] == [item for workload in found for item in page.unknown(workload, found[workload])]


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("workload", SEEDS)
def test_all_readers_differ_in_what_the_page_says(run, workload):
    """All tables of a workload: each difference is on the page, and each row of the page is met."""
    found = [
        difference for seed in range(SEEDS[workload]) for difference in run.differences(workload, seed)[1]
    ]

    assert ([], []) == (page.unknown(workload, found), page.missing(workload, found))


def test_the_page_names_workloads_that_there_are():
    """Each row names workloads of the run, which makes five hundred tables, and says who is right."""
    rows = page.rows()

    named = {name for row in rows for name in row.workloads.split("; ")} - {page.ANY}
    assert named - set(SEEDS) == set()
    assert sum(SEEDS.values()) >= 500
    assert all("protocol" in row.right.lower() or "section" in row.right.lower() for row in rows)
    assert set(SPARK) | set(DELTA_RS) <= set(SEEDS)
