"""Erasing rows: gone from the present, from every version, and from all bytes of the tenant."""

import math
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
import pytest
from tests.examples import crossed, sampled

from freezeframe.errors import (
    BadInput,
    IdempotencyConflict,
    InvalidOption,
    JobRevoked,
    StreamNotFound,
    TryAgain,
    VersionNotFound,
)
from freezeframe.service.overview import Overviews
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.maintenance.erasure import WhatIsLeft
from freezeframe.store.model.update_options import RequestContext
from freezeframe.store.tenant import with_request

SECRET = "erase-me-4711"


def people(*names):
    return pa.table({"Id": list(names), "mail": [f"{name}@example.org" for name in names]})


def keys(tenant):
    return sorted(tenant.stream("People").read(as_="arrow")["Id"].to_pylist())


def filled(tenant):
    tenant.stream("People").update(people("a-anna", SECRET, "z-zoe"), key="Id")
    with tenant.job("j") as job:
        job.stream("Orders").update(pa.table({"No": ["1"], "by": ["nobody"]}), key="No")
        job.files.write("config.json", b"{}")
    tenant.stream("People").update(people("b-bert"), key="Id")
    tenant.stream("People").update(people("zz-zack"), key="Id")
    tenant.tag("before", 1)


def bytes_with(storage, text):
    """Files that hold the text as it lies on the disk."""
    return [item.name for item in storage.list_below("") if text.encode() in storage.read(item.name)]


def test_no_byte_of_an_erased_row_is_left(open_finding, memory):
    """Present, past, statistics, log entries; what is left was read, and the rest is as it was."""
    tenant = open_finding(memory)
    filled(tenant)
    assert bytes_with(memory, SECRET)

    done = tenant.erase("People", [SECRET], who="ops")

    assert (done.keys, done.rows_erased, done.left) == (1, 1, WhatIsLeft(1, 4, 0, ()))
    assert bytes_with(memory, SECRET) == []
    assert SECRET not in str(done.to_json())
    for reader in (tenant, open_finding(memory)):
        assert keys(reader) == ["a-anna", "b-bert", "z-zoe", "zz-zack"]
        assert (reader.files.read("config.json"), reader.stream("Orders").count()) == (b"{}", 1)
        assert [entry.kind for entry in reader.history()] == ["erase"]
        assert reader.tags() == {}
        for version in range(done.tenant_version):
            with pytest.raises(VersionNotFound):
                reader.at(version)


class Interrupted(FaultyStorage):
    """Does something else in front of one call."""

    def __init__(self, inner, at, work):
        super().__init__(inner)
        self.at, self.work = at, work

    def _enter(self, verb, name):
        if len(self.calls) == self.at:
            self.at = -1
            self.work()
        return super()._enter(verb, name)


def rows_of_overview(tenant):
    """How many rows the service's overview counts."""
    seen = tenant.scope.reading(lambda: Overviews().of(tenant))
    return next(stream.rows for stream in seen.streams if stream.stream == "People")


def collect(tenant):
    tenant.stream("People").update(people(SECRET), key="Id", override=True)
    assert tenant.gc().files


def interrupted(open_finding, shorten, is_open):
    """Tenants that meet the deletion in front of their first call, their second, and so on to the last."""
    made = MemoryStorage()
    other = open_finding(made)
    filled(other)
    other.untag("before")
    other.set_retention(keep_versions=1)
    for call in sampled(range(200), every=3):
        memory = made.copy()
        beside = partial(open_finding, memory, gc_grace_seconds=0)
        storage = Interrupted(memory, -1, lambda: shorten(beside()))  # noqa: B023 - called in this turn
        tenant = open_finding(storage)
        if is_open:
            assert keys(tenant) == ["a-anna", "b-bert", SECRET, "z-zoe", "zz-zack"]
        storage.at = len(storage.calls) + call
        yield tenant
        if storage.at >= 0:
            assert call > 1
            return
    pytest.fail("it never ends")


def update_in_script(tenant):
    """A script's read and update; what it raises is told, and the job is left by another exception."""
    with suppress(ZeroDivisionError), tenant.job("script") as job:
        try:
            job.stream("People").read()
            job.stream("People").update(people("new"), key="Id")
        except (TryAgain, VersionNotFound) as error:
            raise ZeroDivisionError from error


