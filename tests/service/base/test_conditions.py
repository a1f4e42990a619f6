"""If-Match and If-None-Match, as RFC 9110 has them."""

import pytest

from freezeframe.errors import PreconditionFailed, PreconditionRequired, UnreadableRequest
from freezeframe.service.base.conditions import Conditions


@pytest.mark.parametrize(
    ("conditions", "etag"),
    [
        (Conditions(), None),
        (Conditions(), '"1"'),
        (Conditions(if_match="*"), '"1"'),
        (Conditions(if_match='"0", "1"'), '"1"'),
        (Conditions(if_match='"a,b"'), '"a,b"'),
        (Conditions(if_none_match="*"), None),
        (Conditions(if_none_match='"2"'), '"1"'),
    ],
)
def test_what_holds(conditions, etag):
    """A condition that is true of what is there lets the change through."""
    conditions.require(etag)


@pytest.mark.parametrize(
    ("conditions", "etag"),
    [
        (Conditions(if_match="*"), None),
        (Conditions(if_match='"1"'), None),
        (Conditions(if_match='"2"'), '"1"'),
        (Conditions(if_match='W/"1"'), '"1"'),
        (Conditions(if_none_match="*"), '"1"'),
        (Conditions(if_none_match='W/"1"'), '"1"'),
    ],
)
def test_what_does_not_hold(conditions, etag):
    """A weak tag is enough to say "not this one", and never to change something."""
    with pytest.raises(PreconditionFailed):
        conditions.require(etag)


@pytest.mark.parametrize("header", ["1", '"1', '"1" "2"', 'w/"1"', '"\x01"'])
def test_what_is_no_list_of_tags(header):
    """A header that cannot be read is refused, and not taken for one that does not hold."""
    with pytest.raises(UnreadableRequest):
        Conditions(if_match=header).require('"1"')


def test_strict_mode_wants_a_condition_for_what_is_there():
    """Something new needs none."""
    Conditions().require(None, strict=True)
    with pytest.raises(PreconditionRequired):
        Conditions().require('"1"', strict=True)
