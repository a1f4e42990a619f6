"""Random batches with empty and nested values beside a model: rows, types and versions after each update."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.given import tenant as open_tenant

from freezeframe.engine.plans.python_tasks import spark_ddl
from freezeframe.storage import LocalStorage, MemoryStorage

LEAVES = {"long": st.integers(-9, 9), "string": st.sampled_from(["", "x", "é"]), "boolean": st.booleans()}
SHAPES = st.recursive(
    st.sampled_from(sorted(LEAVES)),
    lambda inner: st.one_of(
        st.tuples(st.just("list"), inner),
        st.tuples(st.just("object"), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    ),
    max_leaves=5,
)
KINDS = {
    "arrow": pa.table,
    "pandas": lambda rows: pd.DataFrame(
        {name: pd.Series(cells, dtype=object) for name, cells in rows.items()}
    ),
    "polars": lambda rows: pl.from_arrow(pa.table(rows)),
}
ASIDE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


def values_of(shape):
    """Values of a shape, in which anything can be missing or empty."""
    if isinstance(shape, str):
        return st.none() | LEAVES[shape]
    if shape[0] == "list":
        return st.none() | st.just([]) | st.lists(values_of(shape[1]), max_size=2)
    members = st.fixed_dictionaries({}, optional={name: values_of(one) for name, one in shape[1].items()})
    return st.none() | st.just({}) | members


@st.composite
def histories(draw):
    """Batches of one shape: each a kind of frame, a mode and rows of distinct keys."""
    value = values_of(draw(SHAPES.filter(lambda shape: not isinstance(shape, str))))
    rows = st.dictionaries(st.integers(1, 4), value, min_size=0, max_size=3)
    step = st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(["upsert"] * 4 + ["override"]), rows)
    return draw(st.lists(step, min_size=1, max_size=6))


def whole(value, kind):
    """A value with all members of its type."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [whole(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {part.name: whole(value.get(part.name), part.type) for part in kind}
    return value


def unordered(kind):
    """A type whose members have no order."""
    if pa.types.is_list(kind):
        return "list", unordered(kind.value_type)
    if pa.types.is_struct(kind):
        return "object", sorted((part.name, unordered(part.type)) for part in kind)
    return str(kind)


def check(stream, model, seen, frames):
    """The stream has the model's rows in the type of all values so far; its own frames are nothing new."""
    kind = pa.array(seen).type
    found = stream.read(as_="arrow")
    assert unordered(found.schema.field("v").type) == unordered(
        pa.string() if pa.types.is_null(kind) else kind
    )
    expected = [{"Id": key, "v": whole(value, kind)} for key, value in sorted(model.items())]
    assert found.select(["Id", "v"]).to_pylist() == expected
    for frame in frames:
        if model:
            assert not stream.update(stream.read(as_=frame), key="Id").committed


def play(stream, history, frames):
    """Carry out a history beside its model."""
    model, seen, started = {}, [], False
    for kind, mode, rows in history:
        is_anew = mode == "override" or not started
        if not rows and mode == "upsert":
            continue
        frame = KINDS[kind]({"Id": pa.array(list(rows), pa.int64()).to_pylist(), "v": list(rows.values())})
        before = {} if is_anew else dict(model)
        model = {
            **before,
            **{key: value for key, value in rows.items() if value is not None or key not in before},
        }
        seen = [*([] if is_anew else seen), *rows.values()]
        receipt = stream.update(frame, key="Id", **({"override": True} if mode == "override" else {}))
        started = True
        if not is_anew:
            assert receipt.inserted == len(model) - len(before)
        check(stream, model, seen, frames)


@settings(max_examples=examples(400, 10), suppress_health_check=ASIDE)
@given(history=histories(), vectors=st.booleans())
def test_updates_follow_the_model(open_finding, history, vectors):
    """Upserts and overrides by Arrow, pandas and Polars, small streams and such with deletion vectors."""
    options = {"vectors_from_bytes": 0} if vectors else {}
    play(open_finding(MemoryStorage(), **options).stream("S"), history, ["arrow", "pandas", "polars"])


@pytest.mark.spark
@settings(max_examples=examples(24, 8), suppress_health_check=ASIDE)
@given(history=histories())
def test_spark_frames_follow_the_model(spark_engine, spark_session, tmp_path_factory, history):
    """The same histories, each batch as a Spark frame, read back by Spark."""
    stream = open_tenant(LocalStorage(tmp_path_factory.mktemp("model")), spark_engine).stream("S")

    def by_spark(rows):
        table = pa.table(rows)
        return spark_session.createDataFrame(table, schema=spark_ddl(table.schema))

    with pytest.MonkeyPatch.context() as patch:
        for name in KINDS:
            patch.setitem(KINDS, name, by_spark)
        play(stream, history, ["spark"])
