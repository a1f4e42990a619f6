"""The window of a replacement: a caller's SQL, asked of real Spark before anything is written."""

import pytest
from tests.given import fails

from freezeframe.engine.connect import connect
from freezeframe.engine.plans.window import inside, require_inside
from freezeframe.engine.spark_errors import spark_errors
from freezeframe.errors import CorruptData, InvalidOption, OutsideWindow

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark_settings):
    """A session as an engine has one: names are compared with case, a bad value is an error."""
    connection = connect(spark_settings, lambda _: None)
    yield connection.session
    connection.close()


@pytest.fixture(scope="module")
def batch(session):
    rows = [("a", 1, "2026-01-01"), ("b", 2, "x"), ("c", None, None)]
    return session.createDataFrame(rows, "Id string, `a b` int, day string")


def test_false_and_null_are_both_outside(batch):
    """A window holds the rows for which its predicate is true, and no others."""
    kept = batch.select("Id", inside("`a b` = 1").alias("is_inside")).collect()
    assert {row["Id"]: row["is_inside"] for row in kept} == {"a": True, "b": False, "c": False}


@pytest.mark.parametrize("where", ["true", "Id in ('a', 'b', 'c')", "`a b` > 0 or `a b` is null"])
def test_rows_that_are_all_inside_pass(batch, where):
    """Any SQL over the columns, quoted names as well."""
    require_inside(batch, where)


def test_rows_outside_are_counted_and_the_first_shown(batch):
    """The message helps to find them; the count is for programs."""
    with pytest.raises(OutsideWindow, match=r"^2 rows of the batch .*'Id': 'b'") as caught:
        require_inside(batch.orderBy("Id"), "`a b` = 1")
    assert caught.value.details["count"] == 2


def test_long_rows_are_cut(session):
    """A row of any length does not flood a log."""
    with pytest.raises(OutsideWindow) as caught:
        require_inside(session.sql("select repeat('x', 10000) as long from range(9)"), "long = ''")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "where",
    [
        "",
        "Id =",
        "nothing = 1",
        "id = 'a'",
        "`a b`",
        "sum(`a b`) > 1",
        "1/0 = 1",
        "day > DATE'2026-01-01'",
        "Id in (select 1)",
        "Id = 'a'; drop table t",
    ],
)
def test_what_is_no_predicate_is_refused(batch, where):
    """The error names the predicate and the columns there are, whatever is wrong with it."""
    with fails(InvalidOption, "not a predicate over the columns", remedy="`Id`, `a b`, `day`"):
        require_inside(batch, where)


def test_what_is_wrong_with_a_file_is_no_fault_of_the_predicate(session, tmp_path):
    """A batch that cannot be read is not told as a bad predicate."""
    path = tmp_path / "batch.parquet"
    path.write_bytes(b"PAR1 nothing that Parquet knows PAR1")
    with pytest.raises(CorruptData), spark_errors():
        require_inside(session.read.schema("id long").parquet(str(path)), "id = 0")
