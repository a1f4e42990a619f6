"""The Spark format ``freezeframe``: what its options mean, without Spark, and the same through Spark."""

import json
import pickle
import shutil
import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.pandas.types import from_arrow_schema
from tests.buckets import made_bucket
from tests.one_session import plain_environment

import freezeframe as ff
from freezeframe.engine.data_source import _Format, _StreamReader
from freezeframe.errors import CorruptData, CorruptLog, InvalidName
from freezeframe.identifiers import StreamName
from freezeframe.log.segments.commit import write_commit
from freezeframe.script.spark_format import Format
from freezeframe.script.spark_reads import Place
from freezeframe.script.spark_sql import over_frames
from freezeframe.settings import load_settings


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a store: tenants with a stream in three and one versions, and one without it."""
    folder = tmp_path_factory.mktemp("made") / "store"
    opened = ff.open(folder)
    account = opened.tenant("acme", create=True).stream("Account")
    account.update(pa.table({"Id": [1, 2], "City": ["Bern", "Basel"]}), "Id")
    account.update(pa.table({"Id": [2, 3], "City": ["Chur", "Wil"]}), "Id")
    account.update(pa.table({"Id": [1, 3], "City": ["Biel", "Wil"]}), "Id")
    opened["acme"].tag("go-live", 0)
    narrow = pa.table({"Id": pa.array([7], pa.int32()), "Total": [1.5]})
    opened.tenant("globex", create=True).stream("Account").update(narrow, "Id")
    opened.tenant("initech", create=True)
    return folder


@pytest.fixture
def store(made, tmp_path, monkeypatch):
    """A copy of that store."""
    monkeypatch.setenv("FREEZEFRAME_ENGINE", "auto")
    return ff.open(shutil.copytree(made, tmp_path / "store"))


@pytest.fixture
def source(store, tmp_path):
    """The format as it is registered for that store, after its way to a worker."""
    return pickle.loads(pickle.dumps(Format(Place.of(load_settings(), str(tmp_path / "store")))))


def read(plan, *names):
    """The rows of a plan as a worker reads them, in order; of some columns."""
    parts = pickle.loads(pickle.dumps(plan.parts()))
    batches = (batch for part in parts for batch in plan.target.read(part, plan.schema))
    found = [row for batch in batches for row in batch.to_pylist()]
    return sorted((tuple(row[name] for name in names or row) for row in found), key=repr)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(1, "Biel"), (2, "Chur"), (3, "Wil")]),
        ({"versionasof": "1"}, [(1, "Bern"), (2, "Chur"), (3, "Wil")]),
        ({"versionAsOf": "go-live"}, [(1, "Bern"), (2, "Basel")]),
        ({"timestampAsOf": "moment of 1"}, [(1, "Bern"), (2, "Chur"), (3, "Wil")]),
    ],
)
def test_a_stream_is_read_now_and_as_it_was(source, store, options, expected):
    """By number, tag and moment."""
    if "timestampAsOf" in options:
        options = {"timestampAsOf": store["acme"].at(1).timestamp.isoformat()}

    assert expected == read(source.read_plan({"path": "acme/Account", **options}))


def test_changes_are_those_of_each_version(source, store):
    """As Delta's change feed has them: an update as two rows."""
    feed = {"path": "acme/Account", "readChangeFeed": "true"}
    first = source.read_plan({**feed, "startingVersion": "0", "endingVersion": "0"})
    later = source.read_plan({**feed, "startingVersion": "1", "endingVersion": "2"})
    names = ("_change_type", "_commit_version", "Id", "City")

    assert [("insert", 0, 1, "Bern"), ("insert", 0, 2, "Basel")] == read(first, *names)
    assert [
        ("insert", 1, 3, "Wil"),
        ("update_postimage", 1, 2, "Chur"),
        ("update_postimage", 2, 1, "Biel"),
        ("update_preimage", 1, 2, "Basel"),
        ("update_preimage", 2, 1, "Bern"),
    ] == read(later, *names)
    assert {(store["acme"].at(0).timestamp,)} == set(read(first, "_commit_timestamp"))


def test_all_tenants_are_one_table(source):
    """Their columns are united and types widened; a tenant without the stream is left out."""
    fleet = source.read_plan({"path": "*/Account"})

    assert pa.int64() == fleet.schema.field("Id").type
    assert [
        (1, "Biel", None, "acme"),
        (2, "Chur", None, "acme"),
        (3, "Wil", None, "acme"),
        (7, None, 1.5, "globex"),
    ] == read(fleet)
    assert [(7, "globex")] == read(source.read_plan({"path": "globex,initech/Account"}), "Id", "_tenant")


def test_many_tenants_are_named_by_patterns_and_read_at_a_tag(source, store):
    """Each at its own version of that tag; who has none ends the query, by its name."""
    store["globex"].tag("go-live", 0)
    store["globex"].stream("Account").update(pa.table({"Id": [8]}), "Id")
    tagged = source.read_plan({"path": "a*,glob*/Account", "versionAsOf": "go-live"})

    assert [("acme", 1), ("acme", 2), ("globex", 7)] == read(tagged, "_tenant", "Id")
    with pytest.raises(ff.InvalidOption, match="Tenant 'initech': 'go-live' is not a version"):
        source.read_plan({"path": "*/Account", "versionAsOf": "go-live"})


