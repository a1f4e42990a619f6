"""Inference that can be undone: every column can be written again, letter by letter."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.script.text_columns import KEPT, TYPED

from freezeframe.script.types.typed_columns import DATES, INFERENCE, ColumnRule, both


def kind_of_texts(*texts):
    return INFERENCE.whole(pa.chunked_array([list(texts)], pa.string())).type


@pytest.mark.parametrize(("texts", "kind"), TYPED)
def test_a_column_is_typed_where_its_text_can_be_told_again(texts, kind):
    """Numbers and booleans in one convention a column."""
    assert kind == kind_of_texts(*texts)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2020-01-01", None], pa.date32()),
        (["2020-01-01 00:00:00", "2020-01-01T00:00:00.5"], pa.timestamp("us")),
        (["2020-01-01T00:00:00Z", "2020-01-01T00:00:00-0800"], pa.timestamp("us", "UTC")),
        (["2020-01-01", "2020-01-01 00:00:00"], pa.string()),
        (["2020-02-30"], pa.string()),
        (["20200101"], pa.int64()),
    ],
)
def test_dates_and_times_are_read_where_they_are_wanted(texts, kind):
    """Every value must be one, of one kind; else the column is what it is without the wish."""
    rule = ColumnRule((*DATES, *INFERENCE.ways), pa.null())
    assert kind == rule.whole(pa.chunked_array([texts], pa.string())).type


@pytest.mark.parametrize("texts", KEPT)
def test_a_column_stays_text_where_a_letter_could_be_lost(texts):
    """One value that a type would write differently leaves the column as it is."""
    column = INFERENCE.whole(pa.chunked_array([texts], pa.string()))
    assert (pa.string(), texts) == (column.type, column.to_pylist())


def is_written_as(value, text):
    """Whether a typed value is the one that a text means, and nothing of the text is lost in it."""
    if isinstance(value, bool):
        return text in {str(value), str(value).lower(), str(value).upper()}
    if isinstance(value, float | Decimal):
        meant = Decimal(repr(value)) if isinstance(value, float) else value
        mantissa, _, exponent = text.partition("e")
        is_plain = mantissa.strip("-.0123456789") == "" and text[0] != "."
        return Decimal(text) == meant and is_plain and (not exponent or "e" in repr(float(text)))
    return str(value) == text


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
    """Typed or not, each text means the value that it became."""
    values = INFERENCE.whole(pa.chunked_array([texts], pa.string())).to_pylist()
    assert [text is None for text in texts] == [value is None for value in values]
    for text, value in zip(texts, values, strict=True):
        assert value is None or is_written_as(value, text)


@settings(max_examples=examples(200))
@given(st.lists(TEXTS, min_size=2, max_size=4, unique=True))
def test_different_texts_stay_different_values(texts):
    """No two texts of a column become one value, so that keys never melt into each other."""
    values = INFERENCE.whole(pa.chunked_array([texts], pa.string())).to_pylist()
    assert len(texts) == len(set(values))


NUMBERS = st.one_of(
    st.integers(-(10**4), 10**4).map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-1000, max_value=1000).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=1, min_value=-10, max_value=10).map(str),
    st.integers(-1000, 1000).map(lambda number: repr(number / 8)),
    st.from_regex(r"-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,20})?", fullmatch=True),
)


@settings(max_examples=examples(300))
@given(st.lists(st.lists(st.none() | NUMBERS, max_size=3), min_size=1, max_size=4), st.randoms())
def test_parts_in_any_order_say_what_the_whole_says(parts, random):
    """Each part is looked at by itself, and findings are joined in any order and grouping."""
    text = pa.chunked_array(parts, pa.string())
    whole, (left, _) = INFERENCE.whole(text), INFERENCE.narrow(text)
    findings = [INFERENCE.narrow(pa.chunked_array([part], pa.string()))[0] for part in parts]
    random.shuffle(findings)
    while len(findings) > 1:
        place = random.randrange(len(findings) - 1)
        findings[place : place + 2] = [both(*findings[place : place + 2])]
    assert INFERENCE.kind(findings[0]) == whole.type == INFERENCE.kind(left)
    read = [INFERENCE.read(pa.chunked_array([part], pa.string()), findings[0]).to_pylist() for part in parts]
    assert whole.to_pylist() == [value for part in read for value in part]
