# ruff: noqa: E501 - statements of SQL and rows of tables are read as one line
"""Three readers of one table: us, Delta on Spark and delta-rs. Each answers a question by rows or by a refusal."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from pyspark.errors import PySparkException
from pyspark.sql.types import VariantVal

from freezeframe.errors import FreezeframeError
from freezeframe.log import DeltaLog


@dataclass(frozen=True)
class Rows:
    """What was read, in a form that is the same for the same values."""

    content: object


@dataclass(frozen=True)
class Refusal:
    """The class of an error."""

    kind: str


@dataclass(frozen=True)
class Question:
    """What is asked: the newest version or another one, whole or below a bound of ``id``, or something of the log."""

    name: str
    version: int | None = None
    moment: int | None = None
    below: int | None = None


def plain(value):
    """A value that equals that of another reader if both mean the same."""
    match value:
        case datetime():
            return ("local", value.isoformat()) if value.tzinfo is None else value.astimezone(UTC).isoformat()
        case float() | Decimal() | bool():
            return repr(value)
        case bytes():
            return value.hex()
        case {"metadata": bytes() as metadata, "value": bytes() as content, **others} if not others:
            return VariantVal(content, metadata).toJson()
        case VariantVal():
            return value.toJson()
        case dict():
            return tuple((name, plain(one)) for name, one in value.items())
        case list() | tuple():
            return tuple(plain(item) for item in value)
        case _:
            return value


def rows_of(table, leave=()):
    """Names of columns, and the rows, sorted: none of the readers promises an order."""
    table = table.drop_columns([name for name in leave if name in table.column_names])
    columns = [table.column(at).to_pylist() for at in range(table.num_columns)]
    rows = (tuple(map(plain, row)) for row in zip(*columns, strict=True))
    return tuple(table.column_names), tuple(sorted(rows, key=repr))


def type_of(kind):
    """A type of Delta's schema without nullability and metadata."""
    if not isinstance(kind, dict):
        return kind
    match kind["type"]:
        case "struct":
            return tuple((field["name"], type_of(field["type"])) for field in kind["fields"])
        case "array":
            return "array", type_of(kind["elementType"])
        case _:
            return "map", type_of(kind["keyType"]), type_of(kind["valueType"])


def instant(seconds):
    return datetime.fromtimestamp(seconds, UTC)


def protocol_of(reader, writer, features):
    """Versions and features; versions below 7 imply features, which Spark names and others do not."""
    return reader, writer, tuple(sorted(set(features))) if writer >= 7 else ()


def properties_of(configuration):
    return tuple(sorted((name, str(value)) for name, value in configuration.items()))


class Ours:
    """The library, from the table's folder on."""

    def __init__(self, path, session):
        self.path = path
        del session

    def at(self, question):
        log = DeltaLog.open(self.path)
        if question.version is not None:
            return log.snapshot_at(version=question.version)
        if question.moment is not None:
            return log.snapshot_at(timestamp=instant(question.moment))
        return log.update()

    def rows(self, question):
        where = None if question.below is None else pc.field("id") < question.below
        snapshot = self.at(question)
        return type_of(snapshot.delta_schema), rows_of(snapshot.to_arrow(where=where))

    def dataset(self, question):
        snapshot = self.at(question)
        found = snapshot.to_dataset().to_table(filter=pc.field("id") < question.below)
        return type_of(snapshot.delta_schema), rows_of(found)

    def detail(self, question):
        found = self.at(question)
        one, metadata = found.protocol, found.metadata
        features = (*(one.reader_features or ()), *(one.writer_features or ()))
        named = protocol_of(one.min_reader_version, one.min_writer_version, features)
        columns = tuple(metadata.partition_columns)
        return columns, found.count, named, properties_of(metadata.configuration)

    def history(self, question):
        del question
        found = DeltaLog.open(self.path).history()
        return tuple((item.version, item.timestamp, item.commit_info.operation) for item in found)

    def changes(self, question):
        del question
        return rows_of(DeltaLog.open(self.path).changes(0).read_all(), ("_commit_timestamp",))


class Spark:
    """Delta's own implementation."""

    def __init__(self, path, session):
        self.path = path
        self.session = session

    def rows(self, question):
        text = f"SELECT * FROM delta.`{self.path}`"
        if question.version is not None:
            text += f" VERSION AS OF {question.version}"
        if question.moment is not None:
            text += f" TIMESTAMP AS OF '{instant(question.moment):%Y-%m-%d %H:%M:%S}'"
        if question.below is not None:
            text += f" WHERE id < {question.below}"
        frame = self.session.sql(text)
        schema = type_of(json.loads(frame.schema.json()))
        if "variant" not in dict(schema).values():
            return schema, rows_of(frame.toArrow())
        rows = [tuple(map(plain, row)) for row in frame.collect()]  # PySpark makes no Arrow table of variants
        return schema, (tuple(frame.columns), tuple(sorted(rows, key=repr)))

    dataset = rows

    def detail(self, question):
        del question
        [found] = self.session.sql(f"DESCRIBE DETAIL delta.`{self.path}`").collect()
        named = protocol_of(found.minReaderVersion, found.minWriterVersion, found.tableFeatures)
        return tuple(found.partitionColumns), found.numFiles, named, properties_of(found.properties)

    def history(self, question):
        del question
        found = self.session.sql(f"DESCRIBE HISTORY delta.`{self.path}`").collect()
        return tuple(
            (item.version, round(item.timestamp.timestamp() * 1000), item.operation) for item in found
        )

    def changes(self, question):
        del question
        reader = (
            self.session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
        )
        return rows_of(reader.load(self.path).toArrow(), ("_commit_timestamp",))


class DeltaRs:
    """delta-rs, its rows by its own engine."""

    def __init__(self, path, session):
        self.path = path
        del session

    def at(self, question):
        if question.moment is None:
            return DeltaTable(self.path, version=question.version)
        table = DeltaTable(self.path)
        table.load_as_version(instant(question.moment))
        return table

    def rows(self, question):
        table = self.at(question)
        where = "" if question.below is None else f" WHERE id < {question.below}"
        found = QueryBuilder().register("t", table).execute(f"SELECT * FROM t{where}").read_all()
        return type_of(json.loads(table.schema().to_json())), rows_of(pa.table(found))

    dataset = rows

    def detail(self, question):
        table = self.at(question)
        one, metadata = table.protocol(), table.metadata()
        features = (*(one.reader_features or ()), *(one.writer_features or ()))
        named = protocol_of(one.min_reader_version, one.min_writer_version, features)
        columns = tuple(metadata.partition_columns)
        return columns, len(table.file_uris()), named, properties_of(metadata.configuration)

    def history(self, question):
        del question
        found = DeltaTable(self.path).history()
        return tuple((item["version"], item["timestamp"], item["operation"]) for item in found)

    def changes(self, question):
        del question
        found = pa.table(DeltaTable(self.path).load_cdf(starting_version=0).read_all())
        return rows_of(found, ("_commit_timestamp",))


def kind_of(error):
    """The class of an error: Delta's where the reader gives one, else the name of the exception."""
    if isinstance(error, FreezeframeError):
        return error.error_code
    if isinstance(error, PySparkException):
        return error.getCondition() or type(error).__name__
    return type(error).__name__


def answer(reader, question):
    """What a reader says to a question; only what it raises by itself counts as a refusal."""
    how = "rows" if question.name not in ("dataset", "detail", "history", "changes") else question.name
    try:
        return Rows(getattr(reader, how)(question))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of delta-rs is no Exception, and is an answer
        return Refusal(kind_of(error))