def test_changes_of_all_tenants_have_those_of_a_stream_that_was_dropped(source, store):
    """With its columns, and its rows deleted by the drop."""
    store["globex"].drop_stream("Account")
    feed = {"path": "*/Account", "readChangeFeed": "true"}
    found = read(source.read_plan({**feed, "startingVersion": "0"}), "_change_type", "Total", "_tenant")

    assert [("delete", 1.5, "globex"), ("insert", 1.5, "globex")] == [row for row in found if row[1]]
    assert "Total" in source.read_plan(feed).schema.names
    assert "Total" not in source.read_plan({"path": "*/Account"}).schema.names


def test_conditions_leave_out_tenants_and_files(source, tmp_path, monkeypatch):
    """What no row can meet is not read."""
    monkeypatch.setenv("FREEZEFRAME_VECTORS_FROM_BYTES", "0")
    rows = pa.table({"Id": [100], "City": ["Olten"]})
    ff.open(tmp_path / "store")["acme"].stream("Account").update(rows, "Id")
    plan = source.read_plan({"path": "*/Account"})

    def tenants(*conditions):
        narrowed = plan.narrowed(conditions)
        return sorted(piece.tenant for part in narrowed.parts() for piece in part)

    assert ["acme", "acme", "globex"] == tenants()
    assert ["acme", "acme"] == tenants(("_tenant", "eq", "acme"))
    assert ["acme"] == tenants(("Id", "gt", 50))
    assert ["acme", "globex"] == tenants(("Id", "in", [1, 7]), ("City", "eq", 8), ("Total", "lt", 0.0))
    assert [] == tenants(("Id", "lt", 0), ("_tenant", "in", ["acme"]))


def test_a_task_is_sent_its_own_part_alone(source):
    """Spark sends the format with each; with all files of all tenants that would grow by their square."""
    made = type("Freezeframe", (_Format,), {"source": source})({"path": "*/Account"})
    made.schema()
    assert b".parquet" in cloudpickle.dumps(made)  # to the process that plans
    reader = made.reader(from_arrow_schema(KNOWN))
    assert ["acme", "globex"] == [piece.tenant for piece in reader.partitions()[0].value]
    assert b".parquet" not in cloudpickle.dumps((made, reader))


@pytest.mark.parametrize(
    ("path", "options", "error", "says"),
    [
        ("nobody/Account", {}, ff.TenantNotFound, "nobody"),
        ("acme/Nothing", {}, ff.StreamNotFound, "Nothing"),
        ("*/Nothing", {}, ff.StreamNotFound, "Nothing"),
        ("acme/Account", {"versionAsOf": "9"}, ff.VersionNotFound, "no version 9"),
        ("*/Account", {"versionAsOf": "2"}, ff.VersionNotFound, "Tenant 'globex'"),
        ("acme/Account", {"versionasoff": "1"}, ff.InvalidOption, "no option 'versionasoff'"),
        ("acme/Account", {"versionAsOf": "1", "timestampAsOf": "2026-01-01"}, ff.InvalidOption, "version"),
        ("acme/Account", {"startingVersion": "1"}, ff.InvalidOption, "startingVersion"),
        ("acme/Account", {"readChangeFeed": "true"}, ff.InvalidOption, "readChangeFeed"),
        (
            "acme/Account",
            {"readChangeFeed": "true", "startingVersion": "latest"},
            ff.InvalidOption,
            "readChangeFeed alone",
        ),
        ("acme/Account", {"readChangeFeed": "yes"}, ff.InvalidOption, "true or false"),
        ("acme/Account", {"readChangeFeed": "true", "versionAsOf": "1"}, ff.InvalidOption, "versionAsOf"),
        ("acme/Account", {"maxVersionsPerTrigger": "1"}, ff.InvalidOption, "maxVersionsPerTrigger"),
        ("acme/Account", {"root": "store"}, ff.InvalidOption, "relative"),
        ("acme/Account", {"root": "https://sync.example.com"}, ff.InvalidOption, "no directory"),
        ("acme/Account", {"accessKey": "ff_1"}, ff.InvalidOption, "no option 'accessKey'"),
        ("acme/Account", {"environment": "../other"}, InvalidName, "environment"),
        ("*/Account", {"versionAsOf": "go-live"}, ff.InvalidOption, "Tenant 'globex': 'go-live'"),
        ("Account", {}, ff.InvalidOption, "tenant's stream"),
        ("acme,/Account", {}, ff.InvalidOption, "tenant's stream"),
    ],
)
def test_what_cannot_be_read_is_refused(source, path, options, error, says):
    """With the class that the library itself raises."""
    with pytest.raises(error, match=says):
        source.read_plan({"path": path, **options}).parts()


