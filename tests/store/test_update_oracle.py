"""Updates of streams with columns of every type, against the rule itself written over plain dictionaries.

The rule is pandas' ``combine_first`` (``docs/reference/semantics.md``); the dictionaries keep pandas'
conversions out of it, and on text, where there are none, they are compared with pandas.
"""

import math
from dataclasses import dataclass, field, replace

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema
from tests.typed_columns import KINDS, TEXTS, Kind, key_form, same_form

from freezeframe.errors import BadInput, NullKeyError
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant

KEY_KINDS = [kind for kind in KINDS.values() if kind.may_be_key]
EMPTY = Kind("empty", pa.null(), st.none())
EVERY_RUN, BY_SPARK, NIGHTLY = 20, 4, 1000
RULES = {
    "anew": Settings(),
    "marked": Settings(vectors_from_bytes=0),
    "plain": Settings(vectors_from_bytes=0, compatibility="plain"),
    "by Spark": Settings(vectors_from_bytes=0, engine="spark"),
}


@dataclass(frozen=True)
class Batch:
    """One update: rows as dictionaries, in frames of one kind, and how nulls are meant."""

    frame: str
    columns: dict[str, Kind]
    rows: list[dict]
    nulls: str = "keep"
    null_keys: str = "error"


@dataclass
class Expected:
    """A stream by the rule: its rows by the form of their key, and what the last update did to them."""

    key: list[str]
    kinds: dict[str, pa.DataType] = field(default_factory=dict)
    rows: dict[tuple, dict] = field(default_factory=dict)
    counts: tuple[int, int, int] = (0, 0, 0)
    changes: dict[tuple, tuple] = field(default_factory=dict)
    null_keys_dropped: int = 0
    columns_added: tuple[str, ...] = ()

    def update(self, batch):
        """``batch.drop_duplicates(key, keep="last").set_index(key).combine_first(old)``, counted."""
        rows = self.kept_rows(batch)
        self.null_keys_dropped = len(batch.rows) - len(rows)
        self.counts, self.changes, self.columns_added = (0, 0, 0), {}, ()
        if not rows and self.kinds:
            return  # an empty batch changes nothing, not even the columns
        self.columns_added = tuple(name for name in batch.columns if name not in self.kinds)
        types = self.types_of(batch)
        self.kinds |= {
            name: types[name]
            for name in batch.columns
            if name not in self.kinds or pa.types.is_null(self.kinds[name])
        }
        last = {self._key_of(row): row for row in rows}
        inserted = updated = 0
        for key, row in last.items():
            before = self.rows.get(key)
            after = self._merged(before, row, batch.nulls)
            self.rows[key] = after
            if before is None:
                inserted += 1
                self.changes[key] = ("insert", self.form(after), None)
            elif self.form(before) != self.form(after):
                updated += 1
                self.changes[key] = ("update", self.form(after), self.form(before))
        self.counts = inserted, updated, len(last) - inserted - updated

    def cannot_be_told(self, batch):
        """Whether there would be rows, but no column of the key that ever had a value or a type."""
        types = self.types_of(batch)
        kinds = [kinds[name] for name in self.key for kinds in (self.kinds, types) if name in kinds]
        return batch.null_keys != "drop" and all(map(pa.types.is_null, kinds))

    def types_of(self, batch):
        """The types that the batch gives its columns: one that the stream has waits for a value."""
        rows = self.kept_rows(batch)
        void = {name for name in batch.columns if all(row[name] is None for row in rows)}
        return {
            name: pa.null() if name in void and name in self.kinds else kind.arrow
            for name, kind in batch.columns.items()
        }

    def kept_rows(self, batch):
        """The rows without those that are dropped for their key."""
        return [row for row in batch.rows if batch.null_keys != "drop" or self.has_whole_key(row)]

    def has_whole_key(self, row):
        """Whether no part of its key is null."""
        return all(row[name] is not None for name in self.key)

    def form(self, row):
        """The row's cells, comparable; a column that it lacks is null."""
        return tuple(
            (name, (key_form if name in self.key else same_form)(row[name], kind))
            for name, kind in sorted(self.kinds.items())
            if row.get(name) is not None
        )

    def found(self, table):
        """A table's rows by key, in the form of ``form``."""
        rows = {self._key_of(row): self.form(row) for row in table.to_pylist()}
        assert table.num_rows == len(rows), "a key is there twice"
        return rows

    def content(self):
        """What ``found`` is to find."""
        return {key: self.form(row) for key, row in self.rows.items()}

    def _key_of(self, row):
        return tuple(key_form(row[name], self.kinds[name]) for name in self.key)

    @staticmethod
    def _merged(before, row, nulls):
        if before is None:
            return dict(row)
        keeps = nulls == "keep"
        return before | {name: cell for name, cell in row.items() if not (keeps and cell is None)}


