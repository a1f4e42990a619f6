"""Random sync files, read as a whole and part by part as Spark's workers do: equal types, rows and errors."""

import datetime as dt
import gzip
import io
import json
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.script.json_values import KNOWN, OWN
from tests.script.text_columns import EXACT, INEXACT, KEPT, MOMENTS, NOT_WRITTEN, TYPED, WRITTEN

from freezeframe.engine.frames.frames import to_arrow
from freezeframe.engine.plans.python_tasks import collect
from freezeframe.errors import FreezeframeError
from freezeframe.script.formats.columnar_files import (
    parquet_parts,
    parquet_schema,
    parquet_tables,
    read_parquet_files,
)
from freezeframe.script.inputs.spark_reading import CSV, JSON_LINES, parquet_frame, text_frames
from freezeframe.script.types.typed_columns import KnownTypes

ROUNDS = [pytest.param(25, id="short"), pytest.param(2_000, id="long", marks=pytest.mark.nightly)]
TEXTS_OF = {"csv": CSV, "json": JSON_LINES}
COLUMNS = ("a", "B", "c d", "e,f", 'g"h', "i.j", "k\nl", "ü", "_m")
TYPED_TEXTS = [case[0] for case in (*TYPED, *EXACT, *WRITTEN)]
TEXTS = sorted({text for case in (*TYPED_TEXTS, *KEPT) for text in case if text and len(text) < 100})
TYPES = [
    *(pa.int64(), pa.int8(), pa.float64(), pa.float32(), pa.string(), pa.bool_(), pa.date32(), pa.null()),
    *(
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        pa.decimal128(10, 2),
        pa.decimal128(38, 18),
        pa.binary(),
    ),
    *(pa.list_(pa.int64()), pa.list_(pa.null()), pa.struct([("n", pa.int64()), ("d", pa.null())])),
    *(pa.map_(pa.string(), pa.float64()), pa.list_(pa.struct([("a", pa.list_(pa.null()))]))),
]
LEAVES = [
    *(None, True, False, 0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**70, 0.5, 0.1, 1e300, 5e-324),
    *("", "x", "007", "2020-01-01", "2020-01-01T00:00:00Z", "NaN", "é\n", "1.25"),
]