def test_streams_whose_types_do_not_go_together_are_named(source, store):
    """With both tenants and both types."""
    store["initech"].stream("Account").update(pa.table({"Id": ["a"]}), "Id")
    with pytest.raises(ff.SchemaDriftError, match=r"'Id'.*int64 of 'acme' and string of 'initech'"):
        source.read_plan({"path": "*/Account"})


KNOWN = pa.schema([("Id", pa.int64()), ("City", pa.string()), ("Total", pa.float64())])


def follow(source, start, path="acme/Account", schema=KNOWN, **options):
    """The offset behind ``start`` (None: the first; or versions), and the rows between them."""
    tenant = source.place.store.tenant
    start = start and {
        name: [at, tenant(name).context.guard.folder] if isinstance(at, int) else at
        for name, at in start.items()
    }
    plan = source.stream_plan({"path": path, **options})
    start = plan.first() if start is None else start
    end = plan.newest(start, plan.versions_max)
    found = [
        row
        for part in plan.parts(start, end, schema)
        for batch in plan.target.read(part, schema)
        for row in batch.to_pylist()
    ]
    return end, sorted((row["Id"], row["City"]) for row in found)


def versions(followed):
    """What ``follow`` returns, its offset without the folders of tenants."""
    return {name: version for name, (version, *_) in followed[0].items()}, followed[1]


def test_an_offset_is_the_version_of_each_tenant(source, store):
    """All rows come first, or what comes from now on; a new tenant begins with all its rows."""
    begun, first = follow(source, None)
    latest, nothing = follow(source, None, "*/Account", startingVersion="latest")
    limited, some = follow(source, {"acme": 0}, maxVersionsPerTrigger="1")
    store["initech"].stream("Account").update(pa.table({"Id": [5], "City": ["Zug"]}), "Id")
    later, new = follow(source, latest, "*/Account")

    assert ({"acme": 3}, [(1, "Biel"), (2, "Chur"), (3, "Wil")]) == versions((begun, first))
    assert ({"acme": 3, "globex": 0, "initech": -1}, []) == versions((latest, nothing))
    assert ({"acme": 1}, [(2, "Chur"), (3, "Wil")]) == versions((limited, some))
    assert ({"acme": 3, "globex": 0, "initech": 0}, [(5, "Zug")]) == versions((later, new))


def test_a_stream_from_version_0_has_the_changes_of_each_version(source):
    """All rows at once come without ``startingVersion`` alone."""
    changes = {"readChangeFeed": "true", "startingVersion": "0"}
    begun, found = follow(source, None, **changes)
    assert ({"acme": 0}, [(1, "Bern"), (2, "Basel")]) == versions(
        follow(source, None, **changes, maxVersionsPerTrigger="1")
    )
    assert ({"acme": 3}, 7) == (versions((begun, found))[0], len(found))


def test_a_stream_says_why_it_cannot_go_on(source, store):
    """A column that it does not know, deletions that it does not show, versions that are gone."""
    account = store["acme"].stream("Account")
    with pytest.raises(ff.SchemaDriftError, match="new column 'City'"):
        follow(source, {"acme": 0}, schema=KNOWN.remove(1))
    with pytest.raises(ff.SchemaDriftError, match=r"'Id'.*began with int32; it is int64 now"):
        follow(source, {"acme": 0}, schema=KNOWN.set(0, pa.field("Id", pa.int32())))
    with pytest.raises(ff.VersionNotFound, match="made again"):
        follow(source, {"acme": 99})
    store["acme"].drop_stream("Account")
    with pytest.raises(ff.InvalidOption, match="deletes rows of 'Account'"):
        follow(source, {"acme": 3})
    feed = {"path": "acme/Account", "readChangeFeed": "true"}
    whole = {**feed, "startingVersion": "3", "endingVersion": "3"}
    assert ({"acme": 4}, []) == versions(follow(source, {"acme": 3}, ignoreDeletes="true"))
    assert [] == read(source.read_plan(whole))
    account.update(pa.table({"Id": [1, 2], "City": ["Bern", "Wil"]}), "Id")
    store["acme"].erase("Account", [1])
    with pytest.raises(ff.VersionNotFound, match="no longer kept"):
        follow(source, {"acme": 3})


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_column_that_came_and_went_in_one_batch_is_not_lost(source, store, is_dropped):
    """Each version is looked at, not the last one alone; a query that is given the column goes on."""
    account = store["acme"].stream("Account")
    account.update(pa.table({"Id": [4], "City": ["Zug"], "Phone": ["+41"]}), "Id")
    if is_dropped:
        store["acme"].drop_stream("Account")
    else:
        account.update(pa.table({"Id": [5], "City": ["Wil"]}), "Id", drop_column="Phone")
    feed = {"readChangeFeed": "true"}

    with pytest.raises(ff.SchemaDriftError, match="new column 'Phone'") as caught:
        follow(source, {"acme": 3}, **feed)
    assert "readStream.schema" in caught.value.remedy
    known = KNOWN.append(pa.field("Phone", pa.string()))
    _, found = follow(source, {"acme": 3}, schema=known, **feed)
    assert (4, "Zug") in found