# The cells of generated frames


def without_nan(value):
    """What a pandas cell means: NaN is missing, wherever it is."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return value


def typed(columns, rows):
    """The rows as an Arrow table with the declared types."""
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind.arrow) for name, kind in columns.items()}
    )


def as_pandas(columns, rows, key):
    """The rows in the pandas types that scripts use; nested ones and decimal keys keep Arrow's type."""
    found = {}
    for name, kind in columns.items():
        cells = [row[name] for row in rows]
        dtype = PANDAS_TYPES.get(kind.name)
        if kind.name in OBJECTS and name not in key:
            found[name] = pd.Series(cells, dtype=object)
        elif dtype is None or is_read_as_integers(kind, cells):
            found[name] = pd.Series(
                pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(cells, kind.arrow)]))
            )
        else:
            found[name] = pd.Series(pd.array(cells, dtype)) if cells else pd.Series([], dtype=dtype)
    return pd.DataFrame(found)


def is_read_as_integers(kind, cells):
    """Whether NumPy's floats of a new column would be integers: whole ones with gaps."""
    present = [cell for cell in cells if cell is not None]
    return kind.name == "double" and len(present) < len(cells) and all(map(float.is_integer, present))


PANDAS_TYPES = {
    "text": "string",
    "long": "Int64",
    "int": "Int32",
    "short": "Int16",
    "byte": "Int8",
    "double": "float64",
    "float": "float32",
    "boolean": "boolean",
    "instant": "datetime64[us, UTC]",
    "local time": "datetime64[us]",
}
OBJECTS = {"date", "money", "big decimal", "binary", "empty"}


def as_frame(batch, key, session):
    """The batch in its kind of frame."""
    if batch.frame == "pandas":
        return as_pandas(batch.columns, batch.rows, key)
    table = typed(batch.columns, batch.rows)
    if batch.frame == "arrow":
        return table
    # Spark takes a local time for an instant of the session's zone, unless it is told otherwise.
    return session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


@st.composite
def histories(draw, *, may_be_spark=True):
    """The key's columns, and two or three updates of one stream whose columns come, go and are void."""
    kinds = {f"k{number}": draw(st.sampled_from(KEY_KINDS)) for number in range(draw(st.integers(1, 2)))}
    key = list(kinds)
    values = draw(st.lists(st.sampled_from(list(KINDS.values())), min_size=1, max_size=6, unique_by=id))
    kinds |= {f"v {kind.name}": kind for kind in values}
    pools = {name: draw(st.lists(kind.values, min_size=1, max_size=3)) for name, kind in kinds.items()}
    last = draw(st.sampled_from([1, 1, 2]))
    spark_at = last if may_be_spark else None
    return key, [
        draw(batches(kinds, pools, key, may_be_spark=number == spark_at)) for number in range(last + 1)
    ]


@st.composite
def batches(draw, kinds, pools, key, *, may_be_spark):
    """Up to six rows with some of the columns, whose cells are of the pools."""
    frame = draw(st.sampled_from(["pandas", "arrow"] * 4 + ["spark"] * may_be_spark))
    optional = [name for name in kinds if name not in key]
    names = key + draw(st.lists(st.sampled_from(optional), unique=True))
    columns = {name: kinds[name] for name in names}
    if draw(st.integers(0, 3)) == 0:
        columns["nothing"] = EMPTY
    null_keys = draw(st.sampled_from(["error", "match", "drop"]))
    cells = {name: st.sampled_from([*pools.get(name, ()), None]) for name in columns}
    for name in key if null_keys == "error" else ():
        filled = [value for value in pools[name] if frame != "pandas" or without_nan(value) is not None]
        cells[name] = st.sampled_from(filled or [1.0])  # only a NaN is missing in pandas
    rows = draw(st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=6))
    if frame == "pandas":
        rows = [{name: without_nan(cell) for name, cell in row.items()} for row in rows]
    if frame == "spark":  # it has no order, so rows of one key that differ would be refused
        rows = list({tuple(key_form(row[n], kinds[n].arrow) for n in key): row for row in rows}.values())
    batch = Batch(frame, columns, rows, draw(st.sampled_from(["keep", "overwrite"])), null_keys)
    return as_taken(batch)


def as_taken(batch):
    """The batch with the columns typed as they are taken: pandas cannot say what a void column is to hold."""
    if batch.frame != "pandas":
        return batch
    void = {name for name in batch.columns if all(row[name] is None for row in batch.rows)}
    kinds = {name: EMPTY if name in void else kind for name, kind in batch.columns.items()}
    return replace(batch, columns=kinds)


