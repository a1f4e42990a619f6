# ruff: noqa: E501 - statements of SQL and rows of tables are read as one line
"""Damage and odd forms for the acceptance run: each makes a copy of a sound table what a crash, a bug or a newer writer leaves."""

import json
import os
import re

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


class Damaged:
    """A copy of a table whose log is changed by hand."""

    def __init__(self, folder, chance):
        self.folder = folder
        self.log = folder / "_delta_log"
        self.random = chance

    # What is there

    def commits(self):
        return sorted(file for file in self.log.glob("*.json") if re.fullmatch(r"\d{20}\.json", file.name))

    def checkpoints(self):
        return sorted(file for file in self.log.glob("*.checkpoint.*") if file.name[0] != ".")

    def last_checkpoint(self):
        return int(self.checkpoints()[-1].name[:20])

    def data_file(self):
        """A file that the last commit with one added, so that it is live."""
        for commit in reversed(self.commits()):
            for action in map(json.loads, commit.read_text().splitlines()):
                if "add" in action:
                    return self.folder / action["add"]["path"]
        raise AssertionError(self.folder)

    def one_between(self, first, last):
        return self.commits()[self.random.randint(first, last)]

    # What is changed

    def remove(self, files):
        for file in files:
            file.unlink()
            (file.parent / f".{file.name}.crc").unlink(missing_ok=True)

    def remove_commits(self, versions):
        self.remove([self.log / f"{version:020d}.json" for version in versions])
        for version in versions:
            (self.log / f"{version:020d}.crc").unlink(missing_ok=True)

    def without_checksums(self):
        for file in [*self.log.glob(".*.crc"), *self.log.glob("*.crc")]:
            file.unlink(missing_ok=True)

    def rewrite(self, file, content):
        """New bytes at the same time of change, without the checksum of Hadoop's that would tell."""
        status = file.stat()
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    def change_actions(self, file, change):
        """Each action of a commit through ``change``, which gives None for one that is left out."""
        actions = [change(json.loads(line)) for line in file.read_text().splitlines()]
        self.rewrite(file, "".join(json.dumps(action) + "\n" for action in actions if action is not None))

    def change_protocol(self, **fields):
        self.without_checksums()
        self.change_actions(
            self.commits()[0], lambda action: {"protocol": fields} if "protocol" in action else action
        )

    def change_metadata(self, change):
        self.without_checksums()

        def changed(action):
            if "metaData" in action:
                change(action["metaData"])
            return action

        self.change_actions(self.commits()[0], changed)


def damaged_bytes(at, file):
    """Cut short, without content, or other bytes in its middle."""
    content = file.read_bytes()
    half = len(content) // 2
    at.rewrite(
        file, at.random.choice([content[:half], b"", content[:half] + b"\0" * 64 + content[half + 64 :]])
    )


def commit_missing(at):
    at.remove_commits([at.random.randint(1, len(at.commits()) - 2)])


def log_cut(at):
    last = len(at.commits()) - 1
    at.remove_commits(range(last - at.random.randint(0, 1), last + 1))


def before_checkpoint(at):
    at.remove_commits([at.random.randint(1, at.last_checkpoint() - 1)])


def after_checkpoint(at):
    at.remove_commits([at.last_checkpoint() + 1])


def cleaned_up(at):
    at.remove_commits(range(at.last_checkpoint()))


def cleaned_up_whole(at):
    at.remove_commits(range(at.last_checkpoint() + 1))


def only_checkpoint(at):
    at.remove_commits(range(len(at.commits())))


def checkpoint_damaged(at):
    damaged_bytes(at, at.checkpoints()[-1])


def checkpoint_needed(at):
    cleaned_up(at)
    damaged_bytes(at, at.checkpoints()[-1])


def checkpoints_damaged(at):
    for file in at.checkpoints():
        at.rewrite(file, b"PAR1 nothing PAR1")