def test_a_released_stream_is_as_a_dropped_one(source, store):
    """Its rows do not come a second time as new ones when it is taken back."""
    store["globex"]["Account"].release()
    feed = {"path": "*/Account", "readChangeFeed": "true", "startingVersion": "0"}
    told = ("_tenant", "_commit_version", "_change_type", "Total")
    gone = [("globex", 0, "insert", 1.5), ("globex", 1, "delete", 1.5)]
    assert gone == [row for row in read(source.read_plan(feed), *told) if row[-1]]
    store["globex"].adopt("Account")

    back = ("globex", 2, "insert", 1.5)
    assert [*gone, back] == [row for row in read(source.read_plan(feed), *told) if row[-1]]
    with pytest.raises(ff.InvalidOption, match="Version 1 of the tenant 'globex' deletes rows"):
        follow(source, {"globex": 0}, "globex/Account")
    assert ({"globex": 2}, [(7, None)]) == versions(
        follow(source, {"globex": 0}, "globex/Account", ignoreDeletes="true")
    )


def test_deletions_of_another_program_that_are_taken_over_are_seen(source, store):
    """Its commit has no counts: the versions are compared."""
    tenant = store["globex"]
    (path,) = tenant.scope.snapshot(StreamName("Account")).files["path"].to_pylist()
    info = {"timestamp": 1, "inCommitTimestamp": 10**13, "operation": "X"}
    removal = {"path": path, "dataChange": True, "deletionTimestamp": 1}
    lines = f"{json.dumps({'commitInfo': info})}\n{json.dumps({'remove': removal})}\n"
    write_commit(tenant.scope.storage, "Account.snapshot", 1, lines.encode())
    assert "adopted" == tenant["Account"].repair().action

    with pytest.raises(ff.InvalidOption, match="Version 1 of the tenant 'globex' deletes rows"):
        follow(source, {"globex": 0}, "globex/Account")


def test_versions_between_a_tagged_one_and_the_kept_ones_are_missed(source, store, monkeypatch):
    """The tagged one can be read; the changes after it are gone, and that is said."""
    monkeypatch.setenv("FREEZEFRAME_GC_GRACE_SECONDS", "0")
    acme = store["acme"]
    acme.untag("go-live")
    acme.tag("kept", 1)
    for number in range(4):
        acme.stream("Account").update(pa.table({"Id": [2], "City": [f"C{number}"]}), "Id")
    acme.set_retention(keep_versions=2)
    assert acme.gc().floor > 2

    feed = {"path": "acme/Account", "readChangeFeed": "true", "startingVersion": "1"}
    with pytest.raises(ff.VersionNotFound, match=r"after version 1 .*no longer kept"):
        follow(source, {"acme": 1}, readChangeFeed="true")
    with pytest.raises(ff.VersionNotFound, match=r"after version 0 .*no longer kept"):
        source.read_plan(feed).parts()
    assert KNOWN.names[:2] == source.read_plan(feed).schema.names[:2]  # a stream that began there goes on


@pytest.mark.parametrize("count", [1, 6])
def test_a_tenant_that_was_made_again_is_not_followed(source, store, count):
    """Its versions are others, whether there are fewer or more of them."""
    begun, _ = follow(source, None)
    store.delete_tenant("acme")
    account = store.tenant("acme", create=True).stream("Account")
    for number in range(count):
        account.update(pa.table({"Id": [number], "City": ["new"]}), "Id")
    plan = source.stream_plan({"path": "acme/Account"})

    with pytest.raises(ff.VersionNotFound, match="made again"):
        follow(source, begun)
    with pytest.raises(ff.VersionNotFound, match="made again"):
        plan.parts(begun, plan.newest({}, None), KNOWN)
    with pytest.raises(ff.VersionNotFound, match="made again"):
        plan.parts({}, begun, KNOWN)


@pytest.mark.parametrize("starting", ["latest", "0", None])
def test_a_first_batch_that_is_read_again_is_the_same(source, store, starting):
    """Spark then asks for the first offset again, when there are other versions and tenants."""
    options = {"path": "*/Account", "readChangeFeed": "true"}
    options |= {"startingVersion": starting} if starting else {}
    plan = source.stream_plan(options)
    names = ("_tenant", "_commit_version", "_change_type", "Id")

    def add(tenant, key):
        rows = pa.table({"Id": [key], "City": ["Zug"]})
        store.tenant(tenant, create=True).stream("Account").update(rows, "Id")

    def between(start, end):
        found = plan.parts(start, end, source.read_plan(options).schema)
        batches = (
            batch for part in found for batch in plan.target.read(part, source.read_plan(options).schema)
        )
        return sorted(tuple(row[name] for name in names) for batch in batches for row in batch.to_pylist())

    first = plan.first()
    add("acme", 50)
    add("umbrella", 60)
    end = json.loads(json.dumps(plan.newest(first, None)))
    whole = between(first, end)
    add("acme", 51)
    add("umbrella", 61)
    later = plan.newest(end, None)

    assert whole == between(plan.first(), end)
    assert [("acme", 5, "insert", 51), ("umbrella", 1, "insert", 61)] == between(end, later)
    assert later == plan.newest(later, None)
    if starting == "latest":
        assert [("acme", 4, "insert", 50), ("umbrella", 0, "insert", 60)] == whole