def prove(engine, session, folder, rule, found):
    """Carry out a history on a stream and compare everything that can be seen of it with the rule."""
    key, history = found
    stream = Tenant(LocalStorage(folder), engine, RULES[rule]).stream("Account")
    expected = Expected(key)
    contents = []
    for number, batch in enumerate(history):
        before = None if number == 0 else stream.schema
        version = stream.stream_version
        frame = as_frame(batch, key, session)
        if expected.cannot_be_told(batch):
            with pytest.raises(BadInput):
                stream.update(frame, key=key, nulls=batch.nulls, null_keys=batch.null_keys)
            return
        receipt = stream.update(frame, key=key, nulls=batch.nulls, null_keys=batch.null_keys)
        expected.update(batch)

        assert expected.counts == (receipt.inserted, receipt.updated, receipt.unchanged)
        assert (0, expected.null_keys_dropped) == (receipt.deleted, receipt.null_keys_dropped)
        assert expected.columns_added == receipt.columns_added
        assert expected.content() == expected.found(stream.read(as_="arrow"))
        assert expected.changes == changed(expected, receipt.changed_rows("arrow"))
        # That a column has no type yet stands in its metadata.
        same_columns = before is not None and stream.schema.equals(before, check_metadata=True)
        is_new = bool(expected.changes) or not same_columns
        assert (is_new, version + is_new) == (receipt.committed, receipt.stream_version)
        assert bool(expected.changes) or number == 0 or not receipt.bytes_written or receipt.committed
        contents.append((receipt.stream_version, expected.content()))
    for version, content in contents:
        assert content.keys() == expected.found(stream.read(as_="arrow", stream_version=version)).keys()


def changed(expected, table):
    """The rows of ``changes`` by key, in the form of ``Expected.changes``."""
    found = {}
    for row in table.to_pylist():
        kind, before = row.pop("_change_type"), row.pop("_before")
        found[expected._key_of(row)] = (kind, expected.form(row), before and expected.form(before))
    assert table.num_rows == len(found)
    return found


# Shrinking would run hundreds of updates through Spark; the frames are small enough to be read.
ONCE = {
    "phases": (Phase.explicit, Phase.reuse, Phase.generate),
    "suppress_health_check": list(HealthCheck),
}


@pytest.mark.spark
@pytest.mark.parametrize("rule", ["anew", "marked"])
@settings(max_examples=EVERY_RUN, **ONCE)
@given(found=histories(may_be_spark=False))
def test_updates_follow_the_rule(spark_engine, tmp_path_factory, rule, found):
    """Content, counts, changes and versions are the rule's, for all types, keys, frames and null rules."""
    prove(spark_engine, None, tmp_path_factory.mktemp("t"), rule, found)


@pytest.mark.spark
@settings(max_examples=BY_SPARK, **ONCE)
@given(found=histories())
def test_updates_by_spark_follow_the_rule(spark_engine, spark_session, tmp_path_factory, found):
    """So are those of a few histories that Spark merges."""
    prove(spark_engine, spark_session, tmp_path_factory.mktemp("t"), "by Spark", found)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=NIGHTLY, **ONCE)
@given(found=histories())
def test_updates_follow_the_rule_for_long(spark_engine, spark_session, tmp_path_factory, rule, found):
    """The same for thousands of histories, and without deletion vectors as well."""
    prove(spark_engine, spark_session, tmp_path_factory.mktemp("t"), rule, found)


TEXT_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k0": st.sampled_from(TEXTS[:4]),
            "k1": st.sampled_from(TEXTS[:2]),
            "a": st.none() | st.sampled_from(TEXTS),
            "b": st.none() | st.sampled_from(TEXTS),
        }
    ),
    min_size=1,
    max_size=8,
)


@given(old=TEXT_ROWS, new=TEXT_ROWS, names=st.sampled_from(["a", "b", "ab"]), is_composite=st.booleans())
def test_the_rule_is_that_of_pandas(old, new, names, is_composite):
    """On text, where pandas converts nothing, the dictionaries say what ``combine_first`` says."""
    key = ["k0", "k1"] if is_composite else ["k0"]
    text = KINDS["text"]
    expected = Expected(key)
    frames = []
    for rows, columns in ((old, "ab"), (new, names)):
        kept = [{name: row[name] for name in (*key, *columns)} for row in rows]
        expected.update(Batch("pandas", dict.fromkeys((*key, *columns), text), kept))
        frames.append(pd.DataFrame(kept, dtype=object).drop_duplicates(key, keep="last").set_index(key))

    by_pandas = frames[1].combine_first(frames[0]).reset_index()

    rows = by_pandas.astype(object).where(by_pandas.notna(), None).to_dict("records")
    assert expected.content() == {expected._key_of(row): expected.form(row) for row in rows}