def part_missing(at):
    at.remove([at.random.choice(at.checkpoints())])


def part_needed(at):
    cleaned_up(at)
    at.remove([at.checkpoints()[-1]])


def sidecar_missing(at):
    at.remove([at.random.choice(sorted((at.log / "_sidecars").glob("*.parquet")))])


def sidecar_needed(at):
    cleaned_up(at)
    for file in sorted((at.log / "_sidecars").glob("*.parquet")):
        at.remove([file])


def hint_garbled(at):
    at.rewrite(at.log / "_last_checkpoint", at.random.choice(["", "{", '{"version": "x"}', "[]"]))


def hint_missing(at):
    at.remove([at.log / "_last_checkpoint"])


def hint_beyond(at):
    at.rewrite(at.log / "_last_checkpoint", json.dumps({"version": 70, "size": 3}))


def hint_to_none(at):
    at.rewrite(at.log / "_last_checkpoint", json.dumps({"version": 1, "size": 3}))


def garbage_line(at):
    file = at.one_between(1, len(at.commits()) - 1)
    at.rewrite(
        file, file.read_text() + at.random.choice(["garbage\n", "{\n", '{"add": 1}\n', '{"add": {"path"\n'])
    )


def cut_line(at):
    file = at.one_between(1, len(at.commits()) - 1)
    at.rewrite(file, file.read_bytes()[:-9])


def empty_commit(at):
    at.rewrite(at.one_between(1, len(at.commits()) - 1), b"")


def blank_lines(at):
    file = at.one_between(0, len(at.commits()) - 1)
    at.rewrite(file, file.read_text().replace("\n", "\n\n"))


def unknown_action(at):
    file = at.one_between(1, len(at.commits()) - 1)
    at.rewrite(file, file.read_text() + '{"somethingNew": {"a": 1}}\n')


def unknown_field(at):
    def changed(action):
        for content in action.values():
            content["somethingNew"] = {"a": 1}
        return action

    at.change_actions(at.one_between(0, len(at.commits()) - 1), changed)


def features(*, reader=(), writer=(), versions=(3, 7)):
    def change(at):
        named = {"readerFeatures": list(reader), "writerFeatures": [*reader, *writer]}
        at.change_protocol(minReaderVersion=versions[0], minWriterVersion=versions[1], **named)

    return change


def protocol(reader, writer):
    return lambda at: at.change_protocol(minReaderVersion=reader, minWriterVersion=writer)


def without_action(name):
    def change(at):
        at.without_checksums()
        at.change_actions(at.commits()[0], lambda action: None if name in action else action)

    return change


def schema_garbled(at):
    at.change_metadata(
        lambda metadata: metadata.update(schemaString=at.random.choice(["{", "[]", '{"type": "struct"}']))
    )


def schema_unknown(at):
    at.change_metadata(
        lambda metadata: metadata.update(
            schemaString=metadata["schemaString"].replace('"integer"', '"somethingNew"', 1)
        )
    )


def partition_column_unknown(at):
    at.change_metadata(lambda metadata: metadata.update(partitionColumns=["nowhere"]))


def months(at):
    at.change_metadata(
        lambda metadata: metadata["configuration"].update(
            {"delta.deletedFileRetentionDuration": "interval 1 month"}
        )
    )


def property_unknown(at):
    at.change_metadata(lambda metadata: metadata["configuration"].update({"delta.somethingNew": "true"}))


def data_missing(at):
    at.data_file().unlink()


def data_damaged(at):
    damaged_bytes(at, at.data_file())


def vector_file(at):
    return max(at.folder.glob("deletion_vector_*.bin"))


def vector_missing(at):
    at.remove([vector_file(at)])


def vector_damaged(at):
    file = vector_file(at)
    content = file.read_bytes()
    at.rewrite(file, content[:-6] + b"\0" * 6)


