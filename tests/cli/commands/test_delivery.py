"""`freezeframe delivery` for people: which rows a target refused and why, and which it has alone."""

import pyarrow as pa
import pytest

import freezeframe
from freezeframe.cli.main import main


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """A tenant of which the shop refused one row, has one that is gone, and was not sent another."""
    monkeypatch.setenv("FREEZEFRAME_ENGINE", "auto")
    monkeypatch.setenv("FREEZEFRAME_ROOT", str(tmp_path))
    tenant = freezeframe.open(tmp_path).tenant("acme", create=True)
    lead, delivery = tenant.stream("Lead"), tenant.delivery("shop")
    lead.update(pa.table({"Id": [7, 8], "Day": ["a", "b"], "Name": ["Ann", "Bob"]}), ["Id", "Day"])
    rows = delivery.pending("Lead")
    delivery.accept("Lead", rows[rows["Id"] == 8].assign(_target_id="s8"))
    delivery.reject("Lead", rows[rows["Id"] == 7].assign(_error="no email"))
    lead.update(
        pa.table({"Id": [7, 9], "Day": ["a", "c"], "Name": ["Ann", "Cy"]}), mode="full", max_delete_ratio=1
    )
    return tenant


def called(capsys, *words):
    """The exit code of a command, and what it printed."""
    code = main([*words, "--tenant", "acme"])
    return code, capsys.readouterr().out


def test_show_says_what_was_refused_and_what_the_target_has_alone(acme, capsys):
    """With the reason, the id at the target, and the counts."""
    code, shown = called(capsys, "delivery", "show", "Lead", "shop")
    assert code == 0
    for text in ("no email", "s8", "Refused, and why", "the stream has not", "pending_inserted"):
        assert text in shown