@pytest.mark.parametrize("kind", KEY_KINDS, ids=lambda kind: kind.name)
def test_a_null_in_a_key_is_an_error(local, open_on, kind):
    """Without a rule for it, a null in a key of any type is refused before anything is written."""
    stream = open_on(local).stream("Account")

    with pytest.raises(NullKeyError):
        stream.update(pa.table({"Id": pa.array([None], kind.arrow), "v": [1]}), key="Id")

    assert stream.stream_version == -1


@pytest.mark.spark
def test_spark_frames_under_names_that_need_mapping(spark_engine, spark_session, tmp_path):
    """A Spark frame's columns arrive under any name, by every route: first write, merge, window, override."""
    stream = Tenant(LocalStorage(tmp_path), spark_engine, Settings()).stream("Account")
    pair = pa.struct([("a b", pa.int32())])

    def update(ids, numbers, kind, **options):
        columns = {"Id": pa.array(ids), "n m": pa.array(numbers, kind), "{p}": [{"a b": 1}] * len(ids)}
        table = pa.table(columns, schema=pa.schema([("Id", pa.string()), ("n m", kind), ("{p}", pair)]))
        stream.update(spark_session.createDataFrame(table), **options)
        found = stream.read(as_="arrow").to_pylist()
        assert all(row["{p}"] == {"a b": 1} for row in found)
        return {row["Id"]: row["n m"] for row in found}

    assert update(["1", "2"], [1, 2], pa.int32(), key="Id") == {"1": 1, "2": 2}
    assert update(["2"], [2**40], pa.int64()) == {"1": 1, "2": 2**40}
    assert update(["2", "3"], [7, 9], pa.int64(), replace_where="`n m` > 6") == {"1": 1, "2": 7, "3": 9}
    assert update(["2", "3"], [7, 10], pa.int64(), mode="full") == {"2": 7, "3": 10}
    assert update(["4"], [4], pa.int32(), override=True) == {"4": 4}


@pytest.mark.parametrize("name", ["n", "n m"])
def test_an_empty_frame_makes_an_empty_table(local, open_on, name):
    """No rows but columns, on a new stream, or all rows dropped: the columns are there, under any name."""
    tenant = open_on(local)
    tenant.stream("Empty").update(pa.table({"Id": ["1"], name: [1]}).slice(1), key="Id")
    nulls = pa.table({"Id": pa.array([None], pa.string()), name: [1]})
    receipt = tenant.stream("Dropped").update(nulls, key="Id", null_keys="drop")

    assert receipt.null_keys_dropped == 1
    for stream in ("Empty", "Dropped"):
        found = tenant.stream(stream).read(as_="arrow")
        assert (["Id", name], 0) == (found.column_names, found.num_rows)


@pytest.mark.spark
@pytest.mark.parametrize("rule", ["marked", "by Spark"])
def test_a_part_of_a_key_may_be_open(spark_engine, tmp_path, rule):
    """A part that is null in every row so far says nothing; with its first value it is a part like others."""
    stream = Tenant(LocalStorage(tmp_path), spark_engine, RULES[rule]).stream("Account")

    def update(ids, lines, values):
        rows = pd.DataFrame({"Id": ids, "Line": lines, "v": values})
        receipt = stream.update(rows, key=["Id", "Line"], null_keys="match")
        return receipt.inserted, receipt.updated, receipt.unchanged

    assert update(["1", "2"], [None, None], [1, 2]) == (2, 0, 0)
    assert update(["1", "2", "3"], [None] * 3, [1, 3, 4]) == (1, 1, 1)
    assert update(["1", "1"], [None, "x"], [5, 6]) == (1, 1, 0)
    found = {(row["Id"], row["Line"]): row["v"] for row in stream.read(as_="arrow").to_pylist()}
    assert found == {("1", None): 5, ("2", None): 3, ("3", None): 4, ("1", "x"): 6}


def test_a_key_without_any_value_is_refused(local, open_on):
    """Rows under a key whose columns have neither value nor type cannot be told apart, now or later."""
    stream = open_on(local).stream("Account")

    with pytest.raises(NullKeyError, match="no column of it ever had a value"):
        stream.update(pd.DataFrame({"Id": [None], "v": [1]}), key="Id", null_keys="match")

    assert stream.stream_version == -1


def test_rows_without_any_value_are_refused(local, open_on):
    """A row of nothing but nulls in columns of no type could not be written, so it is not counted either."""
    stream = open_on(local).stream("Account")

    with pytest.raises(BadInput, match="no value at all"):
        stream.update(pd.DataFrame({"Id": [None], "v": [None]}), key="Id", null_keys="match")

    assert stream.stream_version == -1
