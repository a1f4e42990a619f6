"""The checker of histories finds each kind of violation, and nothing in a history that has none."""

from freezeframe.proof.writers import Operation, violations

GOOD = [
    Operation("a", "commit", 0, 1, 0, {"x": 1}),
    Operation("b", "commit", 2, 5, 1, {"x": 2, "y": 2}),
    Operation("c", "read", 3, 4, 0, {"x": 1}),
    Operation("c", "read", 3, 6, 1, {"x": 2, "y": 2}),
    Operation("a", "commit", 4, 7, 2, {"y": 3}),
    Operation("c", "read", 8, 9, 2, {"x": 2, "y": 3}),
]


def found(*changed):
    return list(violations([*GOOD, *changed]))


def test_a_serialisable_history_is_let_pass():
    """Overlapping commits and reads in any order of versions are right."""
    assert found() == []


def test_each_violation_is_found():
    """A shared version, a gap, a commit and a read that are too old, and wrong rows."""
    assert "was given to" in found(Operation("d", "commit", 4, 7, 2, {"y": 3}))[0]
    assert "are nobody's" in found(Operation("d", "commit", 10, 11, 4, {}))[0]
    assert "d read 1 after" in found(Operation("d", "read", 10, 11, 1, {"x": 2, "y": 2}))[0]
    assert "with other rows" in found(Operation("d", "read", 10, 11, 2, {"x": 2, "y": 2}))[0]
    late = [Operation("a", "commit", 0, 1, 1, {}), Operation("b", "commit", 2, 3, 0, {})]
    assert "b committed as 0 after a had seen 1" in list(violations(late))