def test_spark_4_1_does_not_say_where_a_batch_begins(source, store):
    """The reader knows it itself; a tenant without a version begins with its first one."""
    plan = source.stream_plan({"path": "initech/Account", "startingVersion": "latest"})
    reader = _StreamReader(plan, KNOWN)
    first = reader.initialOffset()
    begun = reader.latestOffset()
    store["initech"].stream("Account").update(pa.table({"Id": [5], "City": ["Zug"]}), "Id")
    later = reader.latestOffset()

    assert first == begun == reader.initialOffset()  # as Spark asks again before each try of a first batch
    assert [0, -1] == [later["initech"][0], later["initech"][2]]
    assert 1 == len(reader.partitions(first, later))
    assert later == reader.latestOffset()
    assert 0 == _StreamReader(plan, KNOWN).latestOffset()["initech"][0]  # begun from a checkpoint


def test_a_query_of_what_is_there_now_ends(source, store):
    """In as many batches as the limit makes; later versions and tenants are those of the next query."""
    plan = source.stream_plan({"path": "*/Account", "startingVersion": "0"}).ended()
    store["acme"].stream("Account").update(pa.table({"Id": [50], "City": ["Zug"]}), "Id")
    store.tenant("umbrella", create=True).stream("Account").update(pa.table({"Id": [1]}), "Id")
    offsets = [plan.first()]
    while (following := plan.newest(offsets[-1], 2)) != offsets[-1]:
        offsets.append(following)

    reached = [{name: item[0] for name, item in offset.items()} for offset in offsets]
    assert [
        {"acme": -1, "globex": -1, "initech": -1, "umbrella": -1},
        {"acme": 1, "globex": 0, "initech": -1, "umbrella": -1},
        {"acme": 3, "globex": 0, "initech": -1, "umbrella": -1},
    ] == reached


@pytest.mark.parametrize("offset", [{"acme": 3}, {"acme": []}, {"acme": ["0", "a"]}, ["acme"], 7])
def test_an_offset_of_an_unknown_form_is_refused(source, offset):
    """Such as that of another version of this library."""
    plan = source.stream_plan({"path": "acme/Account"})
    with pytest.raises(ff.InvalidOption, match="offset cannot be read"):
        plan.newest(offset, None)
    with pytest.raises(ff.InvalidOption, match="offset cannot be read"):
        plan.parts(offset, offset, KNOWN)


def test_a_damaged_tenant_is_named_or_left_out_with_a_report(source, store, tmp_path):
    """Its log when the query is planned, or a file when a task reads it."""
    for name, damaged in (("hooli", "log"), ("umbrella", "data")):
        tenant = store.tenant(name, create=True)
        tenant.stream("Account").update(pa.table({"Id": [9], "City": ["Zug"]}), "Id")
        place = tmp_path / "store" / tenant.scope.storage.local_path("")
        (file,) = place.glob(
            "_freezeframe/log/*.json" if damaged == "log" else "Account.snapshot/*/*.parquet"
        )
        file.chmod(0o600)
        file.write_bytes(file.read_bytes()[:-7])
    report = tmp_path / "report"
    skipping = {"ignoreCorruptFiles": "true", "badRecordsPath": str(report)}

    with pytest.raises(CorruptLog, match="Tenant 'hooli'"):
        source.read_plan({"path": "*/Account"})
    with pytest.raises(CorruptData, match="Tenant 'umbrella'"):
        read(source.read_plan({"path": "acme,umbrella/Account"}))
    with pytest.raises(ff.InvalidOption, match="needs badRecordsPath"):
        source.read_plan({"path": "*/Account", "ignoreCorruptFiles": "true"})
    with pytest.raises(CorruptData):
        read(source.read_plan({"path": "umbrella/Account", **skipping}))
    assert not report.exists()
    plan = source.read_plan({"path": "*/Account", **skipping})
    assert read(plan, "Id") == read(plan, "Id") == [(1,), (2,), (3,), (7,)]
    told = [json.loads(file.read_text()) for file in report.iterdir()]
    assert [("hooli", "Account"), ("umbrella", "Account")] == sorted(
        (item["tenant"], item["stream"]) for item in told
    )


ROWS = pa.table({"Id": [3, 4], "City": ["Sion", "Olten"]})


def test_a_write_is_one_commit_of_all_tasks(source, store):
    """With the job's id, which counts once, and the message; nothing is left beside it."""
    acme = store["acme"]
    for values in (ROWS, pa.table({"Id": [3, 9], "City": ["other", "other"]})):
        options = {"path": "acme/Account", "key": "Id", "jobId": "sync-1", "message": "by Spark"}
        plan = pickle.loads(pickle.dumps(source.write_plan(options, values.schema, is_overwrite=False)))
        files = [name for row in (0, 1) for name in plan.write(iter(values.slice(row, 1).to_batches()))]
        plan.commit(files)
    entry = acme.history()[0]

    assert [(1, "Biel"), (2, "Chur"), (3, "Sion"), (4, "Olten")] == [
        (row["Id"], row["City"]) for row in acme["Account"].to_arrow().to_pylist()
    ]
    assert (4, "sync-1", "by Spark", 1, 1) == (
        entry.version,
        entry.job_id,
        entry.message,
        entry.streams["Account"].inserted,
        entry.streams["Account"].updated,
    )
    assert () == acme.gc(dry_run=True).names