class Files:
    """Random files of one stream, by a seed."""

    def __init__(self, seed, folder):
        self.random = random.Random(seed)
        self._folder = folder / str(seed)
        self._folder.mkdir()

    def _names(self):
        count = self.random.choice([1, 1, 2, 3, 3, 5, 5, 8])
        if self.random.random() < 0.01:
            return [f"w{number}" for number in range(self.random.choice([300, 1_500]))]
        return self.random.sample(COLUMNS, count)

    def known(self, names):
        """Types that are stored, declared or asked for, of some of the columns."""
        choose = self.random

        def some(share):
            return {name: choose.choice(TYPES) for name in names if choose.random() < share}

        share = choose.choice([0, 0, 0.4])
        return KnownTypes(
            choose.choice([None, pa.schema(list(some(share).items()))]),
            some(share / 2),
            some(share / 4),
            choose.choice([False, False, True, frozenset(names[:1])]),
        )

    def csv(self):
        """CSV files with any quoting, separators, ends of lines and packing; and what is known of them."""
        names = self._names()
        pools = {name: self._texts() for name in names}
        # All files have one form, and each its own columns.
        files = []
        for number in range(self.random.choice([1, 1, 2, 3])):
            own = [name for name in names if self.random.random() < 0.9] or names
            self.random.shuffle(own)
            separator, ending = self.random.choice([(",", "csv"), (",", "csv"), (";", "csv"), ("\t", "tsv")])
            end = self.random.choice(["\n", "\n", "\r\n"])
            lines = [separator.join(self._cell(name, separator) for name in own)]
            for _ in range(self.random.choice([0, 1, 3, 10, 30] if len(names) < 50 else [3])):
                cells = [self.random.choice(pools[name]) for name in own]
                lines.append(separator.join(self._cell(cell, separator) for cell in cells))
                if self.random.random() < 0.03:
                    lines.append("")
            if self.random.random() < 0.02:
                lines.append(self.random.choice(['"', '"x"y', separator * 9, 'a"b']))
            content = end.join(lines) + self.random.choice(["", end, end * 3])
            content = (b"\xef\xbb\xbf" if self.random.random() < 0.2 else b"") + content.encode()
            if self.random.random() < 0.02:
                content += b"\xff"
            is_packed = self.random.random() < 0.1
            path = self._folder / f"A-{number}.{ending}{'.gz' if is_packed else ''}"
            path.write_bytes(gzip.compress(content) if is_packed else content)
            files.append(path)
        return files, self.known(names)

    def _texts(self):
        """A pool of cells: of one kind, of any kinds, or none at all."""
        kind = self.random.random()
        if kind < 0.15:
            return [None]
        if kind < 0.6:
            case = self.random.choice([*TYPED_TEXTS, *KEPT, *MOMENTS])
            return [text for text in case if text is None or len(text) < 100] or [None]
        if kind < 0.7:
            case = self.random.choice([item[0] for item in (*INEXACT, *NOT_WRITTEN[:-1])])
            return [*case, None]
        if kind < 0.9:
            digits = self.random.randrange(4)
            return [f"{self.random.uniform(-99, 99):.{digits}f}" for _ in range(4)] + [None]
        return [*self.random.sample(TEXTS, 4), None, ""]

    def _cell(self, text, separator):
        if text is None:
            return ""
        needs = (
            text == "" or any(item in text for item in (separator, '"', "\n", "\r")) or text != text.strip()
        )
        return '"' + text.replace('"', '""') + '"' if needs or self.random.random() < 0.2 else text

    def json(self):
        """Files of JSON lines with values of one kind or of any; and what is known of them."""
        names = [name.replace("\n", " ") for name in self._names()]
        pools = {name: self._values() for name in names}
        files = []
        for number in range(self.random.choice([1, 1, 2, 3])):
            lines = []
            for _ in range(self.random.choice([0, 1, 3, 10, 30] if len(names) < 50 else [3])):
                own = [name for name in names if self.random.random() < 0.9]
                self.random.shuffle(own)
                cells = (f"{json.dumps(name)}: {self.random.choice(pools[name])}" for name in own)
                lines.append("{" + ", ".join(cells) + "}")
                if self.random.random() < 0.03:
                    lines.append("")
            if self.random.random() < 0.02:
                lines.append(self.random.choice(["{", "[]", '{"a": 1, "a": 2}', '{"a": 1e999}', "null"]))
            end = self.random.choice(["\n", "\n", "\r\n"])
            mark = "\ufeff" if self.random.random() < 0.2 else ""
            path = self._folder / f"A-{number}.jsonl"
            path.write_text(mark + end.join(lines) + self.random.choice(["", end, end * 3]), newline="")
            files.append(path)
        return files, KnownTypes(*self._known_json(names))

    def _known_json(self, names):
        known = self.known(names)
        return known.stored, known.declared

    def _values(self):
        """A pool of JSON values."""
        kind = self.random.random()
        if kind < 0.1:
            return ["null"]
        if kind < 0.5:
            case = self.random.choice([item[0] for item in (*OWN, *KNOWN)])
            return [value or "null" for value in case]
        if kind < 0.7:
            shape = self.random.randrange(10**6)
            return [json.dumps(self._shaped(random.Random(shape), 3)) for _ in range(4)]
        if kind < 0.95:
            one = type(self.random.choice(LEAVES))
            return [json.dumps(value) for value in LEAVES if value is None or isinstance(value, one)]
        return [json.dumps(self.random.choice(LEAVES)) for _ in range(3)]

    def _shaped(self, shape, depth):
        """A value of a shape (a seed), in which anything can be missing or empty."""
        kind = shape.choice(["long", "text", "list", "object", "object"][: 2 if depth == 0 else 5])
        inner = shape.randrange(10**6)
        if self.random.random() < 0.2:
            return {"list": [], "object": {}}.get(kind)
        match kind:
            case "long":
                return self.random.choice([None, 1, 2**40])
            case "text":
                return self.random.choice([None, "", "x"])
            case "list":
                return [
                    self._shaped(random.Random(inner), depth - 1) for _ in range(self.random.randrange(3))
                ]
            case _:
                names = "abc"[: shape.randrange(1, 4)]
                return {
                    name: self._shaped(random.Random(f"{inner}{name}"), depth - 1)
                    for name in names
                    if self.random.random() < 0.8
                }

    def parquet(self):
        """Parquet files whose columns and types differ."""
        names, kinds = self._names(), {}
        files = []
        for number in range(self.random.choice([1, 2, 3])):
            rows = self.random.choice([1, 2, 7])
            columns = {"row": pa.array(range(rows), pa.int64())}
            for name in names:
                if self.random.random() < 0.85:
                    kind = kinds.setdefault(name, self.random.choice(TYPES))
                    if self.random.random() < 0.2:
                        kind = self.random.choice([pa.null(), pa.null(), *TYPES])
                    columns[name] = pa.array([self._value(kind) for _ in range(rows)], kind)
            sink = io.BytesIO()
            pq.write_table(pa.table(columns), sink, row_group_size=self.random.choice([1, 3, 100]))
            path = self._folder / f"A-{number}.parquet"
            path.write_bytes(sink.getvalue())
            files.append(path)
        return files

    def _value(self, kind):
        if self.random.random() < 0.3 or pa.types.is_null(kind):
            return None
        if pa.types.is_list(kind):
            return [self._value(kind.value_type) for _ in range(self.random.randrange(3))]
        if pa.types.is_map(kind):
            return [(name, self._value(kind.item_type)) for name in "ab"[: self.random.randrange(3)]]
        if pa.types.is_struct(kind):
            return {part.name: self._value(part.type) for part in kind}
        if pa.types.is_decimal(kind):
            return Decimal(self.random.choice(["0.25", "-1", "12345678.5"]))
        if pa.types.is_temporal(kind):
            moment = dt.datetime(self.random.choice([1970, 2026]), 1, 2, 3, 4, 5, 6, dt.UTC)
            return moment.date() if pa.types.is_date(kind) else moment.replace(tzinfo=kind.tz and dt.UTC)
        if pa.types.is_boolean(kind):
            return self.random.random() < 0.5
        if pa.types.is_floating(kind):
            return self.random.choice([0.5, -0.0, 2.0**20])
        if pa.types.is_integer(kind):
            return self.random.choice([0, 1, -128, 127])
        return self.random.choice(["", "x", "7"]) if pa.types.is_string(kind) else b"\x00x"


