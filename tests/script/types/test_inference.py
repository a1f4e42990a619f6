"""Inference that can be undone: every column can be written again, letter by letter."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.script.text_columns import KEPT, TYPED

from freezeframe.script.types.inference import INFERENCE


def kind_of_texts(*texts):
    return INFERENCE.whole(pa.chunked_array([list(texts)], pa.string())).type


@pytest.mark.parametrize(("texts", "kind"), TYPED)
def test_a_column_is_typed_where_its_text_can_be_told_again(texts, kind):
    """Numbers, booleans, dates and timestamps in one convention a column."""
    assert kind == kind_of_texts(*texts)


@pytest.mark.parametrize("texts", KEPT)
def test_a_column_stays_text_where_a_letter_could_be_lost(texts):
    """One value that a type would write differently leaves the column as it is."""
    column = INFERENCE.whole(pa.chunked_array([texts], pa.string()))

    assert (pa.string(), texts) == (column.type, column.to_pylist())


def written(value):
    """The ways in which a typed value is written, by the conventions a column may have."""
    if isinstance(value, bool):
        return {str(value), str(value).lower()}
    if isinstance(value, dt.datetime):
        plain = value.replace(tzinfo=None)
        bodies = {plain.isoformat()} | {
            plain.isoformat(timespec="seconds") + f".{plain.microsecond:06d}"[: digits + 1]
            for digits in range(1, 7)
        }
        zones = ["Z", "+00:00", "+0000"] if value.tzinfo else [""]
        return {body.replace("T", mark) + zone for body in bodies for mark in "T " for zone in zones}
    if isinstance(value, float):
        return {repr(value), repr(value).removesuffix(".0")}
    return {str(value)}


TEXTS = st.one_of(
    st.text(max_size=6),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-1000, max_value=1000).map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    st.booleans().map(str),
    st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,3}", fullmatch=True),
)


@settings(max_examples=examples(300))
@given(st.lists(st.none() | TEXTS, max_size=4))
def test_every_value_is_null_or_written_as_it_was(texts):
    """Typed or not, each text is one of the ways to write the value that it became."""
    values = INFERENCE.whole(pa.chunked_array([texts], pa.string())).to_pylist()

    assert [text is None for text in texts] == [value is None for value in values]
    for text, value in zip(texts, values, strict=True):
        assert value is None or text in written(value)


@settings(max_examples=examples(200))
@given(st.lists(TEXTS, min_size=2, max_size=4, unique=True))
def test_different_texts_stay_different_values(texts):
    """No two texts of a column become one value, so that keys never melt into each other."""
    values = INFERENCE.whole(pa.chunked_array([texts], pa.string())).to_pylist()

    assert len(texts) == len(set(values))
