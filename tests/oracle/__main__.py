"""Make the oracle's tables anew with Spark and delta-rs, and print which of their answers changed.

Run as ``python -m tests.oracle [TABLE ...]`` in the project's environment with Java and the Spark that
Delta answers in (``make oracle`` sets both up).
"""

import json
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.errors import PySparkException
from tests.oracle.answers import FOLDER, load, pack, plain_rows, plain_type, save
from tests.oracle.definitions import TABLES
from tests.spark_server import delta_server


def make(session, folder, steps):
    """Carry out the steps of a table in an empty folder."""
    for step in steps:
        if callable(step):
            step(folder)
        else:
            session.sql(step.replace("@", f"delta.`{folder}`")).collect()


def ask_spark(session, folder):
    """Return Spark's answers: each version's schema, rows and number of files, the changes, the history."""
    table = session.read.format("delta")
    try:
        history = session.sql(f"DESCRIBE HISTORY delta.`{folder}`").collect()
    except PySparkException as error:
        return condition(error)
    answer = {"history": sorted([row["version"], row["operation"]] for row in history), "versions": {}}
    for version, _ in answer["history"]:
        try:
            frame = table.option("versionAsOf", version).load(str(folder))
            schema = plain_type(json.loads(frame.schema.json()))["fields"]
            found = {"schema": schema, "rows": plain_rows(frame.toArrow()), "files": len(frame.inputFiles())}
        except PySparkException as error:
            found = condition(error)
        answer["versions"][str(version)] = found
    if all("error" in found for found in answer["versions"].values()):
        return found
    try:
        changes = session.read.format("delta").option("readChangeFeed", True).option("startingVersion", 0)
        answer["changes"] = plain_rows(changes.load(str(folder)).drop("_commit_timestamp").toArrow())
    except PySparkException:
        pass  # the table records none
    return answer


def condition(error):
    """Return Delta's name of an error."""
    return {"error": error.getCondition() or type(error).__name__}


def ask_delta_rs(folder):
    """Return delta-rs's rows of the newest version, or the first line of its error."""
    try:
        reader = QueryBuilder().register("t", DeltaTable(folder)).execute("SELECT * FROM t")
        return plain_rows(pa.table(reader.read_all()))
    except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
        return {"error": type(error).__name__}


def main(names):
    """Make the named tables, or all."""
    FOLDER.mkdir(exist_ok=True)
    before = load()
    answers = {name: before[name] for name in TABLES if name in before}
    with tempfile.TemporaryDirectory() as temporary, delta_server(Path(temporary)) as session:
        session.conf.set("spark.sql.session.timeZone", "UTC")
        session.conf.set("spark.sql.leafNodeDefaultParallelism", "1")
        session.conf.set("spark.sql.shuffle.partitions", "1")
        for name in names or TABLES:
            folder = Path(temporary) / name
            folder.mkdir()
            try:
                make(session, folder, TABLES[name])
            except PySparkException as error:
                say(f"{name}: not made: {str(error).splitlines()[0]}")
                continue
            pack(folder, name)
            answer = ask_spark(session, folder)
            latest = list(answer.get("versions", {}).values())[-1:]
            rust = ask_delta_rs(str(folder))
            answer["delta_rs"] = "as Spark" if latest and latest[0].get("rows") == rust else rust
            answers[name] = answer
            report(name, before.get(name), answer)
            save({name: answers[name] for name in TABLES if name in answers})


def say(line):
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def report(name, before, answer):
    """Print what is not as it was."""
    if before is None:
        say(f"{name}: new")
        return
    changed = [key for key in sorted({*before, *answer}) if before.get(key) != answer.get(key)]
    say(f"{name}: {'as before' if not changed else 'changed: ' + ', '.join(changed)}")
    for key in changed:
        say(f"  {key} was {json.dumps(before.get(key))[:2000]}")
        say(f"  {key} is  {json.dumps(answer.get(key))[:2000]}")


main(sys.argv[1:])
