"""Transactions: what is committed, what must give way, and what becomes of a commit when things break."""

import contextlib
import json
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.examples import sampled
from tests.log.data_files import new_files

from freezeframe.errors import (
    ConflictError,
    FreezeframeError,
    InvalidOption,
    OutcomeUnknown,
    StorageUnavailable,
    UnsupportedTable,
)
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.action_columns import to_adds
from freezeframe.log.format.actions import (
    Add,
    Protocol,
)
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.scan import rows
from freezeframe.log.table import transaction as writing
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import Upkeep
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way


def numbers(snapshot):
    return sorted(rows.read(snapshot)["n"].to_pylist())


def test_commits_follow_each_other(table):
    """Each commit is the next version and its rows are there for whoever reads afresh."""
    assert [1, 2] == [table.append(range(3)), table.append(range(3, 5))]
    assert numbers(table.fresh()) == [0, 1, 2, 3, 4]


def test_a_commit_says_who_and_what(table):
    """The commitInfo holds operation, parameters as JSON text, metrics as text, and a write id of its own."""
    table.begin().commit(table.adds([1]), "MERGE", {"on": ["id"], "mode": "x"}, {"rows": 1})
    info = table.fresh().commit_info.fields
    assert (
        info["operation"],
        info["operationParameters"],
        info["operationMetrics"],
    ) == ("MERGE", {"on": '["id"]', "mode": "x"}, {"rows": "1"})
    table.append([2])
    assert info["writeId"] != table.fresh().commit_info.fields["writeId"]
    assert info["isBlindAppend"] is True


def test_of_two_commits_at_once_one_is_a_conflict(table):
    """Whatever they hold; nothing of the later one is there, and begun anew it is the next version."""
    first, second = table.begin(), table.begin()
    adds = table.adds([2])
    assert 1 == first.commit(table.adds([1]), "WRITE")
    with pytest.raises(ConflictError) as lost:
        second.commit(adds, "WRITE")
    assert (1, [1]) == (lost.value.details["version"], numbers(table.fresh()))
    assert 2 == table.begin().commit(adds, "WRITE")
    assert numbers(table.fresh()) == [1, 2]


def test_in_commit_times_only_go_forward(make_table, monkeypatch):
    """Commit times grow by at least a millisecond, also where the clock stands still or was put back."""
    table = make_table(MemoryStorage(), enableInCommitTimestamps="true")
    for number, clock in enumerate((10_000, 10_000, 1)):
        monkeypatch.setattr(writing, "now_ms", lambda clock=clock: clock)
        table.append([number]) if number else table.create()
    times = [DeltaLog(table.storage, "t").snapshot_at(v).commit_info.in_commit_timestamp for v in range(3)]
    assert [10_000, 10_001, 10_002] == times


def test_turning_in_commit_times_on_is_dated(table):
    """The version and time from which commits carry their own time are written into the properties."""
    conf = {**table.metadata.configuration, "delta.enableInCommitTimestamps": "true"}
    table.append([1])
    table.begin().commit([replace(table.metadata, configuration=conf)], "ALTER")
    snapshot = table.fresh()
    found = snapshot.metadata.configuration
    assert found["delta.inCommitTimestampEnablementVersion"] == "2"
    assert str(snapshot.timestamp) == found["delta.inCommitTimestampEnablementTimestamp"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: [table.metadata, table.metadata],
        lambda table: [table.protocol, table.protocol],
        lambda table: [replace(table.metadata, schema_string="{")],
    ],
)
def test_a_commit_that_no_reader_could_read_is_refused(table, spoil):
    """Two schemas or protocols, or a garbled schema: nothing is written."""
    with pytest.raises(InvalidOption):
        table.begin().commit(spoil(table), "WRITE")
    assert table.fresh().version == 0


def test_a_first_version_needs_a_protocol_and_a_schema():
    """Files alone make no table."""
    with pytest.raises(InvalidOption, match="protocol"):
        Transaction(DeltaLog(MemoryStorage(), "t")).commit([Add("a", 1)], "WRITE")


def test_two_creators_of_one_table(make_table):
    """Of two who create the same table the second conflicts."""
    table = make_table(MemoryStorage())
    first, second = table.begin(), table.begin()
    assert 0 == first.commit([table.protocol, table.metadata], "CREATE TABLE")
    with pytest.raises(ConflictError):
        second.commit([table.protocol, table.metadata], "CREATE TABLE")


@pytest.mark.parametrize(
    ("feature", "configuration", "named"),
    [
        ("someFeature", {}, "someFeature"),
        ("freezeframe.tenantLog", {}, "freezeframe.tenantLog"),
        ("changeDataFeed", {"enableChangeDataFeed": "true"}, "changeDataFeed"),
        ("rowTracking", {"enableRowTracking": "true"}, "rowTracking"),
        ("checkConstraints", {"constraints_c": "n > 0"}, "checkConstraints"),
    ],
)
def test_features_that_are_not_honoured_are_refused_by_name(make_table, feature, configuration, named):
    """A writer feature that asks for more than is done here stops the writer, never the reader."""
    table = make_table(MemoryStorage(), features=(feature,), **configuration)
    with pytest.raises(UnsupportedTable) as caught:
        table.create()
    assert [named] == caught.value.details["features"]
    assert isinstance(Transaction(table.log, own_features=[feature]), Transaction)


