"""``Stream.changes`` in the words of Delta's change feed: each version's changes, an update as two rows."""

import pyarrow as pa
import pytest

import freezeframe as ff
from freezeframe.identifiers import StreamName
from freezeframe.storage.memory import FaultyStorage, MemoryStorage
from freezeframe.store import change_feed
from freezeframe.store.change_feed import FeedCursor, feed_page
from freezeframe.store.model.directory import TENANT_LOG_FOLDER

WORDS = ("_change_type", "_commit_version")


@pytest.fixture
def tenant(tmp_path):
    """A tenant in whose versions rows came, changed and went."""
    opened = ff.open(tmp_path).tenant("acme", create=True)
    account = opened.stream("Account")
    account.update(pa.table({"Id": [1, 2], "City": ["Bern", "Basel"]}), "Id")
    account.update(pa.table({"Id": [2, 3], "City": ["Chur", "Wil"]}), "Id")
    opened.stream("Lead").update(pa.table({"Id": [1]}), "Id")
    account.update(pa.table({"Id": [3, 4], "City": ["Wil", "Zug"]}), "Id", mode="full", max_delete_ratio=1.0)
    opened.tag("go-live", 1)
    return opened


def feed(stream, *names, **versions):
    """The changes as tuples, in order: word, version, and some columns."""
    rows = stream.changes(**versions, as_="arrow").to_pylist()
    return sorted((tuple(row[name] for name in (*WORDS, *names)) for row in rows), key=repr)


def test_each_version_has_its_own_changes(tenant):
    """From a version, by number, tag or moment, to another one; both are included."""
    account = tenant["Account"]
    first = [("insert", 0, 1, "Bern"), ("insert", 0, 2, "Basel")]
    second = [
        ("insert", 1, 3, "Wil"),
        ("update_postimage", 1, 2, "Chur"),
        ("update_preimage", 1, 2, "Basel"),
    ]
    last = [("delete", 3, 1, "Bern"), ("delete", 3, 2, "Chur"), ("insert", 3, 4, "Zug")]

    assert sorted([*first, *second, *last]) == feed(account, "Id", "City", starting_version=0)
    assert second == feed(account, "Id", "City", starting_version="go-live", ending_version=2)
    assert last == feed(account, "Id", "City", starting_version=2)
    assert [] == feed(account, starting_version=2, ending_version=2)
    assert second == feed(
        tenant.at(2).stream("Account"), "Id", "City", starting_version=tenant.at(1).timestamp
    )
    table = account.changes(starting_version=3, as_="arrow")
    assert {tenant.at(3).timestamp} == set(table["_commit_timestamp"].to_pylist())
    assert ["Id", "City", *WORDS, "_commit_timestamp"] == table.column_names
    assert list(table.column_names) == list(account.changes(starting_version=3).columns)


def test_the_next_version_has_no_changes_yet(tenant):
    """Whoever goes on behind the last version that was read need not ask whether there is another one."""
    assert 0 == len(tenant["Account"].changes(starting_version=5))
    with pytest.raises(ff.VersionNotFound, match="no version 6"):
        tenant["Account"].changes(starting_version=6)


def test_a_dropped_and_a_restored_stream_have_all_rows(tenant):
    """Deleted by the drop, and inserted by the restore."""
    tenant.drop_stream("Account")
    assert [("delete", 5, 3), ("delete", 5, 4)] == feed(tenant.stream("Account"), "Id", starting_version=5)
    tenant.restore(3, streams=["Account"])
    assert [("insert", 6, 3), ("insert", 6, 4)] == feed(tenant["Account"], "Id", starting_version=6)


def test_a_released_and_an_adopted_stream_have_all_rows(tenant):
    """As a dropped one: deleted by the release, and inserted when it is taken back."""
    released = tenant["Account"].release()
    gone = [("delete", released, 3), ("delete", released, 4)]
    assert gone == feed(tenant.stream("Account"), "Id", starting_version=released)
    tenant.stream("Lead").update(pa.table({"Id": [2]}), "Id")
    assert gone == feed(tenant.stream("Account"), "Id", starting_version=released)
    back = tenant.adopt("Account")
    assert [("insert", back, 3), ("insert", back, 4)] == feed(tenant["Account"], "Id", starting_version=back)
    with pytest.raises(ff.StreamNotFound):
        tenant.stream("Nothing").changes(starting_version=0)


def test_earlier_values_take_the_types_of_the_end_or_are_refused(tenant):
    """A value is never lost: deleted rows keep it, and what the columns cannot hold is an error."""
    account = tenant["Account"]
    account.update(pa.table({"Id": ["a", "3"], "City": ["Thun", "Wil"]}), "Id", override=True)
    assert {("delete", 5, "4", "Zug"), ("insert", 5, "a", "Thun")} <= set(
        feed(account, "Id", "City", starting_version=5)
    )
    assert ("insert", 0, "1", "Bern") in feed(account, "Id", "City", starting_version=0)
    account.update(pa.table({"Id": ["3"], "City": [8000]}), "Id", override=True)
    with pytest.raises(ff.SchemaDriftError, match="version 5 does not fit"):
        account.changes(starting_version=5)