READS = [
    keys,
    lambda tenant: tenant.stream("People").head(10)["Id"].tolist(),
    lambda tenant: keys(tenant.at(3)),
    lambda tenant: sorted(tenant.stream("People").read(version=3)["Id"]),
    rows_of_overview,
]
WORKS = [
    lambda tenant: tenant.stream("People").update(people("new"), key="Id"),
    lambda tenant: tenant.restore(4),
    lambda tenant: tenant.stream("People").changes(0),
    update_in_script,
]


def with_shortenings(calls):
    """Each call beside an erasure or a collection, by a tenant that is open already or opened then."""
    shortenings = [lambda tenant: tenant.erase("People", [SECRET]), collect]
    return crossed(calls, shortenings, [True, False])


@pytest.mark.sampled
@pytest.mark.parametrize(("read", "shorten", "is_open"), with_shortenings(READS))
def test_a_read_beside_an_erasure_or_a_collection_is_of_one_version(open_finding, read, shorten, is_open):
    """In front of each of its calls another process deletes files: rows before or after, or no version."""
    before = ["a-anna", "b-bert", SECRET, "z-zoe", "zz-zack"]
    after = [SECRET] if shorten is collect else [name for name in before if name != SECRET]
    allowed = (len(before), len(after)) if read is rows_of_overview else (before, after)
    for tenant in interrupted(open_finding, shorten, is_open):
        try:
            assert read(tenant) in allowed
        except VersionNotFound:
            assert read not in (keys, rows_of_overview)


@pytest.mark.sampled
@pytest.mark.parametrize(("work", "shorten", "is_open"), with_shortenings(WORKS))
def test_what_meets_an_erasure_or_a_collection_reports_no_damage(open_finding, work, shorten, is_open):
    """It is done, or it is to be called again, or the version is gone; nothing is said to be damaged."""
    for tenant in interrupted(open_finding, shorten, is_open):
        with suppress(TryAgain, VersionNotFound):
            work(tenant)


def test_a_tenant_goes_on_after_an_erasure(open_finding, memory):
    tenant = open_finding(memory)
    filled(tenant)
    first = tenant.erase("People", ["a-anna"]).tenant_version
    tenant.stream("People").update(people("c-carl"), key="Id")
    for number in range(11):  # beyond a checkpoint
        tenant.stream("Other").update(pa.table({"n": [number]}), key="n")

    with open_finding(memory).job("j") as job:
        job.stream("Orders").update(pa.table({"No": ["1"], "by": ["nobody"]}), key="No")
        job.files.write("config.json", b"{}")
    assert (job.receipt.repeated, job.receipt.tenant_version, job.receipt.streams["Orders"].inserted) == (
        True,
        1,
        1,
    )
    tenant.restore(first)
    assert sorted(keys(tenant), key=lambda k: k != SECRET) == [SECRET, "b-bert", "z-zoe", "zz-zack"]
    assert tenant.erase("People", [SECRET, "absent-key"]).left.is_clean
    assert bytes_with(open_finding(memory).context.storage, SECRET) == []


def test_keys_of_several_columns_and_numbers(open_finding, memory):
    """Other streams with rows of a key are named, whatever the type in which they keep it."""
    tenant = open_finding(memory)
    rows = pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"], "v": [1, 2, 3]})
    tenant.stream("Pairs").update(rows, key=["a", "b"])
    tenant.stream("People").update(people("four"), key="Id")
    tenant.stream("Refs").update(pa.table({"No": ["r1"], "Id": ["four"]}), key="No")
    tenant.stream("Others").update(pa.table({"Id": [4], "who": ["four"]}), key="Id")

    assert (tenant.erase("Pairs", [(1, "y")]).rows_erased, tenant.stream("Pairs").count()) == (1, 2)
    assert tenant.erase("Pairs", [{"b": "x", "a": 2}]).rows_erased == 1
    assert WhatIsLeft(3, 2, 0, ("Refs",)) == tenant.erase("People", ["four"]).left