def change_adds(change):
    def changed(action):
        if "add" in action:
            change(action["add"])
        return action

    def damage(at):
        at.without_checksums()
        for commit in at.commits():
            at.change_actions(commit, changed)

    return damage


def added_twice(at):
    at.without_checksums()
    file = at.commits()[-1]
    lines = file.read_text().splitlines(keepends=True)
    at.rewrite(file, "".join(lines + [line for line in lines if line.startswith('{"add"')]))


def removed_unknown(at):
    at.without_checksums()
    file = at.commits()[-1]
    remove = {"path": "nowhere.parquet", "dataChange": True, "deletionTimestamp": 1}
    at.rewrite(file, file.read_text() + json.dumps({"remove": remove}) + "\n")


def checksum_garbled(at):
    file = max(at.log.glob("0*.crc"))
    at.rewrite(file, at.random.choice(["", "{", "[]", '{"numFiles": "x"}']))


def checksum_wrong(at):
    file = max(at.log.glob("0*.crc"))
    at.rewrite(file, json.dumps({**json.loads(file.read_text()), "numFiles": 71, "tableSizeBytes": 7}))


def compaction(content):
    return lambda at: (at.log / f"{1:020d}.{3:020d}.compacted.json").write_bytes(content)


def compaction_sound(at):
    DeltaTable(str(at.folder)).compact_logs(1, 3)


def foreign_names(at):
    for name in (".tmp", "0.json", f"{9:020d}.json.tmp", "x.checkpoint.parquet", f"{9:020d}.json-copy"):
        (at.log / name).write_text("{")


def folder_empty(at):
    at.remove(at.checkpoints())
    for file in at.log.rglob("*"):
        if file.is_file():
            file.unlink()


def time_missing(at):
    """The in-commit timestamp of one commit is gone, as a writer without the feature leaves it."""

    def changed(action):
        if "commitInfo" in action:
            del action["commitInfo"]["inCommitTimestamp"]
        return action

    at.without_checksums()
    at.change_actions(at.one_between(1, len(at.commits()) - 1), changed)


def generated(at):
    """A table with an identity column and a generated one, which Spark makes in a catalog only."""

    def change(metadata):
        schema = json.loads(metadata["schemaString"])
        schema["fields"][0]["metadata"] = {
            "delta.identity.start": 0,
            "delta.identity.step": 1,
            "delta.identity.highWaterMark": 20,
            "delta.identity.allowExplicitInsert": True,
        }
        schema["fields"][1]["metadata"] = {"delta.generationExpression": "concat('n', id)"}
        metadata["schemaString"] = json.dumps(schema)

    at.change_metadata(change)
    at.change_protocol(minReaderVersion=1, minWriterVersion=6)