@pytest.mark.parametrize("key", [-0.0, float("nan")])
def test_keys_that_are_equal_are_one_row(tmp_path, key):
    """Both zeros, and all NaNs."""
    stream = ff.open(tmp_path).tenant("acme", create=True).stream("Rate")
    stream.update(pa.table({"Key": [abs(key), 1.0], "Value": [1, 1]}), "Key")
    stream.update(pa.table({"Key": [key], "Value": [2]}), "Key")
    assert [("update_postimage", 1, 2), ("update_preimage", 1, 1)] == feed(
        stream, "Value", starting_version=1
    )


def test_versions_that_are_gone_are_refused(tenant):
    """They are never left out."""
    tenant["Account"].update(pa.table({"Id": [3], "City": ["Thun"]}), "Id")
    tenant.erase("Account", [1])
    with pytest.raises(ff.VersionNotFound, match="no longer kept"):
        tenant["Account"].changes(starting_version=1)


def test_a_job_sees_what_is_committed(tenant):
    """Its own changes have no version yet."""
    with tenant.job() as job:
        job["Account"].update(pa.table({"Id": [9], "City": ["Olten"]}), "Id")
        assert 3 == len(job["Account"].changes(starting_version=3))


@pytest.mark.parametrize(
    ("versions", "says"),
    [
        ({"starting_version": 1, "since": 0}, "cannot be used together"),
        ({"ending_version": 1}, "alone"),
        ({"starting_version": 3, "ending_version": 1}, "begin with version 3"),
    ],
)
def test_versions_that_contradict_each_other_are_refused(tenant, versions, says):
    """With the names that were given."""
    with pytest.raises(ff.InvalidOption, match=says):
        tenant["Account"].changes(**versions)


def test_a_column_of_the_added_names_is_refused(tmp_path):
    """Its values could not be told from those that are added."""
    stream = ff.open(tmp_path).tenant("acme", create=True).stream("A")
    stream.update(pa.table({"Id": [1], "_commit_version": [1]}), "Id")
    with pytest.raises(ff.InvalidOption, match="'_commit_version' of its own"):
        stream.changes(starting_version=0)


def paged(stream, limit):
    """All pages of the feed from version 0 on."""
    cursor, pages = FeedCursor(-1, stream.scope.state().version), []
    while cursor is not None:
        page = feed_page(stream.scope, StreamName(stream.name), cursor, limit)
        pages.append(page.rows)
        cursor = page.following
    return pages


def test_pages_of_a_feed_are_the_feed(tenant):
    """An update is two rows, one behind the other; with a drop, keys of another type or null, and no key."""
    account = tenant["Account"]
    tenant.drop_stream("Account")
    account.update(pa.table({"City": ["a", "a"]}), override=True)
    account.update(pa.table({"City": ["a"]}), override=True)
    tenant.drop_stream("Account")
    odd = pa.table({"Id": ["x", None, "y"], "City": ["a", "b", None]})
    account.update(odd, "Id", null_keys="match")
    account.update(odd.slice(1, 1).set_column(1, "City", [["c"]]), "Id", null_keys="match")
    whole = account.changes(starting_version=0, as_="arrow")
    for limit in (1, 2, 3, 100):
        pages = paged(account, limit)

        assert sorted(map(repr, whole.to_pylist())) == sorted(
            repr(row) for page in pages for row in page.to_pylist()
        )
        words = pa.concat_tables(pages)["_change_type"].to_pylist()
        after = [words[place + 1] for place, word in enumerate(words) if word == "update_preimage"]
        assert {"update_postimage"} == set(after)
        assert all(len(page) <= 2 * limit for page in pages)
        assert limit < 100 or len(pages) == 1


def test_a_page_reads_few_entries_beyond_its_own(open_finding, monkeypatch):
    """The feed of a long log is read in pieces from its beginning on."""
    monkeypatch.setattr(change_feed, "_VERSIONS_AT_ONCE", 4)
    storage = FaultyStorage(MemoryStorage())
    stream = open_finding(storage).stream("A")
    for number in range(25):
        stream.update(pa.table({"Id": [number]}), "Id")
    until, before = stream.scope.state().version, len(storage.calls)
    page = feed_page(stream.scope, StreamName("A"), FeedCursor(-1, until), 2)
    read = [call.name for call in storage.calls[before:] if call.name.startswith(f"{TENANT_LOG_FOLDER}/")]

    assert ([0, 1], 1) == (page.rows["Id"].to_pylist(), page.following.since)
    assert len(read) < 15
    assert list(range(25)) == pa.concat_tables(paged(stream, 5))["Id"].to_pylist()