def test_a_row_is_erased_by_each_form_of_its_key(open_finding, memory):
    """NaN names the row with NaN, and each sign of a zero the other; other streams with one are told."""
    tenant = open_finding(memory)
    rows = pa.table({"No": [-0.0, 5.0, math.nan]})
    for name in ("A", "B"):
        tenant.stream(name).update(rows, key="No")
    found = [tenant.erase("A", [key]) for key in (math.nan, 0.0)]

    told = [(one.rows_erased, one.left.remaining, one.left.elsewhere) for one in found]
    assert [(1, 0, ("B",))] * 2 == told
    assert [5.0] == tenant.stream("A").read(as_="arrow")["No"].to_pylist()


def of_request(tenant):
    """The tenant as one request changes it, each time that it is sent."""
    return with_request(tenant, RequestContext("r", "request-1"))


def test_an_erasure_that_is_sent_again_tells_what_it_did(open_finding, memory):
    """One version; later rows of the key stay, are counted, and what a later erasure forgot is refused."""
    tenant = open_finding(memory)
    filled(tenant)
    first = of_request(tenant).erase("People", [SECRET], who="ops", message="she asked")
    again = of_request(open_finding(memory)).erase("People", [SECRET])

    assert replace(first, files_deleted=0, bytes_deleted=0) == again
    assert ["erase 1 keys of People: she asked"] == [entry.message for entry in tenant.history()]
    tenant.stream("People").update(people(SECRET), key="Id")
    late = of_request(tenant).erase("People", [SECRET])
    assert (1, 1, first.tenant_version) == (late.rows_erased, late.left.remaining, late.tenant_version)
    tenant.erase("People", [SECRET])
    with pytest.raises(IdempotencyConflict, match="erased already"):
        of_request(tenant).erase("People", [SECRET])


def test_an_erasure_that_was_cut_off_is_finished_by_its_request(open_finding, memory):
    """The answer was lost beside the first deletion: sent again, it deletes the rest."""
    filled(open_finding(memory))
    with pytest.raises(Crash):
        of_request(open_finding(FaultyStorage(memory, [Fault(0, Way.CUT_BEFORE, "delete")]))).erase(
            "People", [SECRET]
        )
    assert bytes_with(memory, SECRET)

    done = of_request(open_finding(memory)).erase("People", [SECRET])

    assert (1, True, []) == (done.rows_erased, done.left.is_clean, bytes_with(memory, SECRET))


def test_a_dry_run_tells_which_rows_there_are(open_finding, memory):
    """Nothing is written; other streams with the key are named."""
    tenant = open_finding(memory)
    filled(tenant)
    tenant.stream("Refs").update(pa.table({"No": ["r1"], "Id": [SECRET]}), key="No")
    before = {item.name for item in memory.list_below("")}

    told = tenant.erase("People", [SECRET, "absent"], dry_run=True)

    assert (2, 1, False, 1) == (told.keys, told.rows_erased, told.committed, told.left.remaining)
    assert (("Refs",), tenant.version) == (told.left.elsewhere, told.tenant_version)
    assert before == {item.name for item in memory.list_below("")}


def test_keys_come_in_a_frame_as_well(open_finding, memory):
    """With the other columns of the rows, and with a null that is a key; other types are refused."""
    tenant = open_finding(memory)
    rows = pa.table({"No": [1.5, None, 3.0], "v": ["a", "b", "c"]})
    tenant.stream("Level").update(rows, key="No", null_keys="match")

    for wrong in (pa.table({"No": ["x"]}), pa.table({"v": ["a"]})):
        with pytest.raises(BadInput):
            tenant.erase("Level", wrong)
    assert 2 == tenant.erase("Level", rows.slice(0, 2)).rows_erased
    assert [3.0] == tenant.stream("Level").read(as_="arrow")["No"].to_pylist()


def test_what_cannot_be_erased_is_told_before(open_finding, memory):
    tenant = open_finding(memory)
    filled(tenant)
    tenant.stream("Keyless").update(pa.table({"v": [1]}), override=True)
    version = tenant.version

    for name, wrong, error in (
        ("Nope", ["x"], StreamNotFound),
        ("Keyless", ["x"], InvalidOption),
        ("People", [], InvalidOption),
        ("People", [("a", "b")], BadInput),
        ("People", [None], BadInput),
        ("People", [7], BadInput),
        ("People", pa.table({"Id": [7]}), BadInput),
    ):
        with pytest.raises(error):
            tenant.erase(name, wrong)
    assert version == tenant.version