def test_a_bucket_is_read_followed_and_written_as_a_folder_is():
    """A worker opens it by the usual variables: a connection cannot be sent."""
    with made_bucket() as bucket:
        store = ff.open(f"s3://{bucket}/store")
        for tenant, key in (("acme", 1), ("globex", 7)):
            store.tenant(tenant, create=True).stream("Account").update(pa.table({"Id": [key]}), "Id")
        known = Format(Place.of(load_settings(), f"s3://{bucket}/store"))
        source = pickle.loads(pickle.dumps(known))
        rows = pa.table({"Id": [2, 3]})
        plan = pickle.loads(
            pickle.dumps(source.write_plan({"path": "acme/Account"}, rows.schema, is_overwrite=False))
        )
        plan.commit(plan.write(iter(rows.to_batches())))
        feed = {"path": "acme/Account", "readChangeFeed": "true", "startingVersion": "1"}

        fleet = [("acme", 1), ("acme", 2), ("acme", 3), ("globex", 7)]
        assert fleet == read(source.read_plan({"path": "*/Account"}), "_tenant", "Id")
        assert [("insert", 2), ("insert", 3)] == read(source.read_plan(feed), "_change_type", "Id")
        assert [(1,)] == read(source.read_plan({"path": "acme/Account", "versionAsOf": "0"}), "Id")
        stream = source.stream_plan({"path": "*/Account"})
        assert {"acme": 1, "globex": 0} == {name: at[0] for name, at in stream.newest({}, None).items()}


@pytest.mark.parametrize("name", ["_tenant", "_change_type", "_commit_version", "_commit_timestamp"])
def test_columns_that_the_format_adds_are_not_written(source, name):
    """A frame that was read with them would make the stream unreadable beside others."""
    with pytest.raises(ff.BadInput, match=f"with a column '{name}'"):
        source.write_plan(
            {"path": "acme/Account"}, ROWS.schema.append(pa.field(name, pa.string())), is_overwrite=True
        )


def test_a_write_that_fails_leaves_nothing(source, store):
    """Its files and its lease go; a commit whose rows are gone is a conflict."""
    acme = store["acme"]
    plan = source.write_plan({"path": "acme/Account"}, ROWS.schema, is_overwrite=False)
    files = plan.write(iter(ROWS.to_batches()))
    plan.abort(files)
    with pytest.raises(ff.ConflictError, match="removed before its commit"):
        plan.commit(files)

    assert 3 == acme.version
    assert [] == [item.name for item in acme.scope.storage.list_below("_freezeframe/staging")]
    assert () == acme.gc(dry_run=True).names


def test_a_write_beside_an_erasure_is_refused(source, store):
    """Its tasks may have read what was erased before they kept it."""
    plan = source.write_plan({"path": "acme/Account"}, ROWS.schema, is_overwrite=False)

    def batches():
        yield from ROWS.to_batches()
        store["acme"].erase("Account", [3])

    files = plan.write(batches())
    with pytest.raises(ff.ConflictError, match="ended while its tasks ran"):
        plan.commit(files)
    assert [1, 2] == store["acme"]["Account"].to_arrow()["Id"].to_pylist()
    assert [] == [item.name for item in store["acme"].scope.storage.list_below("_freezeframe/staging")]