def test_a_feature_that_the_caller_honours_is_let_through(make_table):
    """A caller that knows a writer feature of its own may write with it."""
    table = make_table(MemoryStorage(), features=("freezeframe.tenantLog",))
    begun = table.begin(own_features=["freezeframe.tenantLog"])
    assert 0 == begun.commit([table.protocol, table.metadata], "CREATE TABLE")


def test_a_property_without_its_feature_is_refused(table):
    """Behaviour 59: a property that uses a feature the protocol does not list is a broken table."""
    plain = Protocol(1, 7, None, ("inCommitTimestamp",))
    with pytest.raises(UnsupportedTable) as caught:
        table.begin().commit([plain, table.metadata], "ALTER")
    assert caught.value.error_code == "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"


def test_a_lost_answer_is_looked_up(make_table):
    """When the answer to the commit is lost, what is in the log decides: it is ours, once."""
    inner = MemoryStorage()
    make_table(inner).create()
    table = make_table(FaultyStorage(inner, [Fault(1, Way.FAIL_AFTER, "put_if_absent")]))
    assert 1 == table.append([1])
    assert numbers(make_table(inner).fresh()) == [1]


class Unreachable(MemoryStorage):
    """Once ``is_down`` it carries out what is asked, but nobody gets an answer any more."""

    is_down = False

    def put_if_absent(self, name, content):
        super().put_if_absent(name, content)
        if self.is_down:
            raise OutcomeUnknown("no answer")

    def read(self, name, offset=0, length=None):
        if self.is_down:
            raise StorageUnavailable("no answer")
        return super().read(name, offset, length)


def test_an_outcome_that_cannot_be_read_is_unknown_until_it_can(make_table):
    """No answer and no way to look is an error of its own; later ``resolve`` finds it there, once."""
    storage = Unreachable()
    table = make_table(storage)
    table.create()
    begun, adds = table.begin(), table.adds([1])
    storage.is_down = True
    with pytest.raises(OutcomeUnknown, match="resolve"):
        begun.commit(adds, "WRITE")
    storage.is_down = False
    assert [1, 1] == [begun.resolve(), begun.resolve()]
    assert numbers(table.fresh()) == [1]


def test_nothing_sent_has_no_outcome(table):
    """Before a commit there is nothing to resolve."""
    with pytest.raises(InvalidOption):
        table.begin().resolve()


def scenario(table, acknowledged):
    """Create, append twice, delete by vector; each commit that was acknowledged is put on the list."""
    steps = (table.create, lambda: table.append(range(5)), lambda: table.append(range(5, 8)))
    for step in (*steps, lambda: deleted(table)):
        if step() is None:
            return
        acknowledged.append(step)


def deleted(table):
    begun = table.begin()
    path = begun.snapshot.files["path"][0].as_py()
    count = begun.snapshot.files.num_rows
    if count != 2:
        return None
    return begun.commit(table.delete(begun, {path: [0]}), "DELETE")


def states_of(table):
    snapshot = table.fresh()
    return snapshot.version, [] if snapshot.version < 0 else numbers(snapshot)


def expected(version, found):
    """Whether these rows are whole for this version: none half there."""
    wanted = {-1: [[]], 0: [[]], 1: [list(range(5))], 2: [list(range(8))]}
    wanted[3] = [[n for n in range(8) if n != gone] for gone in (0, 5)]
    return found in wanted[version]


def all_calls(make_table):
    counting, acknowledged = FaultyStorage(MemoryStorage()), []
    scenario(make_table(counting, UPKEEP), acknowledged)
    assert len(acknowledged) == 4
    return len(counting.calls)


UPKEEP = Upkeep(checkpoint_interval=2)


@pytest.mark.sampled
@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER, Way.FAIL_BEFORE, Way.FAIL_AFTER])
def test_broken_at_every_storage_call(make_table, way):
    """At each call: what was acknowledged is there whole, the rest is whole or absent, writing goes on."""
    for call in sampled(range(all_calls(make_table))):
        inner, acknowledged = MemoryStorage(), []
        faulty = FaultyStorage(inner, [Fault(call, way)])
        with contextlib.suppress(Crash, FreezeframeError):
            scenario(make_table(faulty, UPKEEP), acknowledged)
        after = make_table(inner, UPKEEP)
        version, found = states_of(after)
        assert len(acknowledged) <= version + 1, (call, faulty.calls[call])
        assert expected(version, found), (call, faulty.calls[call], version, found)
        if version >= 0:
            assert version + 1 == after.append([100]), (call, faulty.calls[call])
            assert sorted([*found, 100]) == numbers(after.fresh())


def test_statistics_keep_every_digit_when_rows_are_deleted(make_table):
    """A vector's new ``add`` has the file's bounds, digit by digit, and no longer claims them tight."""
    kinds = pa.schema([("m", pa.decimal128(38, 3)), ("p", pa.string())])
    table = make_table(MemoryStorage(), schema=arrow_to_delta(kinds))
    table.create()
    big = Decimal("12345678901234567890123456789012345.678")
    [file] = new_files(
        pa.table({"m": [big, big], "p": ["a", "a"]}), table.schema, table.protocol, table.metadata
    )
    table.storage.put_if_absent(f"t/{file.name}", file.content)
    table.begin().commit([file.add], "WRITE")
    begun = table.begin()
    begun.commit(table.delete(begun, {file.add.path: [1]}), "DELETE")
    [add] = to_adds(table.fresh().files)
    found = json.loads(add.stats, parse_float=Decimal)
    assert (big, False) == (found["maxValues"]["m"], found["tightBounds"])
    assert [{"m": big, "p": "a"}] == rows.read(table.fresh()).to_pylist()
