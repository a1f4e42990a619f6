"""A crash between any two storage calls leaves the old state or the new one; nobody needs to repair it."""

import pyarrow as pa
import pytest

from freezeframe.errors import FreezeframeError, StreamNotFound
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way

OLD = pa.table({"Id": ["1", "2"], "v": [1, 2]})
NEW = pa.table({"Id": ["007"], "name": ["Bond"]})


def _calls_of_one_update(open_on, with_account):
    storage = FaultyStorage(with_account())
    tenant = open_on(storage)
    before = len(storage.calls)
    tenant.stream("Lead").update(NEW, key="Id")
    return range(before, len(storage.calls))


@pytest.fixture
def with_account(open_on, memory):
    """A function that gives a new storage in which the stream Account is."""
    open_on(memory).stream("Account").update(OLD, key="Id")
    return memory.copy


def _read(tenant, name):
    try:
        return tenant.stream(name).read(as_="arrow")
    except StreamNotFound:
        return None


@pytest.mark.parametrize("way", [Way.FAIL_BEFORE, Way.FAIL_AFTER])
def test_every_failing_call_is_told_truly(open_on, with_account, way):
    """An acknowledged update is there; one that failed is absent, or its error says that it may be there."""
    for call in _calls_of_one_update(open_on, with_account):
        inner = with_account()
        tenant = open_on(FaultyStorage(inner, [Fault(call, way)]))
        try:
            receipt = tenant.stream("Lead").update(NEW, key="Id")
        except FreezeframeError as error:
            receipt, code = None, error.error_code
        found = _read(open_on(inner), "Lead")

        if receipt is not None:
            assert NEW.equals(found), call
        elif code != "OUTCOME_UNKNOWN":
            assert found is None, call
        assert found is None or NEW.equals(found)
        assert OLD.equals(_read(open_on(inner), "Account"))


def test_readers_lay_over_what_has_not_landed(open_on, with_account):
    """Between commit point and roll-forward the table lags, and readers through us do not notice."""
    inner = with_account()
    entries = [name for name in _files(inner) if "_freezeframe/log" in name]
    for call in _calls_of_one_update(open_on, with_account):
        inner = with_account()
        with pytest.raises(Crash):
            open_on(FaultyStorage(inner, [Fault(call, Way.CUT_AFTER)])).stream("Lead").update(NEW, key="Id")
        committed = [name for name in _files(inner) if "_freezeframe/log" in name] != entries
        landed = any(name.startswith("Lead.snapshot/_delta_log/") for name in _files(inner))
        if committed and not landed:
            assert NEW.equals(_read(open_on(inner), "Lead"))
            assert not any(name.startswith("Lead.snapshot/_delta_log/") for name in _files(inner))
            open_on(inner).stream("Lead").update(NEW.slice(0, 0), key="Id")
            return
    pytest.fail("no crash fell between commit point and roll-forward")


def _files(storage):
    return sorted(storage._files)
