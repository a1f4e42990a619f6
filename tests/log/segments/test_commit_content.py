"""A commit's file actions: few lines and many are read alike."""

import hashlib
import json

import pytest
from tests.examples import sampled

from freezeframe.errors import CorruptLog, FreezeframeError
from freezeframe.log.format.actions import CommitInfo, Txn
from freezeframe.log.scan import rows
from freezeframe.log.segments.commit_content import (
    DIGEST_KEY,
    parse_file_actions,
    read_content,
    require_digest,
    sign_content,
)
from freezeframe.log.table.upkeep import Upkeep, write_checkpoint
from freezeframe.storage import MemoryStorage


def commit_of(count, *, joined):
    """The bytes of a commit of so many files, the last action after another one or on the same line."""
    adds = [
        {
            "add": {
                "path": f"{n}.parquet",
                "partitionValues": {},
                "size": 1,
                "modificationTime": 1,
                "dataChange": True,
            }
        }
        for n in range(count)
    ]
    removed = {"remove": {"path": "gone.parquet", "deletionTimestamp": 1, "dataChange": True}}
    *lines, last = (json.dumps(add, separators=(",", ":")) for add in [*adds, removed])
    return ("\n".join(lines) + ("" if joined else "\n") + last + "\n").encode()


@pytest.mark.parametrize("joined", [False, True], ids=["lines", "two actions on a line"])
@pytest.mark.parametrize("count", [1, 200], ids=["few", "many"])
def test_few_actions_are_read_as_many_are(count, joined):
    """Line by line or by Arrow's reader: a second action of a line is one, as it is for Spark."""
    found = parse_file_actions([read_content("0.json", commit_of(count, joined=joined))], ())
    assert found.adds["path"].to_pylist() == [f"{n}.parquet" for n in range(count)]
    assert found.removes["path"].to_pylist() == ["gone.parquet"]
    assert max(found.adds_order) < min(found.removes_order)


# Damage in the log itself: a flipped byte of a commit or a checkpoint never becomes other rows.


def small(make_table):
    """A table of two partitions and a vector, without checksums that would say the same again."""
    table = make_table(MemoryStorage(), Upkeep(checkpoint_interval=1_000, write_checksums=False))
    table.create()
    table.append([1, 2], "a")
    begun = table.begin()
    path = begun.snapshot.files["path"][0].as_py()
    begun.commit([*table.delete(begun, {path: [0]}), *table.adds([3], "b")], "MERGE")
    return table


def flips(table, name):
    """The positions of ``name`` at which a flipped bit gives other rows, without an error."""
    whole = table.storage.read(name)
    wanted = rows.read(table.fresh()).sort_by("n")
    wrong = []
    for at in sampled(range(len(whole)), every=7):
        damaged = whole[:at] + bytes([whole[at] ^ (1 << (at % 8))]) + whole[at + 1 :]
        table.storage.replace(name, damaged)
        try:
            if not rows.read(table.fresh()).sort_by("n").equals(wanted):
                wrong.append((at, whole[max(0, at - 20) : at + 20]))
        except FreezeframeError:
            pass
    table.storage.replace(name, whole)
    return wrong


@pytest.mark.sampled
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_flip_of_any_byte_of_a_commit(make_table, version):
    """Each byte of each commit is flipped: the right rows or a typed error."""
    assert flips(small(make_table), f"t/_delta_log/{version:020d}.json") == []


def test_commits_are_signed_and_others_pass():
    """The digest is of everything after the first line; a commit without one is taken as it is."""
    content = sign_content(CommitInfo({"operation": "X"}), [Txn("a", 1)])
    head, _, rest = content.partition(b"\n")
    assert json.loads(head)["commitInfo"][DIGEST_KEY] == hashlib.sha256(rest).hexdigest()
    require_digest("n", content)
    require_digest("n", b'{"commitInfo":{"operation":"X"}}\n' + rest)
    require_digest("n", rest)
    with pytest.raises(CorruptLog, match="SHA-256"):
        require_digest("n", content + b"\n")


@pytest.mark.sampled
def test_a_flip_in_a_checkpoints_pages_is_found(make_table):
    """The pages of a checkpoint have checksums: a flip makes readers fall back to the commits."""
    table = small(make_table)
    write_checkpoint(table.fresh())
    name = f"t/_delta_log/{2:020d}.checkpoint.parquet"
    whole = table.storage.read(name)
    wanted = rows.read(table.fresh()).sort_by("n")
    for at in sampled(range(4, len(whole), 41), every=7):
        table.storage.replace(name, whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            found = rows.read(table.fresh()).sort_by("n")
        except FreezeframeError:
            continue
        assert wanted.equals(found), at


@pytest.mark.parametrize("count", [1, 2000])
def test_line_ends_after_the_last_action_are_no_damage(count):
    """However many a writer left there; nothing else than line ends is an empty commit."""
    content = commit_of(count, joined=False) + b"\n" * 200
    found = parse_file_actions([read_content("0.json", content)], ())
    assert (count, 1) == (found.adds.num_rows, found.removes.num_rows)
    with pytest.raises(CorruptLog, match="is empty"):
        read_content("0.json", b"\n" * 200)