def by_parts(text, files, known, part_bytes):
    """The rows as ``text_frames`` has Spark's workers read them, in this process."""
    parts = [part for file in files for part in text.parts(file, part_bytes)]
    surveys = [text.survey(part, known) for part in parts]
    joined = text.joined("A", parts, surveys, known)
    schema = text.schema(known, joined)
    tables = [
        table
        for part, survey in zip(parts, surveys, strict=True)
        for table in text.tables(part, survey, known, joined)
    ]
    return pa.concat_tables([schema.empty_table(), *tables])


def parquet_by_parts(files):
    schema = parquet_schema(files)
    parts = [part for file in files for part in parquet_parts(file, 1)]
    return pa.concat_tables(
        [schema.empty_table(), *(table for part in parts for table in parquet_tables(part, schema))]
    )


def answer(read, *arguments):
    """Columns with their types and the rows, or the error; of several faults of a file any may be named."""
    try:
        table = read(*arguments)
    except FreezeframeError as error:
        return error.error_code, error.details.get("file")
    return list(zip(table.column_names, table.schema.types, strict=True)), repr(table.to_pylist())


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_parts_are_read_as_the_whole(tmp_path, form, rounds):
    """Whatever the kinds of values, what is known of the columns, and wherever the parts end."""
    for number in range(rounds):
        files = Files(number, tmp_path)
        if form == "parquet":
            given = files.parquet()
            whole, parts = answer(read_parquet_files, given), answer(parquet_by_parts, given)
        else:
            text = TEXTS_OF[form]
            given, known = getattr(files, form)()
            size = files.random.choice([4, 20, 100, 10**6])  # a byte order mark is not divided
            whole = answer(text.whole, "A", given, known)
            parts = answer(by_parts, text, given, known, size)
        assert (number, whole) == (number, parts)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_spark_reads_what_this_process_reads(tmp_path, spark_session, form):
    """Rows and types of 200 frames that Spark's workers read in parts; faults are those of the test above."""
    for first in range(0, 200, 25):
        given, expected = {}, {}
        for number in range(first, first + 25):
            files = Files(number, tmp_path)
            found = files.parquet() if form == "parquet" else getattr(files, form)()
            whole = answer(*_whole(form, found))
            if not isinstance(whole[0], str):  # no error
                given[f"s{number}"], expected[f"s{number}"] = found, whole
        frames = _frames(form, spark_session, given)
        assert expected == {
            name: answer(lambda frame=frame: to_arrow(collect(frame))) for name, frame in frames.items()
        }


def _whole(form, found):
    return (read_parquet_files, found) if form == "parquet" else (TEXTS_OF[form].whole, "A", *found)


def _frames(form, session, streams):
    if form == "parquet":
        return {name: parquet_frame(session, files, 0, 1) for name, files in streams.items()}
    return text_frames(TEXTS_OF[form], session, streams, in_process_bytes_max=0, part_bytes=100)