ANY, KEPT = ("delta-rs", "spark"), ("delta-rs with checkpoint", "spark with checkpoint")
DAMAGE = {
    "a commit is missing": (ANY, commit_missing),
    "the first commit is missing": (ANY, lambda at: at.remove_commits([0])),
    "the log is cut": (ANY, log_cut),
    "a commit before the checkpoint is missing": (KEPT, before_checkpoint),
    "a commit after the checkpoint is missing": (KEPT, after_checkpoint),
    "commits before the checkpoint are cleaned up": (KEPT, cleaned_up),
    "the checkpoint's own commit is gone as well": (KEPT, cleaned_up_whole),
    "nothing but a checkpoint": (KEPT, only_checkpoint),
    "the checkpoint is damaged": (KEPT, checkpoint_damaged),
    "the checkpoint is damaged and needed": (KEPT, checkpoint_needed),
    "three checkpoints are damaged": (("spark with three checkpoints",), checkpoints_damaged),
    "a part of the checkpoint is missing": (("spark with parts",), part_missing),
    "a part of the checkpoint is missing and needed": (("spark with parts",), part_needed),
    "a sidecar is missing": (("spark with sidecars",), sidecar_missing),
    "the sidecars are missing and needed": (("spark with sidecars",), sidecar_needed),
    "the hint is garbled": (KEPT, hint_garbled),
    "the hint is missing": (KEPT, hint_missing),
    "the hint is beyond the log": (KEPT, hint_beyond),
    "the hint names no checkpoint": (KEPT, hint_to_none),
    "a line is garbage": (ANY, garbage_line),
    "the last line is cut": (ANY, cut_line),
    "a commit is empty": (ANY, empty_commit),
    "blank lines": (ANY, blank_lines),
    "an unknown action": (ANY, unknown_action),
    "unknown fields": (ANY, unknown_field),
    "an unknown reader feature": (ANY, features(reader=("somethingNew",))),
    "an unknown writer feature": (ANY, features(writer=("somethingNew",), versions=(1, 7))),
    "reader version 4": (ANY, protocol(4, 7)),
    "writer version 8": (ANY, protocol(1, 8)),
    "reader version 3 without features": (ANY, protocol(3, 7)),
    "reader version 3 with writer version 6": (ANY, protocol(3, 6)),
    "no protocol": (ANY, without_action("protocol")),
    "no metadata": (ANY, without_action("metaData")),
    "the schema is garbled": (ANY, schema_garbled),
    "a column of an unknown type": (ANY, schema_unknown),
    "an unknown partition column": (ANY, partition_column_unknown),
    "a retention of a month": (ANY, months),
    "an unknown property": (ANY, property_unknown),
    "a data file is missing": (ANY, data_missing),
    "a data file is damaged": (ANY, data_damaged),
    "a vector's file is missing": (("spark with vectors",), vector_missing),
    "a vector's file is damaged": (("spark with vectors",), vector_damaged),
    "no statistics": (ANY, change_adds(lambda add: add.pop("stats", None))),
    "statistics that are not JSON": (ANY, change_adds(lambda add: add.update(stats="{"))),
    "a file is added twice": (ANY, added_twice),
    "an unknown file is removed": (ANY, removed_unknown),
    "the checksum is garbled": (("spark",), checksum_garbled),
    "the checksum is wrong": (("spark",), checksum_wrong),
    "a compacted file of no bytes": (ANY, compaction(b"")),
    "a compacted file of garbage": (ANY, compaction(b"garbage")),
    "a compacted file": (ANY, compaction_sound),
    "identity and generated columns": (ANY, generated),
    "foreign names in the log": (ANY, foreign_names),
    "an empty log folder": (ANY, folder_empty),
    "an in-commit timestamp is missing": (("spark with times",), time_missing),
}


def base(name, make, path):
    """A sound table of six commits, with whatever its name says."""
    at = make(path)
    if name.startswith("delta-rs"):
        for number in range(6):
            rows = pa.table({"id": pa.array([2 * number, 2 * number + 1], pa.int32()), "s": ["a", None]})
            write_deltalake(path, rows, mode="append")
            if number == 3 and name.endswith("checkpoint"):
                DeltaTable(path).create_checkpoint()
        return
    properties = {
        "spark with checkpoint": {"checkpointInterval": "3"},
        "spark with three checkpoints": {"checkpointInterval": "2"},
        "spark with parts": {"checkpointInterval": "3"},
        "spark with sidecars": {"checkpointInterval": "3", "checkpointPolicy": "v2"},
        "spark with vectors": {"enableDeletionVectors": "true"},
        "spark with times": {"enableInCommitTimestamps": "true"},
    }.get(name, {})
    option = "spark.databricks.delta.checkpoint.partSize"
    if name == "spark with parts":
        at.session.conf.set(option, "1")
    try:
        at.create("s STRING", **properties)
        for _ in range(3 if name != "spark with three checkpoints" else 6):
            at.insert("concat('n', id)", count=4)
        if name == "spark with vectors":
            at.sql("DELETE FROM TABLE_ WHERE id IN (1, 9)")
        else:
            at.insert("NULL", count=4)
    finally:
        at.session.conf.unset(option)