@pytest.mark.parametrize(
    ("path", "options", "is_overwrite", "error", "says"),
    [
        ("acme/New", {}, False, ff.InvalidOption, "needs a key"),
        ("acme/Account", {"key": "City"}, False, ff.InvalidOption, "by the key"),
        ("acme/New", {"key": "Nr"}, False, ff.BadInput, "no column 'Nr'"),
        ("acme/Account", {"replaceWhere": "Id = 1"}, False, ff.InvalidOption, "overwrite"),
        ("acme/Account", {"replaceWhere": "Id >>> 1"}, True, ff.InvalidOption, "not a predicate"),
        ("acme/Account", {"replaceWhere": "id > 1 or `Nr`.a = 1"}, True, ff.BadInput, "a column 'Nr'"),
        ("acme/Account", {"replaceWhere": " "}, True, ff.InvalidOption, "empty"),
        ("acme/Account", {"key": "Id,"}, False, ff.InvalidOption, "by the key"),
        ("acme/Account", {"jobId": ""}, False, ff.InvalidOption, "job's id"),
        ("acme/Account", {"nulls": "no"}, False, ff.InvalidOption, "nulls"),
        ("nobody/Account", {"key": "Id"}, False, ff.TenantNotFound, "nobody"),
        ("*/Account", {"key": "Id"}, True, ff.InvalidOption, "one tenant"),
        ("acme/Account", {"versionasof": "1"}, True, ff.InvalidOption, "no option 'versionasof'"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_frame_is_computed(
    source, path, options, is_overwrite, error, says
):
    """The plan is made first."""
    with pytest.raises(error, match=says):
        source.write_plan({"path": path, **options}, ROWS.schema, is_overwrite=is_overwrite)


@pytest.mark.parametrize(
    "where", ["New > 1", "Id = 1 or City = user", "current_time is not null", "Id in (select a from b)"]
)
def test_what_spark_may_know_is_left_to_spark(source, where):
    """Columns of the frame or the stream, functions that look like columns, and those of a query."""
    frame = pa.schema([("Id", pa.int64()), ("New", pa.int64())])
    plan = source.write_plan({"path": "acme/Account", "replaceWhere": where}, frame, is_overwrite=True)
    assert where == plan.update["replace_where"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT Id FROM acme.S t", "SELECT Id FROM {0} t"),
        ("SELECT acme.S.*, acme.S.Id.a FROM acme.S", "SELECT `S`.*, `S`.Id.a FROM ({0} `S`)"),
        (
            "SELECT x.y.z FROM a.S x, b.S WHERE B.s.Id = 1",
            "SELECT x.y.z FROM {0} x, ({1} `S`) WHERE `s`.Id = 1",
        ),
        ("SELECT /*+ BROADCAST(a.S) */ 1 FROM a.S", "SELECT /*+ BROADCAST(a.S) */ 1 FROM ({0} `S`)"),
        (
            "SELECT a.S.n FROM a.S TABLESAMPLE (9 ROWS), b.T TABLESAMPLE (1 PERCENT) REPEATABLE (3) t",
            "SELECT `S`.n FROM ({0} `S`) TABLESAMPLE (9 ROWS), {1} TABLESAMPLE (1 PERCENT) REPEATABLE (3) t",
        ),
        (
            "SELECT 1 FROM a.S VERSION AS OF 3 TABLESAMPLE (9 PERCENT) REPEATABLE (2) WHERE a.S.n > (1)",
            "SELECT 1 FROM ({0} `S`) TABLESAMPLE (9 PERCENT) REPEATABLE (2) WHERE `S`.n > (1)",
        ),
        ("SELECT /* a /* *.x */ don't */ 1 FROM *.S", "SELECT /* a /* *.x */ don't */ 1 FROM ({0} `S`)"),
        ("SELECT 2*n FROM/**/*.S", "SELECT 2*n FROM/**/({0} `S`)"),
        ("-- don't\nSELECT 1 FROM *.S WHERE n = 'x'", "-- don't\nSELECT 1 FROM ({0} `S`) WHERE n = 'x'"),
        ("SELECT /* don't, *.x */ 1 FROM *.S", "SELECT /* don't, *.x */ 1 FROM ({0} `S`)"),
        (r"SELECT r'\', ' *.S' FROM *.S", r"SELECT r'\', ' *.S' FROM ({0} `S`)"),
        ("SELECT * FROM acme.range(1)", "SELECT * FROM acme.range(1)"),
        ("SELECT 'é𝄞' FROM `a.b`.`c``d` VERSION AS OF 3", "SELECT 'é𝄞' FROM ({0} `c``d`)"),
    ],
)
def test_streams_of_a_query_become_frames(query, expected):
    """Where they are tables: neither in hints nor in comments or texts; columns lose their tenant."""
    text, streams = over_frames(query, {})
    names = [f"{{_freezeframe_{number}}}" for number in range(len(streams))]
    assert expected.format(*names) == text


def test_a_column_whose_table_is_not_clear_needs_an_alias():
    """Both tables would have the stream's name."""
    with pytest.raises(ff.InvalidOption, match=r"column a.S.Id .*Give the table an alias: a.S t"):
        over_frames("SELECT a.S.Id FROM a.S, b.S TABLESAMPLE (9 ROWS)", {})


# Through Spark.


def rows(frame):
    """The rows of a frame as tuples, in order."""
    return sorted(map(tuple, frame.collect()), key=repr)


@pytest.fixture
def session(store, tmp_path):
    """The process's session, which knows the format for that store."""
    found = ff.spark()
    ff.register(found, tmp_path / "store")
    return found


@pytest.mark.spark
def test_spark_reads_what_the_format_says(session, tmp_path):
    """Versions, changes and all tenants; conditions are pushed, and errors are the library's own."""
    reader = session.read.format("freezeframe")
    fleet = reader.load("*/Account")
    feed = session.read.format("freezeframe").option("readChangeFeed", True).option("startingVersion", 1)

    assert [(1, "Bern"), (2, "Basel")] == rows(
        session.read.format("freezeframe").option("versionAsOf", "go-live").load("acme/Account")
    )
    assert [(1, "Bern"), (2, "Basel")] == rows(
        ff.read("acme/Account", root=tmp_path / "store", versionAsOf=0)
    )
    assert [("acme", 3), ("globex", 1)] == rows(fleet.groupBy("_tenant").count())
    assert [(7,)] == rows(fleet.where("_tenant = 'globex' and Id > 1").select("Id"))
    assert [] == rows(fleet.where("_tenant = 'nobody'"))
    assert 5 == feed.load("acme/Account").count()
    with pytest.raises(ff.VersionNotFound, match="no version 9"):
        session.read.format("freezeframe").option("versionAsOf", 9).load("acme/Account").collect()
    with pytest.raises(ff.TenantNotFound, match="nobody"):
        ff.read("nobody,acme/Account", root=tmp_path / "store")


OWN_SESSION = """
import sys
from pyspark.sql import SparkSession
import freezeframe as ff

options = {"spark.ui.enabled": "false", "spark.driver.memory": "600m"}
session = SparkSession.builder.master("local[1]").config(map=options).getOrCreate()
assert ff.spark() is session
try:
    ff.read("nobody,acme/Account", root=sys.argv[1])
except ff.TenantNotFound as error:
    print(error.problem)
"""


@pytest.mark.nightly
@pytest.mark.spark
def test_a_session_of_the_callers_own_has_the_same_errors(store, tmp_path):
    """Spark's own error is about a Python data source, with ours somewhere in its text."""
    command = [sys.executable, "-c", OWN_SESSION, str(tmp_path / "store")]
    done = subprocess.run(
        command, capture_output=True, text=True, env=plain_environment(), timeout=120, check=False
    )
    assert (0, True) == (done.returncode, done.stdout.startswith("There is no tenant 'nobody'.")), done.stderr


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_streams_changes_exactly_once(session, store, tmp_path):
    """A query that is started again goes on from its checkpoint."""

    def drain():
        source = session.readStream.format("freezeframe").option("readChangeFeed", True).load("*/Account")
        query = (
            source.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "sink"))
        )
        query.awaitTermination(120)
        assert query.exception() is None
        found = session.read.parquet(str(tmp_path / "sink"))
        return rows(found.select("_tenant", "_commit_version", "_change_type", "Id"))

    first = drain()
    store["globex"].stream("Account").update(pa.table({"Id": [8], "Total": [2.0]}), "Id")
    second = drain()

    assert [("acme", 3, "insert", 1), ("acme", 3, "insert", 2), ("acme", 3, "insert", 3)] == first[:3]
    assert sorted([*first, ("globex", 1, "insert", 8)], key=repr) == second