def test_staged_batches_of_others_go_as_well(open_finding, memory):
    """A job under way may hold the row: it can not commit any more, and its files are gone."""
    tenant = open_finding(memory)
    filled(tenant)

    with pytest.raises(JobRevoked), tenant.job() as job:  # noqa: PT012 - the end of the block raises
        job.stream("People").update(people("a-a", SECRET + "2"), key="Id")
        tenant.erase("People", [SECRET])
        assert bytes_with(memory, SECRET) == []

    assert keys(tenant) == ["a-anna", "b-bert", "z-zoe", "zz-zack"]


@pytest.mark.sampled
def test_an_erasure_that_was_cut_off_is_finished_by_gc(open_finding, memory):
    """At whichever storage call it dies: the old state or the new one, and gc removes the rest."""
    often = {"checkpoint_interval": 1}
    open_finding(memory, **often).stream("People").update(people("a-anna", SECRET), key="Id")
    open_finding(memory, **often).stream("People").update(people("zz-zack"), key="Id")
    counting = FaultyStorage(memory.copy())
    open_finding(counting, **often).erase("People", [SECRET])
    outcomes = set()
    for call in sampled(range(0, len(counting.calls), 2)):
        inner = memory.copy()
        cut = FaultyStorage(inner, [Fault(call, Way.CUT_AFTER)])
        with pytest.raises(Crash):
            open_finding(cut, **often).erase("People", [SECRET])
        tenant = open_finding(inner, gc_grace_seconds=0, lease_dead_seconds=0)
        found = keys(tenant)
        tenant.gc()
        assert (found, ()) == (keys(tenant), tenant.verify().findings), call
        outcomes.add(SECRET in found)
        if SECRET not in found:
            assert bytes_with(inner, SECRET) == [], call
    assert outcomes == {True, False}


@pytest.mark.parametrize("interval", [1, 2, 3])
def test_a_job_from_before_an_erasure_is_answered_whatever_checkpoints_say(open_finding, memory, interval):
    """Checkpoints that were made beside the erasure, and after it, know its receipt as well."""
    tenant = open_finding(memory, checkpoint_interval=interval)
    filled(tenant)
    known = tenant.history(limit=None)
    assert "j" in [entry.job_id for entry in known]
    with suppress(Crash):
        open_finding(
            FaultyStorage(memory, [Fault(0, Way.CUT_BEFORE, "delete")]), checkpoint_interval=interval
        ).erase("People", [SECRET])
    for number in range(4):
        tenant.files.write("other.json", str(number).encode())
    tenant.gc()

    with open_finding(memory, checkpoint_interval=interval).job("j") as job:
        first = job.stream("Orders").update(pa.table({"No": ["1"], "by": ["nobody"]}), key="No")
        job.files.write("config.json", b"{}")

    assert (job.is_repeated, first.inserted) == (True, 1)


def test_a_moment_after_an_erasure_is_found(open_finding, memory):
    tenant = open_finding(memory)
    filled(tenant)
    done = tenant.erase("People", [SECRET])

    assert done.tenant_version == tenant.at(datetime.now(UTC)).version
    with pytest.raises(VersionNotFound):
        tenant.at(datetime(2020, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("seconds", [0.0411010750, 10107.0])
def test_digits_of_a_figure_are_no_rows(open_finding, memory, seconds):
    """A number in a receipt, a size or another column does not make an erasure fail."""
    tenant = open_finding(memory)
    rows = pa.table({"Id": [10107, 20000, 30000], "n": [7, 10107, 101070], "s": [0.1, seconds, 0.3]})
    for number in range(11):  # a checkpoint is written, and receipts are kept
        with tenant.job(f"job {number}") as job:
            job.stream("Account").update(rows.slice(number % 3, 1), key="Id")

    done = tenant.erase("Account", [10107])

    assert (done.rows_erased, done.left.remaining) == (1, 0)
    assert tenant.erase("Account", [20000]).left.remaining == 0
