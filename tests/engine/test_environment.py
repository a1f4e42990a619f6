"""The variables that name a Spark Connect server."""

from freezeframe.engine.environment import REMOTE, foreign_remote, own_remote


def test_a_server_of_ours_is_nobodys_wish():
    """What a run or the library has set is told from what the user has set, also where both were at it."""
    ours = own_remote("sc://localhost:1/;token=t")
    assert ours[REMOTE] == "sc://localhost:1/;token=t"
    assert "" == foreign_remote({}) == foreign_remote(ours) == foreign_remote({REMOTE: "local[2]"})
    assert foreign_remote({REMOTE: "sc://theirs"}) == "sc://theirs"
    assert foreign_remote({**ours, REMOTE: "sc://theirs"}) == "sc://theirs"