@pytest.mark.spark
def test_spark_writes_a_frame_as_one_commit(session, store):
    """Append updates by key, overwrite replaces a window or all rows; bad options come before any task."""
    account = store["acme"].stream("Account")

    def write(values, mode="append", path="acme/Account", **options):
        frame = session.createDataFrame(values, "Id bigint, City string").repartition(2)
        frame.write.format("freezeframe").options(**options).mode(mode).save(path)
        return store["acme"].version, [tuple(row.values()) for row in account.to_arrow().to_pylist()]

    appended = write([(3, "Sion"), (4, "Olten")], key="Id")
    window = write([(4, "Aarau"), (5, "Baden")], "overwrite", replaceWhere="Id >= 3")
    whole = write([(6, "Zug")], "overwrite")

    assert (4, [(1, "Biel"), (2, "Chur"), (3, "Sion"), (4, "Olten")]) == appended
    assert (5, [(1, "Biel"), (2, "Chur"), (4, "Aarau"), (5, "Baden")]) == window
    assert (6, [(6, "Zug")]) == whole
    with pytest.raises(ff.InvalidOption, match="needs a key"):
        write([(1, "x")], path="acme/New")


@pytest.mark.spark
def test_sql_names_tenants_streams_and_versions(session, tmp_path):
    """A stream joins its own past, the streams of all tenants, and frames; texts stay as they are."""
    root = tmp_path / "store"
    calls = session.createDataFrame([(3, "{x}")], "Id bigint, Note string")
    past = ff.sql(
        "SELECT now.Id, old.City FROM acme.Account now "
        "JOIN acme.Account VERSION AS OF 'go-live' old USING (Id) WHERE NOT now.City <=> old.City",
        root=root,
    )
    fleet = ff.sql("SELECT _tenant, count(*), '{ *.x}' FROM *.Account GROUP BY _tenant", root=root)
    joined = ff.sql(
        "SELECT Account.Id, Note FROM acme.Account JOIN {calls} USING (Id)", root=root, calls=calls
    )

    assert [(1, "Bern"), (2, "Basel")] == rows(past)
    assert [("acme", 3, "{ *.x}"), ("globex", 1, "{ *.x}")] == rows(fleet)
    assert [(3, "{x}")] == rows(joined)
    sample = (
        "SELECT acme.Account.Id FROM acme.Account VERSION AS OF 0 TABLESAMPLE (100 PERCENT) REPEATABLE (1)"
    )
    assert [(1,), (2,)] == rows(ff.sql(sample, root=root))
    with pytest.raises(ff.InvalidOption, match="no number and no text"):
        ff.sql("SELECT * FROM acme.Account VERSION AS OF 1 + 1", root=root)
    with pytest.raises(ff.VersionNotFound, match="no version 9"):
        ff.sql("SELECT * FROM acme.Account VERSION AS OF 9", root=root)
