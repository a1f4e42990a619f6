"""The runner of long tests: its pieces go on where the last one stopped, and a violation ends it."""

import json

import pytest
from tests.endurance import __main__ as endurance

pytestmark = pytest.mark.stateful


def lines(folder):
    return [json.loads(line) for line in (folder / "pieces.jsonl").read_text().splitlines()]


@pytest.mark.timeout(300)
def test_a_piece_goes_on_where_the_last_one_stopped(tmp_path, monkeypatch):
    """Mixed jobs of all processes go on in one tenant; what was counted adds up."""
    monkeypatch.setattr(endurance.machines, "WRITERS", 2)
    monkeypatch.setattr(endurance.machines, "JOBS", 10)
    options = ["--state", str(tmp_path), "--minutes", "0.001", "--only", "mixed"]
    codes = [endurance.main(options) for _ in range(3)]
    pieces = lines(tmp_path)

    assert [0, 0, 0] == codes
    assert [10, 10] == [piece["counts"]["jobs"] for piece in pieces]
    assert [None, 1] == [piece["counts"].get("tenants") for piece in pieces]
    assert [[], []] == [piece["violations"] for piece in pieces]


def test_a_violation_is_kept_and_ends_the_run(tmp_path, monkeypatch):
    """With its folder; what a part raises is one as well."""

    def lose(folder, seed, ends, turns):
        (folder / "evidence").touch()
        raise AssertionError("lost: 7")

    monkeypatch.setitem(endurance.PARTS, "mixed", (lose, "tenants", 1))
    code = endurance.main(["--state", str(tmp_path), "--minutes", "1", "--only", "mixed"])
    (piece,) = lines(tmp_path)

    assert 1 == code
    assert "lost: 7" in piece["violations"][0]
    assert (tmp_path / "mixed" / "evidence").exists()
